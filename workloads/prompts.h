// How prompts are made: content ids, the builder that keeps segment lists canonical, prompt ids.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/describe.h"
#include "base/rng.h"
#include "workloads/request.h"

namespace routesim::workloads {

/// What a text is. Part of every content id, so that texts of different kinds never collide. The
/// numbers are part of the results: never renumber, only append.
enum class ContentKind : std::uint64_t {
  kSystemPrompt = 1,  ///< Shared prefix of a group.
  kQuestion = 2,      ///< What one user of a group asks.
  kAnswer = 3,        ///< What the model generates.
  kUnique = 4,        ///< Text nobody else sends.
  kChatTemplate = 5,  ///< Role headers and other text the server's chat template adds.
  kMessage = 6,       ///< A human message of a conversation.
  kTraceBlock = 7,    ///< A block of a trace that names blocks by hash.
  kTurnInput = 8,     ///< Input of one turn of a replayed conversation.
  kText = 9,          ///< Text known by a hash of its bytes.
};

/// The content id of text number (a, b) of a kind, under a workload seed. Collisions have
/// probability 2^-64 per pair.
constexpr std::uint64_t content_id(std::uint64_t seed, ContentKind kind, std::uint64_t a,
                                   std::uint64_t b = 0) {
  return mix64(mix64(seed, static_cast<std::uint64_t>(kind)), mix64(a, b));
}

/// Tokens a server's chat template wraps around messages. All zero (the default) means that
/// lengths already count them, or that the completion API is used.
struct ChatTemplate {
  std::int64_t preamble_tokens = 0;  ///< Once at the start (begin-of-text, default system prompt).
  std::int64_t message_tokens = 0;   ///< Per message, before its text (role header, separators).
  std::int64_t reply_tokens = 0;     ///< Once at the end (header of the answer to come).
  bool operator==(const ChatTemplate&) const = default;
};

void describe(Describer& d, ChatTemplate& t);

/// Collects segments in order; adjacent segments that continue each other become one and empty
/// ones vanish, so equal token sequences made from the same contents have equal segment lists.
class PromptBuilder {
 public:
  PromptBuilder() = default;
  /// Continues after a copy of `start`'s segments.
  explicit PromptBuilder(const Prompt& start);

  PromptBuilder& append(Segment segment);
  PromptBuilder& append(std::uint64_t content, std::int64_t length) {
    return append(Segment{.content = content, .offset = 0, .length = length});
  }
  PromptBuilder& append(const std::vector<Segment>& segments);

  /// What stands so far is the same in every chat prompt (Prompt::preamble_tokens).
  PromptBuilder& preamble_is_done() {
    preamble_tokens_ = tokens_;
    return *this;
  }

  PromptBuilder& preamble_is(std::int64_t tokens) {
    preamble_tokens_ = tokens;
    return *this;
  }

  std::int64_t tokens() const { return tokens_; }
  const std::vector<Segment>& segments() const { return segments_; }
  void reserve(std::size_t segments) { segments_.reserve(segments); }

  /// The finished prompt. An empty one gets a single token, since no server accepts none.
  std::shared_ptr<const Prompt> build(std::uint64_t id, bool reusable = false) &&;

 private:
  std::vector<Segment> segments_;
  std::int64_t tokens_ = 0;
  std::int64_t preamble_tokens_ = 0;
};

/// Whether the prompt had no token before it got that one.
bool is_stand_in(const Prompt& prompt);

/// Hands out dense prompt ids.
class PromptIds {
 public:
  std::uint64_t next() { return next_++; }

 private:
  std::uint64_t next_ = 0;
};

}  // namespace routesim::workloads
