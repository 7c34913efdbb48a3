// The search: iterated racing over the choices of a space.
//
// Each iteration makes candidates, first spread over the space, later near the best ones, and races
// them: a block of seeds at a time, candidates that are worse beyond chance leave. It is the scheme
// of irace (López-Ibáñez et al., "The irace package", 2016), with the published configuration as a
// candidate that never leaves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/rng.h"
#include "tools/study/tune/race.h"
#include "tools/study/tune/tune_space.h"

namespace routesim::tools {

// The points where a search looks: choices that fill a space evenly, and choices near a good one.

/// The stream of a search. Its seeds are mixed with a constant, so that no run has the same draws.
inline constexpr Stream kSearchStream = Stream::kExploration;
inline constexpr std::uint64_t kSearchSalt = 0x7475'6e65;

/// The published choice with one knob changed: of each knob that is ordered the lowest value, the
/// highest and those next to the published one, of any other all values. Those that change most
/// different knobs come first.
std::vector<Choice> single_changes(std::span<const Knob> knobs);

/// A Latin hypercube (McKay, Beckman and Conover 1979): of `count` choices, each knob takes every
/// part of its values equally often.
std::vector<Choice> latin_hypercube(std::span<const Knob> knobs, std::size_t count,
                                    std::uint64_t seed);

/// A choice near `parent`: each knob changes with the probability that changes two on average, an
/// ordered one by a normal step of `spread` times its range, any other to any value. At least one
/// changes.
Choice neighbour(std::span<const Knob> knobs, const Choice& parent, double spread,
                 RandomStream& random);

/// One configuration and its results so far.
struct TuneCandidate {
  Choice choice = {};
  std::shared_ptr<const sim::RunPlan> plan = {};  ///< Null for those that left.
  SeedValues values = {};
  std::size_t rounds = 0;    ///< Blocks of seeds it has faced.
  std::string dropped = {};  ///< Why it left; empty for those that stayed.

  std::size_t seeds() const { return values.empty() ? 0 : values.front().size(); }
};

/// One block of seeds for those in the race.
struct TuneRound {
  std::int64_t round = 0, iteration = 0;  ///< Count from 1.
  std::int64_t seeds = 0;                 ///< From the first seed on, those that decided.
  std::int64_t candidates = 0, left = 0;  ///< Before it, and after it.
};
void describe(Describer& d, TuneRound& r);

struct TuneSearchResult {
  std::vector<TuneCandidate> candidates = {};  ///< The first is the published one.
  std::vector<TuneRound> rounds = {};
  std::size_t best = 0;                 ///< The best other candidate; 0 when all others left.
  std::vector<std::size_t> front = {};  ///< With two goals: those that no other beats in both.
  std::vector<Condition> conditions =
      {};                               ///< Those that the published configuration has numbers for.
  std::vector<MetricName> guards = {};  ///< The same of the guards.
  std::vector<std::size_t> finalists = {};  ///< The best, then others that stayed, better first.
  std::size_t budget = 0;                   ///< Runs that it might take.
  std::size_t runs = 0;                     ///< Runs that it took.

  /// Candidates with results, besides the published one.
  std::size_t tried() const;
};

/// A search that finds nothing in fewer candidates decides nothing: two for each knob, or all other
/// choices where there are fewer.
std::size_t least_candidates(const TuneSpace& space);
/// A budget that suffices for so many.
std::size_t least_budget(const TuneSpace& space);

/// Runs of a search without a budget, unless they are large.
inline constexpr std::size_t kDefaultBudget = 1000;
/// The work of runs that a search without a budget may take. Of the shipped scenarios the
/// dearest takes 2.5 ns of CPU time for each, so seven minutes.
inline constexpr double kDefaultWork = 160e9;

/// The budget of the tuning. One without it gets kDefaultBudget, or what kDefaultWork allows when
/// runs are as large as one of the published configuration, but at least least_budget(). Throws as
/// search_tune().
std::size_t budget_of(const TuneSpace& space, Experiment& experiment);

/// A change that gains less than this goes back, unless taking it back is worse beyond chance.
inline constexpr double kTinyGain = 0.005;

/// Costs and excesses of configurations that are compared with each other, at their first `seeds`
/// seeds. Ratios are compared where is_ratio_metric() says so and every value, those of the
/// published configuration included, is above zero; otherwise differences.
std::vector<RaceEntry> entries_of(const TuneSpace& space, std::span<const Condition> conditions,
                                  std::span<const SeedValues* const> values,
                                  const SeedValues& published, std::size_t seeds,
                                  std::span<const MetricName> guards = {});

/// Whether ratios of this metric are compared: of times and rates, not of shares and counts.
bool is_ratio_metric(const MetricName& metric);

/// Searches; throws Stopped when a run had errors, or the published configuration has no value
/// of a goal. `result` then has the race as it stood, and also whenever the experiment tells.
/// Deterministic in (space, seed, budget).
void search_tune(const TuneSpace& space, std::size_t budget, Experiment& experiment,
                 TuneSearchResult& result);

}  // namespace routesim::tools
