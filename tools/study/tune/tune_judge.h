// The judgement: the best configuration, the published one and the omniscient router on seeds that
// the search has not seen, under the load as given and under other loads. A candidate that breaks
// a guard is not the best one: the next of the race is judged, on other fresh seeds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/results/result_set.h"
#include "tools/study/tune/tune_search.h"

namespace routesim::tools {

/// The fresh seeds begin so far behind those of the search, which a budget of a million runs cannot
/// reach in blocks of seeds.
inline constexpr std::uint64_t kFreshSeeds = 10'000;

/// Candidates that are judged, at most, each on fresh seeds of its own.
inline constexpr std::size_t kMostJudged = 3;

/// The change of a metric in percent, positive when better, with its interval.
struct Gain {
  double percent = 0;
  double low = 0;
  double high = 0;
};
void describe(Describer& d, Gain& r);
Gain gain_of(const Difference& difference, const MetricName& metric);

/// The same of a metric that is named.
struct MetricGain : Gain {
  std::string metric;
};
void describe(Describer& d, MetricGain& r);

/// The level at which Student's interval of the mean of n values is sqrt(2) times as wide as at
/// sim::kConfidence: where the means of as many other values lie in 95 of 100 cases.
double repeat_confidence(std::size_t n);

/// One metric under one load.
struct JudgedMetric {
  MetricName metric = {};
  bool is_goal = false;
  bool is_guard = false;
  /// Candidate less published. The intervals of a goal have the level of repeat_confidence(): a
  /// gain that is claimed should be found again.
  Difference difference = {};
  Gain gain = {};
  std::optional<sim::Estimate> omniscient = {};
  /// The share of the gap between published and omniscient that the best one closes; nothing unless
  /// the omniscient router is better beyond chance.
  std::optional<double> gap_closed = {};

  bool is_worse() const { return metric.has_direction && gain.high < 0; }
};

/// A load, and the numbers that there are not.
struct LoadLacks {
  std::string load = {};     ///< `as given`, `rates x 1.25`.
  std::string why_not = {};  ///< Who cannot run under this load, and why; empty when both can.
  /// Goals and conditions without a number in some run of the published configuration or of the
  /// candidate, as text. Of the candidate, guards too that the published one has numbers of.
  std::string published_lacks = {};
  std::string candidate_lacks = {};
};
void describe(Describer& d, LoadLacks& r);

struct JudgedLoad : LoadLacks {
  std::vector<JudgedMetric> metrics = {};  ///< Those that both have numbers of.

  const JudgedMetric* find(const MetricName& metric) const;
  /// The guards that the candidate breaks.
  std::vector<const JudgedMetric*> broken() const;
};

/// The values of both configurations under one load; empty where one cannot run.
struct LoadValues {
  SeedValues published = {};
  SeedValues candidate = {};
  std::string published_problem = {};
  std::string candidate_problem = {};
};

/// The worth of one change of the best configuration: the loss when it is taken back.
struct KnobWorth {
  std::size_t knob = 0;
  std::vector<MetricGain> by_goal = {};
};

/// A mean over fresh seeds, with its interval.
struct JudgedMean {
  double mean = 0, low = 0, high = 0;
};
void describe(Describer& d, JudgedMean& r);

/// A member of the front on fresh seeds.
struct FrontMember {
  std::int64_t id = 0;             ///< Of the candidate.
  Named<std::string> values;       ///< By knob.
  Named<JudgedMean> metrics = {};  ///< Of the goals.
};
void describe(Describer& d, FrontMember& r);

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
  std::size_t candidate = 0;  ///< That was judged; 0 when all others left the race.
  std::vector<std::uint64_t> seeds = {};
  /// The first is the load as given, the only one where that decides: nobody stayed in the race,
  /// or the candidate is refused there.
  std::vector<JudgedLoad> loads = {};
  /// The conditions that are broken beyond chance under the load as given.
  std::vector<std::string> published_breaks = {};
  std::vector<std::string> candidate_breaks = {};
  /// The others that were judged, each on seeds of its own.
  std::vector<TuneJudgement> passed_over = {};
  std::vector<KnobWorth> worth = {};
  std::vector<FrontMember> front = {};
  std::string no_omniscient = {};  ///< Why there is no ceiling; empty when there is.
  TuneDecision decision = TuneDecision::kNothing;
  std::size_t runs = 0;  ///< Of all that were judged.

  /// Whether it breaks a guard under any load, or a condition. A file that breaks a condition has
  /// no guards: what must hold goes before what may not get worse.
  bool is_refused() const;
};

/// The gains of the goals that have numbers.
std::vector<Gain> gains_of(const JudgedLoad& load);

/// Whether a configuration meets the conditions on fresh seeds: in the mean, perhaps (it breaks one
/// in the mean, and not beyond chance), or not.
enum class Conditions { kMet, kUnsure, kBroken };

/// Decides by the gains of the goals under the load as given and under other loads. When the
/// published configuration breaks a condition, the best one is better if it meets all.
TuneDecision decide(const std::vector<Gain>& as_given, const std::vector<Gain>& elsewhere,
                    Conditions best, Conditions published);

/// What the values of a candidate mean. `loads`: as given, then those of the space, as far as they
/// were run; the values have one number for each of the seeds.
TuneJudgement conclude(const TuneSpace& space, const TuneSearchResult& search,
                       std::size_t candidate, const std::vector<std::uint64_t>& seeds,
                       std::span<const LoadValues> loads);

/// Whether a better configuration may well exist that the search had no runs for. A search that
/// all candidates left before the runs were short is not small.
bool is_small(const TuneSpace& space, const TuneSearchResult& search);

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
