// routesim plan: the cheapest fleet that meets every goal.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "tools/cli/cli.h"
#include "tools/cli/output_target.h"
#include "tools/cli/progress.h"
#include "tools/ingest/scenario/prepare.h"
#include "tools/ingest/scenario/scenario_yaml.h"
#include "tools/render/page/html_page.h"
#include "tools/results/described_json.h"
#include "tools/results/output_file.h"
#include "tools/study/plan/plan_fleet.h"
#include "tools/study/plan/plan_record.h"

namespace routesim::tools {

namespace {

struct PlanSettings {
  PlanRequest request;
  std::size_t jobs = 1;
  std::vector<Output> outputs;
  std::string watch = {};
  std::string write = {};  ///< A folder for the files of the fleet; empty = none.
  ProgressMode progress = ProgressMode::kAuto;
};

PlanSettings read_plan_settings(Options& options) {
  return {.request = {.path = options.positionals().front(),
                      .sets = options.all("set"),
                      .seed = options.whole("seed", IntRange{0, 1'000'000'000})},
          .jobs = options.jobs(),
          .outputs = options.outputs(),
          .watch = options.get("watch"),
          .write = options.get("write"),
          .progress = progress_mode(options)};
}

/// `step 1 of 8, smallest fleets: 5 of 12 found; 34 fleets, 96 runs, 4.1 s`.
std::string plan_line(const ExperimentProgress& progress, double elapsed_s) {
  const std::size_t step = progress.step;
  const std::size_t questions = progress.questions;
  std::string text =
      fmt::format("step {} of {}, {}", step + 1, kPlanSteps.size(), kPlanSteps[step]);
  if (questions > 0)
    text +=
        fmt::format(": {} of {} found", std::min(progress.answered.load(), questions), questions);
  return text + fmt::format("; {} fleets, {} runs, {:.1f} s", progress.candidates.load(),
                            progress.runs.load(), elapsed_s);
}

std::vector<std::string> plan_inputs(const PlanSpace& space) {
  std::vector<std::string> inputs = files_read(std::span(&space.scenario_path, 1));
  inputs.push_back(space.path);
  const auto add = [&inputs](const std::vector<Assignment>& assignments) {
    for (std::string& file : files_named(assignments)) inputs.push_back(std::move(file));
  };
  add(space.base);
  for (const PlanFamily& family : space.families) add(family.assignments);
  return inputs;
}

/// Whether everything can be written, and is no file that the plan reads.
bool check_writes(const PlanSpace& space, const PlanSettings& settings, Console& console) {
  std::vector<std::string> paths;
  for (const Output& output : settings.outputs) paths.push_back(output.path);
  std::error_code missing;
  if (std::filesystem::is_directory(settings.write, missing))
    for (const std::string_view name : kFleetFiles)
      paths.push_back((std::filesystem::path(settings.write) / name).string());
  return check_outputs(paths, plan_inputs(space), console) &&
         (settings.write.empty() ||
          finish_file(settings.write, why_no_folder(settings.write), console));
}

/// Writes the plan, and after an interrupt what it has of it.
bool write_plan(const PlanSpace& space, const PlanResult& result, const PlanSettings& settings,
                Console& console) {
  PlanRecord record = plan_record(space, result);
  const auto render = [&record](const std::string& format, std::size_t width) {
    if (format == "json") return json_text(record);
    if (format == "html") return document_page(plan_document(record), json_text(record));
    return draw(plan_document(record), format, width);
  };
  std::vector<Output> outputs = settings.outputs;
  if (!result.is_complete() && !settings.watch.empty())  // That page says so already.
    std::erase_if(outputs, [&](const Output& o) { return o.path == settings.watch; });
  return write_outputs(outputs, render, console, !result.is_complete());
}

/// Writes the plan and the files of its fleet. False, with messages, when something could not be.
bool write_plan_and_fleet(const PlanSpace& space, const PlanResult& result,
                          const PlanSettings& settings, Console& console) {
  const bool has_fleet = !settings.write.empty() && !result.plans.empty();
  std::vector<FolderFile> files;
  Diagnostics found;
  if (has_fleet) files = fleet_files(space, result.plans.front(), settings.write, found);
  if (found.has_errors()) console.complain(found);
  if (found.has_errors() || !write_plan(space, result, settings, console)) return false;
  if (has_fleet) return finish_file(settings.write, write_folder(settings.write, files), console);
  if (!settings.write.empty())
    console.complain("routesim: " + printable(settings.write, 200) +
                     " is not written: no fleet meets the goals\n");
  return true;
}

ExitCode run_plan(Options& options, Console& console) {
  const PlanSettings settings = read_plan_settings(options);
  if (!options.ok()) return refuse(options, console);
  Diagnostics diagnostics;
  const PlanSpace space = load_plan(settings.request, diagnostics);
  const bool valid = !diagnostics.has_errors();
  if (!valid || !options.has("quiet")) console.complain(diagnostics);
  if (!valid || !check_writes(space, settings, console)) return ExitCode::kInvalid;

  PlanResult result;
  const StudyRun how{.jobs = settings.jobs,
                     .progress = settings.progress,
                     .line = &plan_line,
                     .interrupted =
                         [&result](const ExperimentProgress&) {
                           return result.evaluated.empty() ? ", no plan was made"
                                                           : ", the plan is partial";
                         },
                     .watch = settings.watch,
                     .so_far =
                         [&] {
                           PlanRecord record = plan_record(space, result);
                           return StudyPage{plan_document(record), json_text(record)};
                         }};
  if (const auto code = conduct(how, console, [&](Experiment& experiment) {
        FleetEvaluator evaluator(space, experiment);
        search_plan(space, evaluator, result);
      })) {
    const bool partial = *code == ExitCode::kInterrupted && !result.evaluated.empty();
    return partial && !write_plan(space, result, settings, console) ? ExitCode::kInvalid : *code;
  }
  if (!write_plan_and_fleet(space, result, settings, console)) return ExitCode::kInvalid;
  return result.plans.empty() ? ExitCode::kFailed : ExitCode::kSuccess;
}

}  // namespace

Command plan_command() {
  return {.name = "plan",
          .summary = "Find the cheapest fleet that meets every goal, and say what binds it.",
          .positional = {.name = "PLAN", .min = 1, .max = 1, .ships = true},
          .options = {{.name = "output,o",
                       .value_name = "FORMAT[=PATH]",
                       .help = "table (default), json, markdown or html (a page); to standard "
                               "output or PATH.",
                       .repeatable = true,
                       .choices = {"table", "json", "markdown", "html"}},
                      {"write", "DIR",
                       "Write the cheapest fleet there: scenario.yaml for `routesim run`, "
                       "servers.yaml for Kubernetes, router.yaml where the router has a document."},
                      jobs_option("the answer"),
                      set_option("Override a value in every fleet, as in `run`."),
                      allow_library_option(),
                      seed_option(),
                      progress_option(),
                      watch_option(),
                      quiet_option()},
          .examples = {{"routesim plan plan.yaml",
                        "The cheapest fleet that meets every goal, and what binds it."},
                       {"routesim plan plan.yaml -o json=plan.json --write fleet",
                        "The same as a file for `routesim report`; the fleet as files to deploy."}},
          .run = &run_plan};
}

}  // namespace routesim::tools
