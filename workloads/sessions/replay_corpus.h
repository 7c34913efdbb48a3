// Recorded sessions, ready to be replayed: calls, what each waits for, and what its prompt is made
// of. Made once from the files of a trace, shared by all runs.
#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "base/units.h"
#include "workloads/request.h"

namespace routesim::workloads {

/// A stretch of a call's prompt, in whole messages.
struct ReplayPart {
  enum class Kind : std::uint8_t {
    kShared,    ///< The first `messages` of what call `source` really sent.
    kAnswer,    ///< The answer that call `source` really got; one message.
    kRecorded,  ///< The next `messages` of ReplayCall::recorded.
    kReport,    ///< The answer that call `source` got, between the next two recorded; one message.
  };
  Kind kind = Kind::kRecorded;
  std::uint32_t source = 0;  ///< A call that is complete whenever this one may be sent.
  std::uint32_t messages = 1;
};

/// The tokens of one message; shared by all calls that repeat it.
using MessageTokens = std::shared_ptr<const std::vector<Segment>>;

struct ReplayCall {
  std::vector<std::uint32_t> predecessors;  ///< Earlier calls that must have succeeded.
  Duration wait{};                          ///< After the last of them.
  Segment tools{};                          ///< Tool definitions, in front of the messages.
  Segment more_tools{};                     ///< Tool definitions behind the first ones.
  std::vector<ReplayPart> parts;            ///< A kShared part only comes first.
  std::vector<MessageTokens> recorded;
  std::int64_t output_tokens = 1;  ///< Recorded length of the answer, >= 1.
  std::int64_t max_tokens = 1;     ///< Tokens that the replay asks for, >= output_tokens.
  bool stops_by_itself = false;    ///< The end of the sequence counts whatever ignore_eos says.
};

struct ReplaySession {
  std::string name;
  std::vector<ReplayCall> calls;  ///< By start; never empty.
};

struct ReplayCorpus {
  std::vector<ReplaySession> sessions;  ///< In the order of the files.
};

/// Collects the sessions of files of one format.
class ReplayReader {
 public:
  virtual ~ReplayReader() = default;
  /// Reads a file's records, JSON objects one after another: one of any layout, or one per line if
  /// `lines`. What is wrong is an error with its place (with `skip_invalid_files`, a warning, and
  /// the record, or the rest of a file that is not of lines, is left out).
  virtual void read(std::istream& in, const std::string& file, bool lines, Diagnostics& out) = 0;
  /// Takes all sessions. Nothing may be read afterwards.
  virtual ReplayCorpus take() = 0;
};

}  // namespace routesim::workloads
