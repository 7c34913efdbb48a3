// The statements that repeated runs allow: means with confidence intervals, paired differences,
// intervals of percentiles, and a verdict that admits when the runs do not decide.
//
// One number per run goes in. Runs with different seeds are independent; the numbers inside one run
// (its requests) are not, so no interval here is made from them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace routesim::sim {

/// Every interval of the product has this level unless it says otherwise.
inline constexpr double kConfidence = 0.95;

/// The p-quantile of Student's t distribution with `degrees` > 0 degrees of freedom; 0 < p < 1.
double student_t_quantile(double p, double degrees);

/// 0 for an empty sample.
double mean(std::span<const double> values);
/// `part` of `whole`; 0 of nothing.
inline double share(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}
/// The unbiased sample standard deviation (divisor n - 1); 0 for fewer than two values.
double sample_sd(std::span<const double> values);

/// A mean and how far the truth may be from it.
struct Estimate {
  std::size_t n = 0;
  double mean = 0;
  double sd = 0;
  double half_width = 0;  ///< Infinity when n < 2: one run says nothing about its own spread.
  double low() const { return mean - half_width; }
  double high() const { return mean + half_width; }
  bool holds(double value) const { return low() <= value && value <= high(); }
};

/// Mean with its Student-t interval: half width = t(1 - (1 - confidence)/2, n - 1) sd / sqrt(n).
Estimate estimate(std::span<const double> values, double confidence = kConfidence);

/// The mean of changed[i] - factor * base[i]. Both have one value per seed, in the same order: the
/// requests are the same, so their common noise cancels. `factor` 1.05 asks whether `changed` is
/// more than 5 % above `base`, without dividing one noisy number by another.
Estimate paired_difference(std::span<const double> base, std::span<const double> changed,
                           double factor = 1, double confidence = kConfidence);

/// The difference of two means of independent runs: Welch's interval, for results that do not share
/// their seeds. `half_width` is infinite when either has fewer than two values.
Estimate independent_difference(std::span<const double> base, std::span<const double> changed,
                                double factor = 1, double confidence = kConfidence);

/// An interval that need not be symmetric, or bounded.
struct Interval {
  double low = 0;
  double high = 0;
};

/// Fieller's interval of mean(changed) / mean(base) for paired values: all r for which the paired
/// difference with factor r holds zero, so it decides exactly as paired_difference() does. Nothing
/// when that set is not a bounded interval (the mean of `base` is not distinguishable from zero).
std::optional<Interval> paired_ratio(std::span<const double> base, std::span<const double> changed,
                                     double confidence = kConfidence);

/// Ranks (from 0, `low` <= `high`) of the order statistics of n independent values between which
/// their q-quantile lies.
struct RankInterval {
  std::size_t low = 0;
  std::size_t high = 0;
  double coverage = 0;  ///< Probability that the interval holds the quantile.
};

/// The distribution-free interval from the binomial law of how many of n values lie below the
/// quantile: the shortest pair of ranks about q(n - 1) whose coverage reaches `confidence`. Nothing
/// when n is too small for that (fewer than 6 values for a median at 95 %, 299 for a p99). 0 < q
/// < 1.
std::optional<RankInterval> quantile_ranks(std::size_t n, double q,
                                           double confidence = kConfidence);

/// The meaning of a difference for whoever has to decide.
enum class Verdict { kBetter, kWorse, kNotDistinguishable };
/// Which way a metric improves.
enum class Direction { kSmallerIsBetter, kLargerIsBetter };

/// kNotDistinguishable when the interval holds zero (its bounds included), as it always does with
/// one run.
Verdict verdict(const Estimate& difference, Direction direction);

/// "better", "worse" or "not distinguishable".
std::string_view verdict_text(Verdict v);

}  // namespace routesim::sim
