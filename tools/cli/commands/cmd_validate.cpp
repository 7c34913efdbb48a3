// routesim validate: every published number beside the simulated one.
#include <algorithm>
#include <filesystem>

#include "base/config_node.h"
#include "base/text.h"
#include "tools/cli/cli.h"
#include "tools/cli/inputs.h"
#include "tools/cli/output_target.h"
#include "tools/cli/progress.h"
#include "tools/ingest/scenario/prepare.h"
#include "tools/ingest/scenario/scenario_yaml.h"
#include "tools/ingest/tree/parse_config.h"
#include "tools/results/described_json.h"
#include "tools/results/output_file.h"
#include "tools/results/version.h"
#include "tools/study/validate/validation.h"
#include "tools/study/validate/validation_record.h"
#include "tools/study/validate/validation_run.h"

namespace routesim::tools {

namespace {

struct ValidateSettings {
  std::vector<std::string> paths;
  std::vector<ErrorGate> gates = {};
  std::string limits;  ///< A file with a limit for every row; empty = none.
  std::size_t seeds = 5;
  std::size_t jobs = 1;
  std::vector<Output> outputs;
  bool summary = false;
  bool trust = false;  ///< Errors by what the step times rest on, with runs without a fit.
  std::optional<BlindTo> left_out = {};
};

/// The scenario files of a folder that are compared with something, by name.
std::vector<std::string> measured_scenarios(const std::string& folder, Options& options) {
  std::vector<std::string> paths;
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator(folder, code)) {
    if (entry.path().extension() != ".yaml") continue;
    Diagnostics ignored;  // A file that cannot be read is reported when it is named.
    const ConfigNode::Ptr root = read_config_file(entry.path().string(), ignored);
    if (root == nullptr || !root->is_map() || root->find("workload") == nullptr) continue;
    if (root->find("measured") != nullptr) paths.push_back(entry.path().string());
  }
  if (code)
    options.fail("cannot list " + printable(folder, 200) + ": " + code.message());
  else if (paths.empty())
    options.fail("no scenario in " + printable(folder, 200) + " has `measured:`");
  std::sort(paths.begin(), paths.end());
  return paths;
}

ValidateSettings read_validate_settings(Options& options) {
  ValidateSettings settings{
      .paths = options.positionals(),
      .limits = options.get("limits"),
      .seeds = static_cast<std::size_t>(options.whole("seeds", IntRange{1, 1000}, 5)),
      .jobs = options.jobs(),
      .outputs = options.outputs(),
      .summary = options.has("summary"),
      .trust = options.has("trust")};
  const std::string left_out = options.get("leave-out");
  for (const BlindTo what : {BlindTo::kExperiment, BlindTo::kModel, BlindTo::kHardware})
    if (enum_name(what) == left_out) settings.left_out = what;
  for (const std::string& text : options.all("fail-if")) {
    Diagnostics found;
    if (const std::optional<ErrorGate> gate = parse_error_gate(text, found))
      settings.gates.push_back(*gate);
    for (const Diagnostic& d : found.items())
      options.fail("--fail-if " + d.message + "; " + d.hint);
  }
  for (const Output& output : settings.outputs)
    if (settings.trust &&
        (output.format == "json" || output.format == "limits" || output.format == "html"))
      options.fail("--trust is printed as table, csv or markdown");
  if (settings.trust && (!settings.limits.empty() || !settings.gates.empty()))
    options.fail("--trust mixes runs as they are with others: it has no gates");
  if (settings.paths.empty() && options.ok())
    settings.paths = measured_scenarios(scenario_folder(options), options);
  return settings;
}

std::string render_validation(const std::vector<ScenarioValidation>& all,
                              const ValidateSettings& settings, const std::vector<RowLimit>& limits,
                              const std::string& format, std::size_t width) {
  if (settings.trust) {
    const std::vector<TrustError> errors = trust_table(all);
    return format == "csv" ? render_trust_csv(errors)
                           : render_trust_text(errors, format == "markdown");
  }
  if (format == "csv") return validation_csv(all);
  if (format == "limits") return render_limits_csv(all);
  ValidationRecord record = validation_record(all, limits, version());
  if (format == "json") return json_text(record);
  const StudyDocument document = validation_document(record, !settings.summary);
  return format == "html" ? document_page(document, json_text(record))
                          : draw(document, format, width);
}

/// Says which limits do not hold. Both kinds of findings are told, whatever the exit code.
ExitCode check_all_limits(const std::vector<ScenarioValidation>& all,
                          const ValidateSettings& settings, const std::vector<RowLimit>& limits,
                          Console& console) {
  LimitFindings findings;
  for (const ErrorGate& gate : settings.gates) check_gate(gate, all, findings);
  if (!settings.limits.empty()) check_limits(limits, settings.limits, all, findings);
  console.complain(findings.unmatched);
  console.complain(findings.exceeded);
  if (findings.unmatched.has_errors()) return ExitCode::kInvalid;
  return findings.exceeded.has_errors() ? ExitCode::kFailed : ExitCode::kSuccess;
}

std::vector<RowLimit> read_limits(const std::string& path, Diagnostics& diagnostics) {
  std::string text;
  if (path.empty() ||
      !read_text_file(path, {.file = path}, "", ConfigLimits{}.max_bytes, text, diagnostics))
    return {};
  return parse_limits_csv(text, path, diagnostics);
}

/// Every scenario without the curves that --leave-out names, if it had any.
std::vector<ValidationInput> blind_inputs(const std::vector<ValidationInput>& inputs,
                                          const ValidateSettings& settings, const Options& options,
                                          Diagnostics& diagnostics) {
  std::vector<ValidationInput> blind;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    ValidationInput input =
        leave_out(inputs[i], settings.paths[i], options.all("set"), *settings.left_out);
    if (!input.variants.empty()) blind.push_back(std::move(input));
  }
  if (blind.empty())
    diagnostics.error({}, "--leave-out",
                      "leaves nothing out: no step times of these scenarios were fitted to the " +
                          std::string(settings.left_out == BlindTo::kExperiment ? "" : "same ") +
                          std::string(enum_name(*settings.left_out)),
                      "without it they are compared as they are");
  return blind;
}

/// One of several scenarios. A question without published numbers is left out, with a warning.
ValidationInput read_input(const std::string& path, bool alone, const Options& options,
                           Diagnostics& diagnostics) {
  Diagnostics found;
  ValidationInput input = load_validation_input(path, options.all("set"), options.all("variant"),
                                                options.has("force"), found);
  for (Diagnostic d : found.items()) {
    if (!alone && input.variants.empty() && d.path == "measured") d.severity = Severity::kWarning;
    diagnostics.add(std::move(d));
  }
  return input;
}

/// Every scenario and, for --trust, those with fitted step times once more without the fit. Some
/// may have no variant.
std::vector<ValidationInput> read_inputs(const ValidateSettings& settings, const Options& options,
                                         Diagnostics& diagnostics) {
  std::vector<ValidationInput> inputs;
  for (const std::string& path : settings.paths)
    inputs.push_back(read_input(path, settings.paths.size() == 1, options, diagnostics));
  if (diagnostics.has_errors()) return inputs;
  if (std::ranges::all_of(inputs, [](const ValidationInput& i) { return i.variants.empty(); }))
    diagnostics.error({}, "measured", "no scenario names published numbers");
  if (settings.left_out) return blind_inputs(inputs, settings, options, diagnostics);
  if (!settings.trust) return inputs;
  for (std::size_t i = 0; i < settings.paths.size(); ++i) {
    for (const char* latency_model : {"kernels", "roofline"}) {
      ValidationInput unfitted =
          without_fit(inputs[i], settings.paths[i], options.all("set"), latency_model);
      if (!unfitted.variants.empty()) inputs.push_back(std::move(unfitted));
    }
  }
  return inputs;
}

ExitCode run_validate(Options& options, Console& console) {
  const ValidateSettings settings = read_validate_settings(options);
  if (!options.ok()) return refuse(options, console);
  const bool quiet = options.has("quiet");
  std::vector<std::string> files = files_read(settings.paths);
  if (!settings.limits.empty()) files.push_back(settings.limits);
  if (!check_outputs(settings.outputs, files, console)) return ExitCode::kInvalid;
  Diagnostics diagnostics;
  const std::vector<RowLimit> limits = read_limits(settings.limits, diagnostics);
  std::vector<ValidationInput> inputs = read_inputs(settings, options, diagnostics);
  std::erase_if(inputs, [](const ValidationInput& i) { return i.variants.empty(); });
  const bool valid = !diagnostics.has_errors();
  if (!valid || !quiet) console.complain(tidy(diagnostics));
  if (!valid) return ExitCode::kInvalid;

  std::vector<ScenarioValidation> results;
  const auto report = [&](const std::string& line) {
    if (!quiet) console.complain(line);
  };
  const StudyRun how{.jobs = settings.jobs, .interrupted = interrupted_with("nothing is reported")};
  if (const auto code = conduct(how, console, [&](Experiment& experiment) {
        results = run_validation(inputs, settings.seeds, report, experiment);
      }))
    return *code;
  const auto text = [&](const std::string& format, std::size_t width) {
    return render_validation(results, settings, limits, format, width);
  };
  if (!write_outputs(settings.outputs, text, console)) return ExitCode::kInvalid;
  return check_all_limits(results, settings, limits, console);
}

}  // namespace

Command validate_command() {
  return {
      .name = "validate",
      .summary = "Compare scenarios with the numbers published for them, cell by cell.",
      .positional = {.name = "SCENARIO", .min = 0, .max = 10'000, .ships = true},
      .options =
          {{"seeds", "N", "Seeds per variant, from the scenario's on (default 5)."},
           jobs_option(),
           {.name = "output,o",
            .value_name = "FORMAT[=PATH]",
            .help = "table (default), json, csv, markdown, html (a page), or limits: a file for "
                    "--limits that holds every row of the error tables to its present value and a "
                    "tenth of it, at least a point.",
            .repeatable = true,
            .choices = {"table", "json", "csv", "markdown", "html", "limits"}},
           {"fail-if", "[SCOPE:]METRIC[.STATISTIC]>PERCENT%",
            "Exit with 1 when the mean error of such a row is larger: 'ttft.mean>8%', "
            "'llmd_precise_prefix:ttft>20%' for one policy or experiment.",
            true},
           {"limits", "PATH",
            "Exit with 1 when a row of the error tables exceeds its limit in this file, with "
            "2 when a row has no limit or a limit has no row."},
           {"summary", "", "Only the error tables (table and markdown)."},
           {"trust", "",
            "Only the errors by what the step times rest on, over these scenarios and, where "
            "they are fitted, once more on measured kernels and on the roofline (table, csv, "
            "markdown)."},
           {.name = "leave-out",
            .value_name = "WHAT",
            .help = "Blind: only the scenarios whose step times were fitted, without the curves "
                    "fitted to the same experiment, to any deployment of the same model, or to any "
                    "on the same hardware. The other numbers of a scenario stay.",
            .choices = {"experiment", "model", "hardware"}},
           variant_option(),
           set_option(),
           allow_library_option(),
           folder_option("Where scenarios are looked for when none is named"),
           {"force", "", "Compare results of `vllm bench serve` that state another load, too."},
           quiet_option()},
      .examples = {{"routesim validate benchmark.yaml",
                    "Simulated numbers beside measured ones, with their errors."},
                   {"routesim validate benchmark.yaml --fail-if 'ttft.mean>30%'",
                    "Exit code 1 when the mean error is larger."}},
      .run = &run_validate};
}

}  // namespace routesim::tools
