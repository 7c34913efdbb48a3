// routesim validate: every published number beside the simulated one.
#include <algorithm>
#include <array>
#include <filesystem>

#include "base/config_node.h"
#include "base/printable.h"
#include "tools/cli/cli.h"
#include "tools/cli/output_target.h"
#include "tools/ingest/config_file.h"
#include "tools/ingest/prepare.h"
#include "tools/ingest/scenario_yaml.h"
#include "tools/render/version.h"
#include "tools/study/parallel.h"
#include "tools/study/validate/limits.h"
#include "tools/study/validate/trust_table.h"
#include "tools/study/validate/validation.h"
#include "tools/study/validate/validation_run.h"

namespace routesim::tools {

namespace {

struct ValidateSettings {
  std::vector<std::string> paths;
  std::vector<std::string> sets;
  std::vector<std::string> variants;
  std::vector<ErrorGate> gates;
  std::string limits;  ///< A file with a limit for every row; empty = none.
  std::size_t seeds = 5;
  std::size_t jobs = 1;
  std::string format = "table";
  std::string path;  ///< Of the output; empty = standard output.
  bool summary = false;
  bool quiet = false;
  bool trust = false;  ///< Errors by what the step times rest on, with runs on the roofline.
  bool force = false;  ///< Results of another load are compared, too.
};

bool parse_format(const std::string& text, ValidateSettings& settings, std::string& error) {
  constexpr std::array<std::string_view, 5> kFormats = {"table", "json", "csv", "markdown",
                                                        "limits"};
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
  settings.trust = options.has("trust");
  settings.force = options.has("force");
  settings.limits = options.get("limits");
  for (const std::string& text : options.all("fail-if")) {
    Parsed<ErrorGate> gate = parse_error_gate(text);
    if (!gate.value) {
      error = "--fail-if " + gate.message + "; " + gate.hint;
      return false;
    }
    settings.gates.push_back(std::move(*gate.value));
  }
  const auto seeds = whole_number(options, "seeds", IntRange{1, 1000}, error);
  const auto jobs = whole_number(options, "jobs", IntRange{1, 1024}, error);
  if (!error.empty()) return false;
  if (seeds) settings.seeds = static_cast<std::size_t>(*seeds);
  const std::string format = options.get("output", "table");
  if (settings.trust && (format.starts_with("json") || format.starts_with("limits")))
    error = "--trust is printed as table, csv or markdown";
  if (settings.trust && (!settings.limits.empty() || !settings.gates.empty()))
    error = "--trust mixes runs as they are with others: it has no gates";
  settings.jobs = jobs ? static_cast<std::size_t>(*jobs) : sim::default_jobs();
  return parse_format(format, settings, error) && error.empty();
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
  if (settings.trust) {
    const std::vector<TrustError> errors = trust_table(all);
    if (settings.format == "csv") return render_trust_csv(errors);
    return render_trust_text(errors, settings.format == "markdown");
  }
  if (settings.format == "json") return render_validation_json(all, version());
  if (settings.format == "csv") return render_validation_csv(all);
  if (settings.format == "limits") return render_limits_csv(all);
  return render_validation_text(all, settings.format == "markdown", !settings.summary);
}

/// Prints the tables, or writes them. False, with a message, when they cannot be written.
bool deliver(const std::string& text, const std::string& path, Console& console) {
  if (path.empty()) {
    console.print(text);
    return true;
  }
  const std::string error = write_file(path, text);
  if (!error.empty())
    console.complain("routesim: cannot write " + printable(path, 200) + ": " + error + "\n");
  return error.empty();
}

/// Says which limits do not hold. Both kinds of findings are told, whatever the exit code.
ExitCode judge(const std::vector<ScenarioValidation>& all, const ValidateSettings& settings,
               const std::vector<RowLimit>& limits, Console& console) {
  LimitFindings findings;
  for (const ErrorGate& gate : settings.gates) check_gate(gate, all, findings);
  if (!settings.limits.empty()) check_limits(limits, settings.limits, all, findings);
  console.complain(findings.unmatched);
  console.complain(findings.exceeded);
  if (findings.unmatched.has_errors()) return ExitCode::kInvalid;
  return findings.exceeded.has_errors() ? ExitCode::kFailed : ExitCode::kSuccess;
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
  std::vector<RowLimit> limits;
  std::vector<std::string> files = files_read(settings.paths);
  if (!settings.limits.empty()) files.push_back(settings.limits);
  if (!check_outputs(std::span(&settings.path, 1), files, console)) return ExitCode::kInvalid;
  if (std::string limits_text; !settings.limits.empty() &&
                               read_text_file(settings.limits, {.file = settings.limits}, "",
                                              ConfigLimits{}.max_bytes, limits_text, diagnostics))
    limits = parse_limits_csv(limits_text, settings.limits, diagnostics);
  for (const std::string& path : settings.paths)
    inputs.push_back(
        load_validation_input(path, settings.sets, settings.variants, settings.force, diagnostics));
  const bool valid = !diagnostics.has_errors();
  if (!valid || !settings.quiet) console.complain(tidy(diagnostics));
  if (!valid) return ExitCode::kInvalid;

  if (settings.trust)
    for (std::size_t i = 0; i < settings.paths.size(); ++i)
      if (ValidationInput unfitted = on_roofline(inputs[i], settings.paths[i], settings.sets);
          !unfitted.variants.empty())
        inputs.push_back(std::move(unfitted));

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
  if (!deliver(render(results, settings), settings.path, console)) return ExitCode::kInvalid;
  return judge(results, settings, limits, console);
}

}  // namespace

Command validate_command() {
  return {.name = "validate",
          .summary = "Compare scenarios with the numbers published for them, cell by cell.",
          .positional = {.name = "SCENARIO", .min = 0, .max = 10'000},
          .options =
              {{"seeds", "N", "Seeds per variant, from the scenario's on (default 5).", false},
               {"jobs,j", "N", "Threads (default: one per core); no effect on results.", false},
               {"output,o",
                "FORMAT[=PATH]",
                "table (default), json, csv, markdown, or limits: a file for --limits that "
                "holds every row of the error tables to its present value and a tenth of it, "
                "at least a point.",
                false,
                {},
                {"table", "json", "csv", "markdown", "limits"}},
               {"fail-if", "[SCOPE:]METRIC[.STATISTIC]>PERCENT%",
                "Exit with 1 when the mean error of such a row is larger: 'ttft.mean>8%', "
                "'llmd_precise_prefix:ttft>20%' for one policy or experiment.",
                true},
               {"limits", "PATH",
                "Exit with 1 when a row of the error tables exceeds its limit in this file, with "
                "2 when a row has no limit or a limit has no row.",
                false},
               {"summary", "", "Only the error tables (table and markdown).", false},
               {"trust", "",
                "Only the errors by what the step times rest on, over these scenarios and, where "
                "they are fitted, once more on the roofline (table, csv, markdown).",
                false},
               {"variant", "NAME", "Only this variant.", true},
               {"set", "KEY=VALUE", "Override a value, as in `run`.", true},
               {"folder", "PATH",
                "Where scenarios are looked for when none is named (default scenarios).", false},
               {"force", "", "Compare results of `vllm bench serve` that state another load, too.",
                false},
               {"quiet,q", "", "No progress or warnings on standard error.", false}},
          .run = &run_validate};
}

}  // namespace routesim::tools
