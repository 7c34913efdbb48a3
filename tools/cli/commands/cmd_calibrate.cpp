// routesim calibrate: a cost curve from benchmark results.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "base/config_node.h"
#include "base/scalar_parse.h"
#include "base/text.h"
#include "models/kv_cache_spec.h"
#include "models/roofline.h"
#include "tools/cli/cli.h"
#include "tools/cli/output_target.h"
#include "tools/ingest/scenario/prepare.h"
#include "tools/ingest/scenario/scenario_yaml.h"
#include "tools/ingest/servers/catalogue_file.h"
#include "tools/ingest/tree/parse_config.h"
#include "tools/results/output_file.h"
#include "tools/results/text_table.h"
#include "tools/study/calibrate/calibrate_data.h"
#include "tools/study/calibrate/calibrate_scenario.h"

namespace routesim::tools {

namespace {

struct CalibrateSettings {
  std::vector<std::string> files;
  CalibrationTarget target = {};
  std::string preset;
  std::string out;
  models::CurveFitOptions fit = {};
};

/// An entry of the catalogue that an option names; null, with a usage error, when there is none.
template <class T>
const T* named(Options& options, const std::string& option, const T* found,
               const std::string& suggestion) {
  if (found != nullptr) return found;
  if (!options.has(option))
    options.fail("--" + option + " is required");
  else
    options.fail("--" + option + ": unknown " + option + " " + printable(options.get(option)) +
                 (suggestion.empty() ? ", see `routesim list " + option + "s`"
                                     : ", did you mean " + suggestion + "?"));
  return nullptr;
}

/// KV tokens of the deployment at vLLM's default memory utilisation.
double default_kv_tokens(const CalibrationTarget& target, Diagnostics& diagnostics) {
  const auto plan = models::plan_kv_cache(
      {.accelerator = target.accelerator, .model = target.model, .parallelism = target.parallelism},
      diagnostics);
  return plan ? static_cast<double>(plan->tokens()) : 0;
}

CalibrateSettings read_calibrate_settings(Options& options, Diagnostics& diagnostics) {
  models::Catalogue catalogue = builtin_catalogue();
  for (const std::string& path : options.all("catalogue"))
    (void)add_catalogue_file(path, catalogue, diagnostics);
  const std::string accelerator = options.get("accelerator");
  const std::string model = options.get("model");
  const auto* const a = named(options, "accelerator", catalogue.find_accelerator(accelerator),
                              catalogue.suggest_accelerator(accelerator));
  const auto* const m =
      named(options, "model", catalogue.find_model(model), catalogue.suggest_model(model));
  CalibrateSettings settings{
      .files = options.positionals(), .preset = options.get("preset"), .out = options.get("out")};
  CalibrationTarget& target = settings.target;
  constexpr IntRange kPositive{1, 1'000'000'000};
  target.parallelism = {.tp = options.whole("tp", kPositive, 1),
                        .dp = options.whole("dp", kPositive, 1)};
  if (options.has("expert-parallel"))
    target.parallelism.ep = target.parallelism.tp * target.parallelism.dp;
  settings.fit.prior_relative_sd =
      options.real("prior-sd", {.min = 0, .max = 1e6}, settings.fit.prior_relative_sd);
  settings.fit.fit_chunks = options.has("fit-chunks");
  settings.fit.fit_group = options.has("fit-group");
  const std::optional<std::int64_t> kv_tokens = options.whole("kv-tokens", kPositive);
  if (diagnostics.has_errors() || !options.ok()) return settings;
  target.accelerator = *a;
  target.model = *m;
  if (!models::check_parallelism(*m, target.parallelism, diagnostics)) return settings;
  target.kv_tokens =
      kv_tokens ? static_cast<double>(*kv_tokens) : default_kv_tokens(target, diagnostics);
  return settings;
}

std::string file_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

/// The samples and the command, with the data's names without their folders.
std::string provenance(const CalibrateSettings& settings, const models::CurveFit& fit) {
  std::vector<std::string> files;
  for (const std::string& file : settings.files) files.push_back(file_name(file));
  const CalibrationTarget& t = settings.target;
  std::string command =
      fmt::format("routesim calibrate {} --model {} --accelerator {} --tp {}",
                  fmt::join(files, ", "), t.model.name, t.accelerator.name, t.parallelism.tp);
  if (t.parallelism.dp > 1) command += fmt::format(" --dp {}", t.parallelism.dp);
  if (t.parallelism.ep > 1) command += " --expert-parallel";
  return fmt::format("{} samples, mean absolute residual {} %, by: {}", fit.residuals.samples,
                     fixed_text(fit.residuals.mean_absolute, 2), command);
}

CalibrationData read_files(const CalibrateSettings& settings, Diagnostics& diagnostics) {
  CalibrationData data;
  for (const std::string& file : settings.files) {
    std::string text;
    if (read_text_file(file, {.file = file}, "", ConfigLimits{}.max_bytes, text, diagnostics))
      read_calibration_csv(text, file, settings.target, data, diagnostics);
  }
  if (!diagnostics.has_errors() && data.samples.empty())
    diagnostics.error({.file = settings.files.front()}, "",
                      "no row is of this deployment" +
                          (data.notes.empty() ? std::string()
                                              : fmt::format(" ({})", fmt::join(data.notes, "; "))));
  return data;
}

/// `NAME` or `NAME=LOW..HIGH`.
FreeNumber read_free(const std::string& text, Options& options) {
  const std::size_t equals = text.find('=');
  FreeNumber free{.name = text.substr(0, equals)};
  if (equals == std::string::npos) return free;
  const std::string range = text.substr(equals + 1);
  const std::size_t dots = std::min(range.find(".."), range.size());
  const std::optional<double> low = number_from(range.substr(0, dots));
  const std::optional<double> high =
      number_from(dots < range.size() ? range.substr(dots + 2) : std::string());
  if (low && high && *low < *high) {
    free.low = *low;
    free.high = *high;
  } else {
    options.fail("--free must be NAME or NAME=LOW..HIGH (got " + printable(text) + ")");
  }
  return free;
}

/// `[SCOPE:]METRIC[.STATISTIC]=PERCENT`.
Tolerance read_tolerance(const std::string& text, Options& options) {
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
  tolerance.percent =
      number_from(equals < text.size() ? text.substr(equals + 1) : std::string()).value_or(0);
  if (tolerance.metric.empty() || !(tolerance.percent > 0))
    options.fail("--tolerance must be [SCOPE:]METRIC[.STATISTIC]=PERCENT (got " + printable(text) +
                 ")");
  return tolerance;
}

/// Prints the fit, and prints its catalogue entry or writes it to `out`.
ExitCode deliver(const std::string& text, const std::string& entry, const std::string& out,
                 Console& console) {
  console.print(text);
  if (out.empty()) console.print("\n");
  return write_text(out, entry, console) ? ExitCode::kSuccess : ExitCode::kInvalid;
}

/// The command that gives the same fit, without the folders of its files.
std::string scenario_command(const Options& options) {
  std::string command = "routesim calibrate";
  for (const std::string& path : options.all("scenario"))
    command += " --scenario " + file_name(path);
  for (const char* const name :
       {"variant", "set", "free", "tolerance", "seeds", "explore", "evaluations"})
    for (const std::string& text : options.all(name))
      command += std::string(" --") + name + " " + text;
  return command;
}

/// Everything but how to reload.
ScenarioFitRequest read_fit_request(Options& options) {
  constexpr IntRange kPositive{1, 1'000'000'000};
  ScenarioFitRequest request;
  request.seeds = static_cast<std::size_t>(options.whole("seeds", kPositive, 3));
  request.max_evaluations = static_cast<int>(options.whole("evaluations", kPositive, 60));
  request.explore = static_cast<int>(options.whole("explore", kPositive, 0));
  for (const std::string& text : options.all("free"))
    request.free.push_back(read_free(text, options));
  for (const std::string& text : options.all("tolerance"))
    request.tolerances.push_back(read_tolerance(text, options));
  if (request.free.empty()) options.fail("--scenario needs at least one --free number");
  if (!options.positionals().empty()) options.fail("give either data files or --scenario");
  return request;
}

ExitCode calibrate_scenarios(Options& options, Console& console) {
  ScenarioFitRequest request = read_fit_request(options);
  const std::size_t jobs = options.jobs();
  if (!options.ok()) return refuse(options, console);
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
  ExperimentProgress progress;
  Experiment experiment(jobs, progress, diagnostics);
  ScenarioFit fit;
  try {
    experiment.throw_if_stopped();
    fit = fit_scenarios(
        inputs, request, [&console](const std::string& line) { console.complain(line); },
        experiment);
  } catch (const Stopped&) {
    console.complain(tidy(diagnostics));
    return ExitCode::kInvalid;
  }
  console.complain(tidy(diagnostics));
  fit.curve.provenance = "fit of the simulation to " + std::to_string(fit.cells) +
                         " published numbers, by: " + scenario_command(options);
  for (const std::string& set : fit.sets) fit.curve.provenance += "; with " + set;
  return deliver(scenario_fit_text(fit), catalogue_yaml(fit.curve), out, console);
}

ExitCode run_calibrate(Options& options, Console& console) {
  if (options.has("scenario")) return calibrate_scenarios(options, console);
  if (options.positionals().empty()) options.fail("DATA.csv or --scenario is required");
  Diagnostics diagnostics;
  const CalibrateSettings settings = read_calibrate_settings(options, diagnostics);
  if (!options.ok()) {
    console.complain(diagnostics);
    return refuse(options, console);
  }
  std::vector<std::string> inputs = options.positionals();
  for (const std::string& file : options.all("catalogue")) inputs.push_back(file);
  if (!check_outputs(std::span(&settings.out, 1), inputs, console)) return ExitCode::kInvalid;
  CalibrationData data;
  if (!diagnostics.has_errors()) data = read_files(settings, diagnostics);
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
          {{"model,m", "NAME", "The model; see `routesim list models`."},
           {"accelerator,a", "NAME", "The accelerator; see `routesim list accelerators`."},
           {"tp", "N", "Tensor parallel GPUs (default 1)."},
           {"dp", "N", "Data-parallel ranks (default 1)."},
           {"expert-parallel", "", "Experts are spread over all GPUs."},
           {"preset", "NAME", "Engine preset the curve holds for (default any)."},
           {"kv-tokens", "N",
            "Tokens the KV cache holds (default: estimated); fuller rows are left out."},
           {"prior-sd", "X",
            "Relative deviation allowed around the roofline (default 3; 0: no prior)."},
           {"fit-chunks", "", "Also fit the cost of a prompt chunk."},
           {"fit-group", "", "Also fit the cost of lock-step ranks' tokens."},
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
            "present values."},
           {"seeds", "N", "With --scenario: seeds per variant (default 3)."},
           {"jobs,j", "N", "With --scenario: threads (default: one per core)."},
           {"evaluations", "N", "With --scenario: most evaluations (default 60)."},
           {"set", "KEY=VALUE", "With --scenario: override a value, as in `run`.", true},
           {"variant", "NAME", "With --scenario: only this variant.", true},
           {"force", "",
            "With --scenario: fit to results of `vllm bench serve` that state another load, too."},
           {"catalogue", "FILE", "More accelerators and models.", true},
           {"out", "FILE", "Write the catalogue entry here, not to standard output."}},
      .examples =
          {{"routesim calibrate --scenario benchmark.yaml --free step_ms --out our-curve.yaml",
            "The cost of a step that explains a measurement, as a catalogue entry."}},
      .run = &run_calibrate};
}

}  // namespace routesim::tools
