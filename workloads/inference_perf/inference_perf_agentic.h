// inference-perf's synthetic agents: the settings, key by key.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/describe.h"
#include "workloads/distributions.h"
#include "workloads/inference_perf/inference_perf_replay.h"

namespace routesim::workloads::inference_perf {

/// Share of the sessions that have a theme, relative to the others.
struct ThemeWeight {
  double weight = 0;
};

/// What sessions are about, which decides how long their tools' texts are.
struct ThemeMix {
  std::optional<ThemeWeight> generic{}, db2_latency_incident{}, research_rag{}, code_change_task{};
};

/// When a session's context is replaced by a summary; both are drawn once per session, in tokens.
struct ContextCompaction {
  Distribution trigger_tokens{};  ///< Messages and tool definitions before the user's next turn.
  Distribution target_tokens{};   ///< Of the summary.
};

/// Sessions of agents with tool loops and sub-agents, as graphs of calls like recorded ones. A
/// session is one agent that a user talks to; each of its turns is a loop of tool calls and an
/// answer, or sub-agents whose reports it waits for.
struct SyntheticAgentic : SessionReplay {
  SyntheticAgentic() { override_tool_call_max_tokens = false; }

  std::int64_t num_sessions = 1;
  Distribution input_tokens_per_turn{};   ///< Of a user's message, and of a sub-agent's task.
  Distribution output_tokens_per_turn{};  ///< Of an answer that calls no tool.
  std::optional<Distribution> turns_per_session{};  ///< Absent: 1.
  double fanout_probability = 0;        ///< That an agent spawns others, per turn and sub-agent.
  std::optional<ThemeMix> theme_mix{};  ///< Absent: all four alike.
  std::int64_t seed = 42;
  std::int64_t shared_system_prompt_len = 1000;
  std::optional<Distribution> tool_loop_depth{};               ///< Absent: 2.
  std::optional<Distribution> sub_agents_per_spawn{};          ///< Absent: uniform from 2 to 4.
  std::int64_t max_depth = 2;                                  ///< Of sub-agents in sub-agents.
  std::int64_t max_events_per_session = 64;                    ///< Calls.
  std::optional<Distribution> tool_catalog_size_per_agent{};   ///< Absent: 8.
  std::optional<Distribution> parallel_tool_calls_per_step{};  ///< Absent: 1.
  std::optional<Distribution> tool_call_latency_sec{};         ///< Absent: 1 s.
  std::optional<Distribution> user_think_time_sec{};           ///< Absent: 10 s.
  std::optional<std::int64_t> max_model_len{};  ///< The longest request must fit into it.
  std::optional<ContextCompaction> context_compaction{};
};

void describe(Describer& d, SyntheticAgentic& t);

/// Weights of the themes, in the order of agent_theme().
std::vector<double> theme_weights(const SyntheticAgentic& t);

}  // namespace routesim::workloads::inference_perf
