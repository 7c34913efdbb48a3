// The judgement: the best configuration, the published one and the omniscient router on seeds that
// the search has not seen, under the load as given and under other loads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/results/difference.h"
#include "tools/study/tune/tune_search.h"

namespace routesim::tools {

/// The fresh seeds begin so far behind those of the search, which a budget of a million runs cannot
/// reach in blocks of seeds.
inline constexpr std::uint64_t kFreshSeeds = 10'000;

/// One metric under one load.
struct JudgedMetric {
  MetricName metric = {};
  Difference difference = {};  ///< Best less published.
  std::optional<sim::Estimate> omniscient = {};
  /// The share of the gap between published and omniscient that the best one closes; nothing unless
  /// the omniscient router is better beyond chance.
  std::optional<double> gap_closed = {};
};

struct JudgedLoad {
  std::string load = {};  ///< `as given`, `rates x 1.25`.
  std::vector<JudgedMetric> metrics = {};
  std::string why_not = {};  ///< Who cannot run under this load, and why; empty when both can.
  /// Goals and conditions without a number in some run of the published or the best configuration,
  /// as text; they are not among `metrics`.
  std::string published_lacks = {};
  std::string best_lacks = {};
};

/// The worth of one change of the best configuration.
struct KnobWorth {
  std::size_t knob = 0;
  std::vector<Difference> by_goal = {};  ///< With this change taken back, less the best one.
};

/// A member of the front on fresh seeds.
struct FrontMember {
  std::size_t candidate = 0;
  std::vector<sim::Estimate> goals = {};
};

enum class TuneDecision {
  kBetter,     ///< Better on fresh seeds, by kLeastGain or more on some load, and on none worse.
  kFragile,    ///< Better on fresh seeds, and worse on another load.
  kTrade,      ///< With two goals: better in one, and worse in the other.
  kNothing,    ///< No gain of kLeastGain or more on any load, or none beyond chance.
  kUndecided,  ///< The interval holds both no gain and a gain of kLeastGain, or few candidates.
  kUnmet,      ///< The published configuration breaks a condition, and so does the best one.
};

/// Gains below this share are not worth a change, however sure they are.
inline constexpr double kLeastGain = 0.01;

struct TuneJudgement {
  std::vector<std::uint64_t> seeds = {};
  std::vector<JudgedLoad> loads = {};  ///< The first is the load as given.
  std::vector<KnobWorth> worth = {};
  std::vector<FrontMember> front = {};
  std::string no_omniscient = {};  ///< Why there is no ceiling; empty when there is.
  TuneDecision decision = TuneDecision::kNothing;
  std::string headline = {};
  std::size_t runs = 0;
};

/// The gain of a goal in percent, positive when better, with its interval.
struct Gain {
  double percent = 0;
  double low = 0;
  double high = 0;
};
Gain gain_of(const Difference& difference, const MetricName& metric);

/// Whether a configuration meets the conditions on fresh seeds: in the mean, perhaps (it breaks one
/// in the mean, and not beyond chance), or not.
enum class Conditions { kMet, kUnsure, kBroken };

/// Decides by the gains of the goals under the load as given and under other loads. When the
/// published configuration breaks a condition, the best one is better if it meets all.
TuneDecision decide(const std::vector<Gain>& as_given, const std::vector<Gain>& elsewhere,
                    Conditions best, Conditions published);

/// Whether this is the metric of a goal or of a condition.
bool decides(const TuneSpace& space, const TuneSearchResult& search, const MetricName& metric);

/// Runs of a judgement whose best configuration has no change to take back.
std::size_t least_judgement_runs(const TuneSpace& space);

/// Runs and judges; throws Stopped when a run had errors.
TuneJudgement judge_tune(const TuneSpace& space, const TuneSearchResult& search,
                         Experiment& experiment);

}  // namespace routesim::tools

template <>
struct routesim::EnumNames<routesim::tools::TuneDecision> {
  static constexpr std::array<std::string_view, 6> value = {"better",    "better only as given",
                                                            "a trade",   "nothing better",
                                                            "undecided", "conditions not met"};
};
