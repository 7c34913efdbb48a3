// The data generators of inference-perf, as sources for the clients. Private to workloads/.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/client.h"
#include "workloads/inference_perf/inference_perf.h"
#include "workloads/prompts.h"
#include "workloads/sessions/session_client.h"

namespace routesim::workloads::inference_perf {

/// The single requests that data.type asks for, which has been checked.
std::unique_ptr<RequestSource> make_source(const Config& config, const WorkloadOptions& options,
                                           const LoadInputs& inputs);

/// The turns that data.type asks for.
std::unique_ptr<SessionSource> make_sessions(const Config& config, const WorkloadOptions& options);

/// LoadTraits::own_times.
std::string_view own_times_of(const Config& config);

/// conversation_replay.
std::unique_ptr<SessionSource> conversation_replay_sessions(const Config& config,
                                                            const WorkloadOptions& options);

/// An error when the longest answer leaves no room for a prompt, as the tool refuses it.
void check_conversation_length(const ConversationReplay& r, Diagnostics& out);

/// The key of a stage, or of `key` in it.
std::string stage_path(std::size_t i, const std::string& key = {});

/// Report errors in a stage of recorded sessions, and in their settings.
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
