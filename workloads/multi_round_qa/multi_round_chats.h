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
  MultiRoundChats(std::int64_t system_tokens, std::int64_t user_tokens, std::int64_t answer_tokens,
                  const WorkloadOptions& options);

  /// The first message of a user: system prompt, user's text, question.
  PromptBuilder opening(std::uint64_t user, std::int64_t question) const;
  /// The next question behind everything so far.
  PromptBuilder next(const std::vector<Segment>& history, std::int64_t question) const;
  /// One of the ten requests before a run.
  PromptBuilder warmup(std::uint64_t number) const;

  /// Completes a request: its prompt, and an answer whose content `a` and `b` name. Temperature is
  /// 0, so an equal prompt gets an equal answer.
  void fill(PromptBuilder&& prompt, std::uint64_t a, std::uint64_t b, Request& request) const;

 private:
  void ask(PromptBuilder& prompt, std::int64_t question) const;

  std::int64_t system_tokens_, user_tokens_, answer_tokens_;
  ChatTemplate template_;
  std::uint64_t seed_;
  AnswerLength answer_length_;
};

}  // namespace routesim::workloads
