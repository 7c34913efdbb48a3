// The ground truth of one request. Policies never see this type (design law 5).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/ids.h"
#include "base/rng.h"
#include "base/units.h"

namespace routesim::workloads {

/// `length` consecutive tokens of an endless text named `content`, from `offset` on. Two segments
/// hold equal tokens exactly when content, offset and length are equal; token i of a content is
/// token_at(content, i).
struct Segment {
  std::uint64_t content = 0;
  std::int64_t offset = 0;
  std::int64_t length = 0;
  bool operator==(const Segment&) const = default;
};

/// A prompt as a short list of segments; adjacent segments that continue each other are merged, so
/// equal prompts have equal segment lists. Immutable, shared by every request that repeats it.
struct Prompt {
  std::uint64_t id = 0;  ///< Dense, unique within the workload; never reused.
  std::vector<Segment> segments{};
  std::int64_t tokens = 0;    ///< Sum of the segment lengths.
  bool reusable = false;      ///< From a pool: the same object will be sent again.
  std::uint32_t adapter = 0;  ///< LoRA adapter that computes it, from 1 on; 0 = the base model.
  /// Leading tokens every chat request starts with (the server's chat template). A router that
  /// looks at message text, not at the templated prompt, starts behind them.
  std::int64_t preamble_tokens = 0;
};

/// Token ids are drawn from as many.
inline constexpr std::uint32_t kVocabulary = 128000;

/// 64 random bits for the tokens 2 i and 2 i + 1 of a content: a counter hash, one mixer for both.
constexpr std::uint64_t token_pair(std::uint64_t content, std::int64_t i) {
  return mix64(content + 0x9e3779b97f4a7c15ULL * static_cast<std::uint64_t>(i));
}
/// 32 random bits as a token id below `vocabulary`: a multiply instead of a modulo.
constexpr std::uint32_t scale_token(std::uint64_t bits, std::uint32_t vocabulary = kVocabulary) {
  return static_cast<std::uint32_t>((bits * vocabulary) >> 32);
}

/// The token id at position i of a content, in [0, vocabulary). Stable across platforms.
constexpr std::uint32_t token_at(std::uint64_t content, std::int64_t i,
                                 std::uint32_t vocabulary = kVocabulary) {
  const std::uint64_t pair = token_pair(content, i / 2);
  return scale_token(i % 2 == 0 ? pair >> 32 : pair & 0xffffffff, vocabulary);
}

/// One request as the load tool sends it, and the truth of what the server will do with it.
struct Request {
  RequestId id;  ///< Dense, in the order the generator made them.
  std::shared_ptr<const Prompt> prompt;
  std::int64_t output_tokens = 0;    ///< Tokens the engine will really generate (>= 1).
  std::int64_t max_tokens = 0;       ///< Tokens that the client asks for (>= output_tokens).
  std::uint64_t output_content = 0;  ///< Content id of the answer: token i is (content, i).
  StageId stage;
  std::uint64_t session = 0;        ///< Conversation or user; 0 = none.
  std::int32_t priority = 0;        ///< vLLM's request field.
  std::uint32_t traffic_class = 0;  ///< Of those that the scenario lists.
  SimTime due{};                    ///< When the load tool wanted to send it.
  /// How long the tool keeps the request open after its last token, in its own measure of the
  /// request's latency: inference-perf's conversation_replay sleeps for a tool call before it takes
  /// the end time. Of successes only.
  Duration held_open{};
  Duration timeout = Duration::max();  ///< Client gives up this long after the send.
};

}  // namespace routesim::workloads
