// Fitting the cost curve of a scenario's servers to the numbers published for it, by simulation.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "models/calibration.h"
#include "tools/validate/validation_run.h"

namespace routesim::tools {

/// A coefficient to fit and its bounds, in the unit of its name.
struct FreeCoefficient {
  std::string name;  ///< A member of CostCurveParameters, such as `step_ms`.
  double low = 0;
  double high = 0;  ///< Equal to `low`: half to twice the present value.
};

/// What a fit to a scenario found.
struct ScenarioFit {
  models::ObjectiveFit fit;
  models::FittedCurve curve;  ///< The present curve with the fitted coefficients; no provenance.
  std::size_t cells = 0;      ///< Published numbers it was fitted to.
  ScenarioValidation before;
  ScenarioValidation after;
};

/// Fits `free` coefficients of the one curve that all servers of `input` use. The objective is the
/// squared logarithm of simulated over measured, over the scored latency and throughput cells; each
/// (policy, metric, statistic) weighs the same, and summary rows count only for metrics without
/// rows per stage. Every evaluation uses the same seeds, so that differences are the parameters'.
/// Nothing useful is returned after an error: no cost curve in use, an unknown coefficient, bounds
/// that do not hold the present value, or nothing to fit to. `report` gets a line per evaluation.
ScenarioFit fit_scenario(const ValidationInput& input, const std::vector<FreeCoefficient>& free,
                         const ValidationEffort& effort, int max_evaluations,
                         const std::function<void(const std::string&)>& report,
                         Diagnostics& diagnostics);

/// The fit for people: parameters with intervals, errors before and after.
std::string scenario_fit_text(const ScenarioFit& fit);

}  // namespace routesim::tools
