// From a space of fleets to the cheapest ones that meet every goal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/study/plan/plan_evaluate.h"
#include "tools/study/plan/plan_record.h"
#include "tools/study/what_if.h"

namespace routesim::sim {

// Searches that ask a caller for one probe at a time, so that many of them can share a machine and
// the answer does not depend on how many probes run at once.

/// The smallest whole number in [low, high] that holds, where everything above a number that holds
/// holds too. Asks for `high` first: when that fails, nothing holds. Takes 1 + ceil(log2(high - low
/// + 1)) probes at most, and ends having probed the answer and, unless it is `low`, the number
/// below it: that the answer is minimal is seen, not assumed.
class Bisection {
 public:
  /// `low` <= `high`.
  Bisection(std::int64_t low, std::int64_t high) : low_(low), high_(high) {}

  /// The number to probe next; nothing when the search has ended.
  std::optional<std::int64_t> next() const;
  /// The result of the probe next() asked for.
  void tell(bool holds);
  /// The smallest number that holds; nothing before the end, or when none does.
  std::optional<std::int64_t> answer() const;

 private:
  std::int64_t low_;   ///< Nothing below is left to find.
  std::int64_t high_;  ///< Holds, once asked.
  bool asked_high_ = false;
  bool none_ = false;
};

/// The smallest whole number in [low, high] that holds, where more mostly helps, but need not: asks
/// for `low`, twice as much and so on up to `high`. Below the first that holds it halves, as where
/// more never hurts, so the number below the answer was probed and failed. When all of them fail,
/// and a number in the middle was the nearest to hold, the numbers around it are tried one by one.
/// The answer does not depend on `high` unless nothing asked for before it holds.
class UpwardSearch {
 public:
  /// 1 <= `low` <= `high`.
  UpwardSearch(std::int64_t low, std::int64_t high) : high_(high), next_(low) {}

  /// The number to probe next; nothing when the search has ended.
  std::optional<std::int64_t> next() const;
  /// The result of the probe next() asked for; `shortfall` says how far it is from holding.
  void tell(bool holds, double shortfall);
  /// The smallest number that holds; nothing before the end, or when none was found.
  std::optional<std::int64_t> answer() const { return answer_; }
  /// Whether numbers were tried one by one, since more did not always help.
  bool tried_singly() const { return tried_singly_; }

 private:
  struct Miss {
    std::int64_t n = 0;
    double shortfall = 0;
  };
  void tell_doubling(bool holds, double shortfall);
  void list_around_nearest();

  std::int64_t high_;
  std::optional<std::int64_t> next_;  ///< While doubling.
  std::vector<Miss> misses_;          ///< Numbers that failed while doubling, ascending.
  std::optional<Bisection> halving_;
  std::vector<std::int64_t> singles_;  ///< Left to try one by one, the smallest last.
  bool tried_singly_ = false;
  std::optional<std::int64_t> answer_;
};

/// The highest rate that holds, between one that does and a limit, where everything below a rate
/// that holds holds too. Grows by `kGrowth` until a rate fails, then halves the ratio until it is
/// at most 1 + `tolerance`.
class RateSearch {
 public:
  static constexpr double kGrowth = 1.5;

  /// `holds` > 0 is known to hold; rates above `limit` >= `holds` are not probed.
  RateSearch(double holds, double limit, double tolerance)
      : holds_(holds), limit_(limit), tolerance_(tolerance) {}

  /// The rate to probe next; nothing when the search has ended.
  std::optional<double> next() const;
  void tell(bool holds);
  /// The highest rate seen to hold.
  double holds() const { return holds_; }
  /// The lowest rate seen to fail; nothing when `limit` holds.
  std::optional<double> fails() const { return fails_; }

 private:
  double holds_;
  double limit_;
  double tolerance_;
  std::optional<double> fails_;
};

}  // namespace routesim::sim

namespace routesim::tools {

/// A fleet that meets every goal.
struct FoundPlan {
  std::size_t family = 0;
  FleetSize size;                   ///< The fleet to buy, spares included.
  FleetSize needed;                 ///< The least that holds.
  FleetEvaluation evaluation = {};  ///< `size` at the planned rate.
  /// The same fleet without its host memory, where the plan tries that.
  std::optional<FleetEvaluation> without = {};
  /// What would be bought if nothing had to be survived, spares included, with its windows; where
  /// the plan has any.
  std::optional<FleetEvaluation> unprepared = {};
  PlanRecord::Choice found = {};  ///< Its price, and what each step of the search found.
};

/// The outcome of a family.
struct FamilyOutcome {
  SizeMethod method = SizeMethod::kDoubling;
  bool tried_singly = false;  ///< A middle size came nearest, and those around it were run too.
  std::optional<double> router_rate = {};  ///< FleetEvaluation::router_rate() of the last one.
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
