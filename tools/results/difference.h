// Two series of one metric, subtracted; numbers with intervals as people read them; and whether
// what was expected of them holds.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/describe.h"
#include "base/diagnostic.h"
#include "tools/results/json_writer.h"
#include "tools/results/metric_name.h"
#include "tools/results/statistics.h"

namespace routesim::tools {

/// How one series differs from another.
struct Difference {
  sim::Estimate base;
  sim::Estimate changed;
  sim::Estimate difference;  ///< changed - base.
  bool paired = true;        ///< The same seeds on both sides.
  /// 100 (changed/base - 1); nothing when the base is 0.
  std::optional<double> percent;
  /// The interval of `percent`; nothing without replications or pairing.
  std::optional<sim::Interval> percent_interval;
  sim::Verdict verdict = sim::Verdict::kNotDistinguishable;
};

/// `paired` says that both have one value per seed, of the same seeds in the same order.
Difference difference_of(std::span<const double> base, std::span<const double> changed,
                         const MetricName& metric, bool paired);

/// "better", "worse", "not distinguishable"; "larger" or "smaller" where no direction is better;
/// "no interval" for single runs that differ, "equal" for those that do not.
std::string verdict_text(const Difference& d, const MetricName& metric);

/// `123.4 ± 1.2`: the interval with two digits that count, the mean with as many decimals; the mean
/// alone where there is no interval.
std::string estimate_text(const sim::Estimate& e);

/// A number with four digits that count.
std::string short_number(double v);

/// `-12.3 [-14.0, -10.6]`, `-12.3`, or `-`.
std::string percent_text(const Difference& d);

/// Whether something holds in the results.
enum class Decision { kHolds, kFails, kUndecided };

/// Whether `excess` is below zero (`or_equal`: or zero). With one run the number itself decides;
/// with several, the interval does, and one that holds zero decides nothing.
Decision decide_below_zero(const sim::Estimate& excess, bool or_equal);

/// "holds", "fails" or "undecided".
std::string decision_text(Decision d);

/// One expectation or gate, judged.
struct Judgement {
  std::string what;      ///< `ttft_ms.p99 < 500`.
  std::string scope;     ///< `llm-d-precise`, `llm-d-precise, stage 4`.
  SourceLocation where;  ///< Where it is written; no file for what stands on the command line.
  Decision decision = Decision::kHolds;
  std::string detail;  ///< What was found: `612.4 ± 20.1`.
};

/// The worst of all: a failure counts more than what the intervals leave open. kHolds for none.
Decision overall(const std::vector<Judgement>& judgements);

}  // namespace routesim::tools

template <>
struct routesim::EnumNames<routesim::tools::Decision> {
  static constexpr std::array<std::string_view, 3> value = {"holds", "fails", "undecided"};
};
