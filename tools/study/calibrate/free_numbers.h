// The numbers that a fit to scenarios may change: coefficients of the curve, keys of the scenarios.
#pragma once

#include <string>
#include <vector>

#include "models/calibration.h"
#include "models/cost_curve.h"
#include "tools/study/validate/validation_run.h"

namespace routesim::tools {

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
    std::vector<std::string> paths;
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

}  // namespace routesim::tools
