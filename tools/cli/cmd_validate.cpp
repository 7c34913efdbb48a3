// routesim validate: every published number beside the simulated one.
#include <algorithm>
#include <array>
#include <filesystem>
#include <thread>

#include "tools/cli/cli.h"
#include "tools/cli/output_target.h"
#include "tools/cli/version.h"
#include "tools/input/config_node.h"
#include "tools/input/prepare.h"
#include "tools/input/scenario_yaml.h"
#include "tools/output/printable.h"
#include "tools/validate/validation.h"
#include "tools/validate/validation_run.h"

namespace routesim::tools {

namespace {

struct ValidateSettings {
  std::vector<std::string> paths;
  std::vector<std::string> sets;
  std::vector<std::string> variants;
  std::size_t seeds = 5;
  std::size_t jobs = 1;
  std::string format = "table";
  std::string path;  ///< Of the output; empty = standard output.
  bool summary = false;
  bool quiet = false;
  bool force = false;  ///< Results of another load are compared, too.
};

bool parse_format(const std::string& text, ValidateSettings& settings, std::string& error) {
  constexpr std::array<std::string_view, 4> kFormats = {"table", "json", "csv", "markdown"};
  const auto output = parse_named_output(text, kFormats, error);
  if (!output) return false;
  settings.format = output->format;
  settings.path = output->path;
  return true;
}

bool parse_settings(const OptionValues& options, ValidateSettings& settings, std::string& error) {
  settings.paths = options.positionals;
  settings.sets = options.all("set");
  settings.variants = options.all("variant");
  settings.summary = options.has("summary");
  settings.quiet = options.has("quiet");
  settings.force = options.has("force");
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  const auto seeds = whole_number(options, "seeds", IntRange{1, 1000}, error);
  const auto jobs = whole_number(options, "jobs", IntRange{1, 1024}, error);
  if (!error.empty()) return false;
  if (seeds) settings.seeds = static_cast<std::size_t>(*seeds);
  settings.jobs = jobs ? static_cast<std::size_t>(*jobs) : cores;
  return parse_format(options.get("output", "table"), settings, error);
}

/// The scenario files of a folder that are compared with something, by name.
std::vector<std::string> measured_scenarios(const std::string& folder, std::string& error) {
  std::vector<std::string> paths;
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator(folder, code)) {
    if (entry.path().extension() != ".yaml") continue;
    Diagnostics ignored;  // A file that cannot be read is reported when it is named.
    const ConfigNode::Ptr root = read_config_file(entry.path().string(), ignored);
    if (root == nullptr || !root->is_map() || root->find("workload") == nullptr) continue;
    if (root->find("measured") != nullptr) paths.push_back(entry.path().string());
  }
  if (code) error = "cannot list " + printable(folder, 200) + ": " + code.message();
  if (error.empty() && paths.empty())
    error = "no scenario in " + printable(folder, 200) + " has `measured:`";
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string render(const std::vector<ScenarioValidation>& all, const ValidateSettings& settings) {
  if (settings.format == "json") return render_validation_json(all, version());
  if (settings.format == "csv") return render_validation_csv(all);
  return render_validation_text(all, settings.format == "markdown", !settings.summary);
}

ExitCode run_validate(const OptionValues& options, Console& console) {
  ValidateSettings settings;
  std::string error;
  if (!parse_settings(options, settings, error)) return usage_error(console, "validate", error);
  if (settings.paths.empty())
    settings.paths = measured_scenarios(options.get("folder", "scenarios"), error);
  if (!error.empty()) return usage_error(console, "validate", error);

  Diagnostics diagnostics;
  std::vector<ValidationInput> inputs;
  if (!check_outputs(std::span(&settings.path, 1), files_read(settings.paths), console))
    return ExitCode::kInvalid;
  for (const std::string& path : settings.paths)
    inputs.push_back(
        load_validation_input(path, settings.sets, settings.variants, settings.force, diagnostics));
  const bool valid = !diagnostics.has_errors();
  if (!valid || !settings.quiet) console.complain(tidy(diagnostics));
  if (!valid) return ExitCode::kInvalid;

  sim::Progress progress;
  Diagnostics late;
  const auto report = [&](const std::string& line) {
    if (!settings.quiet) console.complain(line);
  };
  std::vector<ScenarioValidation> results;
  {
    const InterruptGuard guard(progress.stop);
    results = run_validation(inputs, {.seeds = settings.seeds, .jobs = settings.jobs}, report,
                             progress, late);
  }
  if (progress.stop) {
    console.complain("routesim: interrupted, nothing is reported\n");
    return ExitCode::kInterrupted;
  }
  if (late.has_errors()) {
    console.complain(tidy(late));
    return ExitCode::kInvalid;
  }
  const std::string text = render(results, settings);
  if (settings.path.empty()) {
    console.print(text);
    return ExitCode::kSuccess;
  }
  error = write_file(settings.path, text);
  if (error.empty()) return ExitCode::kSuccess;
  console.complain("routesim: cannot write " + printable(settings.path, 200) + ": " + error + "\n");
  return ExitCode::kInvalid;
}

}  // namespace

Command validate_command() {
  return {
      .name = "validate",
      .summary = "Compare scenarios with the numbers published for them, cell by cell.",
      .positional = {.name = "SCENARIO", .min = 0, .max = 10'000},
      .options = {{"seeds", "N", "Seeds per variant, from the scenario's on (default 5).", false},
                  {"jobs,j", "N", "Threads (default: one per core); no effect on results.", false},
                  {"output,o",
                   "FORMAT[=PATH]",
                   "table (default), json, csv or markdown.",
                   false,
                   {},
                   {"table", "json", "csv", "markdown"}},
                  {"summary", "", "Only the error tables (table and markdown).", false},
                  {"variant", "NAME", "Only this variant.", true},
                  {"set", "KEY=VALUE", "Override a value, as in `run`.", true},
                  {"folder", "PATH",
                   "Where scenarios are looked for when none is named (default scenarios).", false},
                  {"force", "",
                   "Compare results of `vllm bench serve` that state another load, too.", false},
                  {"quiet,q", "", "No progress or warnings on standard error.", false}},
      .run = &run_validate};
}

}  // namespace routesim::tools
