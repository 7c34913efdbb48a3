// Fitting cost curves: directly to step times and static-batch benchmarks (linear, non-negative,
// drawn towards the roofline), and any parameters at all to the residuals of a simulation.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "models/cost_curve.h"
#include "models/latency_model.h"

namespace routesim::models {

/// The coefficients that a linear fit determines, in the units of CostCurveParameters.
/// kSharedContext is θ·context_us_per_ktok: with it the curve is linear in all of them.
enum class Coefficient : std::size_t {
  kStep,
  kSequence,
  kContext,
  kSharedContext,
  kPrefillToken,
  kPrefillPair,
  kPrefillChunk,
  kGroupToken,
};
inline constexpr std::size_t kCoefficients = 8;
std::string_view coefficient_name(Coefficient c);

/// One observed time and how often each coefficient enters it: Σ features·coefficients is ms.
struct CurveSample {
  std::array<double, kCoefficients> features{};
  double ms = 0;      ///< Observed; > 0.
  double weight = 1;  ///< Relative weight of its squared relative error; >= 0.
  std::string label;  ///< For the residual list.
};

/// A step of a known batch.
CurveSample step_sample(const BatchShape& shape, double ms);

/// One row of a fixed-length benchmark at constant concurrency: `concurrency` requests of `isl`
/// prompt and `osl` answer tokens always in flight, no shared prefixes.
struct StaticBatchRow {
  std::int64_t isl = 0;
  std::int64_t osl = 0;
  std::int64_t concurrency = 0;
  double tpot_ms = 0;  ///< Mean; 0 when not reported.
  std::string label = {};
};

/// The mean step during an answer. All B requests decode at a mean context of isl + osl/2, and
/// while one request makes osl tokens each of the other B−1 is replaced and prefilled once:
///   TPOT = a + c·B + d·B·(isl + osl/2) + (B−1)/osl · (p1·isl + p2·isl²).
CurveSample tpot_sample(const StaticBatchRow& row);

/// The time the curve gives a sample, ms (GPU terms only: CPU and padding are not linear).
double predict_ms(const CostCurveParameters& p, const CurveSample& sample);

/// How much the data say about a coefficient.
enum class Identified {
  kByData,     ///< The data place it within half its value.
  kWeakly,     ///< A wider interval, or a direction the data do not see at all.
  kByPrior,    ///< The data leave it to the prior.
  kAtZero,     ///< The non-negativity bound holds it at 0.
  kNotInData,  ///< No sample touches it; it keeps the prior's value.
};
std::string_view identified_name(Identified i);

struct FittedCoefficient {
  Coefficient coefficient = Coefficient::kStep;
  double value = 0;
  double low = 0;  ///< 95 % interval, cut at 0.
  double high = 0;
  double prior = 0;
  Identified identified = Identified::kByData;
  std::string note;  ///< E.g. which coefficient it trades off against; may be empty.
};

/// Size of the relative residuals (predicted/observed − 1), in per cent.
struct ResidualSummary {
  std::size_t samples = 0;
  double mean_absolute = 0;                   ///< MAPE.
  double bias = 0;                            ///< Mean signed.
  double p50 = 0, p90 = 0, p99 = 0, max = 0;  ///< Percentiles of the absolute value.
};

struct CurveFit {
  CostCurveParameters parameters;
  std::vector<FittedCoefficient> coefficients;  ///< Those asked for, in enum order.
  ResidualSummary residuals;
  std::vector<double> relative_residuals;  ///< Per sample, in input order.
  std::vector<std::string> notes;          ///< Sentences for the report.
};

struct CurveFitOptions {
  /// Standard deviation of each coefficient around the prior's value, relative to it. Larger trusts
  /// the data more; 0 switches the prior off. At 3 a roofline decides only what the data leave
  /// open.
  double prior_relative_sd = 3.0;
  bool fit_chunks = false;  ///< Also fit prefill_chunk_ms (needs steps with several chunks).
  bool fit_group = false;   ///< Also fit group_token_us (needs lock-step samples).
};

/// Minimises the squared relative errors over coefficients >= 0 plus the prior's pull. Nothing,
/// with errors, when there are fewer samples than two, or one is not positive and finite.
/// Coefficients that no sample touches, and all parameters outside `Coefficient`, are the prior's.
std::optional<CurveFit> fit_cost_curve(std::span<const CurveSample> samples,
                                       const CostCurveParameters& prior,
                                       const CurveFitOptions& options, Diagnostics& diagnostics);

/// Relative residuals in per cent, summarised.
ResidualSummary summarise_residuals(const std::vector<double>& relative);

/// Lawson-Hanson: the x >= 0 that minimises |rows·x − rhs|. Rows are of equal length.
std::vector<double> solve_non_negative(const std::vector<std::vector<double>>& rows,
                                       const std::vector<double>& rhs);

/// A parameter of a simulation fit.
struct BoundedParameter {
  std::string name;
  double start = 0;
  double low = 0;
  double high = 0;  ///< > low.
  double step = 0;  ///< Finite difference; large against the simulation's noise. 0: 2 % of range.
};

struct FittedParameter {
  std::string name;
  double value = 0;
  double low = 0;  ///< 95 % interval by local linearisation, cut at the bounds.
  double high = 0;
  bool at_bound = false;
  bool identifiable = true;  ///< False when no residual reacts to it, or another undoes it.
};

struct ObjectiveFit {
  std::vector<FittedParameter> parameters;
  double cost = 0;        ///< Sum of squared residuals at the answer.
  double start_cost = 0;  ///< The same at the start.
  int evaluations = 0;
  bool converged = false;  ///< False when the evaluation budget ran out first.
};

struct ObjectiveFitOptions {
  int max_evaluations = 200;
  double relative_tolerance = 1e-3;  ///< Stop when a round gains less of the cost than this.
};

/// Residuals of the simulation at a parameter vector, always the same number of them. Must be
/// deterministic (fixed seeds): the fit compares values at nearby points.
using ResidualFunction = std::function<std::vector<double>(const std::vector<double>&)>;

/// Most parameters that can be explored together.
inline constexpr std::size_t kMostExplored = 16;

/// The parameters with the best of `points` points of a Halton sequence as their start, whatever
/// their start was: the first fifth of the points spreads over the bounds, each further fifth over
/// a box of half the width around the best so far. For objectives with cliffs and many valleys, and
/// for fits that must not depend on where they begin. At most kMostExplored parameters; with no
/// point they stay as they are.
std::vector<BoundedParameter> explore_objective(std::vector<BoundedParameter> parameters,
                                                const ResidualFunction& residuals, int points);

/// Bounded Levenberg-Marquardt with one-sided finite differences. Deterministic. A start outside
/// its bounds is moved to the nearest bound.
ObjectiveFit fit_objective(const std::vector<BoundedParameter>& parameters,
                           const ResidualFunction& residuals,
                           const ObjectiveFitOptions& options = {});

}  // namespace routesim::models
