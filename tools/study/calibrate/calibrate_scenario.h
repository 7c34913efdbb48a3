// Fitting the cost curve of the servers of one or several scenarios, and numbers of the scenarios,
// to what was published for them, by simulation.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "models/calibration.h"
#include "tools/study/calibrate/free_numbers.h"
#include "tools/study/validate/validation_run.h"

namespace routesim::tools {

/// An error one can live with. Residuals are taken relative to it, so that a number with a wide
/// tolerance gives way to one with a narrow one.
struct Tolerance {
  std::string scope{};      ///< An experiment or a policy; empty: any.
  std::string metric{};     ///< Any spelling of it.
  std::string statistic{};  ///< Empty: any.
  double percent = 10;      ///< > 0; 10 is what everything else has.
};

struct ScenarioFitRequest {
  std::vector<FreeNumber> free;
  std::vector<Tolerance> tolerances;  ///< The last that names a number counts.
  std::size_t seeds = 3;              ///< Per variant, from the scenario's on.
  int explore = 0;           ///< Points tried before the descent; 0: it starts from present values.
  int max_evaluations = 60;  ///< Evaluations of the descent.
  /// Loads the scenarios again with these `--set` arguments besides those they had. Called only
  /// when a free number is the scenarios'.
  std::function<std::vector<ValidationInput>(const std::vector<std::string>&, Diagnostics&)> reload;
};

/// The result of a fit to scenarios.
struct ScenarioFit {
  models::ObjectiveFit fit;       ///< Values as published, see FreeNumbers::rounded.
  models::FittedCurve curve;      ///< The present curve with fitted coefficients; no provenance.
  std::vector<std::string> sets;  ///< The other fitted numbers, as arguments of `--set`.
  std::size_t cells = 0;          ///< Published numbers it was fitted to.
  std::vector<ScenarioValidation> before;  ///< The scenarios as they are.
  std::vector<ScenarioValidation> after;
};

/// Fits free numbers of the one curve that all servers of all `inputs` use, and of the scenarios.
/// The objective is the squared logarithm of simulated over measured, over the scored latency and
/// throughput cells; each (experiment, policy, metric, statistic) weighs the same, and summary rows
/// count only for metrics without rows per stage. Every evaluation uses the same seeds, so that
/// differences are the parameters'. Throws Stopped after an error: no cost curve or different ones
/// in use, an unknown number, bounds that do not hold the present value, a tolerance of nothing, or
/// nothing to fit to. `report` gets a line per evaluation.
ScenarioFit fit_scenarios(const std::vector<ValidationInput>& inputs,
                          const ScenarioFitRequest& request,
                          const std::function<void(const std::string&)>& report,
                          Experiment& experiment);

/// The fit for people: parameters with intervals, errors before and after.
std::string scenario_fit_text(const ScenarioFit& fit);

}  // namespace routesim::tools
