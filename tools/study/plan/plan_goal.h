// The goals of a plan, and what a fleet's runs say about them.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/tree_reader.h"
#include "sim/observe/observer.h"
#include "tools/results/goodput.h"
#include "tools/results/metric_name.h"
#include "tools/results/statistics.h"
#include "tools/study/plan/plan_config.h"

namespace routesim::tools {

/// One goal: a number of a run, and the bound it must stay on one side of.
struct PlanGoal {
  enum class Kind { kMetric, kGoodput, kFailures, kGrowth, kRate };

  Kind kind = Kind::kMetric;
  std::string text;   ///< `ttft_ms.p99 < 500`, `goodput > 0.95`.
  std::string label;  ///< `ttft_ms.p99`.
  MetricName metric;  ///< Set for kMetric.
  bool upper = true;  ///< The number must stay below the bound, not above.
  double bound = 0;

  bool holds(double value) const { return upper ? value <= bound : value >= bound; }
  /// Value over bound, or bound over value for a lower bound; infinite where that divides by 0.
  double shortfall(double value) const;
};

/// The largest difference between the rate that was sent and the rate that was asked for, as a
/// share of the larger, that random arrivals do not explain.
inline constexpr double kMostRateError = 0.05;

/// The goals of the file, then those that every fleet must meet: failures, a queue that does not
/// grow, and a load that was sent as fast as asked. Reports what it cannot read.
std::vector<PlanGoal> read_goals(const PlanConfig& config, const Provenance& provenance,
                                 Diagnostics& diagnostics);

/// The bounds of `goodput`, if any.
GoodputGoals read_goodput(const PlanConfig& config, const Provenance& provenance,
                          Diagnostics& diagnostics);

/// How far the rate of the nearest reported stage is from `rate`, as a share of the larger of the
/// two, less four standard errors of that many random arrivals; 0 when those explain it. A client
/// that is held back by slow answers sends less than it should. Infinite when nothing was sent, or
/// all at once.
double rate_error(const sim::RunResult& run, double rate);

/// The rate that the load asks for in place of `rate`: of all reported stages the nearest, when
/// none asks for `rate`. Nothing when one does, or when some stage has no rate of its own.
std::optional<double> other_rate_asked(std::span<const workloads::StageInfo> stages, double rate);

/// The number of a metric, of goodput or of failures in one stage, or in a whole run. Where there
/// is none it is infinitely far on the wrong side.
double goal_value(const PlanGoal& goal, const sim::StageResult& of);

/// The goals' numbers in one run under a load of `rate` requests/s. A number that the run does not
/// have is infinitely far on the wrong side.
std::vector<double> goal_values(const std::vector<PlanGoal>& goals, const sim::RunResult& run,
                                double rate);

/// The verdict of the runs so far.
enum class GoalVerdict { kMeets, kMisses, kOpen };

/// One goal after some runs.
struct GoalState {
  sim::Estimate estimate;  ///< Its half width is that of the one-sided bound.
  GoalVerdict verdict = GoalVerdict::kOpen;
  /// How far off: mean over bound, or bound over mean for a lower bound; at most 1 when the mean
  /// meets the goal.
  double shortfall = 0;
};

/// Compares what windows miss: of bounds of 0, which are missed by a factor without end, by the
/// mean. At most 1.
double window_distance(double shortfall, double mean);

/// Meets when the one-sided confidence bound of the mean does, misses when the opposite one does
/// not, else open. One run decides only a clear miss, by `kClearMiss`.
GoalState judge(const PlanGoal& goal, const std::vector<double>& values, double confidence);
inline constexpr double kClearMiss = 1.5;

}  // namespace routesim::tools

template <>
struct routesim::EnumNames<routesim::tools::GoalVerdict> {
  static constexpr std::array<std::string_view, 3> value = {"meets", "misses", "open"};
};
