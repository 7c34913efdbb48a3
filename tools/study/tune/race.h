// The statistics of a race: which candidates are worse than another one beyond chance.
//
// All candidates face the same seeds, so their results are subtracted seed by seed. A candidate is
// out when a one-sided paired t-test says that it is worse than the best one. The level of the test
// is divided by the number of comparisons of the round (Bonferroni), so that a round of many
// candidates does not throw out good ones by chance more often than a round of two. It is the
// race of Maron and Moore (1994) with the paired t-test of irace (López-Ibáñez et al. 2016).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/results/metric_name.h"
#include "tools/study/experiment/experiment.h"
#include "tools/study/tune/tune_space.h"

namespace routesim::tools {

/// The one-sided test "the mean difference is above zero" at `level`, 0 < level < 1/2. Needs two
/// differences. Equal differences above zero are above it.
bool is_above_zero(std::span<const double> differences, double level);

/// Whether a condition with these excesses is broken beyond chance. One without a number is.
bool is_condition_broken(std::span<const double> excesses, double level);

/// Values as costs: smaller is better. With `by_ratio`, for values above zero, costs are
/// logarithms: one overloaded seed does not hide a clear difference on all others.
double cost_of(double value, sim::Direction direction, bool by_ratio);

/// The results of one candidate, each a list by seed. All lists of a round have one length.
struct RaceEntry {
  std::vector<std::vector<double>> costs = {};     ///< By goal.
  std::vector<std::vector<double>> excesses = {};  ///< By condition: above zero breaks it.
  std::vector<std::vector<double>> guards = {};    ///< By guard: above zero is worse.
  std::vector<bool> by_ratio = {};                 ///< By goal: costs are logarithms.

  double mean_cost(std::size_t goal) const;
  /// The sum of the mean costs: with one goal, that goal's.
  double total_cost() const;
  /// The sum of all mean excesses above zero; 0 when every condition holds, infinite when one has
  /// no number.
  double violation() const;
};

/// Which of two candidates comes first: the one that breaks conditions less, then the cheaper one.
bool comes_first(const RaceEntry& a, const RaceEntry& b);

/// Why a candidate left the race.
enum class RaceExit { kStays, kWorse, kBreaksCondition, kBreaksGuard, kSame };

struct RaceDecision {
  RaceExit exit = RaceExit::kStays;
  std::size_t by = 0;  ///< Worse than, or the same as, this entry.
};

/// Decides on every entry after a round. Entry 0, the published configuration, always stays. With
/// several goals, or when it breaks a condition, there are no guards: one thing is traded for
/// another then. An entry with the results of an earlier one is the same. With one goal, an entry
/// is worse when it is worse than the best one; with several, when another entry is worse in no
/// mean, and better beyond chance in one. O(entries^2 seeds) with several goals, else O(entries
/// seeds).
std::vector<RaceDecision> decide_round(std::span<const RaceEntry> entries, double level);

/// Indices of the entries that no other one beats in every mean, in the order given.
std::vector<std::size_t> front_of(std::span<const RaceEntry> entries);

// Runs of candidates, many at once.

/// Results of one configuration: by TuneSpace::metrics, then by seed; NaN where a run has none.
using SeedValues = std::vector<std::vector<double>>;

/// A configuration and seeds that it has not faced.
struct SeedRuns {
  const sim::RunPlan* plan = nullptr;
  std::vector<std::uint64_t> seeds = {};
  SeedValues* values = nullptr;  ///< Receives the numbers of these seeds behind those it has.
};

/// Does all runs, in one wave. A run that gets stuck, which some configurations do, has no values.
/// Throws Stopped. Returns how much was simulated, which most of the CPU time goes with: prompt
/// tokens that engines looked up, and 1000 for each request that a router sent to one.
double run_candidates(const TuneSpace& space, std::span<const SeedRuns> candidates,
                      Experiment& experiment);

/// `PATH MESSAGE` of the first error: why a candidate cannot run. Empty without errors.
std::string problem_of(const Diagnostics& found);

}  // namespace routesim::tools
