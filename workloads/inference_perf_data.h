// The data generators of inference-perf, as sources for the clients. Private to workloads/.
#pragma once

#include <memory>

#include "workloads/client.h"
#include "workloads/inference_perf.h"
#include "workloads/session_client.h"

namespace routesim::workloads::inference_perf {

/// shared_prefix without turns: a pool of prompts, permuted once, cycled.
std::unique_ptr<RequestSource> shared_prefix_source(const Config& config,
                                                    const WorkloadOptions& options);

/// shared_prefix with enable_multi_turn_chat: every pool prompt is a user.
std::unique_ptr<SessionSource> shared_prefix_sessions(const Config& config,
                                                      const WorkloadOptions& options);

/// conversation_replay.
std::unique_ptr<SessionSource> conversation_replay_sessions(const Config& config,
                                                            const WorkloadOptions& options);

/// random, synthetic and mock: unshared prompts with drawn lengths.
std::unique_ptr<RequestSource> random_source(const Config& config, const WorkloadOptions& options);

/// random with data.trace: unshared prompts with the lengths of the trace's rows, cycled.
std::unique_ptr<RequestSource> trace_length_source(const Config& config,
                                                   const WorkloadOptions& options,
                                                   TraceOpener trace);

/// shareGPT: the file in order, cycled, its first record discarded.
std::unique_ptr<RequestSource> sharegpt_source(const Config& config, const WorkloadOptions& options,
                                               ConversationOpener conversations);

/// Whether shareGPT data sends this conversation at all.
bool sharegpt_usable(const Config& config, const Conversation& conversation);

/// Wraps the parts of a prompt in the chat template when the API is a chat API.
class PromptAssembler {
 public:
  PromptAssembler(const Config& config, const WorkloadOptions& options);
  /// A prompt of one user message made of `parts`.
  std::shared_ptr<const Prompt> single(const std::vector<Segment>& parts, std::uint64_t id,
                                       bool reusable) const;
  /// A prompt of several messages, each a list of segments.
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

}  // namespace routesim::workloads::inference_perf
