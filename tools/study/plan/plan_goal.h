// The goals of a plan, and what a fleet's runs say about them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/describe.h"
#include "base/tree_reader.h"
#include "sim/fleet/fleet_config.h"
#include "sim/observe/observer.h"
#include "tools/results/goodput.h"
#include "tools/results/metric_name.h"
#include "tools/results/statistics.h"
#include "workloads/demand/demand.h"

namespace routesim::tools {

// A plan file: a demand, goals, and the fleets that may meet them, with their prices.

/// The load a plan must hold.
struct PlanDemand {
  std::optional<double> rate;                  ///< Requests/s today. Absent: the peak of the day.
  double growth = 0;                           ///< Planned for: 0.25 plans for 1.25 times the rate.
  double growth_per_month = 0;                 ///< From the planned rate on, compounded.
  std::int64_t months = 0;                     ///< To look ahead, this one included; 0 = none.
  std::string from;                            ///< Of the first month: `2026-12`; empty = none.
  Duration duration = Duration::seconds(120);  ///< How long each run sends at least.
  /// Count the start with empty caches, too, over `duration` exactly. Otherwise a run counts from
  /// the end of its warm-up on.
  bool cold_start = false;
  /// Assignments that make the scenario's workload this load. `{rate}` stands for the rate,
  /// `{requests}` for rate times duration, `{seconds}` for the duration, rounded to whole numbers.
  std::vector<std::string> set;
};
void describe(Describer& d, PlanDemand& p);

/// Months since the year 0 of a text such as `2026-12`.
std::optional<std::int64_t> parse_month(std::string_view text);

/// A share of requests that must meet several bounds at once.
struct PlanGoodput {
  double share = 0.95;
  std::vector<std::string> bounds;  ///< `ttft:500ms`, as --goodput takes them.
};
void describe(Describer& d, PlanGoodput& p);

/// The price of one GPU.
struct PlanPrice {
  std::string accelerator;
  double per_hour = 0;
  std::optional<double> reserved_per_hour, spot_per_hour;
  std::int64_t gpus_per_node = 1;  ///< Whole nodes are paid for.
};
void describe(Describer& d, PlanPrice& p);

/// Host memory for KV blocks (engine.kv_tiers.cpu_gib of every sized pool).
struct PlanHostMemory {
  std::vector<double> gib;  ///< Sizes to try, of one engine core; 0 = no tier.
  double per_gib_hour = 0;
};
void describe(Describer& d, PlanHostMemory& p);

/// The hardware of a replica. Absent keys stay as the scenario has them.
struct PlanHardware {
  std::string name;  ///< Empty = made from the keys below.
  std::optional<std::string> accelerator;
  std::optional<std::int64_t> tensor_parallel;
  std::optional<std::int64_t> data_parallel;
  std::vector<std::string> set;  ///< Further assignments.
};
void describe(Describer& d, PlanHardware& p);

/// A routing policy: a variant of the scenario, and what to change in it.
struct PlanPolicy {
  std::string name;     ///< Empty = the variant's.
  std::string variant;  ///< A variant of the scenario; empty when it has none.
  std::vector<std::string> set = {};
};
void describe(Describer& d, PlanPolicy& p);

/// A pool whose replicas are chosen.
struct PlanPool {
  std::string pool;
  std::int64_t min = 1;
  std::int64_t max = 64;
};
void describe(Describer& d, PlanPool& p);

/// Something that happens to the fleet, which must meet the goals meanwhile.
struct PlanSurvival {
  std::string name;
  std::vector<sim::FleetEventConfig> events;  ///< Their `at` counts from the window's beginning.
  std::optional<Duration> window;             ///< Absent: until all servers are ready again.
  std::optional<double> max_failure_rate;     ///< Absent: the plan's.
};
void describe(Describer& d, PlanSurvival& p);

/// An autoscaler that the fleets found are run with over the day.
struct PlanAutoscaler {
  std::string name;
  std::vector<std::string> set;  ///< `{servers}` stands for the servers of the fleet's pool.
};
void describe(Describer& d, PlanAutoscaler& p);

/// A plan file.
struct PlanConfig {
  std::string name;
  std::string question;
  std::string scenario;
  std::vector<std::string> set;
  std::optional<std::int64_t> seed;
  PlanDemand demand;
  std::vector<std::string> goals;  ///< `ttft_ms.p99 < 500`.
  std::optional<PlanGoodput> goodput;
  double max_failure_rate = 0;
  double confidence = 0.95;
  std::int64_t replications = 3;
  std::int64_t max_replications = 10;
  std::int64_t spares = 0;
  double knee_limit = 8;
  std::vector<PlanPrice> prices;
  std::optional<PlanHostMemory> host_memory;
  std::vector<PlanHardware> hardware;
  std::vector<PlanPolicy> policies;
  std::vector<PlanPool> pools;
  std::vector<PlanSurvival> survives;
  std::optional<workloads::Demand> day;
  std::vector<PlanAutoscaler> autoscalers;
};
void describe(Describer& d, PlanConfig& c);

/// One goal: a number of a run, and the bound it must stay on one side of.
struct PlanGoal {
  enum class Kind { kMetric, kGoodput, kFailures, kGrowth, kRate };

  Kind kind = Kind::kMetric;
  std::string text;        ///< `ttft_ms.p99 < 500`, `goodput > 0.95`.
  std::string label;       ///< `ttft_ms.p99`.
  MetricName metric = {};  ///< Set for kMetric.
  std::int64_t part = -1;  ///< The load of a mix whose requests count; -1 = all of them.
  bool upper = true;       ///< The number must stay below the bound, not above.
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

/// Whether the file has a goal that not every fleet must meet.
bool has_own_goals(const std::vector<PlanGoal>& goals);

/// One goal for each load of the scenario's mix that states a `goodput`: as many of its requests
/// must meet it as of the plan's; without one, as many as the scenario expects, or 95 %.
std::vector<PlanGoal> goals_of_loads(const PlanConfig& config, const sim::Scenario& scenario);

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
