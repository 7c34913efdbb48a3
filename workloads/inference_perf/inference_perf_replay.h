// inference-perf's replay of recorded sessions: the settings, key by key.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/describe.h"

namespace routesim::workloads::inference_perf {

enum class ToolChoiceMode { kForceRecorded, kAsRecorded };
enum class BadToolCallHandling { kNone, kUseRecorded };

/// What every kind of recorded session has. Keys about the text of answers (tool_choice_mode,
/// bad_tool_call_handling) and about model names have no effect on a simulation.
struct SessionReplay {
  std::optional<std::string> trace_directory{};  ///< Every *.json in it, in the order of the names.
  std::vector<std::string> trace_files{};        ///< Paths; `*` and `?` stand for any characters.
  Document hf_dataset_path{};  ///< Cannot be fetched here: trace_files may hold its download.
  std::optional<std::string> filter{};  ///< A lambda of Python; see RecordFilter.
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
  std::int64_t default_block_size = 64;    ///< Of traces whose block_size is 0.
  std::int64_t num_dataset_entries = 100;  ///< Most traces of a file of JSON lines.
  std::optional<std::int64_t> datagen_workers{};
};

/// The keys all kinds have; those about recordings only where there are some.
void describe_replay(Describer& d, SessionReplay& t, bool recorded);
void describe(Describer& d, OtelTraceReplay& t);
void describe(Describer& d, WekaTraceReplay& t);

}  // namespace routesim::workloads::inference_perf

template <>
struct routesim::EnumNames<routesim::workloads::inference_perf::ToolChoiceMode> {
  static constexpr std::array<std::string_view, 2> value = {"force_recorded", "as_recorded"};
};
template <>
struct routesim::EnumNames<routesim::workloads::inference_perf::BadToolCallHandling> {
  static constexpr std::array<std::string_view, 2> value = {"none", "use_recorded"};
};
