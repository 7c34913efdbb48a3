// How fast a queue grows, by hand.
#include "sim/observe/queue_growth.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sim/observe/run_result.h"

namespace routesim::sim {
namespace {

/// Ten requests a second for 90 s, whose time to first token grows by `slope` s/s.
double growth(double slope) {
  QueueGrowth queue;
  for (int i = 0; i <= 900; ++i)
    queue.add(Duration::from_seconds(0.1 * i), Duration::from_seconds(10 + slope * 0.1 * i));
  return queue.per_second(90);
}

TEST(QueueGrowth, AQueueThatGrowsShows) {
  EXPECT_NEAR(growth(0), 0, 1e-9);
  // At 110 % load the time to first token grows by 0.1 s per second. Two standard errors of uniform
  // thirds (sd 30 s * 0.1 / sqrt 12, 300 requests) are taken off: 0.0047 s/s.
  EXPECT_NEAR(growth(0.1), 0.1 - 0.0047, 1e-3);
  EXPECT_LT(growth(-0.1), 0);
}

TEST(QueueGrowth, TheSpanDoesNotMatter) {
  // The same line over an hour: wider bins, the same slope.
  QueueGrowth queue;
  for (int i = 0; i <= 36'000; ++i)
    queue.add(Duration::from_seconds(0.1 * i), Duration::from_seconds(1 + 0.05 * 0.1 * i));
  EXPECT_NEAR(queue.per_second(3600), 0.05, 1e-3);
}

TEST(QueueGrowth, FewRequestsSayNothing) {
  QueueGrowth queue;
  for (int i = 0; i < 29; ++i) queue.add(Duration::from_seconds(i), Duration::from_seconds(i));
  EXPECT_EQ(queue.per_second(28), 0) << "nine requests in the middle third";
  EXPECT_EQ(QueueGrowth().per_second(100), 0);
}

/// 30 s with `n` requests in each of the last two thirds: 1 s to the first token in the middle one,
/// alternately 4 and 6 s in the last one.
double growth_of_thirds(int n) {
  QueueGrowth queue;
  for (int i = 0; i < n; ++i) {
    queue.add(Duration::from_seconds(10.25 + 0.5 * i), Duration::from_seconds(1));
    queue.add(Duration::from_seconds(20.25 + 0.5 * i), Duration::from_seconds(i % 2 == 0 ? 4 : 6));
  }
  return queue.per_second(30);
}

TEST(QueueGrowth, TakesTwoStandardErrorsOff) {
  // The means differ by 5 - 1 s. Ten values of 5 +- 1 s have a variance of 1 s^2, so the standard
  // error of their mean is 1 / sqrt(10 - 1) s.
  EXPECT_NEAR(growth_of_thirds(10), (4 - 2 / 3.0) / 10, 1e-9);
  EXPECT_NEAR(growth_of_thirds(18), (4 - 2 / std::sqrt(17)) / 10, 1e-9);
}

TEST(QueueGrowth, TenRequestsInEachThirdAreTheFewest) {
  EXPECT_EQ(growth_of_thirds(9), 0);
  EXPECT_GT(growth_of_thirds(10), 0);
}

TEST(QueueGrowth, TwoPercentIsTheMostOfAHealthyStage) { EXPECT_EQ(kMostQueueGrowth, 0.02); }

TEST(QueueGrowth, BeyondTheBoundAStageIsOverloaded) {
  StageResult stage;
  stage.queue_growth = kMostQueueGrowth;
  EXPECT_FALSE(stage.overloaded());
  stage.queue_growth = kMostQueueGrowth + 1e-6;
  EXPECT_TRUE(stage.overloaded());
}

}  // namespace
}  // namespace routesim::sim
