// routesim score: one decision of a router, with its reasons and without a simulation.
#include <algorithm>

#include "base/text.h"
#include "base/tree_reader.h"
#include "policies/config/make_scheduler.h"
#include "tools/cli/cli.h"
#include "tools/ingest/routers/endpoint_picker_yaml.h"
#include "tools/ingest/scenario/scenario_yaml.h"
#include "tools/ingest/tree/kubernetes_file.h"
#include "tools/study/score/balancer_script.h"
#include "tools/study/score/score.h"

namespace routesim::tools {

namespace {

struct ScoreSettings {
  std::string config, endpoints, request, events;
  std::uint64_t seed = 0;
  SimTime now;
  std::optional<policies::Era> era;
};

ScoreSettings read_score_settings(Options& options) {
  for (const char* required : {"config", "endpoints", "request"})
    if (!options.has(required)) options.fail("--" + std::string(required) + " is missing");
  const std::string era = options.get("era");
  const ScoreSettings settings{
      .config = options.get("config"),
      .endpoints = options.get("endpoints"),
      .request = options.get("request"),
      .events = options.get("events"),
      .seed = static_cast<std::uint64_t>(options.whole("seed", IntRange{0}, 0)),
      .now =
          SimTime::zero() + Duration::from_seconds(options.real("now", {.min = 0, .max = 1e9}, 0)),
      .era = policies::parse_era(era)};
  if (options.has("era") && !settings.era)
    options.fail("--era is not a router release (got " + printable(era) +
                 "), known: " + policies::known_eras());
  return settings;
}

struct ScoreInputs {
  std::unique_ptr<policies::Scheduler> scheduler;
  std::optional<ScorePool> pool;
  std::optional<ScoreRequest> request;
  std::optional<std::vector<KvMessage>> events;
};

std::unique_ptr<policies::Scheduler> load_scheduler(const ScoreSettings& settings,
                                                    Diagnostics& diagnostics) {
  Diagnostics found;
  const ConfigNode::Ptr root =
      read_manifest_file(settings.config, {.file = settings.config}, "", found);
  policies::LoadOptions options;
  options.era = settings.era;
  std::optional<policies::EndpointPickerConfig> config;
  if (root != nullptr) config = load_endpoint_picker(root, options, found);
  std::unique_ptr<policies::Scheduler> scheduler;
  if (config)
    scheduler = policies::make_scheduler(
        *config, policies::SchedulerOptions{.seed = settings.seed, .ordered_candidates = true},
        found);
  append(diagnostics, found);
  return found.has_errors() ? nullptr : std::move(scheduler);
}

/// Reads all files, so that every error of all of them is known.
ScoreInputs load_inputs(const ScoreSettings& settings, Diagnostics& diagnostics) {
  ScoreInputs inputs;
  inputs.scheduler = load_scheduler(settings, diagnostics);
  inputs.pool = read_score_pool(settings.endpoints, settings.now, diagnostics);
  const ScorePool* pool = inputs.pool ? &*inputs.pool : nullptr;
  inputs.request = read_score_request(settings.request, pool, diagnostics);
  if (settings.events.empty()) return inputs;
  inputs.events = read_kv_messages(settings.events, pool, diagnostics);
  if (inputs.scheduler != nullptr && !inputs.scheduler->needs().kv_events)
    diagnostics.warning({.file = settings.events}, "", "is not used",
                        "no plugin of this configuration reads KV events");
  return inputs;
}

/// A balancer's decisions, step by step. Fails where one differs from what the file expects.
ExitCode run_steps(const std::string& path, Console& console) {
  Diagnostics diagnostics;
  std::vector<ScriptDecision> decisions;
  if (const auto script = read_balancer_script(path, diagnostics))
    decisions = run_balancer_script(*script, diagnostics);
  console.complain(tidy(diagnostics));
  if (diagnostics.has_errors()) return ExitCode::kInvalid;
  console.print(render_decisions(decisions));
  const bool met = std::all_of(decisions.begin(), decisions.end(),
                               [](const ScriptDecision& d) { return d.unexpected.empty(); });
  return met ? ExitCode::kSuccess : ExitCode::kFailed;
}

ExitCode run_score(Options& options, Console& console) {
  if (options.has("steps")) {
    for (const char* other : {"config", "endpoints", "request", "events", "era", "seed", "now"})
      if (options.has(other)) options.fail("--steps goes without --" + std::string(other));
    return options.ok() ? run_steps(options.get("steps"), console) : refuse(options, console);
  }
  const ScoreSettings settings = read_score_settings(options);
  if (!options.ok()) return refuse(options, console);
  Diagnostics diagnostics;
  ScoreInputs inputs = load_inputs(settings, diagnostics);
  if (diagnostics.has_errors()) {
    console.complain(tidy(diagnostics));
    return ExitCode::kInvalid;
  }
  policies::Scheduler& scheduler = *inputs.scheduler;
  std::optional<policies::KvIngestStats> stats;
  if (inputs.events && scheduler.needs().kv_events)
    stats = ingest(*inputs.events, *inputs.pool, inputs.request->model, scheduler);
  const KeyedRequest request(*inputs.request, *inputs.pool, scheduler, diagnostics);
  console.complain(tidy(diagnostics));
  scheduler.advance(settings.now);
  policies::Explanation explanation;
  const policies::Decision decision =
      scheduler.explain(request.view(), inputs.pool->table, settings.now, explanation);
  console.print(render_score({.scheduler = scheduler,
                              .pool = *inputs.pool,
                              .request = request.view(),
                              .decision = decision,
                              .explanation = explanation,
                              .kv_events = stats,
                              .seed = settings.seed,
                              .now = settings.now}));
  return ExitCode::kSuccess;
}

}  // namespace

Command score_command() {
  return {
      .name = "score",
      .summary = "Make one routing decision and show how each plugin came to it.",
      .options = {{"config", "EPP.yaml", "EndpointPickerConfig, or Helm values with one."},
                  {"endpoints", "E.json", "The endpoints as the router sees them."},
                  {"request", "R.json", "The request."},
                  {"steps", "S.json", "Instead: a balancer's decisions, step by step."},
                  {"events", "F.jsonl", "KV events to feed the prefix index first."},
                  {"era", "RELEASE", "Behave as this router release, such as v0.7.0."},
                  {"seed", "N", "Seed of random picks (default 0)."},
                  {"now", "SECONDS", "The instant of the decision (default 0)."}},
      .examples =
          {{"routesim score --config epp.yaml --endpoints endpoints.json --request request.json",
            "What each scorer gives to each endpoint, and who is picked."}},
      .run = &run_score};
}

}  // namespace routesim::tools
