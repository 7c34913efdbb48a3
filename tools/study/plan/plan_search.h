// From a space of fleets to the cheapest ones that meet every goal.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/results/report.h"
#include "tools/study/plan/plan_day.h"
#include "tools/study/plan/plan_evaluate.h"
#include "tools/study/what_if.h"

namespace routesim::tools {

/// How the sizes of a family were searched.
enum class SizeMethod {
  /// One pool: more replicas mostly help, but thin out a prefix cache. So upwards by doubling, then
  /// halving below the first size that holds.
  kDoubling,
  kScan  ///< Several pools: one may starve the other, so every split is tried, by price.
};

/// The resource that a plan runs short of, just above the rate it holds.
struct Binding {
  std::string what;        ///< `KV blocks`, ..., `hot prefix`, or empty when nothing stands out.
  std::string goal;        ///< The goal that is missed first.
  double missed_by = 0;    ///< Its shortfall there ...
  double with_double = 0;  ///< ... and with twice the resource.
};

/// The fleets that a plan would need if its steps were longer or shorter by the error that
/// validation found for their class.
struct StepTimeBand {
  double fraction = 0;               ///< step_time_band() of the class.
  std::optional<FleetSize> longer;   ///< Bought with steps 1 + fraction times as long; nothing when
                                     ///< no size of the space holds.
  std::optional<FleetSize> shorter;  ///< The same with steps 1 - fraction times as long.
};

/// The fleet of a month and of those behind it, until it grows again.
struct MonthOfGrowth {
  std::int64_t month = 0;  ///< 0 = the first, at the planned rate.
  double rate = 0;         ///< Requests/s then.
  /// To buy, spares included; nothing when no size of the space holds the rate.
  std::optional<FleetSize> size = {};
};

/// A fleet that meets every goal.
struct FoundPlan {
  std::size_t family = 0;
  FleetSize size;    ///< The fleet to buy, spares included.
  FleetSize needed;  ///< The least that holds.
  double price_per_hour = 0;
  /// Output tokens, at the planned rate; nothing for a fleet that makes none.
  std::optional<double> price_per_million_tokens = {};
  FleetEvaluation evaluation = {};  ///< `size` at the planned rate.
  /// The same fleet without its host memory, where the plan tries that.
  std::optional<FleetEvaluation> without = {};
  double knee = 0;                        ///< The highest rate it holds, requests/s.
  std::optional<double> knee_fails = {};  ///< The lowest rate seen to fail; absent when none was.
  std::int64_t spares_today = 0;  ///< Replicas (of any one pool) that may be gone at today's rate.
  Binding binding = {};
  models::Trust trust = models::Trust::kFitted;  ///< The least trusted class among its runs.
  StepTimeBand band = {};
  bool holds_with_fewer_blocks = false;    ///< Whether every goal is met with 1 - kCapacityBand,
  bool holds_with_more_blocks = false;     ///< or 1 + kCapacityBand times the KV blocks.
  std::vector<MonthOfGrowth> months = {};  ///< In which it must grow, and the first.
  /// What would be bought if nothing had to be survived, spares included, with its windows; where
  /// the plan has any.
  std::optional<FleetEvaluation> unprepared = {};
  std::vector<DayOutcome> day = {};  ///< With fixed servers, then with each autoscaler.
};

/// The outcome of a family.
struct FamilyOutcome {
  SizeMethod method = SizeMethod::kDoubling;
  bool tried_singly = false;  ///< A middle size came nearest, and those around it were run too.
  std::size_t sizes_tried = 0;
  std::size_t sizes = 0;                     ///< In the space.
  std::optional<FleetSize> size;             ///< The least that holds,
  std::optional<FleetSize> unprepared = {};  ///< and the least if nothing had to be survived.
  std::optional<FleetEvaluation> near_miss;  ///< The best fleet seen, when none holds.
};

struct PlanResult {
  std::vector<FamilyOutcome> families;     ///< By family.
  std::vector<FoundPlan> plans;            ///< The cheapest first; at most four.
  std::vector<FleetEvaluation> evaluated;  ///< FleetEvaluator::at_planned_rate().
  std::size_t runs = 0;
  std::size_t steps = 0;  ///< Of kPlanSteps that came to their end; the rest of a plan is unknown.

  bool is_complete() const { return steps == kPlanSteps.size(); }
};

/// Rates are searched to this precision.
inline constexpr double kKneeTolerance = 0.03;
/// The best and the next-best three.
inline constexpr std::size_t kMostPlans = 4;

/// Searches; throws Stopped when the evaluator does. `result` then has what was found so far, and
/// also whenever the experiment tells.
void search_plan(const PlanSpace& space, FleetEvaluator& evaluator, PlanResult& result);

}  // namespace routesim::tools

template <>
struct routesim::EnumNames<routesim::tools::SizeMethod> {
  static constexpr std::array<std::string_view, 2> value = {"doubling", "scan"};
};
