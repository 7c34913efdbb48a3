// How fast a queue grows, by hand.
#include "sim/observe/queue_growth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <random>
#include <vector>

#include "sim/observe/run_result.h"

namespace routesim::sim {
namespace {

/// Ten requests a second for 90 s, whose time to first token grows by `slope` s/s.
double growth(double slope) {
  QueueGrowth queue;
  for (int i = 0; i <= 900; ++i) {
    const Duration ttft = Duration::from_seconds(10 + slope * 0.1 * i);
    queue.on_answered(Duration::from_seconds(0.1 * i), ttft, ttft);
  }
  return queue.per_second(90);
}

TEST(QueueGrowth, AQueueThatGrowsShows) {
  EXPECT_NEAR(growth(0), 0, 1e-9);
  // At 110 % load the time to first token grows by 0.1 s per second. A line has no random steps.
  EXPECT_NEAR(growth(0.1), 0.1, 3e-3);
  EXPECT_LE(growth(-0.1), 0);
}

TEST(QueueGrowth, TheSpanDoesNotMatter) {
  // The same line over an hour: wider bins, the same slope.
  QueueGrowth queue;
  for (int i = 0; i <= 36'000; ++i)
    queue.on_answered(Duration::from_seconds(0.1 * i), Duration::from_seconds(1 + 0.05 * 0.1 * i),
                      Duration::from_seconds(1));
  EXPECT_NEAR(queue.per_second(3600), 0.05, 2e-3);
}

TEST(QueueGrowth, FewRequestsSayNothing) {
  QueueGrowth queue;
  for (int i = 0; i < 29; ++i)
    queue.on_answered(Duration::from_seconds(i), Duration::from_seconds(i),
                      Duration::from_seconds(i));
  EXPECT_EQ(queue.per_second(28), 0) << "nine requests in the middle third";
  EXPECT_EQ(QueueGrowth().per_second(100), 0);
}

TEST(QueueGrowth, AWalkOfItsStepsIsItsError) {
  // 30 s in parts of 2 s with two requests each. The parts of the middle third wait for 1, 2, 1, 2
  // and 1 s, those of the last for 11, 12, 11, 12 and 11 s. The thirds differ by 10 s, and the
  // steps are +-1 s but for one of 10 s, with a drift of 10/9 s.
  QueueGrowth queue;
  const double waits[] = {1, 2, 1, 2, 1, 11, 12, 11, 12, 11};
  double squares = 0;
  for (int i = 0; i < 10; ++i) {
    for (const double at : {10.5, 11.5})
      queue.on_answered(Duration::from_seconds(at + 2 * i), Duration::from_seconds(waits[i]),
                        Duration::from_seconds(20));
    if (i > 0) squares += std::pow(waits[i] - waits[i - 1] - 10 / 9.0, 2);
  }
  // Five parts a third, nine steps, one drift: the variance of the difference is 5 squares / 8.
  const double expected = (10 - 1.5 * std::sqrt(5 * squares / 8)) / 10;
  EXPECT_LT(expected, 0) << "one jump is no trend";
  EXPECT_NEAR(queue.per_second(30), std::max(0.0, expected), 1e-9);
  for (int i = 0; i < 20; ++i) queue.on_sent(Duration::from_seconds(10.5 + i), 1);
  EXPECT_NEAR(queue.most_per_second(30), (10 + 1.5 * std::sqrt(5 * squares / 8)) / 10, 1e-9);
  EXPECT_EQ(QueueGrowth().most_per_second(30), std::numeric_limits<double>::infinity());
}

/// A stage that sends for `send_s`, with answers of 10 s.
StageResult stage(double send_s, double growth, double most) {
  StageResult s;
  s.requests = s.successes = 100;
  s.first_send = SimTime::zero();
  s.last_send = SimTime::zero() + Duration::from_seconds(send_s);
  s.request_latency.add_nano(10'000'000'000);
  s.queue_growth = growth;
  s.most_growth = most;
  return s;
}

TEST(StageState, SaysHowLongWouldTell) {
  EXPECT_EQ(StageResult().state(), std::nullopt) << "nothing was sent";
  EXPECT_EQ(stage(30, 0, 0.02).state(), StageState::kSteady);
  EXPECT_EQ(stage(300, 0.021, 0.03).state(), StageState::kGrowing);
  EXPECT_EQ(stage(29, 0, 0.01).state(), StageState::kTooShort) << "fewer than three answers";
  EXPECT_DOUBLE_EQ(stage(29, 0, 0.01).telling_s(), 30);
  // An error of 0.04 must fall to 0.02, as one over the root of the length.
  EXPECT_EQ(stage(100, -0.01, 0.04).state(), StageState::kTooShort);
  EXPECT_DOUBLE_EQ(stage(100, -0.01, 0.04).telling_s(), 400);
  EXPECT_DOUBLE_EQ(stage(100, 0.01, 0.04).telling_s(), 900);
  EXPECT_DOUBLE_EQ(stage(100, 0, std::numeric_limits<double>::infinity()).telling_s(), 10'000);
}

/// A stage of `seconds` of Poisson arrivals at `servers` servers of exponential service of 1 s
/// mean, and what its queue says.
double growth_of_queue(int servers, double load, double seconds, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto exponential = [&](double rate) {
    return -std::log((static_cast<double>(random() >> 11U) + 0.5) * 0x1p-53) / rate;
  };
  std::priority_queue<double, std::vector<double>, std::greater<>> free, ends;
  for (int i = 0; i < servers; ++i) free.push(0);
  QueueGrowth queue;
  double at = 0, first = -1, last = 0;
  while ((at += exponential(load * servers)) < seconds) {
    if (first < 0) first = at;
    last = at;
    while (!ends.empty() && ends.top() <= at) ends.pop();
    const double begin = std::max(at, free.top());
    const Duration sent = Duration::from_seconds(at - first);
    free.pop();
    const double end = begin + exponential(1);
    free.push(end);
    ends.push(end);
    queue.on_sent(sent, static_cast<std::int64_t>(ends.size()));
    queue.on_answered(sent, Duration::from_seconds(begin - at), Duration::from_seconds(end - at));
  }
  return queue.per_second(last - first);
}

/// In how many of 40 draws it is called overloaded.
int overloads(int servers, double load, double seconds) {
  int overloaded = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed)
    overloaded += growth_of_queue(servers, load, seconds, seed) > kMostQueueGrowth ? 1 : 0;
  return overloaded;
}

TEST(QueueGrowth, AQueueThatIsNotOverloadedStaysSoForTenTimesTheLength) {
  for (const int servers : {1, 10, 40})
    for (const double load : {0.5, 0.85, 0.95})
      for (const double seconds : {10.0, 30.0, 100.0})
        EXPECT_LE(overloads(servers, load, seconds), load < 0.9 ? 4 : 7)
            << servers << " servers, load " << load << ", " << seconds << " s";
}

TEST(QueueGrowth, AnOverloadedQueueStaysOverloaded) {
  for (const int servers : {10, 40})
    for (const double seconds : {100.0, 300.0})
      for (const double load : {1.3, 2.0, 4.0})
        EXPECT_GE(overloads(servers, load, seconds), 36)
            << servers << " servers, load " << load << ", " << seconds << " s";
}

/// Batches take all requests at once and slow down: no first token waits. `answer` is the latency
/// of a request by when it is sent.
double growth_in_batches(double seconds, const std::function<double(double)>& answer) {
  QueueGrowth queue;
  std::priority_queue<double, std::vector<double>, std::greater<>> ends;
  for (double at = 0; at <= seconds; at += 0.1) {
    while (!ends.empty() && ends.top() <= at) ends.pop();
    ends.push(at + answer(at));
    queue.on_sent(Duration::from_seconds(at), static_cast<std::int64_t>(ends.size()));
    queue.on_answered(Duration::from_seconds(at), Duration::milliseconds(50),
                      Duration::from_seconds(answer(at)));
  }
  return queue.per_second(seconds);
}

TEST(QueueGrowth, RequestsInFlightShowWhatTheFirstTokenHides) {
  // A request that is sent at t s ends at 10 + 1.25 t: four of five are answered, 0.2 are not.
  EXPECT_NEAR(growth_in_batches(300, [](double at) { return 10 + 0.25 * at; }), 0.2, 0.03);
  EXPECT_LT(growth_in_batches(300, [](double) { return 30; }), kMostQueueGrowth);
  EXPECT_LT(growth_in_batches(60, [](double) { return 58; }), kMostQueueGrowth)
      << "none of them is answered while it sends, at any rate";
}

TEST(QueueGrowth, ARateThatRisesIsNoOverload) {
  // Twice the rate in the last third: twice as many are in flight for 5 s each.
  QueueGrowth queue;
  std::vector<double> sent;
  for (double at = 0; at <= 90; at += at < 60 ? 0.2 : 0.1) {
    sent.push_back(at);
    const auto open = std::ranges::count_if(sent, [&](double s) { return s > at - 5; });
    queue.on_sent(Duration::from_seconds(at), open);
    queue.on_answered(Duration::from_seconds(at), Duration::milliseconds(50), Duration::seconds(5));
  }
  EXPECT_LT(queue.per_second(90), kMostQueueGrowth);
}

TEST(QueueGrowth, TwoPercentIsTheMostOfAHealthyStage) { EXPECT_EQ(kMostQueueGrowth, 0.02); }

TEST(QueueGrowth, BeyondTheBoundAStageIsOverloaded) {
  StageResult stage;
  stage.queue_growth = kMostQueueGrowth;
  EXPECT_FALSE(stage.overloaded());
  stage.queue_growth = kMostQueueGrowth + 1e-6;
  EXPECT_TRUE(stage.overloaded());
  stage.queue_growth = 0;
  stage.turned_away = kMostQueueGrowth + 1e-6;
  EXPECT_TRUE(stage.overloaded()) << "no queue grows where requests are turned away";
  EXPECT_EQ(stage.unanswered(), stage.turned_away);
}

}  // namespace
}  // namespace routesim::sim
