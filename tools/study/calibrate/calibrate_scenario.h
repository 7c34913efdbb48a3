// Fitting the cost curve of the servers of one or several scenarios, and numbers of the scenarios,
// to what was published for them, by simulation.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "models/calibration.h"
#include "models/cost_curve.h"
#include "tools/study/validate/validation_run.h"

namespace routesim::tools {

// The numbers that a fit to scenarios may change: coefficients of the curve, keys of the scenarios.

/// A number to fit and its bounds, in the unit of its name.
struct FreeNumber {
  /// A member of CostCurveParameters (`step_ms`); a key of the engine of every pool
  /// (`num_gpu_blocks`); or the path of a number or duration (in seconds) in every scenario
  /// (`cluster.pools[decode].engine.num_gpu_blocks`, `routing.decision_latency`).
  std::string name;
  double low = 0;
  double high = 0;  ///< Equal to `low`: half to twice the present value.
};

/// The free numbers of one fit, understood: where each starts, and how a value is put in place.
class FreeNumbers {
 public:
  /// `start` is the present curve, `inputs` the scenarios as they are. Unknown names and bounds
  /// that do not hold the present value of a coefficient are errors.
  FreeNumbers(const std::vector<FreeNumber>& free, const models::CostCurveParameters& start,
              const std::vector<ValidationInput>& inputs, Diagnostics& diagnostics);

  /// For the search; a scenario's number starts at its present value, or within its bounds as near
  /// to it as they allow, or in their middle when it has none.
  const std::vector<models::BoundedParameter>& bounds() const { return bounds_; }
  /// Whether any number is the scenarios', not the curve's.
  bool changes_scenarios() const;
  /// The curve with the values of `x` in it, which is ordered as bounds().
  models::CostCurveParameters parameters(const std::vector<double>& x) const;
  /// The arguments of `--set` that put the other values of `x` into a scenario.
  std::vector<std::string> sets(const std::vector<double>& x) const;
  /// `x` as it is published: whole numbers whole, others with four digits, within the bounds.
  std::vector<double> rounded(std::vector<double> x) const;

 private:
  struct Place {
    double models::CostCurveParameters::*member = nullptr;  ///< Null: the paths are set.
    std::vector<std::string> paths = {};
    bool whole = false;
  };
  void add_coefficient(const FreeNumber& free, double models::CostCurveParameters::*member,
                       Diagnostics& diagnostics);
  bool add_key(const FreeNumber& free, const std::vector<ValidationInput>& inputs,
               Diagnostics& diagnostics);

  models::CostCurveParameters start_;
  std::vector<models::BoundedParameter> bounds_;
  std::vector<Place> places_;
};

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
