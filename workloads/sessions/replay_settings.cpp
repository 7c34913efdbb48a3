#include "workloads/sessions/replay_settings.h"

#include <algorithm>
#include <cmath>

#include "base/describe.h"

namespace routesim::workloads {
namespace {

const IntRange kCount{1, 1'000'000'000};

constexpr std::string_view kOneModel = "all requests go to the scenario's servers";
constexpr std::string_view kReadOnly = "the tool reads it, no more";

void describe_sources(Describer& d, SessionReplay& t) {
  field(d, {"trace_directory", "Folder whose *.json are replayed."}, t.trace_directory);
  field(d,
        {"trace_files", "Files to replay; *.jsonl hold a record per line; * and ? are any text."},
        t.trace_files);
  field(d, {"hf_dataset_path", "Data set of Hugging Face; name its download as trace_files."},
        t.hf_dataset_path);
  field(d,
        not_modelled("filter", "Python lambda that selects records.",
                     "filter the file beforehand, for example with jq"),
        t.filter);
}

/// The keys that all kinds have, and those about recordings where there are some.
void describe_replay(Describer& d, SessionReplay& t, bool recorded) {
  if (recorded) describe_sources(d, t);
  field(d, no_effect("use_static_model", "One model for all requests.", kOneModel),
        t.use_static_model);
  field(d, no_effect("static_model_name", "Its name.", kOneModel), t.static_model_name);
  field(d, no_effect("model_mapping", "Names of models.", kOneModel), t.model_mapping);
  field(d, no_effect("default_max_tokens", "Tokens of an answer without a limit.", kReadOnly),
        t.default_max_tokens, kCount);
  field(d, {"override_tool_call_max_tokens", "Answers that call a tool may take 4,096 tokens."},
        t.override_tool_call_max_tokens);
  field(d,
        no_effect("tool_choice_mode", "Which tools an answer may call.",
                  "answers have the length that was recorded"),
        t.tool_choice_mode);
  field(d,
        {"inject_random_session_id",
         "Each session puts a text of its own before its recorded messages."},
        t.inject_random_session_id);
  field(d, {"duplicate_sessions_target", "Sessions to reach by repeating those there are."},
        t.duplicate_sessions_target, IntRange{1, 10'000'000});
  field(d, {"max_wait_ms", "Longest pause after a call's predecessors, in milliseconds."},
        t.max_wait_ms, IntRange{0, 1'000'000'000'000});
  field(d,
        {"predecessor_wait_timeout_sec",
         "Seconds a call waits for its predecessors before it fails; 0: for ever."},
        t.predecessor_wait_timeout_sec, RealRange{.min = 0, .max = 1e9});
  if (recorded) {
    field(d,
          {"include_errors", "Replay calls that failed when they were recorded (OpenTelemetry)."},
          t.include_errors);
    field(d, {"skip_invalid_files", "Leave out what cannot be read, with a warning."},
          t.skip_invalid_files);
  }
  field(d,
        no_effect("bad_tool_call_handling", "What to do about broken tool calls.",
                  "answers are counted in tokens here, not parsed"),
        t.bad_tool_call_handling);
}

void check_source(const SessionReplay& r, const std::string& path, Diagnostics& out) {
  const bool files = !r.trace_files.empty();
  if (r.trace_directory && files)
    out.error({}, path + "trace_files", "trace_directory is set, too", "keep one of the two");
  else if (!r.hf_dataset_path.empty() && !files && !r.trace_directory)
    out.error({}, path + "hf_dataset_path", "a data set is not downloaded by a simulation",
              "download its files and name them: --set workload.inference_perf." + path +
                  "trace_files=[FILE]");
  else if (!files && !r.trace_directory)
    out.error({}, path + "trace_files", "is missing: there is nothing to replay",
              "give trace_files or trace_directory");
  if (r.filter)
    out.error({}, path + "filter", "a Python filter is not evaluated",
              "filter the file beforehand, for example with jq -c 'select(.max_tokens < 131072)' "
              "FILE, and leave this key out");
}

void check_models(const SessionReplay& r, const std::string& path, Diagnostics& out) {
  if (r.use_static_model && r.static_model_name.empty())
    out.error({}, path + "static_model_name", "is missing: use_static_model asks for it");
  if (!r.use_static_model && !r.static_model_name.empty() && r.model_mapping.empty())
    out.error({}, path + "static_model_name", "needs use_static_model, or a model_mapping");
}

/// The most a draw can be.
double ceiling(const std::optional<Distribution>& d, double fallback) {
  if (!d) return fallback;
  return d->type == DistributionType::kFixed ? std::ceil(d->mean) : static_cast<double>(d->max);
}

/// The longest request as the tool estimates it: head, tools, all turns with their loops, where
/// each result counts as an answer, and one more answer.
double longest_request(const SyntheticAgentic& t) {
  /// The tool's own estimate of a tool's definition, rounded up.
  constexpr double kTokensPerTool = 380;
  const double output = ceiling(t.output_tokens_per_turn, 0);
  const double calls = std::max(1.0, ceiling(t.parallel_tool_calls_per_step, 1));
  const double turn = ceiling(t.input_tokens_per_turn, 0) +
                      ceiling(t.tool_loop_depth, 2) * (output + calls * output);
  return static_cast<double>(t.shared_system_prompt_len) +
         ceiling(t.tool_catalog_size_per_agent, 8) * kTokensPerTool +
         std::max(1.0, ceiling(t.turns_per_session, 1)) * turn + output;
}

}  // namespace

void describe(Describer& d, OtelTraceReplay& t) {
  describe_replay(d, t, /*recorded=*/true);
  field(d, {"disable_output_substitution", "Later prompts repeat recorded answers, not real ones."},
        t.disable_output_substitution);
  field(d,
        no_effect("attribute_to_header_map", "HTTP headers.",
                  "no policy of a balancer reads headers here"),
        t.attribute_to_header_map);
  field(d,
        no_effect("attribute_to_label_map", "Labels of the tool's metrics.",
                  "it is about the metrics of the tool itself"),
        t.attribute_to_label_map);
}

void describe(Describer& d, WekaTraceReplay& t) {
  describe_replay(d, t, /*recorded=*/true);
  field(d,
        {"trace_idle_gap_cap_seconds",
         "Longest gap between starts of a session's calls, in seconds; 0: no limit."},
        t.trace_idle_gap_cap_seconds, RealRange{.min = -1e9, .max = 1e9});
  field(d, no_effect("ignore_trace_delays", "Leave recorded pauses out.", kReadOnly),
        t.ignore_trace_delays);
  field(d, no_effect("use_think_time_only", "Keep pauses of people only.", kReadOnly),
        t.use_think_time_only);
  field(d, {"default_block_size", "Tokens of a block where a trace says 0."}, t.default_block_size,
        IntRange{1, 1'000'000});
  field(d, {"num_dataset_entries", "Most records to take of a file of lines."},
        t.num_dataset_entries, kCount);
  field(d,
        no_effect("datagen_workers", "Processes that prepare sessions.",
                  "sessions cost no time to prepare here"),
        t.datagen_workers, kCount);
}

void describe(Describer& d, ThemeWeight& t) {
  field(d, {"weight", "Share of the sessions, relative to the others.", true}, t.weight,
        RealRange{.min = 0, .max = 1e9});
}

void describe(Describer& d, ThemeMix& t) {
  field(d, {"research_rag", "Research in sources."}, t.research_rag);
  field(d, {"code_change_task", "A change of code."}, t.code_change_task);
}

void describe(Describer& d, ContextCompaction& t) {
  field(d, {"trigger_tokens", "Context from which on a new turn begins with a summary.", true},
        t.trigger_tokens);
  field(d, {"target_tokens", "Tokens of the summary.", true}, t.target_tokens);
}

void describe(Describer& d, SyntheticAgentic& t) {
  field(d, {"num_sessions", "Sessions to make.", true}, t.num_sessions, IntRange{1, 1'000'000});
  field(d, {"input_tokens_per_turn", "Tokens of a user's message or a task.", true},
        t.input_tokens_per_turn);
  field(d, {"output_tokens_per_turn", "Tokens of an answer that calls no tool.", true},
        t.output_tokens_per_turn);
  field(d, {"turns_per_session", "Messages of the user (absent: 1)."}, t.turns_per_session);
  field(d, {"fanout_probability", "Chance that an agent spawns others, per turn and sub-agent."},
        t.fanout_probability, RealRange{.min = 0, .max = 1});
  field(d, {"theme_mix", "What sessions are about (absent: both alike)."}, t.theme_mix);
  field(d, {"seed", "Seed of the sessions."}, t.seed);
  field(d, {"shared_system_prompt_len", "Tokens of an agent's system prompt; 0: none."},
        t.shared_system_prompt_len, IntRange{0, 100'000'000});
  field(d, {"tool_loop_depth", "Tool calls before an answer, one after another (absent: 2)."},
        t.tool_loop_depth);
  field(d, {"sub_agents_per_spawn", "Agents spawned at once (absent: uniform from 2 to 4)."},
        t.sub_agents_per_spawn);
  field(d, {"max_depth", "Levels of agents that spawn others."}, t.max_depth, IntRange{0, 64});
  field(d, {"max_events_per_session", "Most calls of a session."}, t.max_events_per_session,
        IntRange{1, 10'000});
  field(d, {"tool_catalog_size_per_agent", "Tools on offer (absent: 8)."},
        t.tool_catalog_size_per_agent);
  field(d, {"parallel_tool_calls_per_step", "Tool calls in one answer (absent: 1)."},
        t.parallel_tool_calls_per_step);
  field(d, {"tool_call_latency_sec", "Seconds a tool takes (absent: 1)."}, t.tool_call_latency_sec);
  field(d, {"user_think_time_sec", "Seconds before the user's next message (absent: 10)."},
        t.user_think_time_sec);
  field(d, {"max_model_len", "Tokens the longest request must fit into."}, t.max_model_len, kCount);
  field(d, {"context_compaction", "Replaces a long context by a summary (absent: it grows)."},
        t.context_compaction);
  describe_replay(d, t, /*recorded=*/false);
}

void check(const OtelTraceReplay& r, const std::string& path, Diagnostics& out) {
  check_source(r, path, out);
  check_models(r, path, out);
  if (r.disable_output_substitution && (r.inject_random_session_id || r.duplicate_sessions_target))
    out.error({}, path + "disable_output_substitution",
              std::string("excludes ") + (r.inject_random_session_id ? "inject_random_session_id"
                                                                     : "duplicate_sessions_target"),
              "either repeats real answers in later prompts");
}

void check(const WekaTraceReplay& r, const std::string& path, Diagnostics& out) {
  check_source(r, path, out);
  check_models(r, path, out);
  const auto warn = [&](bool given, const char* key) {
    if (given)
      out.warning({}, path + key, "has no effect: the tool reads it, no more",
                  "for calls without pauses set max_wait_ms: 0");
  };
  warn(r.ignore_trace_delays, "ignore_trace_delays");
  warn(r.use_think_time_only, "use_think_time_only");
}

void check(const SyntheticAgentic& t, const std::string& path, Diagnostics& out) {
  check_distributions({{"input_tokens_per_turn", t.input_tokens_per_turn},
                       {"output_tokens_per_turn", t.output_tokens_per_turn},
                       {"turns_per_session", t.turns_per_session},
                       {"tool_loop_depth", t.tool_loop_depth},
                       {"sub_agents_per_spawn", t.sub_agents_per_spawn},
                       {"tool_catalog_size_per_agent", t.tool_catalog_size_per_agent},
                       {"parallel_tool_calls_per_step", t.parallel_tool_calls_per_step}},
                      path, out);
  if (ceiling(t.parallel_tool_calls_per_step, 1) > 64)
    out.error({}, path + "parallel_tool_calls_per_step", "may exceed 64 calls");
  check_distributions({{"tool_call_latency_sec", t.tool_call_latency_sec},
                       {"user_think_time_sec", t.user_think_time_sec}},
                      path, out);
  if (t.context_compaction)
    check_distributions({{"trigger_tokens", t.context_compaction->trigger_tokens},
                         {"target_tokens", t.context_compaction->target_tokens}},
                        path + "context_compaction.", out);
  const std::vector<double> weights = theme_weights(t);
  if (*std::max_element(weights.begin(), weights.end()) <= 0)
    out.error({}, path + "theme_mix", "names no theme with a weight above 0",
              "research_rag and code_change_task are the themes");
  if (t.inject_random_session_id || t.duplicate_sessions_target)
    out.error({},
              path + (t.inject_random_session_id ? "inject_random_session_id"
                                                 : "duplicate_sessions_target"),
              "belongs to recorded sessions", "raise num_sessions: all sessions differ");
  if (t.max_model_len && longest_request(t) > static_cast<double>(*t.max_model_len))
    out.error({}, path + "max_model_len",
              "is less than the longest request may have, about " +
                  std::to_string(std::llround(longest_request(t))) + " tokens (got " +
                  std::to_string(*t.max_model_len) + ")",
              "this is the tool's own check: shorten turns, loops or the catalogue");
  check_models(t, path, out);
}

std::vector<double> theme_weights(const SyntheticAgentic& t) {
  if (!t.theme_mix) return {1, 1};
  const auto weight = [](const std::optional<ThemeWeight>& w) { return w ? w->weight : 0; };
  return {weight(t.theme_mix->research_rag), weight(t.theme_mix->code_change_task)};
}

}  // namespace routesim::workloads
