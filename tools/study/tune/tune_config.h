// A tune file: a scenario, what may be changed in it, and what is better.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/describe.h"

namespace routesim::tools {

/// One thing that may be changed. Exactly one of `set`, `weight`, `picker` and `split` says what.
struct TuneKnobConfig {
  std::string name;                ///< Empty = made from the others.
  std::string set;                 ///< A key path, as in `--set`.
  std::vector<std::string> also;   ///< Further key paths that get the same value.
  std::string weight;              ///< Name of a scorer in the router's document.
  std::string profile;             ///< Which profile's; empty = the only one that has it.
  std::string picker;              ///< Name of a profile whose picker is chosen.
  std::vector<std::string> split;  ///< Two pools that share a fixed number of GPUs.
  Document values;                 ///< A list of whatever the key may hold.
  std::vector<double> range;       ///< Lowest and highest number.
  std::optional<double> step;      ///< Distance between numbers; absent = a twentieth.
  bool log = false;                ///< Equal ratios instead of equal distances.
};
void describe(Describer& d, TuneKnobConfig& k);

/// A load that the search has not seen.
struct TuneShift {
  std::string name;              ///< Empty = made from the others.
  double rate = 1;               ///< Multiplies every rate of the load.
  std::vector<std::string> set;  ///< Assignments made after those of the candidate.
};
void describe(Describer& d, TuneShift& s);

/// The share of the budget that is kept to take back changes that gain nothing.
inline constexpr double kSimplifyShare = 0.2;

/// A tune file.
struct TuneConfig {
  std::string name;
  std::string question;
  std::string scenario;
  std::string variant;
  std::vector<std::string> set;
  std::optional<std::int64_t> seed;
  std::vector<std::string> goals = {"minimise ttft_ms.p90"};
  std::optional<std::vector<std::string>> subject_to;  ///< Absent = nothing gets much worse.
  bool guards = true;  ///< Failures, and what lies beside the goals, may not get worse.
  std::optional<std::int64_t> budget;  ///< Runs of the search.
  std::int64_t block = 5;              ///< Seeds of one round.
  std::int64_t fresh_seeds = 60;
  double confidence = 0.95;
  std::optional<std::vector<TuneShift>> shift;  ///< Absent = rates times 1.25 and times 0.8.
  std::vector<TuneKnobConfig> knobs;            ///< Empty = derived from the scenario.
};
void describe(Describer& d, TuneConfig& c);

}  // namespace routesim::tools
