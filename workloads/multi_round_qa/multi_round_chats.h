// The prompts of multi-round-qa: what each user says, in tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "workloads/options.h"
#include "workloads/prompts.h"
#include "workloads/request.h"

namespace routesim::workloads {

/// Makes prompts and answers. Fixed texts have the tokens that the vocabularies of Llama 3 and Qwen
/// give them, counted by hand; a dummy word ("hi") is one token. All users share the system prompt
/// and the words up to the user's number.
class MultiRoundChats {
 public:
  /// A question that is known, and the tokens of its known answer.
  struct Exchange {
    std::uint64_t text = 0;
    std::int64_t tokens = 0, answer_tokens = 0;
  };
  /// The exchanges of users by their number, in the order of their rounds; user 0 has none.
  using Exchanges = std::vector<std::vector<Exchange>>;

  MultiRoundChats(std::int64_t system_tokens, std::int64_t user_tokens, std::int64_t answer_tokens,
                  const WorkloadOptions& options,
                  std::shared_ptr<const Exchanges> exchanges = nullptr);

  /// The first message of a user: system prompt, user's text, question.
  PromptBuilder opening(std::uint64_t user, std::int64_t question) const;
  /// The next question behind everything so far.
  PromptBuilder next(const std::vector<Segment>& history, std::uint64_t user,
                     std::int64_t question) const;
  /// One of the ten requests before a run.
  PromptBuilder warmup(std::uint64_t number) const;

  /// Tokens asked for: the known answer's, at most as many as for all.
  std::int64_t answer_tokens(std::uint64_t user, std::int64_t question) const;
  /// Completes a request: its prompt, and an answer whose content `a` and `b` name. Temperature is
  /// 0, so an equal prompt gets an equal answer.
  void fill(PromptBuilder&& prompt, std::uint64_t a, std::uint64_t b, std::int64_t max_tokens,
            Request& request) const;

 private:
  /// Null where questions are the script's own. Rounds count from 1.
  const Exchange* exchange(std::uint64_t user, std::int64_t question) const;
  /// The start of a chat.
  PromptBuilder begin() const;
  void ask(PromptBuilder& prompt, std::uint64_t user, std::int64_t question) const;

  std::int64_t system_tokens_, user_tokens_, answer_tokens_;
  ChatFrame frame_;
  std::uint64_t seed_;
  AnswerLength answer_length_;
  std::shared_ptr<const Exchanges> exchanges_;
};

}  // namespace routesim::workloads
