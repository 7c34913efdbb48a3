// From texts to prompts and answers, for every tool. Private to workloads/.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/rng.h"
#include "workloads/distributions.h"
#include "workloads/options.h"
#include "workloads/prompts.h"

namespace routesim::workloads {

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
  ChatTemplate template_;
  std::uint64_t preamble_, header_, reply_;
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

/// Contents of the chat template's parts under a seed.
std::uint64_t template_preamble(std::uint64_t seed);
std::uint64_t template_header(std::uint64_t seed);
std::uint64_t template_reply(std::uint64_t seed);

/// `tokens` times `scale`, rounded.
std::int64_t scaled_tokens(std::int64_t tokens, double scale);

}  // namespace routesim::workloads
