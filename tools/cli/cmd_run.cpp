// routesim run: simulate a scenario's variants and report.
#include <algorithm>
#include <string>
#include <utility>

#include "base/printable.h"
#include "base/scalar_parse.h"
#include "tools/cli/check_file.h"
#include "tools/cli/cli.h"
#include "tools/cli/run_experiment.h"
#include "tools/cli/run_outputs.h"
#include "tools/ingest/first_requests.h"
#include "tools/ingest/memory.h"
#include "tools/ingest/prepare.h"
#include "tools/render/version.h"

namespace routesim::tools {

namespace {

/// The first grid of a time series; it is coarsened while a run lasts.
constexpr Duration kSeriesInterval = Duration::milliseconds(100);

struct RunSettings {
  ScenarioRequest request;
  std::vector<OutputTarget> outputs;
  ProgressMode progress = ProgressMode::kAuto;
  std::optional<Duration> series;  ///< The grid of the time series, when one is wanted.
  GoodputGoals goals;   ///< `--goodput`; empty = the ones of the workload's own file, if any.
  std::string records;  ///< Where one line per request goes; empty = nowhere.
  ReplicationRequest replications;
  bool check = false;
  bool quiet = false;
  bool kv_band = true;  ///< Near a knee, run with fewer and more KV blocks, too.

  bool wants(OutputFormat format) const {
    return std::any_of(outputs.begin(), outputs.end(),
                       [format](const OutputTarget& o) { return o.format == format; });
  }
};

bool parse_series(const OptionValues& options, RunSettings& settings, std::string& error) {
  if (settings.wants(OutputFormat::kSeries) || settings.wants(OutputFormat::kHtml))
    settings.series = kSeriesInterval;
  if (!options.has("series")) return true;
  const auto node = ConfigNode::make_scalar(options.get("series"), ConfigNode::Style::kUntyped, {});
  const Parsed<Duration> interval =
      parse_duration(*node, {.min = Duration::microseconds(1), .max = Duration::max()});
  if (!interval.value) error = "--series " + interval.message;
  settings.series = interval.value;
  return interval.value.has_value();
}

bool parse_settings(const OptionValues& options, RunSettings& settings, std::string& error) {
  settings.request = {.path = options.positionals.front(),
                      .sets = options.all("set"),
                      .variants = options.all("variant"),
                      .seed = {}};
  settings.check = options.has("check");
  settings.kv_band = !options.has("no-kv-band");
  settings.quiet = options.has("quiet");
  if (options.has("seed")) {
    const auto seed = whole_number(options, "seed", IntRange{0}, error);
    if (!seed) return false;
    settings.request.seed = static_cast<std::uint64_t>(*seed);
  }
  for (const std::string& goal : options.all("goodput")) {
    error = read_goal(goal, settings.goals);
    if (error.empty()) continue;
    error = "--goodput " + error;
    return false;
  }
  settings.records = options.get("records");
  if (options.has("records") && !record_format(settings.records)) {
    error =
        "--records: the file must end in .csv or .jsonl (got " + printable(settings.records) + ")";
    return false;
  }
  return parse_progress(options, settings.progress, error) &&
         parse_replications(options, settings.replications, error) &&
         parse_outputs(options.all("output"), settings.outputs, error) &&
         parse_series(options, settings, error);
}

/// The goals of a variant: the command line's, or the scenario's.
GoodputGoals goals_of(const sim::Scenario& scenario, const RunSettings& settings) {
  return settings.goals.empty() ? tools::goals_of(scenario) : settings.goals;
}

/// An expectation about goodput is a question without an answer when nothing says what is good.
void check_goals(const std::vector<Expectation>& expectations, const GoodputGoals& goals,
                 Diagnostics& diagnostics) {
  if (!goals.empty() || diagnostics.has_errors()) return;
  for (const Expectation& e : expectations)
    if (needs_goals(e.condition.metric))
      diagnostics.error(e.where, "expect", "there are no goals to count good requests by",
                        "set goodput: [ttft:500ms] in the scenario, or --goodput ttft:500ms");
}

/// Everything that can be wrong is found before the first variant runs.
std::vector<PlannedVariant> plan_variants(const LoadedScenario& scenario,
                                          const RunSettings& settings, Diagnostics& diagnostics) {
  const bool selected = !settings.request.variants.empty();
  std::vector<PlannedVariant> planned;
  for (const LoadedVariant& variant : scenario.variants) {
    std::optional<sim::RunPlan> plan = prepare(variant, diagnostics);
    if (plan) {
      Diagnostics found;
      check_memory(*plan, available_memory(), found);
      if (!found.has_errors()) check_first_requests(*plan, found);
      append(diagnostics, variant.provenance.located(found, {}));
    }
    MeasuredTable measured = load_measured(variant, diagnostics);
    if (!plan) continue;
    std::vector<Expectation> expectations =
        load_expectations(scenario, variant, *plan, selected, diagnostics);
    const GoodputGoals goals = goals_of(plan->scenario, settings);
    check_goals(expectations, goals, diagnostics);
    planned.push_back({.plan = std::move(*plan),
                       .resolved = resolved_json(variant),
                       .measured = std::move(measured),
                       .goals = goals,
                       .expectations = std::move(expectations)});
  }
  return planned;
}

ExperimentOptions experiment_options(const RunSettings& settings, RecordWriter* records) {
  return {.replications = settings.replications,
          .series = settings.series,
          .trace = settings.wants(OutputFormat::kTrace),
          .records = records,
          .check = settings.check,
          .kv_band = settings.kv_band,
          .quiet = settings.quiet,
          .progress = settings.progress};
}

/// What the results mean for the exit code.
ExitCode verdict_of(const Outcome& outcome) {
  if (outcome.interrupted) return ExitCode::kInterrupted;
  const Decision expected = overall(outcome.report.expectations);
  if (expected == Decision::kFails) return ExitCode::kFailed;
  const auto& set = outcome.report.replications;
  const bool imprecise = set && set->until && !set->until->reached;
  return expected == Decision::kUndecided || imprecise ? ExitCode::kInconclusive
                                                       : ExitCode::kSuccess;
}

/// Fills in what a report says of its origin.
void name_run(const sim::Scenario& scenario, std::string hash, Outcome& outcome) {
  Report& report = outcome.report;
  report.scenario = scenario.name;
  report.question = scenario.question;
  report.seed = scenario.seed;
  report.version = version();
  report.commit = commit();
  report.scenario_hash = std::move(hash);
  report.interrupted = outcome.interrupted;
  if (report.replications) report.replications->version = version();
}

/// Says on standard error why a run ended early.
void report_end(const Outcome& outcome, Console& console) {
  if (outcome.interrupted)
    console.complain(
        "routesim: interrupted, the results are partial; names of files got .partial behind "
        "them\n");
  const auto& set = outcome.report.replications;
  if (set && set->until && !set->until->reached && !outcome.interrupted)
    console.complain("routesim: --until " + set->until->rule + ": " + set->until->reason + "\n");
}

ExitCode run(const OptionValues& options, Console& console) {
  RunSettings settings;
  std::string error;
  if (!parse_settings(options, settings, error)) return usage_error(console, "run", error);
  Diagnostics diagnostics;
  const LoadedScenario scenario = load_scenario(settings.request, diagnostics);
  std::vector<PlannedVariant> planned;
  if (!diagnostics.has_errors()) {
    planned = plan_variants(scenario, settings, diagnostics);
  } else {
    for (const LoadedVariant& variant : scenario.variants) {
      check_variant(variant, diagnostics);
      check_conditions(variant, diagnostics);
    }
  }
  const bool valid = !diagnostics.has_errors();
  if (!valid || !settings.quiet) console.complain(tidy(diagnostics));
  if (valid && !settings.quiet)
    for (const std::string& note : assumed_releases(scenario))
      console.complain("routesim: " + note + "\n");
  if (!valid ||
      !check_run_outputs(settings.outputs, settings.records, files_read(scenario), console))
    return ExitCode::kInvalid;

  Diagnostics late;
  Outcome outcome;
  std::optional<OutputFile> file;
  std::optional<RecordWriter> records;
  if (!settings.records.empty()) {
    file.emplace(settings.records);
    if (!finish_file(settings.records, file->error(), console)) return ExitCode::kInvalid;
    records.emplace(*file, *record_format(settings.records));
  }
  {
    sim::Progress progress;
    const InterruptGuard guard(progress.stop);
    run_experiment(planned, experiment_options(settings, records ? &*records : nullptr), progress,
                   late, console, outcome);
  }
  if (records && outcome.interrupted) records->mark_partial();
  if (late.has_errors()) {
    console.complain(tidy(late));
    return ExitCode::kInvalid;
  }
  name_run(planned.front().plan.scenario, scenario_hash(scenario), outcome);
  if (!write_outputs(outcome.report, outcome.trace, settings.outputs, file ? &*file : nullptr,
                     console))
    return ExitCode::kInvalid;
  report_end(outcome, console);
  return verdict_of(outcome);
}

}  // namespace

Command run_command() {
  return {
      .name = "run",
      .summary = "Simulate a scenario's variants and print what they achieve.",
      .positional = {.name = "SCENARIO", .min = 1, .max = 1},
      .options =
          {{"variant", "NAME", "Run only this variant.", true},
           {"set", "KEY=VALUE", "Override a value: cluster.pools[0].replicas=4.", true},
           {"seed", "N", "Seed of the workload and of every random draw.", false},
           {"output,o",
            "FORMAT[=PATH]",
            "table (default), json, csv, series (CSV over time), trace (for Perfetto), "
            "markdown, junit, github (annotations) or html (one page); to standard output or PATH. "
            "inference-perf, benchmark-report (v0.2), benchmark-report-v0.1 and vllm-bench "
            "write that tool's files into a folder PATH.",
            true,
            {},
            {"table", "json", "csv", "series", "trace", "markdown", "junit", "github", "html",
             "inference-perf", "benchmark-report", "benchmark-report-v0.1", "vllm-bench"}},
           {"series", "INTERVAL",
            "Sample every server over time for json, from every INTERVAL (100ms) on; the "
            "grid is coarsened to stay below 600 points.",
            false, "100ms"},
           {"goodput", "NAME:BOUND",
            "Count requests that meet this goal and the others: ttft:500ms.", true},
           {"records", "PATH",
            "One line per request, in the order they end: PATH ends in .csv or .jsonl.", false},
           {"replications", "N",
            "Runs per variant, with seeds from --seed on: means with 95 % intervals and "
            "paired differences.",
            false},
           {"until", "METRIC+-X%",
            "Go on until the interval of this metric of every variant is as narrow: "
            "ttft_ms.mean+-2%. --replications is the limit (200).",
            false},
           {"jobs,j", "N", "Threads (default: one per core); no effect on results.", false},
           {"no-kv-band", "",
            "Do not run a variant near its knee twice more, with 3 % fewer and more KV blocks.",
            false},
           {"check", "", "Verify the simulator's invariants during the run.", false},
           progress_option(),
           {"quiet,q", "", "No progress, timing or warnings on standard error.", false}},
      .run = &run};
}

}  // namespace routesim::tools
