// inference-perf's synthetic agents: the settings, what can be wrong with them, the sessions.
#include "workloads/inference_perf/inference_perf_agentic.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "workloads/inference_perf/inference_perf_data.h"
#include "workloads/sessions/agent_theme.h"
#include "workloads/sessions/synthetic_agents.h"

namespace routesim::workloads::inference_perf {
namespace {

/// Of all sessions together; each call takes some hundred bytes, each message it adds, too.
constexpr std::size_t kMostCalls = 500'000;
constexpr std::size_t kMostMessages = 2'000'000;
constexpr double kMostParallelCalls = 64;
/// The tool's own estimate of a tool's definition, rounded up.
constexpr double kTokensPerTool = 380;

constexpr const char* kPath = "data.synthetic_agentic.";

/// The most a draw can be.
double ceiling(const std::optional<Distribution>& d, double fallback) {
  if (!d) return fallback;
  return d->type == DistributionType::kFixed ? std::ceil(d->mean) : static_cast<double>(d->max);
}

void check_distributions(const SyntheticAgentic& t, Diagnostics& out) {
  const auto check = [&](const std::optional<Distribution>& d, const char* key) {
    if (d) check_distribution(*d, SamplerKind::kGeneral, std::string(kPath) + key, out);
  };
  check(t.input_tokens_per_turn, "input_tokens_per_turn");
  check(t.output_tokens_per_turn, "output_tokens_per_turn");
  check(t.turns_per_session, "turns_per_session");
  check(t.tool_loop_depth, "tool_loop_depth");
  check(t.sub_agents_per_spawn, "sub_agents_per_spawn");
  check(t.tool_catalog_size_per_agent, "tool_catalog_size_per_agent");
  check(t.parallel_tool_calls_per_step, "parallel_tool_calls_per_step");
  if (ceiling(t.parallel_tool_calls_per_step, 1) > kMostParallelCalls)
    out.error({}, std::string(kPath) + "parallel_tool_calls_per_step", "may exceed 64 calls");
  check(t.tool_call_latency_sec, "tool_call_latency_sec");
  check(t.user_think_time_sec, "user_think_time_sec");
  if (!t.context_compaction) return;
  check(t.context_compaction->trigger_tokens, "context_compaction.trigger_tokens");
  check(t.context_compaction->target_tokens, "context_compaction.target_tokens");
}

/// The longest request as the tool estimates it: head, tools, all turns with their loops, whose
/// results count as an answer each, and one more answer.
double longest_request(const SyntheticAgentic& t) {
  const double output = ceiling(t.output_tokens_per_turn, 0);
  const double calls = std::max(1.0, ceiling(t.parallel_tool_calls_per_step, 1));
  const double turn = ceiling(t.input_tokens_per_turn, 0) +
                      ceiling(t.tool_loop_depth, 2) * (output + calls * output);
  return static_cast<double>(t.shared_system_prompt_len) +
         ceiling(t.tool_catalog_size_per_agent, 8) * kTokensPerTool +
         std::max(1.0, ceiling(t.turns_per_session, 1)) * turn + output;
}

}  // namespace

void describe(Describer& d, ThemeWeight& t) {
  field(d, {"weight", "Share of the sessions, relative to the others.", true}, t.weight,
        RealRange{.min = 0, .max = 1e9});
}

void describe(Describer& d, ThemeMix& t) {
  field(d, {"generic", "An incident of a service."}, t.generic);
  field(d, {"db2_latency_incident", "An incident of a database."}, t.db2_latency_incident);
  field(d, {"research_rag", "Research in sources."}, t.research_rag);
  field(d, {"code_change_task", "A change of code."}, t.code_change_task);
}

void describe(Describer& d, ContextCompaction& t) {
  field(d, {"trigger_tokens", "Context from which on a new turn begins with a summary.", true},
        t.trigger_tokens);
  field(d, {"target_tokens", "Tokens of the summary.", true}, t.target_tokens);
}

void describe(Describer& d, SyntheticAgentic& t) {
  const IntRange tokens{0, 100'000'000};
  field(d, {"num_sessions", "Sessions to make.", true}, t.num_sessions, IntRange{1, 1'000'000});
  field(d, {"input_tokens_per_turn", "Tokens of a user's message or a task.", true},
        t.input_tokens_per_turn);
  field(d, {"output_tokens_per_turn", "Tokens of an answer that calls no tool.", true},
        t.output_tokens_per_turn);
  field(d, {"turns_per_session", "Messages of the user (absent: 1)."}, t.turns_per_session);
  field(d, {"fanout_probability", "Chance that an agent spawns others, per turn and sub-agent."},
        t.fanout_probability, RealRange{.min = 0, .max = 1});
  field(d, {"theme_mix", "What sessions are about (absent: all four alike)."}, t.theme_mix);
  field(d, {"seed", "Seed of the sessions."}, t.seed);
  field(d, {"shared_system_prompt_len", "Tokens of an agent's system prompt; 0: none."},
        t.shared_system_prompt_len, tokens);
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
  field(d, {"max_model_len", "Tokens the longest request must fit into."}, t.max_model_len,
        IntRange{1, 1'000'000'000});
  field(d, {"context_compaction", "Replaces a long context by a summary (absent: it grows)."},
        t.context_compaction);
  describe_replay(d, t, /*recorded=*/false);
}

std::vector<double> theme_weights(const SyntheticAgentic& t) {
  if (!t.theme_mix) return std::vector<double>(kAgentThemes, 1);
  const ThemeMix& mix = *t.theme_mix;
  std::vector<double> weights;
  for (const auto& theme :
       {mix.generic, mix.db2_latency_incident, mix.research_rag, mix.code_change_task})
    weights.push_back(theme ? theme->weight : 0);
  return weights;
}

void check_agents(const SyntheticAgentic& t, Diagnostics& out) {
  const std::string path = kPath;
  check_distributions(t, out);
  const std::vector<double> weights = theme_weights(t);
  if (*std::max_element(weights.begin(), weights.end()) <= 0)
    out.error({}, path + "theme_mix", "names no theme with a weight above 0",
              "generic, db2_latency_incident, research_rag and code_change_task are the themes");
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
}

std::shared_ptr<const ReplayCorpus> make_agents(const SyntheticAgentic& t,
                                                const WorkloadOptions& options, Diagnostics& out) {
  const std::uint64_t seed = mix64(options.seed, static_cast<std::uint64_t>(t.seed));
  auto corpus = std::make_shared<ReplayCorpus>();
  std::size_t calls = 0, messages = 0;
  for (std::int64_t i = 0; i < t.num_sessions; ++i) {
    corpus->sessions.push_back(synthetic_session(t, seed, static_cast<std::uint32_t>(i)));
    const std::vector<ReplayCall>& made = corpus->sessions.back().calls;
    calls += made.size();
    for (const ReplayCall& call : made) messages += call.recorded.size();
    // Distributions may draw no turn at all.
    if (made.empty()) corpus->sessions.pop_back();
    if (calls <= kMostCalls && messages <= kMostMessages) continue;
    out.error({}, std::string(kPath) + "num_sessions",
              "makes more than " + std::to_string(calls > kMostCalls ? kMostCalls : kMostMessages) +
                  (calls > kMostCalls ? " calls" : " messages") + " (got " +
                  std::to_string(t.num_sessions) + ")",
              "make fewer sessions, or shorter ones");
    return nullptr;
  }
  return corpus;
}

}  // namespace routesim::workloads::inference_perf
