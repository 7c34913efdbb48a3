// Stages of loads: their times and counts, and the split of a load into a warm-up and the rest.
#include "workloads/load_stages.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "workloads/groups/group_load.h"
#include "workloads/warmed_load.h"

namespace routesim::workloads {
namespace {

std::vector<double> seconds(ArrivalStream& stream) {
  std::vector<double> out;
  Duration due;
  // Divided, not multiplied by 1e-9: whole seconds stay whole.
  while (stream.next(due)) out.push_back(static_cast<double>(due.ns()) / 1e9);
  return out;
}

RandomStream random_of(std::uint64_t seed) { return {seed, Stream::kArrivals, 0}; }

// Rehearsing 10^12 gaps takes hours: nobody has asked for one yet.
TEST(Arrivals, OfAConstantRateCostNothingUntilTheFirst) {
  for (int i = 0; i < 1000; ++i)
    EXPECT_NE(constant_arrivals(1e6, 1e6, RandomStream(1, Stream::kArrivals)), nullptr);
}

TEST(RequestsOfStage, Truncates) {
  EXPECT_EQ(requests_of_stage(15, 50), 750);
  EXPECT_EQ(requests_of_stage(0.5, 120), 60);
  EXPECT_EQ(requests_of_stage(0.3, 3), 0);
  EXPECT_EQ(requests_of_stage(2.9, 1), 2);
}

TEST(ConstantArrivals, CountAndSpanAreFixed) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const auto t = seconds(*constant_arrivals(15, 50, random_of(seed)));
    ASSERT_EQ(t.size(), 750U);
    EXPECT_EQ(t.back(), 50.0) << "seed " << seed;
    EXPECT_TRUE(std::is_sorted(t.begin(), t.end()));
    EXPECT_GT(t.front(), 0);
  }
}

TEST(ConstantArrivals, AreUniformOrderStatistics) {
  // All but the last arrival of N are uniform on (0, duration): mean d/2, and arrival k of N has
  // mean d k / N.
  double first = 0, all = 0;
  constexpr int kRuns = 2000, kN = 20;
  for (std::uint64_t seed = 1; seed <= kRuns; ++seed) {
    const auto t = seconds(*constant_arrivals(2, 10, random_of(seed)));
    first += t[0];
    for (int i = 0; i + 1 < kN; ++i) all += t[static_cast<std::size_t>(i)];
  }
  EXPECT_NEAR(first / kRuns, 10.0 / kN, 0.05);
  EXPECT_NEAR(all / kRuns / (kN - 1), 5.0, 0.05);
}

TEST(PoissonArrivals, CountIsFixedAndEverySecondEndsOnItsBoundary) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const auto t = seconds(*poisson_arrivals(3, 20, random_of(seed)));
    ASSERT_EQ(t.size(), 60U);
    EXPECT_TRUE(std::is_sorted(t.begin(), t.end()));
    // The last arrival of every second but the last sits exactly on its end.
    for (std::size_t i = 0; i + 1 < t.size(); ++i) {
      if (std::ceil(t[i]) == std::ceil(t[i + 1])) continue;
      EXPECT_EQ(t[i], std::ceil(t[i])) << "seed " << seed << " arrival " << i;
    }
  }
}

TEST(ConstantArrivals, ManyArrivalsAreDrawnTwiceAndStillEndExactly) {
  // Beyond 65,536 the gaps are not kept; the law is the same.
  const auto t = seconds(*constant_arrivals(1000, 100, random_of(3)));
  ASSERT_EQ(t.size(), 100'000U);
  EXPECT_EQ(t.back(), 100.0);
  EXPECT_TRUE(std::is_sorted(t.begin(), t.end()));
  EXPECT_NEAR(t[50'000], 50, 1);
  // One second of a fast Poisson stage, too.
  const auto p = seconds(*poisson_arrivals(100'000, 2, random_of(3)));
  ASSERT_EQ(p.size(), 200'000U);
  EXPECT_TRUE(std::is_sorted(p.begin(), p.end()));
  EXPECT_NE(std::find(p.begin(), p.end(), 1.0), p.end());
}

TEST(PoissonArrivals, SpanIsRandomAroundTheDuration) {
  double sum = 0, squares = 0;
  constexpr int kRuns = 400;
  for (std::uint64_t seed = 1; seed <= kRuns; ++seed) {
    const auto t = seconds(*poisson_arrivals(10, 20, random_of(seed)));
    sum += t.back();
    squares += t.back() * t.back();
  }
  const double mean = sum / kRuns;
  const double deviation = std::sqrt(squares / kRuns - mean * mean);
  EXPECT_NEAR(mean, 20, 0.5);
  // 200 arrivals at 10/s: sqrt(200)/10 = 1.41 s.
  EXPECT_NEAR(deviation, 1.41, 0.25);
}

TEST(PoissonArrivals, CountsPerSecondArePoisson) {
  const auto t = seconds(*poisson_arrivals(4, 20'000, random_of(5)));
  std::vector<int> per_second(static_cast<std::size_t>(t.back()) + 2);
  for (const double x : t) ++per_second[static_cast<std::size_t>(std::ceil(x)) - 1];
  per_second.resize(static_cast<std::size_t>(t.back()) - 1);
  double mean = 0, variance = 0, empty = 0;
  for (const int n : per_second) mean += n;
  mean /= static_cast<double>(per_second.size());
  for (const int n : per_second) {
    variance += (n - mean) * (n - mean);
    empty += n == 0;
  }
  variance /= static_cast<double>(per_second.size());
  EXPECT_NEAR(mean, 4, 0.06);
  EXPECT_NEAR(variance, 4, 0.2);
  EXPECT_NEAR(empty / static_cast<double>(per_second.size()), std::exp(-4.0), 0.004);
}

TEST(Arrivals, StagesDoNotDependOnEachOther) {
  // The entity of the stream is the stage, so reading one stage changes nothing in another.
  auto alone = poisson_arrivals(5, 10, RandomStream(9, Stream::kArrivals, 1));
  const auto want = seconds(*alone);
  auto before = poisson_arrivals(50, 10, RandomStream(9, Stream::kArrivals, 0));
  seconds(*before);
  EXPECT_EQ(seconds(*poisson_arrivals(5, 10, RandomStream(9, Stream::kArrivals, 1))), want);
}

TEST(VllmArrivals, LastArrivalIsExactlyRequestsOverRate) {
  for (const double burstiness : {0.3, 1.0, 4.0}) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      const auto t = seconds(
          *vllm_arrivals({.requests = 400, .rate = 20, .burstiness = burstiness}, random_of(seed)));
      ASSERT_EQ(t.size(), 400U);
      EXPECT_EQ(t.back(), 20.0);
      EXPECT_TRUE(std::is_sorted(t.begin(), t.end()));
      EXPECT_GE(t.front(), 0);
    }
  }
}

TEST(VllmArrivals, GapsAreGammaWithTheGivenShape) {
  // Coefficient of variation of Gamma(b, .) is 1 / sqrt(b).
  for (const double burstiness : {0.5, 1.0, 4.0}) {
    const auto t = seconds(
        *vllm_arrivals({.requests = 100'000, .rate = 10, .burstiness = burstiness}, random_of(3)));
    double squares = 0;
    for (std::size_t i = 1; i < t.size(); ++i) squares += std::pow(t[i] - t[i - 1] - 0.1, 2);
    EXPECT_NEAR(std::sqrt(squares / static_cast<double>(t.size())) / 0.1, 1 / std::sqrt(burstiness),
                0.02);
  }
}

TEST(VllmArrivals, InfiniteBurstinessIsAnEvenSpacing) {
  const auto t = seconds(*vllm_arrivals(
      {.requests = 10, .rate = 2, .burstiness = std::numeric_limits<double>::infinity()},
      random_of(1)));
  for (std::size_t i = 0; i < t.size(); ++i)
    EXPECT_DOUBLE_EQ(t[i], 0.5 * static_cast<double>(i + 1));
}

TEST(VllmArrivals, InfiniteRateIsAllAtOnce) {
  const auto t = seconds(*vllm_arrivals(
      {.requests = 5, .rate = std::numeric_limits<double>::infinity()}, random_of(1)));
  EXPECT_EQ(t, std::vector<double>(5, 0.0));
}

TEST(VllmArrivals, LegacyStartsAtZeroAndDoesNotRescale) {
  bool rescaled = true;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const auto t =
        seconds(*vllm_arrivals({.requests = 100, .rate = 10, .legacy = true}, random_of(seed)));
    EXPECT_EQ(t.front(), 0.0);
    rescaled = rescaled && (t.back() == 10.0);
  }
  EXPECT_FALSE(rescaled);
}

TEST(VllmArrivals, RampUpFollowsItsRates) {
  const VllmArrivals linear{
      .requests = 11, .ramp_up = RampUp::kLinear, .ramp_start = 1, .ramp_end = 11};
  EXPECT_DOUBLE_EQ(ramp_rate(linear, 0), 1);
  EXPECT_DOUBLE_EQ(ramp_rate(linear, 5), 6);
  EXPECT_DOUBLE_EQ(ramp_rate(linear, 10), 11);
  VllmArrivals exponential = linear;
  exponential.ramp_up = RampUp::kExponential;
  exponential.ramp_start = 2;
  exponential.ramp_end = 32;
  EXPECT_NEAR(ramp_rate(exponential, 5), 8, 1e-12);
  // Evenly spaced gaps make the due times the sum of 1 / rate_j.
  VllmArrivals even = linear;
  even.burstiness = std::numeric_limits<double>::infinity();
  const auto t = seconds(*vllm_arrivals(even, random_of(1)));
  double sum = 0;
  for (std::int64_t j = 0; j < 11; ++j) {
    sum += 1 / ramp_rate(even, j);
    EXPECT_NEAR(t[static_cast<std::size_t>(j)], sum, 1e-8);
  }
  // The legacy generator has the same gaps, each behind its request.
  even.legacy = true;
  const auto legacy = seconds(*vllm_arrivals(even, random_of(1)));
  EXPECT_EQ(legacy[0], 0);
  for (std::size_t j = 1; j < 11; ++j) EXPECT_NEAR(legacy[j], t[j - 1], 1e-8);
}

TEST(ExponentialArrivals, OfAnAbsurdRateStayWithinACentury) {
  // Gaps of 10^300 s: the load is refused later, and until then its times must not overflow.
  for (const double rate : {1e-300, 1e-10, 1e-8}) {
    const auto t = seconds(*exponential_arrivals(rate, 5, random_of(4)));
    ASSERT_EQ(t.size(), 5U);
    EXPECT_TRUE(std::is_sorted(t.begin(), t.end()));
    EXPECT_GT(t.front(), 0);
    EXPECT_LE(t.back(), 100.0 * 365 * 86'400);
  }
}

TEST(ExponentialArrivals, HaveTheRate) {
  const auto t = seconds(*exponential_arrivals(1000, 200'000, random_of(4)));
  EXPECT_EQ(t.size(), 200'000U);
  EXPECT_NEAR(t.back(), 200, 2);
}

// The split of a load into a warm-up and the rest.

std::unique_ptr<LoadGenerator> grouped() {
  Diagnostics found;
  return make_load_generator(GroupLoadConfig{.requests = 1000, .rate = 10}, {}, {}, found);
}

struct DueRequest {
  SimTime due;
  std::uint32_t stage = 0;
};

/// All requests, each answered at once.
std::vector<DueRequest> answer_all(LoadGenerator& load) {
  std::vector<DueRequest> sent;
  std::vector<Request> due;
  while (!load.finished()) {
    const SimTime now = load.next_action();
    due.clear();
    load.advance(now, due);
    for (const Request& r : due) {
      sent.push_back({r.due, r.stage.value()});
      load.on_completed(r, Outcome::kSuccess, now);
    }
  }
  return sent;
}

TEST(WarmedLoad, SplitsItsLastStageByWhenRequestsAreDue) {
  const std::unique_ptr<LoadGenerator> plain = grouped();
  const std::unique_ptr<LoadGenerator> warmed = with_warm_up(grouped(), Duration::seconds(30));
  const std::vector<StageInfo>& stages = warmed->stages();
  ASSERT_EQ(stages.size(), 2U);
  EXPECT_EQ(stages[0].name, "warm-up");
  EXPECT_FALSE(stages[0].reported);
  EXPECT_DOUBLE_EQ(stages[0].duration_s, 30);
  EXPECT_EQ(stages[1].name, plain->stages()[0].name);
  EXPECT_TRUE(stages[1].reported);
  EXPECT_DOUBLE_EQ(stages[1].duration_s, 70);
  EXPECT_EQ(stages[1].requested_rate, 10);

  const std::vector<DueRequest> same = answer_all(*plain), split = answer_all(*warmed);
  ASSERT_EQ(split.size(), same.size());
  std::size_t warm = 0;
  for (std::size_t i = 0; i < split.size(); ++i) {
    EXPECT_EQ(split[i].due, same[i].due) << "times stay";
    const bool is_warm = split[i].due < SimTime::zero() + Duration::seconds(30);
    EXPECT_EQ(split[i].stage, is_warm ? 0U : 1U);
    warm += is_warm ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(warm), 300, 60);
}

}  // namespace
}  // namespace routesim::workloads
