// The data generators of inference-perf, as sources for the clients. Private to workloads/.
#pragma once

#include <memory>
#include <vector>

#include "workloads/assemble.h"
#include "workloads/client.h"
#include "workloads/inference_perf/inference_perf.h"
#include "workloads/sessions/session_client.h"

namespace routesim::workloads::inference_perf {

/// shared_prefix without turns: a pool of prompts, permuted once, cycled.
std::unique_ptr<RequestSource> shared_prefix_source(const Config& config,
                                                    const WorkloadOptions& options);

/// shared_prefix with enable_multi_turn_chat: every pool prompt is a user.
std::unique_ptr<SessionSource> shared_prefix_sessions(const Config& config,
                                                      const WorkloadOptions& options);

/// bimodal: request n is of the same mode and group with the same text in every stage.
std::unique_ptr<RequestSource> bimodal_source(const Config& config, const WorkloadOptions& options);

/// conversation_replay.
std::unique_ptr<SessionSource> conversation_replay_sessions(const Config& config,
                                                            const WorkloadOptions& options);

/// An error when the longest answer leaves no room for a prompt, as the tool refuses it.
void check_conversation_length(const ConversationReplay& r, Diagnostics& out);

/// random, synthetic and mock: unshared prompts with drawn lengths.
std::unique_ptr<RequestSource> random_source(const Config& config, const WorkloadOptions& options);

/// random with data.trace: unshared prompts with the lengths of the trace's rows, cycled.
std::unique_ptr<RequestSource> trace_length_source(const Config& config,
                                                   const WorkloadOptions& options,
                                                   TraceOpener trace);

/// shareGPT: the file in order, cycled, its first record discarded.
std::unique_ptr<RequestSource> sharegpt_source(const Config& config, const WorkloadOptions& options,
                                               ConversationOpener conversations);

/// The parts of a stage that do not depend on the client.
struct StageLoad {
  StageInfo info{};
  std::unique_ptr<ArrivalStream> arrivals{};
};

/// What is wrong with load.sweep, which is given.
void check_sweep(const Config& config, Diagnostics& out);
/// Its probe, and the stages whose arrivals and rates only make_sweep's will know.
std::vector<StageLoad> sweep_stages(const Config& config, const WorkloadOptions& options);
std::unique_ptr<RateSweep> make_sweep(const Config& config, const WorkloadOptions& options);

/// What is wrong with a stage of recorded sessions, and with their settings.
void check_session_stage(const Stage& stage, std::size_t i, Diagnostics& out);
void check_replay_data(const Config& config, Diagnostics& out);

/// Recorded sessions, in the order the tool draws from load.base_seed (without one: from the run's
/// seed), or synthetic ones in their own order. Null with an error when there are none.
std::unique_ptr<LoadGenerator> make_replay_client(const Config& config,
                                                  const WorkloadOptions& options,
                                                  const LoadInputs& inputs, Diagnostics& out);

/// Whether shareGPT data sends this conversation at all.
bool sharegpt_usable(const Config& config, const Conversation& conversation);

}  // namespace routesim::workloads::inference_perf
