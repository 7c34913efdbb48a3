// Percentiles: exact while samples are kept, within 0.2 % in the histogram.
#include "sim/statistics/samples.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/rng.h"

namespace routesim::sim {
namespace {

double numpy_percentile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double rank = q / 100 * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(rank);
  const std::size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (values[high] - values[low]) * (rank - static_cast<double>(low));
}

TEST(Samples, SmallSetsAreExact) {
  Samples s;
  for (const double v : {0.4, 0.1, 0.3, 0.2}) s.add(v);
  EXPECT_DOUBLE_EQ(s.percentile(50), 0.25);
  EXPECT_DOUBLE_EQ(s.percentile(0), 0.1);
  EXPECT_DOUBLE_EQ(s.percentile(100), 0.4);
  EXPECT_DOUBLE_EQ(s.percentile(75), 0.325);
  EXPECT_DOUBLE_EQ(s.mean(), 0.25);
  EXPECT_NEAR(s.stddev(), 0.1118034, 1e-7);
}

TEST(Samples, EmptySetsAreZero) {
  const Samples s;
  EXPECT_EQ(s.percentile(99), 0);
  EXPECT_EQ(s.mean(), 0);
  EXPECT_EQ(s.count(), 0);
}

TEST(Samples, HistogramsAreWithinTwoPerMille) {
  for (const double scale : {1e-4, 0.03, 2.0, 4000.0}) {
    RandomStream random(7, Stream::kTest);
    Samples exact, histogram(100);
    std::vector<double> values;
    for (int i = 0; i < 20'000; ++i) {
      const double v = scale * random.exponential(1);
      exact.add(v);
      histogram.add(v);
      values.push_back(v);
    }
    // Percentiles around which samples lie closer than a bucket is wide.
    for (const double q : {10.0, 25.0, 50.0, 75.0, 90.0}) {
      const double truth = numpy_percentile(values, q);
      EXPECT_NEAR(exact.percentile(q), truth, 1e-9 + truth * 1e-6) << q;
      EXPECT_NEAR(histogram.percentile(q), truth, 2e-9 + truth * 0.002) << q << " at " << scale;
    }
    EXPECT_DOUBLE_EQ(exact.sum(), histogram.sum());
    EXPECT_EQ(exact.max(), histogram.max());
  }
}

// Two neighbouring buckets with one and a hundred samples: just below the first sample of the
// second a percentile is in between, not above.
TEST(Samples, HistogramPercentilesNeverFall) {
  Samples s(0);
  s.add_nano(1'024'000, 1);
  s.add_nano(1'025'024, 100);
  s.add_nano(9'000'000, 1);
  double below = s.min();
  for (double q = 0; q <= 100; q += 0.01) {
    const double value = s.percentile(q);
    EXPECT_GE(value, below) << q;
    below = value;
  }
  EXPECT_GE(s.max(), below);
}

TEST(Samples, MergingInAnyOrderGivesTheSame) {
  RandomStream random(9, Stream::kTest);
  Samples parts[3] = {Samples(1000), Samples(1000), Samples(1000)};
  for (int i = 0; i < 1500; ++i) parts[random.below(3)].add(random.uniform());
  parts[1].add_nano(5'000'000, 40);
  Samples forward(1000), backward(1000);
  for (int i = 0; i < 3; ++i) forward.merge(parts[i]);
  for (int i = 2; i >= 0; --i) backward.merge(parts[i]);
  EXPECT_EQ(forward.count(), 1540);
  EXPECT_EQ(forward.sum(), backward.sum());
  for (const double q : {5.0, 50.0, 95.0}) EXPECT_EQ(forward.percentile(q), backward.percentile(q));
}

TEST(Samples, WeightsCountLikeRepetitions) {
  Samples weighted, single(0);
  weighted.add_nano(1'000'000, 3);
  weighted.add_nano(9'000'000, 1);
  for (const double v : {0.001, 0.001, 0.001, 0.009}) single.add(v);
  EXPECT_EQ(weighted.count(), 4);
  EXPECT_EQ(weighted.sum(), single.sum());
  EXPECT_EQ(weighted.percentile(50), single.percentile(50));
}

TEST(Samples, ManyAtOnceAreTheSameAsOneByOne) {
  RandomStream random(11, Stream::kTest);
  Samples one_by_one, at_once;
  for (int round = 0; round < 200; ++round) {
    std::vector<std::int64_t> nanos(random.below(20));
    for (std::int64_t& nano : nanos) nano = static_cast<std::int64_t>(random.below(1 << 26));
    const auto count = static_cast<std::int64_t>(random.below(4));
    for (const std::int64_t nano : nanos) one_by_one.add_nano(nano, count);
    at_once.add_nanos(nanos, count);
  }
  EXPECT_EQ(at_once.count(), one_by_one.count());
  EXPECT_EQ(at_once.sum(), one_by_one.sum());
  EXPECT_EQ(at_once.min(), one_by_one.min());
  EXPECT_EQ(at_once.max(), one_by_one.max());
  for (const double q : {0.0, 1.0, 50.0, 99.0, 100.0})
    EXPECT_EQ(at_once.percentile(q), one_by_one.percentile(q)) << q;
}

}  // namespace
}  // namespace routesim::sim
