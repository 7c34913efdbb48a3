// Files of recorded sessions: JSON objects, each of which is a session. The readers know the
// recorders' formats, and nothing of replay.
#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include "base/diagnostic.h"
#include "workloads/load/load.h"
#include "workloads/sessions/recording.h"
#include "workloads/sessions/replay_settings.h"

namespace routesim::tools {

/// The longest prompt or answer that a recording may have.
inline constexpr std::int64_t kMostRecordedTokens = 100'000'000;

/// The base of the readers: a .jsonl file has a record per line, any other file has one.
class RecordReader {
 public:
  using Take = std::function<void(workloads::Recording)>;

  virtual ~RecordReader() = default;
  /// Reads a file's records, JSON objects one after another: one of any layout, or one per line if
  /// `lines`, and hands each session to `take`. What is wrong is an error with its place (where
  /// broken records are skipped, a warning, and the record, or the rest of a file that is not of
  /// lines, is left out). The first broken record ends the reading unless they are skipped.
  void read(std::istream& in, const std::string& file, bool lines, const Take& take,
            Diagnostics& out);

 protected:
  enum class Result { kTaken, kLeftOut, kBroken };

  /// `most` records are taken of a file of lines.
  explicit RecordReader(bool skip_invalid,
                        std::int64_t most = std::numeric_limits<std::int64_t>::max())
      : skip_invalid_(skip_invalid), most_(most) {}
  /// Reads the record that begins at `where`. A recording without calls is no session.
  virtual Result read_record(std::string_view text, const SourceLocation& where,
                             workloads::Recording& recording, Diagnostics& out) = 0;
  /// An error, or a warning where broken records are skipped.
  void complain(const SourceLocation& where, const std::string& what, const std::string& hint,
                Diagnostics& out) const;

 private:
  bool skip_invalid_;
  std::int64_t most_;
};

struct OtelSpanOptions {
  bool skip_invalid = false;
  bool include_errors = true;  ///< Calls that failed when they were recorded count.
};

/// LLM calls recorded as OpenTelemetry spans (gen_ai attributes): records with a list `spans`. Only
/// chat spans with messages count, of equal spans the first. Texts are known to the byte; the
/// recorded usage tells the tokens of a prompt and an answer. A session whose spans cannot be
/// replayed is left out with a warning.
std::unique_ptr<RecordReader> make_otel_reader(const OtelSpanOptions& options);

struct WekaTraceOptions {
  bool skip_invalid = false;
  std::int64_t most_records = 100;       ///< Of a file of lines.
  std::int64_t default_block_size = 64;  ///< Tokens of a block where a trace says 0.
  double idle_gap_cap_s = 60;            ///< Longer gaps between starts are cut; 0: none is.
};

/// Weka traces. Two with the same id are an error.
std::unique_ptr<RecordReader> make_weka_reader(const WekaTraceOptions& options);

/// The sessions of all files that a load replays.
class SessionFiles {
 public:
  explicit SessionFiles(const workloads::OtelTraceReplay& settings);
  explicit SessionFiles(const workloads::WekaTraceReplay& settings);
  void read(std::istream& in, const std::string& file, bool lines, Diagnostics& out);
  /// Takes all sessions. Nothing may be read afterwards.
  workloads::Sessions take() { return maker_.take(); }

 private:
  workloads::SessionMaker maker_;
  std::unique_ptr<RecordReader> reader_;
};

/// For the recorded sessions that the load replays; null when it replays none.
std::unique_ptr<SessionFiles> session_files(const workloads::Load& load);

}  // namespace routesim::tools
