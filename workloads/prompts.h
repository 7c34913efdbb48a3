// How prompts and answers are made, for every tool: content ids, the builder that keeps segment
// lists canonical, chat templates, lengths of answers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/rng.h"
#include "workloads/distributions.h"
#include "workloads/options.h"
#include "workloads/request.h"

namespace routesim::workloads {

/// The kind of a text. Part of every content id, so that texts of different kinds never collide.
/// The numbers are part of the results: never renumber, only append.
enum class ContentKind : std::uint64_t {
  kSystemPrompt = 1,  ///< Shared prefix of a group.
  kQuestion = 2,      ///< The question of one user of a group.
  kAnswer = 3,        ///< Text that the model generates.
  kUnique = 4,        ///< Text nobody else sends.
  kChatTemplate = 5,  ///< Role headers and other text the server's chat template adds.
  kMessage = 6,       ///< A human message of a conversation.
  kTraceBlock = 7,    ///< A block of a trace that names blocks by hash.
  kTurnInput = 8,     ///< Input of one turn of a replayed conversation.
  kText = 9,          ///< Text known by a hash of its bytes.
  kTracePrefix = 10,  ///< The common start of the rows of one prefix group of a trace.
};

/// The content id of text number (a, b) of a kind, under a workload seed. Collisions have
/// probability 2^-64 per pair.
constexpr std::uint64_t content_id(std::uint64_t seed, ContentKind kind, std::uint64_t a,
                                   std::uint64_t b = 0) {
  return mix64(mix64(seed, static_cast<std::uint64_t>(kind)), mix64(a, b));
}

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

  /// All tokens so far are the same in every chat prompt (Prompt::preamble_tokens).
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

/// The text of a request's prompt, and then that of its answer.
std::vector<Segment> with_answer(const Request& request);

/// Whether the prompt had no token before it got that one.
bool is_stand_in(const Prompt& prompt);

/// Hands out dense prompt ids.
class PromptIds {
 public:
  std::uint64_t next() { return next_++; }

 private:
  std::uint64_t next_ = 0;
};

/// The tokens that a server's chat template puts around messages, under a seed.
class ChatFrame {
 public:
  ChatFrame(const ChatTemplate& tokens, std::uint64_t seed);
  const ChatTemplate& tokens() const { return tokens_; }
  /// Before all messages.
  void preamble(PromptBuilder& prompt) const { prompt.append(preamble_, tokens_.preamble_tokens); }
  /// Before the text of each message.
  void header(PromptBuilder& prompt) const { prompt.append(header_, tokens_.message_tokens); }
  /// Behind all messages.
  void reply(PromptBuilder& prompt) const { prompt.append(reply_, tokens_.reply_tokens); }

 private:
  ChatTemplate tokens_;
  std::uint64_t preamble_, header_, reply_;  // Contents.
};

/// Wraps texts in the server's chat template when the API is a chat API.
class PromptAssembler {
 public:
  PromptAssembler(const WorkloadOptions& options, bool chat);
  /// A prompt of one user message made of `parts`.
  std::shared_ptr<const Prompt> single(const std::vector<Segment>& parts, std::uint64_t id,
                                       bool reusable) const;
  /// A prompt of several messages, one segment each.
  std::shared_ptr<const Prompt> messages(const std::vector<Segment>& texts, std::uint64_t id) const;

 private:
  ChatFrame frame_;
};

/// How many tokens an answer really has: max_tokens, or the natural length where the model may
/// stop.
class AnswerLength {
 public:
  AnswerLength(const std::optional<Distribution>& natural, bool ignore_eos, std::uint64_t seed);
  std::int64_t operator()(std::int64_t max_tokens, std::uint64_t entity) const;

 private:
  std::optional<LengthSampler> natural_;
  std::uint64_t seed_;
};

/// The answers of requests that are numbered by stage, each a text of its own.
class StagedAnswers {
 public:
  StagedAnswers(const WorkloadOptions& options, bool ignore_eos, std::uint64_t seed)
      : seed_(seed), length_(options.natural_answer, ignore_eos, seed) {}
  /// Names the draws of request `index` of a stage.
  static std::uint64_t entity(std::size_t stage, std::int64_t index) {
    return (static_cast<std::uint64_t>(stage) << 40) | static_cast<std::uint64_t>(index);
  }
  std::uint64_t seed() const { return seed_; }
  /// Sets what is asked for (at least 1), the tokens that come, and their content.
  void fill(std::size_t stage, std::int64_t index, std::int64_t max_tokens, Request& request) const;

 private:
  std::uint64_t seed_;
  AnswerLength length_;
};

/// `tokens` times `scale`, rounded.
std::int64_t scaled_tokens(std::int64_t tokens, double scale);

/// Tokens of all segments.
std::int64_t tokens_in(const std::vector<Segment>& segments);

/// Keeps the first `tokens`.
void shorten(std::vector<Segment>& segments, std::int64_t tokens);

}  // namespace routesim::workloads
