// The formulas, against tables and numbers a reader can redo.
#include "tools/results/statistics.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

namespace routesim::sim {
namespace {

/// The table in every statistics book: two-sided 95 %.
TEST(StudentT, AgreesWithThePrintedTable) {
  struct Row {
    double degrees;
    double t;
  };
  constexpr std::array<Row, 6> kTable = {
      {{1, 12.706}, {2, 4.303}, {4, 2.776}, {9, 2.262}, {30, 2.042}, {1000, 1.962}}};
  for (const Row& row : kTable) {
    EXPECT_NEAR(student_t_quantile(0.975, row.degrees), row.t, 5e-4) << row.degrees;
    EXPECT_NEAR(student_t_quantile(0.025, row.degrees), -row.t, 5e-4) << row.degrees;
  }
}

TEST(StudentT, HasAClosedFormForOneAndTwoDegrees) {
  for (const double p : {0.6, 0.9, 0.975, 0.999}) {
    EXPECT_NEAR(student_t_quantile(p, 1), std::tan(M_PI * (p - 0.5)), 1e-9);
    const double a = 4 * p * (1 - p);
    EXPECT_NEAR(student_t_quantile(p, 2), 2 * (p - 0.5) * std::sqrt(2 / a), 1e-9);
  }
}

TEST(Estimate, OfFourNumbers) {
  const std::vector<double> values = {1, 2, 3, 6};  // Mean 3, squares 4 + 1 + 0 + 9 = 14.
  const Estimate e = estimate(values);
  EXPECT_DOUBLE_EQ(e.mean, 3);
  EXPECT_DOUBLE_EQ(e.sd, std::sqrt(14.0 / 3));
  EXPECT_NEAR(e.half_width, 3.18245 * std::sqrt(14.0 / 3) / 2, 1e-4);
  EXPECT_TRUE(e.holds(0));
  EXPECT_FALSE(e.holds(7));
}

TEST(Estimate, OfOneRunIsUnbounded) {
  const std::vector<double> one = {5};
  EXPECT_TRUE(std::isinf(estimate(one).half_width));
  EXPECT_EQ(verdict(estimate(one), Direction::kLargerIsBetter), Verdict::kNotDistinguishable);
  EXPECT_TRUE(std::isinf(estimate({}).half_width));
}

TEST(PairedDifference, CancelsTheNoiseTheVariantsShare) {
  const std::vector<double> base = {10, 50, 90};
  const std::vector<double> changed = {11, 52, 91};  // Differences 1, 2, 1.
  const Estimate paired = paired_difference(base, changed);
  EXPECT_DOUBLE_EQ(paired.mean, 4.0 / 3);
  EXPECT_DOUBLE_EQ(paired.sd, std::sqrt(1.0 / 3));
  EXPECT_TRUE(paired.holds(1.0));
  const Estimate apart = independent_difference(base, changed);
  EXPECT_NEAR(apart.mean, paired.mean, 1e-12);
  EXPECT_GT(apart.half_width, 40 * paired.half_width);
}

TEST(PairedDifference, WithAFactorAsksForAChangeInPercent) {
  const std::vector<double> base = {100, 200};
  const std::vector<double> changed = {106, 212};
  EXPECT_NEAR(paired_difference(base, changed, 1.05).mean, 1.5, 1e-9);
  EXPECT_NEAR(paired_difference(base, changed, 1.06).mean, 0, 1e-9);
}

/// Welch's worked example with equal sizes and spreads is the pooled test with 2(n-1) degrees.
TEST(IndependentDifference, IsThePooledOneForEqualSpreads) {
  const std::vector<double> base = {1, 2, 3};
  const std::vector<double> changed = {11, 12, 13};
  const Estimate e = independent_difference(base, changed);
  EXPECT_DOUBLE_EQ(e.mean, 10);
  EXPECT_NEAR(e.half_width, student_t_quantile(0.975, 4) * std::sqrt(2.0 / 3), 1e-9);
}

TEST(IndependentDifference, HasWelchsDegreesForUnequalSizes) {
  // Variances of the means: 2 / 2 = 1 and 2.5 / 5 = 0.5, with 1 and 4 degrees.
  const std::vector<double> base = {0, 2};
  const std::vector<double> changed = {1, 2, 3, 4, 5};
  const double degrees = 1.5 * 1.5 / (1.0 / 1 + 0.25 / 4);
  const Estimate e = independent_difference(base, changed);
  EXPECT_DOUBLE_EQ(e.mean, 2);
  EXPECT_NEAR(e.half_width, student_t_quantile(0.975, degrees) * std::sqrt(1.5), 1e-9);
}

TEST(IndependentDifference, WithoutSpreadIsExact) {
  const std::vector<double> base = {2, 2};
  const std::vector<double> changed = {3, 3, 3};
  EXPECT_EQ(independent_difference(base, changed).half_width, 0);
  EXPECT_EQ(independent_difference(base, changed).mean, 1);
}

/// The bounds are where the paired difference with that factor just touches zero.
TEST(PairedRatio, DecidesAsThePairedDifferenceDoes) {
  const std::vector<double> base = {10, 12, 9, 11, 10.5};
  const std::vector<double> changed = {12.2, 14.1, 10.7, 13.4, 12.5};
  const std::optional<Interval> ratio = paired_ratio(base, changed);
  ASSERT_TRUE(ratio.has_value());
  EXPECT_NEAR(paired_difference(base, changed, ratio->low).low(), 0, 1e-9);
  EXPECT_NEAR(paired_difference(base, changed, ratio->high).high(), 0, 1e-9);
  EXPECT_LT(ratio->low, mean(changed) / mean(base));
  EXPECT_GT(ratio->high, mean(changed) / mean(base));
}

TEST(PairedRatio, IsUnboundedWhenTheBaseMayBeZero) {
  EXPECT_FALSE(paired_ratio(std::vector<double>{-1, 1.5}, std::vector<double>{3, 4}).has_value());
  EXPECT_FALSE(paired_ratio(std::vector<double>{1}, std::vector<double>{3}).has_value());
}

/// P(l < B <= u) of a fair coin thrown n times, by counting.
double fair_coin(std::size_t n, std::size_t low, std::size_t high) {
  double coverage = 0;
  double ways = 1;
  for (std::size_t k = 0; k <= n; ++k) {
    if (k > low && k <= high) coverage += ways / std::pow(2.0, static_cast<double>(n));
    ways *= static_cast<double>(n - k) / static_cast<double>(k + 1);
  }
  return coverage;
}

TEST(QuantileRanks, OfAMedianAreTheSignTest) {
  // Six values: smallest and largest hold the median unless all six fall on one side, 1 - 2/64.
  const std::optional<RankInterval> six = quantile_ranks(6, 0.5);
  ASSERT_TRUE(six.has_value());
  EXPECT_EQ(six->low, 0U);
  EXPECT_EQ(six->high, 5U);
  EXPECT_NEAR(six->coverage, 1 - 2.0 / 64, 1e-12);
  EXPECT_FALSE(quantile_ranks(5, 0.5).has_value());
  const std::optional<RankInterval> twenty = quantile_ranks(20, 0.5);
  ASSERT_TRUE(twenty.has_value());
  EXPECT_NEAR(twenty->coverage, fair_coin(20, twenty->low, twenty->high), 1e-9);
  EXPECT_GE(twenty->coverage, kConfidence);
  // No pair one rank shorter is enough.
  EXPECT_LT(fair_coin(20, twenty->low + 1, twenty->high), kConfidence);
  EXPECT_LT(fair_coin(20, twenty->low, twenty->high - 1), kConfidence);
}

TEST(QuantileRanks, OfAP99NeedEnoughValues) {
  EXPECT_FALSE(quantile_ranks(200, 0.99).has_value());
  const std::optional<RankInterval> ranks = quantile_ranks(10'000, 0.99);
  ASSERT_TRUE(ranks.has_value());
  // Normal approximation: 9900 +- 1.96 sqrt(10000 * 0.99 * 0.01) = 9900 +- 19.5.
  EXPECT_NEAR(static_cast<double>(ranks->low), 9880, 3);
  EXPECT_NEAR(static_cast<double>(ranks->high), 9920, 3);
  EXPECT_GE(ranks->coverage, kConfidence);
}

TEST(Verdict, NeedsAnIntervalWithoutZero) {
  const Estimate up{.n = 5, .mean = 2, .sd = 1, .half_width = 1};
  EXPECT_EQ(verdict(up, Direction::kLargerIsBetter), Verdict::kBetter);
  EXPECT_EQ(verdict(up, Direction::kSmallerIsBetter), Verdict::kWorse);
  const Estimate unclear{.n = 5, .mean = 2, .sd = 1, .half_width = 2};
  EXPECT_EQ(verdict(unclear, Direction::kSmallerIsBetter), Verdict::kNotDistinguishable);
  const Estimate same{.n = 5};
  EXPECT_EQ(verdict(same, Direction::kSmallerIsBetter), Verdict::kNotDistinguishable);
  EXPECT_EQ(verdict_text(Verdict::kNotDistinguishable), "not distinguishable");
}

}  // namespace
}  // namespace routesim::sim
