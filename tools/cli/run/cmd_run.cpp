// routesim run: simulate a scenario's variants and report.
#include <algorithm>
#include <string>
#include <utility>

#include "base/text.h"
#include "base/tree_reader.h"
#include "sim/plan/fleet_plan.h"
#include "tools/cli/check_file.h"
#include "tools/cli/cli.h"
#include "tools/cli/inputs.h"
#include "tools/cli/run/run_experiment.h"
#include "tools/cli/run/run_outputs.h"
#include "tools/cli/run/run_scan.h"
#include "tools/ingest/scenario/prepare.h"
#include "tools/ingest/scenario/run_checks.h"
#include "tools/ingest/tree/description.h"
#include "tools/ingest/tree/parse_config.h"
#include "tools/results/output_file.h"
#include "tools/results/version.h"

namespace routesim::tools {

namespace {

/// The first grid of a time series; it is coarsened while a run lasts.
constexpr Duration kSeriesInterval = Duration::milliseconds(100);

struct RunSettings {
  ScenarioRequest request;
  std::vector<Output> outputs;
  TextParts text = {};
  Scan scan = {};
  GoodputGoals goals = {};  ///< `--goodput`; empty = the ones of the workload's own file, if any.
  std::string records;      ///< File of one line per request; empty = none.
  bool regret = false;      ///< Price every decision.
  RunCommand command = {};  ///< The part of the command line that decides what is run.
  ExperimentOptions experiment = {};

  bool wants(RunNeeds needs) const {
    return std::ranges::any_of(
        outputs, [needs](const Output& output) { return needs_of(output.format) == needs; });
  }
};

/// ` --set a=1 --set b=2`: the option with all its values, as a shell reads it.
std::string again(const Options& options, const std::string& name) {
  std::string text;
  for (const std::string& value : options.all(name))
    text.append(" --").append(name).append(" ").append(shell_word(value));
  return text;
}

/// `--until`, whose limit is the number of replications.
std::optional<UntilRule> read_until(Options& options, std::size_t replications) {
  if (!options.has("until")) return std::nullopt;
  Parsed<UntilRule> until = parse_until(options.get("until"));
  if (!until.value) options.fail("--until " + until.message + "; " + until.hint);
  if (replications < 2) options.fail("--until needs --replications of at least 2, its limit");
  if (until.value) until.value->rule.limit = replications;
  return std::move(until.value);
}

ExperimentOptions read_experiment(const RunSettings& settings, Options& options) {
  const std::size_t fallback = options.has("until") ? StoppingRule{}.limit : 1;
  ExperimentOptions experiment{
      .replications = static_cast<std::size_t>(
          options.whole("replications", IntRange{1, 100'000}, static_cast<std::int64_t>(fallback))),
      .jobs = options.jobs(),
      .series =
          options.duration("series", {.min = Duration::microseconds(1), .max = Duration::max()}),
      .trace = settings.wants(RunNeeds::kTrace),
      .check = options.has("check"),
      .kv_band = !options.has("no-kv-band") &&
                 std::ranges::any_of(settings.outputs, shows_kv_band, &Output::format),
      .capacity = !options.has("no-capacity") &&
                  std::ranges::any_of(settings.outputs, shows_kv_band, &Output::format),
      .quiet = options.has("quiet"),
      .progress = progress_mode(options)};
  experiment.until = read_until(options, experiment.replications);
  if (!experiment.series && settings.wants(RunNeeds::kSeries)) experiment.series = kSeriesInterval;
  return experiment;
}

RunSettings read_run_settings(Options& options, const Console& console) {
  RunSettings settings{.request = scenario_request(options, options.positionals().front()),
                       .outputs = options.outputs(),
                       .records = options.get("records"),
                       .regret = options.has("regret"),
                       .command = {.input = shell_word(shown_path(options.positionals().front())) +
                                            again(options, "set"),
                                   .variants = again(options, "variant"),
                                   .options = again(options, "seed") + again(options, "goodput"),
                                   .scan = again(options, "rate") + again(options, "replicas")}};
  settings.text = {.tables = options.has("tables"),
                   .explain = options.has("explain"),
                   .colour = wants_colour(options, console)};
  settings.scan = read_scan(options);
  for (const Output& output : settings.outputs)
    if (output.format == "junit" || output.format == "github") settings.scan.judge = output.format;
  if (const auto seed = options.whole("seed", IntRange{0}))
    settings.request.seed = static_cast<std::uint64_t>(*seed);
  for (const std::string& goal : options.all("goodput")) {
    const std::string error = read_goal(goal, settings.goals);
    if (!error.empty()) options.fail("--goodput " + error);
  }
  for (const Output& output : settings.outputs)
    if (output.path.empty() && is_folder_format(output.format))
      options.fail("--output: " + output.format + " is several files, write " + output.format +
                   "=FOLDER");
  if (options.has("records") && !record_format(settings.records))
    options.fail("--records: the file must end in .csv or .jsonl (got " +
                 printable(settings.records) + ")");
  settings.experiment = read_experiment(settings, options);
  return settings;
}

/// The goals of a variant: the command line's, or the scenario's.
GoodputGoals asked_goals(const sim::Scenario& scenario, const RunSettings& settings) {
  return settings.goals.empty() ? tools::goals_of(scenario) : settings.goals;
}

/// An expectation about goodput is a question without an answer when nothing says what is good.
void check_goodput_expected(const std::vector<Expectation>& expectations, const GoodputGoals& goals,
                            Diagnostics& diagnostics) {
  if (!goals.empty() || diagnostics.has_errors()) return;
  for (const Expectation& e : expectations)
    if (needs_goals(e.condition.metric))
      diagnostics.error(e.where, "expect", "there are no goals to count good requests by",
                        "set goodput: [ttft:500ms] in the scenario, or --goodput ttft:500ms");
}

/// Equal for variants that sustain the same rate: those that only names, words and events tell
/// apart, where the events leave the number of servers as it is.
std::string steady_key(sim::Scenario s) {
  s.variant.clear();
  s.question.clear();
  s.measured = {};
  s.expect.clear();
  if (std::ranges::none_of(s.events, sim::changes_servers)) s.events.clear();
  const FieldDescription values = describe_values([&s](Describer& d) { describe(d, s); });
  return to_json(*to_node(values));
}

/// Whether an override makes another load or fleet than the measured one.
bool is_not_as_measured(const std::string& set) {
  const std::string key = set.substr(0, set.find('='));
  const auto ends = [&key](const char* word) { return key.ends_with(word); };
  return (key.starts_with("workload") && !key.starts_with("workload.options") &&
          !ends("_overhead") && !ends("_scale")) ||
         key == "cluster" || ends("pools") || ends("].replicas") || ends("].model") ||
         ends("].accelerator") || ends("_parallel") || ends(".rate_scale");
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
    const auto other = std::ranges::find_if(settings.request.sets, is_not_as_measured);
    if (other != settings.request.sets.end() && !measured.rows.empty()) {
      diagnostics.warning({.file = "--set"}, other->substr(0, other->find('=')),
                          "makes another load or fleet than the one of measured.csv, whose numbers "
                          "are left out");
      measured = {};
    }
    if (!plan) continue;
    std::vector<Expectation> expectations;
    if (settings.scan.empty())
      expectations = load_expectations(scenario, variant, *plan, selected, diagnostics);
    const GoodputGoals goals = asked_goals(plan->scenario, settings);
    check_goodput_expected(expectations, goals, diagnostics);
    planned.push_back({.plan = std::move(*plan),
                       .scan_of = variant.scan_of,
                       .fleet_of = variant.fleet_of,
                       .steady_key = steady_key(variant.scenario),
                       .resolved = resolved_with_files(variant),
                       .measured = std::move(measured),
                       .goals = goals,
                       .expectations = std::move(expectations)});
  }
  const auto asks = [](const LoadedVariant& v) { return !v.scenario.expect.empty(); };
  const auto about = std::ranges::find_if(scenario.variants, asks);
  const bool judges =
      std::ranges::any_of(planned, [](const PlannedVariant& v) { return !v.expectations.empty(); });
  if (const std::string& judge = settings.scan.judge; !judge.empty() && settings.scan.empty() &&
                                                      about != scenario.variants.end() && !judges &&
                                                      !diagnostics.has_errors())
    // A build server would take the answer for a test that passed.
    diagnostics.error(about->provenance.nearest("expect"), "expect",
                      "none is about the variants that are run, so --output " + judge +
                          " would have nothing to say",
                      "choose other variants, or leave --output " + judge + " out");
  // With the ceiling beside it, every variant says how far it is from it.
  const bool prices = settings.regret || std::any_of(planned.begin(), planned.end(), [](auto& v) {
                        return sim::prices_decisions(v.plan);
                      });
  for (PlannedVariant& v : planned) v.plan.price_decisions = prices;
  return planned;
}

/// The exit code of these results.
ExitCode exit_code_of(const Outcome& outcome) {
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

ExitCode run(Options& options, Console& console) {
  RunSettings settings = read_run_settings(options, console);
  if (!options.ok()) return refuse(options, console);
  const bool quiet = settings.experiment.quiet;
  Diagnostics diagnostics;
  LoadedScenario scenario = load_scenario(settings.request, diagnostics);
  if (!diagnostics.has_errors())
    scenario = scanned(std::move(scenario), settings.scan, diagnostics);
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
  if (!valid || !quiet) console.complain(tidy(diagnostics));
  if (valid && !quiet)
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
    settings.experiment.records = &*records;
  }
  run_variants(planned, settings.experiment, console, late, outcome);
  if (records && outcome.interrupted) records->mark_partial();
  if (late.has_errors()) {
    console.complain(tidy(late));
    return ExitCode::kInvalid;
  }
  name_run(planned.front().plan.scenario, scenario_hash(scenario), outcome);
  outcome.report.command = settings.command;
  if (!write_run_outputs(outcome.report, outcome.trace, settings.outputs, file ? &*file : nullptr,
                         settings.text, console))
    return ExitCode::kInvalid;
  report_end(outcome, console);
  return exit_code_of(outcome);
}

}  // namespace

Command run_command() {
  return {.name = "run",
          .summary =
              "Simulate a scenario's variants (- is standard input) and print what they achieve.",
          .positional = {.name = "SCENARIO", .min = 1, .max = 1, .ships = true},
          .options =
              {variant_option("Run only this variant."),
               set_option("Override a value: cluster.pools[0].replicas=4."),
               allow_library_option(),
               scan_options()[0],
               scan_options()[1],
               seed_option("Seed of the workload and of every random draw."),
               {.name = "output,o",
                .value_name = "FORMAT[=PATH]",
                .help = run_formats_help(),
                .repeatable = true,
                .choices = run_formats()},
               {"tables", "", "All tables: by stage, by class, published."},
               {"explain", "", "What the numbers rest on, and all notes."},
               {"series", "INTERVAL",
                "Sample every server over time for json, from every INTERVAL (100ms) on; the "
                "grid is coarsened to stay below 600 points.",
                false, "100ms"},
               {"goodput", "NAME:BOUND",
                "Count requests that meet this goal and the others: ttft:500ms.", true},
               {"records", "PATH",
                "One line per request, in the order they end: PATH ends in .csv or .jsonl."},
               {"replications", "N",
                "Runs per variant, with seeds from --seed on: means with 95 % intervals and "
                "paired differences."},
               {"until", "METRIC+-X%",
                "Go on until the interval of this metric of every variant is as narrow: "
                "ttft_ms.mean+-2%. --replications is the limit (200)."},
               jobs_option(),
               {"no-capacity", "",
                "Do not look for the highest rate that each variant sustains. It takes up to twice "
                "as long as the run itself; the formats that show --no-kv-band's runs show it."},
               {"no-kv-band", "",
                "Do not run a variant near its knee twice more, with 3 % fewer and more KV blocks. "
                "Each run takes as long as the variant's own; table, json, markdown and html show "
                "them, and no other format asks for them."},
               {"regret", "",
                "Price every decision by what an omniscient router knows: the mean regret in "
                "client-seconds. On where a variant is omniscient."},
               {"check", "", "Verify the simulator's invariants during the run."},
               progress_option(),
               color_option(),
               {"quiet,q", "", "No progress, timing or warnings on standard error."}},
          .examples = {{"routesim run question.yaml",
                        "Every variant under the same requests, and which one wins."},
                       {"routesim run question.yaml --rate 0.5x,1x,2x",
                        "The same at other rates, with the knee of each variant."},
                       {"routesim run question.yaml --variant prefix-aware --replicas 2,3,4",
                        "How many servers one policy needs."},
                       {"routesim run question.yaml --replications 5 -o html=page.html",
                        "Five seeds with 95 % intervals, as a page."}},
          .run = &run};
}

}  // namespace routesim::tools
