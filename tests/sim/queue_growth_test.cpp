// How fast a queue grows, by hand.
#include "sim/observe/queue_growth.h"

#include <gtest/gtest.h>

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

TEST(QueueGrowth, BeyondTheBoundAStageIsOverloaded) {
  StageResult stage;
  stage.queue_growth = kMostQueueGrowth;
  EXPECT_FALSE(stage.overloaded());
  stage.queue_growth = kMostQueueGrowth + 1e-6;
  EXPECT_TRUE(stage.overloaded());
}

}  // namespace
}  // namespace routesim::sim
