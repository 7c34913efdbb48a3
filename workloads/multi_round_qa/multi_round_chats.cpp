#include "workloads/multi_round_qa/multi_round_chats.h"

#include <algorithm>
#include <utility>

namespace routesim::workloads {
namespace {

/// "Hi, here's some system prompt:" before the dummy words; ".For user " behind them.
constexpr std::int64_t kBeforeSystem = 8, kBehindSystem = 4;
/// "7, here are some other context:" before the user's dummy words, "." behind them.
constexpr std::int64_t kBeforeUser = 8, kBehindUser = 1;
/// "Here's question #2: can you tell me a new long story with a happy ending?"
constexpr std::int64_t kQuestion = 19;
/// "WARMUP: Hi, I'm user ", and "3. Here are some text:", 100 dummy words and " .".
constexpr std::int64_t kWarmupStart = 9, kWarmupRest = 108;

/// Contents of kUnique and kSystemPrompt texts.
constexpr std::uint64_t kSystem = 0, kWarmup = 1;

}  // namespace

MultiRoundChats::MultiRoundChats(std::int64_t system_tokens, std::int64_t user_tokens,
                                 std::int64_t answer_tokens, const WorkloadOptions& options,
                                 std::shared_ptr<const Exchanges> exchanges)
    : system_tokens_(system_tokens),
      user_tokens_(user_tokens),
      answer_tokens_(answer_tokens),
      frame_(options.chat_template, options.seed),
      seed_(options.seed),
      answer_length_(options.natural_answer, /*ignore_eos=*/false, options.seed),
      exchanges_(std::move(exchanges)) {}

const MultiRoundChats::Exchange* MultiRoundChats::exchange(std::uint64_t user,
                                                           std::int64_t question) const {
  return exchanges_ == nullptr || user == 0
             ? nullptr
             : &exchanges_->at(user).at(static_cast<std::size_t>(question) - 1);
}

std::int64_t MultiRoundChats::answer_tokens(std::uint64_t user, std::int64_t question) const {
  const Exchange* known = exchange(user, question);
  return known == nullptr
             ? answer_tokens_
             : std::max<std::int64_t>(std::min(known->answer_tokens, answer_tokens_), 1);
}

void MultiRoundChats::ask(PromptBuilder& prompt, std::uint64_t user, std::int64_t question) const {
  if (const Exchange* known = exchange(user, question))
    prompt.append(content_id(seed_, ContentKind::kText, known->text), known->tokens);
  else
    prompt.append(content_id(seed_, ContentKind::kQuestion, static_cast<std::uint64_t>(question)),
                  kQuestion);
  frame_.reply(prompt);
}

PromptBuilder MultiRoundChats::begin() const {
  PromptBuilder prompt;
  frame_.preamble(prompt);
  frame_.header(prompt);
  prompt.preamble_is_done();
  return prompt;
}

PromptBuilder MultiRoundChats::opening(std::uint64_t user, std::int64_t question) const {
  PromptBuilder prompt = begin();
  prompt.append(content_id(seed_, ContentKind::kSystemPrompt, kSystem),
                kBeforeSystem + system_tokens_ + kBehindSystem);
  prompt.append(content_id(seed_, ContentKind::kUnique, user),
                kBeforeUser + user_tokens_ + kBehindUser);
  ask(prompt, user, question);
  return prompt;
}

PromptBuilder MultiRoundChats::next(const std::vector<Segment>& history, std::uint64_t user,
                                    std::int64_t question) const {
  PromptBuilder prompt;
  prompt.append(history);
  prompt.preamble_is(frame_.tokens().preamble_tokens + frame_.tokens().message_tokens);
  frame_.header(prompt);
  ask(prompt, user, question);
  return prompt;
}

PromptBuilder MultiRoundChats::warmup(std::uint64_t number) const {
  PromptBuilder prompt = begin();
  prompt.append(content_id(seed_, ContentKind::kSystemPrompt, kWarmup), kWarmupStart);
  prompt.append(content_id(seed_, ContentKind::kSystemPrompt, kWarmup, number + 1), kWarmupRest);
  frame_.reply(prompt);
  return prompt;
}

void MultiRoundChats::fill(PromptBuilder&& prompt, std::uint64_t a, std::uint64_t b,
                           std::int64_t max_tokens, Request& request) const {
  request.prompt = std::move(prompt).build(request.id.value());
  request.max_tokens = max_tokens;
  request.output_tokens = answer_length_(max_tokens, mix64(a, b));
  request.output_content = content_id(seed_, ContentKind::kAnswer, a, b);
}

}  // namespace routesim::workloads
