// The one form of a session: calls, what each waits for, and what its prompt is made of. Recorded
// sessions and made ones have it alike, whatever their source; the replay client plays it. A
// session is made once and shared by all runs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/units.h"
#include "workloads/request.h"

namespace routesim::workloads {

/// A stretch of a call's prompt, in whole messages.
struct PromptPart {
  enum class Kind : std::uint8_t {
    kShared,    ///< The first `messages` of what call `source` really sent.
    kAnswer,    ///< The answer that call `source` really got; one message.
    kRecorded,  ///< The next `messages` of SessionCall::recorded.
    kReport,    ///< The answer that call `source` got, between the next two recorded; one message.
  };
  Kind kind = Kind::kRecorded;
  std::uint32_t source = 0;  ///< A call that is complete whenever this one may be sent.
  std::uint32_t messages = 1;
};

/// The tokens of one message; shared by all calls that repeat it.
using MessageTokens = std::shared_ptr<const std::vector<Segment>>;

struct SessionCall {
  std::vector<std::uint32_t> predecessors;  ///< Earlier calls that must have succeeded.
  Duration wait{};                          ///< After the last of them.
  Segment tools{};                          ///< Tool definitions, in front of the messages.
  Segment more_tools{};                     ///< Tool definitions behind the first ones.
  std::vector<PromptPart> parts;            ///< A kShared part only comes first.
  std::vector<MessageTokens> recorded;
  std::int64_t output_tokens = 1;  ///< Recorded length of the answer, >= 1.
  std::int64_t max_tokens = 1;     ///< Tokens that the replay asks for, >= output_tokens.
  bool stops_by_itself = false;    ///< The end of the sequence counts whatever ignore_eos says.
};

struct Session {
  std::string name;
  std::vector<SessionCall> calls;  ///< By start; never empty.
};

/// In the order of their files.
using Sessions = std::vector<Session>;

}  // namespace routesim::workloads
