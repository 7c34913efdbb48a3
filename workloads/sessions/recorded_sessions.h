// Readers of recorded sessions: files of JSON objects, each of which is a session.
#pragma once

#include <cstdint>
#include <istream>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include "workloads/sessions/replay_corpus.h"
#include "workloads/sessions/replay_settings.h"

namespace routesim::workloads {

/// LLM calls recorded as OpenTelemetry spans (gen_ai attributes): records with a list `spans`. Only
/// chat spans with messages count, of equal spans the first. Texts are known to the byte and equal
/// texts are equal tokens; how many is told by the recorded usage: what a prompt has more than what
/// is known is shared out among its new texts by their characters. Without usage a token has four
/// characters. A session whose spans cannot be replayed is left out with a warning.
std::unique_ptr<ReplayReader> make_otel_reader(const OtelTraceReplay& settings);

/// Weka traces, at most num_dataset_entries of a file of lines. Two with the same id are an error.
std::unique_ptr<ReplayReader> make_weka_reader(const WekaTraceReplay& settings);

/// The base of both readers: a .jsonl file has a record per line, any other file has one. The first
/// broken record ends the reading of a file unless broken ones are to be skipped.
class RecordReader : public ReplayReader {
 public:
  void read(std::istream& in, const std::string& file, bool lines, Diagnostics& out) final;
  ReplayCorpus take() final { return std::move(corpus_); }

 protected:
  enum class Result { kTaken, kLeftOut, kBroken };

  /// `most` records are taken of a file of lines.
  explicit RecordReader(bool skip_invalid,
                        std::int64_t most = std::numeric_limits<std::int64_t>::max())
      : skip_invalid_(skip_invalid), most_(most) {}
  /// Reads the record that begins at `where`.
  virtual Result read_record(std::string_view text, const SourceLocation& where,
                             Diagnostics& out) = 0;
  /// An error, or a warning where broken records are skipped.
  void complain(const SourceLocation& where, const std::string& what, const std::string& hint,
                Diagnostics& out) const;
  /// Adds a session; one without calls is left out.
  void add(ReplaySession session);

 private:
  bool skip_invalid_;
  std::int64_t most_;
  ReplayCorpus corpus_;
};

}  // namespace routesim::workloads
