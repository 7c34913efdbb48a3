// routesim explain: every resolved value with its origin, and the numbers derived from them.
#include "base/text.h"
#include "tools/cli/cli.h"
#include "tools/cli/inputs.h"
#include "tools/ingest/scenario/prepare.h"
#include "tools/ingest/scenario/scenario_yaml.h"
#include "tools/ingest/tree/description.h"
#include "tools/results/text_table.h"
#include "tools/study/explain/decision_study.h"
#include "tools/study/explain/hit_study.h"

namespace routesim::tools {

namespace {

FieldDescription scenario_values(const LoadedVariant& variant) {
  sim::Scenario scenario = variant.scenario;
  return describe_values([&scenario](Describer& d) { describe(d, scenario); });
}

std::string values_table(const LoadedVariant& variant) {
  TextTable table(3);
  for (const ResolvedValue& value : resolved_values(scenario_values(variant), variant.provenance))
    table.add_row({value.path, printable(value.value, 80), printable(value.origin, 120)});
  return table.str();
}

std::string derived_table(const sim::RunPlan& plan) {
  TextTable table(1);
  table.add_row({"pool", "GPUs", "KV blocks", "block size", "KV tokens", "batched tokens", "seqs",
                 "max length"});
  for (const sim::ResolvedPool& pool : plan.pools) {
    const sim::PoolConfig& config = pool.config;
    const std::int64_t gpus = config.replicas * config.gpus_per_server();
    table.add_row(
        {printable(config.name), std::to_string(gpus), std::to_string(pool.rules.num_gpu_blocks),
         std::to_string(pool.rules.block_size), std::to_string(pool.kv_cache_tokens),
         std::to_string(pool.rules.max_num_batched_tokens), std::to_string(pool.rules.max_num_seqs),
         std::to_string(pool.rules.max_model_len)});
  }
  return table.str();
}

/// The studies to make besides printing the values.
struct ExplainSettings {
  std::optional<RequestChoice> request;
  bool hits = false;
  bool json = false;
  std::size_t jobs = 1;
};

ExplainSettings read_explain_settings(Options& options) {
  const ExplainSettings settings{.request = parse_request_choice(options.get("request")),
                                 .hits = options.has("hits"),
                                 .json = options.choice("output") == "json",
                                 .jobs = options.jobs()};
  if (options.has("request") && !settings.request)
    options.fail("--request must be a number, worst, slowest:K or regret:K (got " +
                 printable(options.get("request")) + ")");
  if (settings.hits && settings.request)
    options.fail("--hits is about all requests: leave out --request");
  if (settings.json && !settings.hits && !settings.request)
    options.fail("--output json needs --request or --hits; for the values there is --yaml");
  return settings;
}

/// One decision, or all hits, of one variant; empty after an error.
std::string study_text(const sim::RunPlan& plan, const ExplainSettings& settings,
                       Diagnostics& diagnostics) {
  if (settings.hits) {
    const std::optional<HitStudy> study = study_hits(plan, diagnostics);
    if (!study) return {};
    return settings.json ? render_hits_json(*study) : render_hits_text(*study);
  }
  std::string text;
  for (const std::int64_t request : find_requests(plan, *settings.request, diagnostics)) {
    const std::optional<DecisionStudy> study =
        study_decision(plan, request, settings.jobs, diagnostics);
    if (!study) return {};
    if (!text.empty()) text.append(settings.json ? ",\n" : "\n");
    std::string one = settings.json ? render_decision_json(*study) : render_decision_text(*study);
    if (settings.json && !one.empty()) one.pop_back();
    text += one;
  }
  if (settings.json && !text.empty()) text += "\n";
  return text;
}

ExitCode explain_run(const LoadedScenario& loaded, const ExplainSettings& settings,
                     Diagnostics& diagnostics, Console& console) {
  std::vector<sim::RunPlan> plans;
  for (const LoadedVariant& variant : loaded.variants)
    if (std::optional<sim::RunPlan> plan = prepare(variant, diagnostics))
      plans.push_back(std::move(*plan));
  std::string text;
  for (std::size_t i = 0; i < plans.size() && !diagnostics.has_errors(); ++i) {
    if (i > 0) text += settings.json ? ",\n" : "\n";
    std::string one = study_text(plans[i], settings, diagnostics);
    if (settings.json && !one.empty()) one.pop_back();
    text += one;
  }
  if (!diagnostics.has_errors()) console.print(settings.json ? "[" + text + "]\n" : text);
  console.complain(tidy(diagnostics));
  return diagnostics.has_errors() ? ExitCode::kInvalid : ExitCode::kSuccess;
}

std::string steps_text(const sim::RunPlan& plan) {
  std::string text;
  for (const sim::ResolvedPool& pool : plan.pools) text += step_text(pool);
  return text;
}

/// Every value of the variant with its origin, and what follows from them.
std::string values_text(const LoadedVariant& variant, const sim::RunPlan& plan) {
  const sim::RoutingConfig& routing = variant.scenario.routing;
  const std::string rules = policies::release_note(routing.balancer, routing.balancing);
  return "variant " + printable(variant.scenario.variant) + "\n\n" + values_table(variant) + "\n" +
         derived_table(plan) + "\n" + steps_text(plan) + "\n" +
         (rules.empty() ? "" : "the router decides as " + rules + "\n") +
         (plan.endpoint_picker ? router_text(*plan.endpoint_picker) : "") + "\n";
}

std::string values_yaml(const LoadedVariant& variant) {
  return "# variant " + printable(variant.scenario.variant) + "\n" +
         to_yaml(*to_node(scenario_values(variant)));
}

ExitCode run_explain(Options& options, Console& console) {
  const ExplainSettings settings = read_explain_settings(options);
  const ScenarioRequest request = scenario_request(options, options.positionals().front());
  if (!options.ok()) return refuse(options, console);
  Diagnostics diagnostics;
  const LoadedScenario loaded = load_scenario(request, diagnostics);
  const bool readable = !diagnostics.has_errors();
  if (readable && (settings.hits || settings.request))
    return explain_run(loaded, settings, diagnostics, console);
  std::string yaml;
  for (const LoadedVariant& variant : loaded.variants) {
    if (!readable) {
      check_variant(variant, diagnostics);
    } else if (const auto plan = prepare(variant, diagnostics); plan && options.has("yaml")) {
      yaml += (yaml.empty() ? "" : "---\n") + values_yaml(variant);
    } else if (plan) {
      console.print(values_text(variant, *plan));
    }
  }
  console.print(yaml);
  console.complain(tidy(diagnostics));
  return diagnostics.has_errors() ? ExitCode::kInvalid : ExitCode::kSuccess;
}

}  // namespace

Command explain_command() {
  return {.name = "explain",
          .summary = "Print every resolved value with its origin, and what follows from them.",
          .positional = {.name = "SCENARIO", .min = 1, .max = 1, .ships = true},
          .options = {variant_option(),
                      set_option(),
                      allow_library_option(),
                      {"yaml", "",
                       "Print the resolved values as YAML instead, a document per variant."},
                      {"request", "N|worst|slowest:K|regret:K",
                       "Run, and explain how request N was routed and what other choices would "
                       "have brought."},
                      {"hits", "",
                       "Run, and explain where prefix-cache hits were lost: the hit-rate ladder."},
                      {.name = "output,o",
                       .value_name = "FORMAT",
                       .help = "text (default) or json, for --request and --hits.",
                       .choices = {"text", "json"}},
                      {"jobs", "N", "Runs at a time for --request; default all cores."}},
          .examples =
              {{"routesim explain question.yaml --variant prefix-aware",
                "Every value and where it comes from."},
               {"routesim explain question.yaml --variant prefix-aware --request slowest:1",
                "How the slowest request was routed, and what other choices would have brought."},
               {"routesim explain question.yaml --variant service --hits",
                "Where prefix-cache hits were lost."}},
          .run = &run_explain};
}

}  // namespace routesim::tools
