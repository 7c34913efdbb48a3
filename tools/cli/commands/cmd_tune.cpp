// routesim tune: the best configuration for a load and a fleet, or that there is none.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <functional>

#include "base/text.h"
#include "tools/cli/cli.h"
#include "tools/cli/output_target.h"
#include "tools/cli/progress.h"
#include "tools/render/page/html_page.h"
#include "tools/results/described_json.h"
#include "tools/study/tune/tune_record.h"

namespace routesim::tools {

namespace {

struct TuneSettings {
  TuneRequest request;
  std::size_t jobs = 1;
  std::vector<Output> outputs;
  std::string watch = {};
  ProgressMode progress = ProgressMode::kAuto;
  bool quiet = false;
};

TuneSettings read_tune_settings(Options& options) {
  return {.request = {.path = options.positionals().front(),
                      .sets = options.all("set"),
                      .variant = options.get("variant"),
                      .goals = options.all("goal"),
                      .seed = options.whole("seed", IntRange{0, 1'000'000'000}),
                      .budget = options.whole("budget", IntRange{20, 1'000'000}),
                      .fresh_seeds = options.whole("fresh-seeds", IntRange{2, 1000})},
          .jobs = options.jobs(),
          .outputs = options.outputs(),
          .watch = options.get("watch"),
          .progress = progress_mode(options),
          .quiet = options.has("quiet")};
}

/// Empty until the budget is known.
std::string tune_line(const ExperimentProgress& progress, double elapsed_s) {
  if (progress.planned == 0) return {};
  return fmt::format("{} of about {} runs, {} candidates in the race, {:.1f} s",
                     progress.runs.load(), progress.planned.load(), progress.candidates.load(),
                     elapsed_s);
}

/// The budget. Says what a tuning without one will spend.
std::size_t choose_budget(const TuneSpace& space, Experiment& experiment, bool quiet,
                          Console& console) {
  const auto start = std::chrono::steady_clock::now();
  const std::size_t budget = budget_of(space, experiment);
  if (space.config.budget || quiet) return budget;
  const std::chrono::duration<double> one_run = std::chrono::steady_clock::now() - start;
  const std::size_t to_judge = least_judgement_runs(space);
  console.complain(fmt::format(
      "note: up to {} runs to search and {} or more to judge, about {:.0f} s with {} jobs; "
      "--budget and --fresh-seeds set them\n",
      budget, to_judge,
      std::ceil(one_run.count() * static_cast<double>(budget + to_judge) /
                static_cast<double>(experiment.jobs())),
      experiment.jobs()));
  return budget;
}

/// Renders every output, and says to `note` what a reader of the files should know.
std::string render_tuning(const TuneReport& report, TuneRecord& record, const std::string& format,
                          std::size_t width, const std::function<void(const std::string&)>& note) {
  if (format == "json") return json_text(record);
  if (format == "html") return document_page(tune_document(record), json_text(record));
  if (format == "csv") return tune_csv(record);
  if (format == "flags") {
    std::string flags = deployed_flags(report);
    if (flags.empty())
      note(deploys_best(report) ? "-o flags is empty: no change is one of the engines"
                                : "-o flags is empty: the published flags stay");
    return flags;
  }
  if (format != "epp") return draw(tune_document(record), format, width);
  if (!deploys_best(report)) note("the document of -o epp is the published one");
  if (!report.document->kept) note("the comments of the document could not be kept");
  return report.document->text;
}

ExitCode write_report(TuneReport report, const TuneSettings& settings, Console& console) {
  for (const Output& output : settings.outputs)
    if (output.format == "epp" && !output.path.empty()) report.document_path = output.path;
  deploy(report);
  const auto note = [&](const std::string& text) {
    if (!settings.quiet) console.complain("note: " + text + "\n");
  };
  TuneRecord record = tune_record(report);
  const bool written = write_outputs(
      settings.outputs,
      [&](const std::string& format, std::size_t width) {
        return render_tuning(report, record, format, width, note);
      },
      console);
  if (!written) return ExitCode::kInvalid;
  const TuneDecision decision = report.judgement.decision;
  return decision == TuneDecision::kUndecided || decision == TuneDecision::kUnmet
             ? ExitCode::kInconclusive
             : ExitCode::kSuccess;
}

/// The race as it stands.
StudyPage race_page(const TuneSpace& space, const TuneSearchResult& search) {
  if (search.candidates.empty()) {
    StudyDocument nothing;
    nothing.title = space.config.name;
    return {nothing, "{}"};
  }
  const TuneJudgement nothing;
  TuneRecord record = tune_record({space, search, nothing});
  return {tune_document(record), json_text(record)};
}

ExitCode run_tune(Options& options, Console& console) {
  const TuneSettings settings = read_tune_settings(options);
  if (!options.ok()) return refuse(options, console);
  Diagnostics diagnostics;
  const TuneSpace space = load_tune(settings.request, diagnostics);
  for (const Output& output : settings.outputs)
    if (output.format == "epp" && !space.picker && !diagnostics.has_errors())
      diagnostics.error({.file = space.path}, "--output epp",
                        "needs an EndpointPickerConfig, and the variant has none");
  const bool valid = !diagnostics.has_errors();
  if (!valid || !settings.quiet) console.complain(diagnostics);
  if (!valid || !check_outputs(settings.outputs, space.inputs, console)) return ExitCode::kInvalid;

  TuneSearchResult search;
  TuneJudgement judgement;
  const StudyRun how{.jobs = settings.jobs,
                     .progress = settings.progress,
                     .line = &tune_line,
                     .interrupted = interrupted_with("nothing was judged"),
                     .watch = settings.watch,
                     .so_far = [&] { return race_page(space, search); }};
  if (const auto code = conduct(how, console, [&](Experiment& experiment) {
        const std::size_t budget = choose_budget(space, experiment, settings.quiet, console);
        search_tune(space, budget, experiment, search);
        judgement = judge_tune(space, search, experiment);
      }))
    return *code;
  return write_report({space, search, judgement}, settings, console);
}

}  // namespace

Command tune_command() {
  return {
      .name = "tune",
      .summary = "Find the best configuration of a scenario or a tune file, or show there is none.",
      .positional = {.name = "FILE", .min = 1, .max = 1},
      .options = {{.name = "output,o",
                   .value_name = "FORMAT[=PATH]",
                   .help = "table (default), json, markdown, html, csv (every candidate), epp (the "
                           "document to "
                           "deploy) or flags (of vllm serve); to standard output or PATH.",
                   .repeatable = true,
                   .choices = {"table", "json", "markdown", "html", "csv", "epp", "flags"}},
                  {"variant", "NAME", "Variant to tune."},
                  {.name = "goal",
                   .value_name = "GOAL",
                   .help = "minimise METRIC or maximise METRIC; twice for a Pareto front. "
                           "Default: minimise ttft_ms.p90.",
                   .repeatable = true},
                  {"budget", "RUNS",
                   "Runs that the search may take; default 1000, fewer where they are large."},
                  {"fresh-seeds", "N", "Seeds of the judgement; default 60."},
                  jobs_option("the answer"),
                  set_option("Override a value in every candidate, as in `run`."),
                  allow_library_option(),
                  seed_option("Seed of the first run and of the search."),
                  progress_option(),
                  watch_option(),
                  quiet_option()},
      .examples = {{"routesim tune question.yaml --variant prefix-aware",
                    "The weights and flags with the lowest TTFT p90."},
                   {"routesim tune tune.yaml -o epp=tuned.yaml -o table",
                    "Knobs and goals from a file; the document to deploy in another."},
                   {"routesim tune question.yaml --variant prefix-aware --goal 'maximise "
                    "output_throughput' --budget 200",
                    "Another goal, a short search."}},
      .run = &run_tune};
}

}  // namespace routesim::tools
