// routesim plan: the cheapest fleet that meets every goal.
#include <array>

#include "base/printable.h"
#include "base/scalar_parse.h"
#include "tools/cli/cli.h"
#include "tools/cli/output_target.h"
#include "tools/cli/progress.h"
#include "tools/ingest/prepare.h"
#include "tools/ingest/scenario_yaml.h"
#include "tools/render/text_table.h"
#include "tools/study/parallel.h"
#include "tools/study/plan/plan_render.h"

namespace routesim::tools {

namespace {

struct PlanSettings {
  PlanRequest request;
  std::size_t jobs = 1;
  std::string table_path;  ///< Files; empty = none.
  std::string json_path;
  bool table = false;  ///< To standard output.
  bool json = false;
  ProgressMode progress = ProgressMode::kAuto;
  bool quiet = false;
};

constexpr std::int64_t kMost = 1'000'000'000;  ///< Of a seed, or of threads.

bool parse_outputs(const std::vector<std::string>& texts, PlanSettings& settings,
                   std::string& error) {
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    const std::string path = equals == std::string::npos ? "" : text.substr(equals + 1);
    if (name != "table" && name != "json") {
      error = "--output: unknown format " + printable(name) + ", one of table, json";
      return false;
    }
    if (path.empty() || path == "-") {
      (name == "table" ? settings.table : settings.json) = true;
    } else {
      (name == "table" ? settings.table_path : settings.json_path) = path;
    }
  }
  if (texts.empty()) settings.table = true;
  if (settings.table && settings.json)
    error = "--output: only one format can go to standard output, add =PATH";
  return error.empty();
}

bool parse_settings(const OptionValues& options, PlanSettings& settings, std::string& error) {
  settings.request.path = options.positionals.front();
  settings.request.sets = options.all("set");
  settings.request.seed = whole_number(options, "seed", IntRange{0, kMost}, error);
  const auto jobs = whole_number(options, "jobs", IntRange{1, kMost}, error);
  settings.jobs = jobs ? static_cast<std::size_t>(*jobs) : sim::default_jobs();
  settings.quiet = options.has("quiet");
  parse_progress(options, settings.progress, error);
  return error.empty() && parse_outputs(options.all("output"), settings, error);
}

/// Nothing when the search was interrupted or a run had errors.
std::optional<PlanResult> search(const PlanSpace& space, const PlanSettings& settings,
                                 Diagnostics& diagnostics, Console& console) {
  PlanProgress progress;
  const InterruptGuard guard(progress.run.stop);
  const ProgressDisplay display(
      [&progress](double elapsed_s) {
        return std::to_string(progress.fleets.load()) + " fleets, " +
               std::to_string(progress.runs.load()) + " runs, " + fixed_text(elapsed_s, 1) + " s";
      },
      settings.progress, console);
  FleetEvaluator evaluator(space, settings.jobs, progress, diagnostics);
  try {
    return search_plan(space, evaluator);
  } catch (const PlanStopped&) {
    return std::nullopt;
  }
}

bool check_files(const PlanSpace& space, const PlanSettings& settings, Console& console) {
  std::vector<std::string> inputs = files_read(std::span(&space.scenario_path, 1));
  inputs.push_back(settings.request.path);
  const auto add = [&inputs](const std::vector<Assignment>& assignments) {
    for (std::string& file : files_named(assignments)) inputs.push_back(std::move(file));
  };
  add(space.base);
  for (const PlanFamily& family : space.families) add(family.assignments);
  const std::array<std::string, 2> outputs = {settings.table_path, settings.json_path};
  return check_outputs(outputs, inputs, console);
}

/// Both files or none.
bool write_files(const PlanSettings& settings, const std::string& text, const std::string& json,
                 Console& console) {
  OutputBatch batch;
  if (!settings.table_path.empty()) batch.add(settings.table_path, text);
  if (!settings.json_path.empty()) batch.add(settings.json_path, json);
  return batch.close(console) && batch.finish(console);
}

ExitCode run_plan(const OptionValues& options, Console& console) {
  PlanSettings settings;
  std::string error;
  if (!parse_settings(options, settings, error)) return usage_error(console, "plan", error);
  Diagnostics diagnostics;
  const PlanSpace space = load_plan(settings.request, diagnostics);
  const bool valid = !diagnostics.has_errors();
  if (!valid || !settings.quiet) console.complain(diagnostics);
  if (!valid || !check_files(space, settings, console)) return ExitCode::kInvalid;

  Diagnostics late;
  const std::optional<PlanResult> result = search(space, settings, late, console);
  if (late.has_errors()) {
    console.complain(tidy(late));
    return ExitCode::kInvalid;
  }
  if (!result) {
    console.complain("routesim: interrupted, no plan was made\n");
    return ExitCode::kInterrupted;
  }
  const std::string text = render_plan_text(space, *result);
  const std::string json = render_plan_json(space, *result);
  if (settings.table) console.print(text);
  if (settings.json) console.print(json);
  if (!write_files(settings, text, json, console)) return ExitCode::kInvalid;
  return result->plans.empty() ? ExitCode::kFailed : ExitCode::kSuccess;
}

}  // namespace

Command plan_command() {
  return {.name = "plan",
          .summary = "Find the cheapest fleet that meets every goal, and say what binds it.",
          .positional = {.name = "PLAN", .min = 1, .max = 1},
          .options = {{"output,o",
                       "FORMAT[=PATH]",
                       "table (default) or json; to standard output or PATH.",
                       true,
                       {},
                       {"table", "json"}},
                      {"jobs,j", "N", "Threads (default: one per core); no effect on the answer.",
                       false},
                      {"set", "KEY=VALUE", "Override a value in every fleet, as in `run`.", true},
                      {"seed", "N", "Seed of the first replication.", false},
                      progress_option(),
                      {"quiet,q", "", "No progress or warnings on standard error.", false}},
          .run = &run_plan};
}

}  // namespace routesim::tools
