// routesim calibrate: a cost curve from benchmark results.
#include <algorithm>
#include <filesystem>
#include <thread>

#include "base/config_node.h"
#include "base/printable.h"
#include "base/scalar_parse.h"
#include "base/tree_reader.h"
#include "models/kv_cache_spec.h"
#include "models/roofline.h"
#include "tools/cli/cli.h"
#include "tools/cli/output_target.h"
#include "tools/ingest/catalogue_file.h"
#include "tools/ingest/config_file.h"
#include "tools/ingest/prepare.h"
#include "tools/ingest/scenario_yaml.h"
#include "tools/render/text_table.h"
#include "tools/study/calibrate/calibrate_data.h"
#include "tools/study/calibrate/calibrate_scenario.h"

namespace routesim::tools {

namespace {

struct CalibrateSettings {
  std::vector<std::string> files;
  CalibrationTarget target;
  std::string preset;
  std::string out;
  models::CurveFitOptions fit;
};

/// Types the value of an option as the configuration reader would.
class OptionReader {
 public:
  OptionReader(const OptionValues& options, std::string& error)
      : options_(options), error_(error) {}

  std::int64_t whole(const std::string& name, std::int64_t fallback) {
    if (!options_.has(name)) return fallback;
    const Parsed<std::int64_t> value = parse_integer(*node(name), IntRange{1, 1'000'000'000});
    if (!value.value) error_ = "--" + name + " " + value.message;
    return value.value.value_or(fallback);
  }

  double real(const std::string& name, double fallback) {
    if (!options_.has(name)) return fallback;
    const Parsed<double> value = parse_real(*node(name), RealRange{.min = 0, .max = 1e6});
    if (!value.value) error_ = "--" + name + " " + value.message;
    return value.value.value_or(fallback);
  }

 private:
  ConfigNode::Ptr node(const std::string& name) const {
    return ConfigNode::make_scalar(options_.get(name), ConfigNode::Style::kUntyped, {});
  }
  const OptionValues& options_;
  std::string& error_;
};

/// `--NAME is required` or `--NAME: unknown ..., did you mean ...?`
std::string unknown(const std::string& option, const std::string& name,
                    const std::string& suggestion) {
  if (name.empty()) return "--" + option + " is required";
  return "--" + option + ": unknown " + option + " " + printable(name) +
         (suggestion.empty() ? ", see `routesim list " + option + "s`"
                             : ", did you mean " + suggestion + "?");
}

/// KV tokens of the deployment at vLLM's default memory utilisation.
double default_kv_tokens(const CalibrationTarget& target, Diagnostics& diagnostics) {
  const auto plan = models::plan_kv_cache(
      {.accelerator = target.accelerator, .model = target.model, .parallelism = target.parallelism},
      diagnostics);
  return plan ? static_cast<double>(plan->tokens()) : 0;
}

bool parse_settings(const OptionValues& options, CalibrateSettings& settings,
                    Diagnostics& diagnostics, std::string& error) {
  models::Catalogue catalogue = models::Catalogue::builtin();
  for (const std::string& path : options.all("catalogue"))
    (void)add_catalogue_file(path, catalogue, diagnostics);
  if (diagnostics.has_errors()) return false;
  const std::string accelerator = options.get("accelerator");
  const std::string model = options.get("model");
  const models::AcceleratorSpec* a = catalogue.find_accelerator(accelerator);
  const models::ModelSpec* m = catalogue.find_model(model);
  if (a == nullptr)
    error = unknown("accelerator", accelerator, catalogue.suggest_accelerator(accelerator));
  if (m == nullptr) error = unknown("model", model, catalogue.suggest_model(model));
  if (!error.empty()) return false;
  OptionReader reader(options, error);
  CalibrationTarget& target = settings.target;
  target.accelerator = *a;
  target.model = *m;
  target.parallelism = {.tp = reader.whole("tp", 1), .dp = reader.whole("dp", 1)};
  if (options.has("expert-parallel"))
    target.parallelism.ep = target.parallelism.tp * target.parallelism.dp;
  settings.fit.prior_relative_sd = reader.real("prior-sd", settings.fit.prior_relative_sd);
  settings.fit.fit_chunks = options.has("fit-chunks");
  settings.fit.fit_group = options.has("fit-group");
  settings.files = options.positionals;
  settings.preset = options.get("preset");
  settings.out = options.get("out");
  if (!error.empty()) return false;
  if (!models::check_parallelism(*m, target.parallelism, diagnostics)) return false;
  target.kv_tokens = options.has("kv-tokens") ? static_cast<double>(reader.whole("kv-tokens", 1))
                                              : default_kv_tokens(target, diagnostics);
  return error.empty() && !diagnostics.has_errors();
}

/// What can be repeated: the data's names without their folders, and the command.
std::string provenance(const CalibrateSettings& settings, const models::CurveFit& fit) {
  std::string files;
  for (const std::string& file : settings.files)
    files += (files.empty() ? "" : ", ") + std::filesystem::path(file).filename().string();
  const CalibrationTarget& t = settings.target;
  std::string command = "routesim calibrate " + files + " --model " + t.model.name +
                        " --accelerator " + t.accelerator.name + " --tp " +
                        std::to_string(t.parallelism.tp);
  if (t.parallelism.dp > 1) command += " --dp " + std::to_string(t.parallelism.dp);
  if (t.parallelism.ep > 1) command += " --expert-parallel";
  return std::to_string(fit.residuals.samples) + " samples, mean absolute residual " +
         fixed_text(fit.residuals.mean_absolute, 2) + " %, by: " + command;
}

CalibrationData read_files(const CalibrateSettings& settings, Diagnostics& diagnostics) {
  CalibrationData data;
  for (const std::string& file : settings.files) {
    std::string text;
    if (read_text_file(file, {.file = file}, "", ConfigLimits{}.max_bytes, text, diagnostics))
      read_calibration_csv(text, file, settings.target, data, diagnostics);
  }
  if (!diagnostics.has_errors() && data.samples.empty()) {
    std::string why;
    for (const std::string& note : data.notes) why += (why.empty() ? "" : "; ") + note;
    diagnostics.error({.file = settings.files.front()}, "",
                      "no row is of this deployment" + (why.empty() ? "" : " (" + why + ")"));
  }
  return data;
}

bool parse_number(const std::string& text, double& value) {
  const std::optional<double> number = number_from(text);
  value = number.value_or(0);
  return number.has_value();
}

/// `NAME` or `NAME=LOW..HIGH`; on error sets `error`.
FreeNumber parse_free(const std::string& text, std::string& error) {
  const std::size_t equals = text.find('=');
  FreeNumber free{.name = text.substr(0, equals)};
  if (equals == std::string::npos) return free;
  const std::string range = text.substr(equals + 1);
  const std::size_t dots = range.find("..");
  if (dots == std::string::npos || !parse_number(range.substr(0, dots), free.low) ||
      !parse_number(range.substr(dots + 2), free.high) || !(free.low < free.high))
    error = "--free must be NAME or NAME=LOW..HIGH (got " + printable(text) + ")";
  return free;
}

/// `[SCOPE:]METRIC[.STATISTIC]=PERCENT`; on error sets `error`.
Tolerance parse_tolerance(const std::string& text, std::string& error) {
  Tolerance tolerance;
  const std::size_t equals = std::min(text.rfind('='), text.size());
  std::string key = text.substr(0, equals);
  const std::size_t colon = key.find(':');
  if (colon != std::string::npos) {
    tolerance.scope = key.substr(0, colon);
    key.erase(0, colon + 1);
  }
  const std::size_t dot = std::min(key.find('.'), key.size());
  tolerance.metric = key.substr(0, dot);
  if (dot < key.size()) tolerance.statistic = key.substr(dot + 1);
  if (equals == text.size() || tolerance.metric.empty() ||
      !parse_number(text.substr(equals + 1), tolerance.percent) || !(tolerance.percent > 0))
    error = "--tolerance must be [SCOPE:]METRIC[.STATISTIC]=PERCENT (got " + printable(text) + ")";
  return tolerance;
}

/// Writes a catalogue entry where the user wants it.
ExitCode deliver(const std::string& text, const std::string& entry, const std::string& out,
                 Console& console) {
  console.print(text);
  if (out.empty()) {
    console.print("\n" + entry);
    return ExitCode::kSuccess;
  }
  const std::string error = write_file(out, entry);
  if (error.empty()) return ExitCode::kSuccess;
  console.complain("routesim: cannot write " + printable(out, 200) + ": " + error + "\n");
  return ExitCode::kInvalid;
}

/// The command that gives the same fit, without the folders of its files.
std::string scenario_command(const OptionValues& options) {
  std::string command = "routesim calibrate";
  for (const std::string& path : options.all("scenario"))
    command += " --scenario " + std::filesystem::path(path).filename().string();
  for (const char* const name : {"variant", "set", "free", "tolerance"})
    for (const std::string& text : options.all(name))
      command += std::string(" --") + name + " " + text;
  for (const char* const name : {"seeds", "explore", "evaluations"})
    if (options.has(name)) command += std::string(" --") + name + " " + options.get(name);
  return command;
}

/// Everything but how to reload; on error sets `error`.
ScenarioFitRequest parse_request(const OptionValues& options, std::string& error) {
  OptionReader reader(options, error);
  ScenarioFitRequest request;
  request.effort = {.seeds = static_cast<std::size_t>(reader.whole("seeds", 3)),
                    .jobs = static_cast<std::size_t>(
                        reader.whole("jobs", std::max(1U, std::thread::hardware_concurrency())))};
  request.max_evaluations = static_cast<int>(reader.whole("evaluations", 60));
  request.explore = options.has("explore") ? static_cast<int>(reader.whole("explore", 1)) : 0;
  for (const std::string& text : options.all("free"))
    request.free.push_back(parse_free(text, error));
  for (const std::string& text : options.all("tolerance"))
    request.tolerances.push_back(parse_tolerance(text, error));
  if (request.free.empty()) error = "--scenario needs at least one --free number";
  if (!options.positionals.empty()) error = "give either data files or --scenario";
  return request;
}

ExitCode calibrate_scenarios(const OptionValues& options, Console& console) {
  std::string error;
  ScenarioFitRequest request = parse_request(options, error);
  if (!error.empty()) return usage_error(console, "calibrate", error);
  const auto load = [&options](const std::vector<std::string>& more, Diagnostics& diagnostics) {
    std::vector<std::string> sets = options.all("set");
    sets.insert(sets.end(), more.begin(), more.end());
    std::vector<ValidationInput> inputs;
    for (const std::string& path : options.all("scenario"))
      inputs.push_back(load_validation_input(path, sets, options.all("variant"),
                                             options.has("force"), diagnostics));
    return inputs;
  };
  request.reload = load;
  std::vector<std::string> files = files_read(options.all("scenario"));
  for (const std::string& file : options.all("catalogue")) files.push_back(file);
  const std::string out = options.get("out");
  if (!check_outputs(std::span(&out, 1), files, console)) return ExitCode::kInvalid;
  Diagnostics diagnostics;
  const std::vector<ValidationInput> inputs = load({}, diagnostics);
  ScenarioFit fit;
  if (!diagnostics.has_errors())
    fit = fit_scenarios(
        inputs, request, [&console](const std::string& line) { console.complain(line); },
        diagnostics);
  console.complain(tidy(diagnostics));
  if (diagnostics.has_errors()) return ExitCode::kInvalid;
  fit.curve.provenance = "fit of the simulation to " + std::to_string(fit.cells) +
                         " published numbers, by: " + scenario_command(options);
  for (const std::string& set : fit.sets) fit.curve.provenance += "; with " + set;
  return deliver(scenario_fit_text(fit), catalogue_yaml(fit.curve), out, console);
}

ExitCode run_calibrate(const OptionValues& options, Console& console) {
  if (options.has("scenario")) return calibrate_scenarios(options, console);
  if (options.positionals.empty())
    return usage_error(console, "calibrate", "DATA.csv or --scenario is required");
  CalibrateSettings settings;
  Diagnostics diagnostics;
  std::string error;
  const bool understood = parse_settings(options, settings, diagnostics, error);
  if (!error.empty()) return usage_error(console, "calibrate", error);
  std::vector<std::string> inputs = options.positionals;
  for (const std::string& file : options.all("catalogue")) inputs.push_back(file);
  if (!check_outputs(std::span(&settings.out, 1), inputs, console)) return ExitCode::kInvalid;
  CalibrationData data;
  if (understood) data = read_files(settings, diagnostics);
  std::optional<models::CurveFit> fit;
  if (!diagnostics.has_errors()) {
    const models::Roofline roofline(settings.target.accelerator, settings.target.model,
                                    settings.target.parallelism);
    fit = models::fit_cost_curve(data.samples, roofline.as_cost_curve(), settings.fit, diagnostics);
  }
  console.complain(tidy(diagnostics));
  if (!fit) return ExitCode::kInvalid;

  const models::FittedCurve curve{.accelerator = settings.target.accelerator.name,
                                  .model = settings.target.model.name,
                                  .parallelism = settings.target.parallelism,
                                  .preset = settings.preset,
                                  .parameters = fit->parameters,
                                  .range = data.range,
                                  .provenance = provenance(settings, *fit)};
  return deliver(calibration_text(*fit, data), catalogue_yaml(curve), settings.out, console);
}

}  // namespace

Command calibrate_command() {
  return {
      .name = "calibrate",
      .summary = "Fit a cost curve to benchmark results, step times or a published experiment.",
      .positional = {.name = "DATA.csv", .min = 0, .max = 1'000},
      .options =
          {{"model,m", "NAME", "The model; see `routesim list models`.", false},
           {"accelerator,a", "NAME", "The accelerator; see `routesim list accelerators`.", false},
           {"tp", "N", "Tensor parallel GPUs (default 1).", false},
           {"dp", "N", "Data-parallel ranks (default 1).", false},
           {"expert-parallel", "", "Experts are spread over all GPUs.", false},
           {"preset", "NAME", "Engine preset the curve holds for (default any).", false},
           {"kv-tokens", "N",
            "Tokens the KV cache holds (default: estimated); fuller rows are left out.", false},
           {"prior-sd", "X",
            "Relative deviation allowed around the roofline (default 3; 0: no prior).", false},
           {"fit-chunks", "", "Also fit the cost of a prompt chunk.", false},
           {"fit-group", "", "Also fit the cost of lock-step ranks' tokens.", false},
           {"scenario", "FILE",
            "Fit to the numbers published for this scenario, by simulating it; several: jointly.",
            true},
           {"free", "NAME[=LOW..HIGH]",
            "With --scenario: a coefficient of the curve, an engine key such as num_gpu_blocks, or "
            "the path of a scenario's number to fit (default range: half to twice).",
            true},
           {"tolerance", "[SCOPE:]METRIC[.STATISTIC]=PERCENT",
            "With --scenario: the error to live with there, which weighs it (default 10); SCOPE is "
            "an experiment or a "
            "policy.",
            true},
           {"explore", "N",
            "With --scenario: start from the best of N points spread over the ranges, not from the "
            "present values.",
            false},
           {"seeds", "N", "With --scenario: seeds per variant (default 3).", false},
           {"jobs,j", "N", "With --scenario: threads (default: one per core).", false},
           {"evaluations", "N", "With --scenario: most evaluations (default 60).", false},
           {"set", "KEY=VALUE", "With --scenario: override a value, as in `run`.", true},
           {"variant", "NAME", "With --scenario: only this variant.", true},
           {"force", "",
            "With --scenario: fit to results of `vllm bench serve` that state another load, too.",
            false},
           {"catalogue", "FILE", "More accelerators and models.", true},
           {"out", "FILE", "Write the catalogue entry here, not to standard output.", false}},
      .run = &run_calibrate};
}

}  // namespace routesim::tools
