#include "base/rng.h"

#include <gtest/gtest.h>

#include <array>

namespace routesim {
namespace {

TEST(RandomStream, IsAFunctionOfSeedStreamAndEntity) {
  RandomStream a(7, Stream::kTest, 3), b(7, Stream::kTest, 3);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.next(), b.next());
  EXPECT_NE(RandomStream(7, Stream::kTest, 3).next(), RandomStream(8, Stream::kTest, 3).next());
  EXPECT_NE(RandomStream(7, Stream::kTest, 3).next(), RandomStream(7, Stream::kTest, 4).next());
  EXPECT_NE(RandomStream(7, Stream::kTest, 3).next(), RandomStream(7, Stream::kPicker, 3).next());
}

TEST(RandomStream, MatchesThePublishedPhiloxVector) {
  // Known answer of Random123: philox4x32-10, counter 0, key 0, starts 6627e8d5 e169c58d.
  EXPECT_EQ(RandomStream(0, static_cast<Stream>(0), 0).next(), 0xe169c58d6627e8d5ULL);
}

struct Moments {
  double mean = 0, variance = 0;
};
template <class Draw>
Moments moments(Draw draw, int n = 200'000) {
  double sum = 0, squares = 0;
  for (int i = 0; i < n; ++i) {
    const double x = draw();
    sum += x;
    squares += x * x;
  }
  const double mean = sum / n;
  return {mean, squares / n - mean * mean};
}

TEST(RandomStream, DistributionsHaveTheirMoments) {
  RandomStream r(1, Stream::kTest);
  const Moments exponential = moments([&] { return r.exponential(2.0); });
  EXPECT_NEAR(exponential.mean, 2.0, 0.03);
  EXPECT_NEAR(exponential.variance, 4.0, 0.12);
  const Moments normal = moments([&] { return r.normal(); });
  EXPECT_NEAR(normal.mean, 0.0, 0.01);
  EXPECT_NEAR(normal.variance, 1.0, 0.02);
  for (const double mean : {0.5, 7.0, 60.0, 900.0}) {
    const Moments poisson = moments([&] { return static_cast<double>(r.poisson(mean)); });
    EXPECT_NEAR(poisson.mean, mean, 0.02 * mean + 0.01) << mean;
    EXPECT_NEAR(poisson.variance, mean, 0.03 * mean + 0.01) << mean;
  }
  for (const double shape : {0.3, 1.0, 5.0}) {
    const Moments gamma = moments([&] { return r.gamma(shape, 2.0); });
    EXPECT_NEAR(gamma.mean, shape * 2, 0.03 * shape * 2) << shape;
    EXPECT_NEAR(gamma.variance, shape * 4, 0.06 * shape * 4) << shape;
  }
}

TEST(RandomStream, BelowIsUniform) {
  RandomStream r(1, Stream::kTest, 9);
  std::array<int, 7> counts{};
  for (int i = 0; i < 70'000; ++i) ++counts[r.below(7)];
  double chi2 = 0;
  for (const int c : counts) chi2 += (c - 10'000.0) * (c - 10'000.0) / 10'000.0;
  EXPECT_LT(chi2, 22.5);  // 99.9 % quantile of chi-square with 6 degrees of freedom
}

}  // namespace
}  // namespace routesim
