// Settings of inference-perf's sessions, recorded or synthetic, key by key.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/describe.h"
#include "base/diagnostic.h"
#include "workloads/distributions.h"

namespace routesim::workloads {

enum class ToolChoiceMode { kForceRecorded, kAsRecorded };
enum class BadToolCallHandling { kNone, kUseRecorded };

/// Settings of every kind of session. Keys about the text of answers (tool_choice_mode,
/// bad_tool_call_handling) and about model names have no effect on a simulation.
struct SessionReplay {
  std::optional<std::string> trace_directory{};  ///< Every *.json in it, in the order of the names.
  std::vector<std::string> trace_files{};        ///< Paths; `*` and `?` stand for any characters.
  Document hf_dataset_path{};  ///< Cannot be fetched here: trace_files may hold its download.
  std::optional<std::string> filter{};  ///< A lambda of Python, which is refused.
  bool use_static_model = false;
  std::string static_model_name{};
  Document model_mapping{};
  std::int64_t default_max_tokens = 1000;
  bool override_tool_call_max_tokens = true;  ///< Tool calls may take max(4 x recorded, 4096).
  ToolChoiceMode tool_choice_mode = ToolChoiceMode::kForceRecorded;
  bool inject_random_session_id = false;  ///< Text of the session's own before recorded messages.
  std::optional<std::int64_t> duplicate_sessions_target{};
  std::int64_t max_wait_ms = 15000;            ///< Longest wait after the last predecessor.
  double predecessor_wait_timeout_sec = 3600;  ///< 0: for ever.
  bool include_errors = true;
  bool skip_invalid_files = false;
  BadToolCallHandling bad_tool_call_handling = BadToolCallHandling::kNone;
};

/// OpenTelemetry spans of LLM calls.
struct OtelTraceReplay : SessionReplay {
  bool disable_output_substitution = false;  ///< Later prompts repeat the recorded answers.
  Document attribute_to_header_map{}, attribute_to_label_map{};
};

/// Coding-agent sessions as blocks named by hash (kv-cache-tester).
struct WekaTraceReplay : SessionReplay {
  double trace_idle_gap_cap_seconds = 60;  ///< Longer gaps between starts are cut; 0: none is.
  bool ignore_trace_delays = false;        ///< Read by the tool, and never used.
  bool use_think_time_only = false;        ///< Read by the tool, and never used.
  std::int64_t default_block_size = 64;    ///< Block size of traces whose block_size is 0.
  std::int64_t num_dataset_entries = 100;  ///< Most traces of a file of JSON lines.
  std::optional<std::int64_t> datagen_workers{};
};

/// Share of the sessions that have a theme, relative to the others.
struct ThemeWeight {
  double weight = 0;
};

/// The subjects of sessions, which decide how long their tools' texts are. The tool has two more
/// themes (incidents of a service and of a database), which no published file uses.
struct ThemeMix {
  std::optional<ThemeWeight> research_rag{}, code_change_task{};
};

/// When a session's context is replaced by a summary; both are drawn once per session, in tokens.
struct ContextCompaction {
  Distribution trigger_tokens{};  ///< Messages and tool definitions before the user's next turn.
  Distribution target_tokens{};   ///< Length of the summary.
};

/// Sessions of agents with tool loops and sub-agents, as graphs of calls like recorded ones. A
/// session is one agent that a user talks to; each of its turns is a loop of tool calls and an
/// answer, or sub-agents whose reports it waits for.
struct SyntheticAgentic : SessionReplay {
  SyntheticAgentic() { override_tool_call_max_tokens = false; }

  std::int64_t num_sessions = 1;
  Distribution input_tokens_per_turn{};             ///< Length of a user's message, and of a task.
  Distribution output_tokens_per_turn{};            ///< Length of an answer that calls no tool.
  std::optional<Distribution> turns_per_session{};  ///< Absent: 1.
  double fanout_probability = 0;                    ///< Chance that an agent spawns others.
  std::optional<ThemeMix> theme_mix{};              ///< Absent: both alike.
  std::int64_t seed = 42;
  std::int64_t shared_system_prompt_len = 1000;
  std::optional<Distribution> tool_loop_depth{};               ///< Absent: 2.
  std::optional<Distribution> sub_agents_per_spawn{};          ///< Absent: uniform from 2 to 4.
  std::int64_t max_depth = 2;                                  ///< Levels of sub-agents.
  std::int64_t max_events_per_session = 64;                    ///< Calls.
  std::optional<Distribution> tool_catalog_size_per_agent{};   ///< Absent: 8.
  std::optional<Distribution> parallel_tool_calls_per_step{};  ///< Absent: 1.
  std::optional<Distribution> tool_call_latency_sec{};         ///< Absent: 1 s.
  std::optional<Distribution> user_think_time_sec{};           ///< Absent: 10 s.
  std::optional<std::int64_t> max_model_len{};  ///< The longest request must fit into it.
  std::optional<ContextCompaction> context_compaction{};
};

void describe(Describer& d, OtelTraceReplay& t);
void describe(Describer& d, WekaTraceReplay& t);
void describe(Describer& d, SyntheticAgentic& t);

/// Each adds an error or a warning, at a key below `path`, for everything that cannot be replayed.
void check(const OtelTraceReplay& t, const std::string& path, Diagnostics& out);
void check(const WekaTraceReplay& t, const std::string& path, Diagnostics& out);
void check(const SyntheticAgentic& t, const std::string& path, Diagnostics& out);

/// Weights of the themes, in the order of agent_theme().
std::vector<double> theme_weights(const SyntheticAgentic& t);

}  // namespace routesim::workloads

template <>
struct routesim::EnumNames<routesim::workloads::ToolChoiceMode> {
  static constexpr std::array<std::string_view, 2> value = {"force_recorded", "as_recorded"};
};
template <>
struct routesim::EnumNames<routesim::workloads::BadToolCallHandling> {
  static constexpr std::array<std::string_view, 2> value = {"none", "use_recorded"};
};
