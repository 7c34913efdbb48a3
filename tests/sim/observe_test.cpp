// The counts of observers: percentiles, servers and requests over time, and queues that grow.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <random>
#include <vector>

#include "base/rng.h"
#include "sim/observe/queue_growth.h"
#include "sim/observe/run_result.h"
#include "sim/observe/time_series.h"
#include "sim/observe/timeline.h"
#include "sim/simulation.h"
#include "sim/statistics/samples.h"
#include "tests/sim/sim_fixture.h"
#include "tests/sim/swarm.h"
#include "tests/sim/swarm_load.h"

namespace routesim::sim {
namespace {

// Percentiles: exact while samples are kept, within 0.2 % in the histogram.

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

namespace routesim::sim::testing {
namespace {

// Every server over time: hand-made numbers, halving, and that watching changes nothing.

RunResult run(const RunPlan& plan, std::uint64_t seed, std::vector<Observer*> observers,
              bool reference = false) {
  Diagnostics found;
  Simulation simulation(plan,
                        {.seed = seed,
                         .reference = reference,
                         .keep_requests = true,
                         .check = true,
                         .observers = std::move(observers)},
                        found);
  EXPECT_FALSE(found.has_errors());
  return simulation.run();
}

/// One server with 10 ms steps, no overheads, round robin.
RunPlan one_server(const SwarmLoadOptions& load) {
  RunPlan plan;
  plan.scenario.routing.balancer = BalancerKind::kRoundRobin;
  ResolvedPool& pool = plan.pools.emplace_back();
  pool.config.name = "solo";
  pool.rules = plain_rules(101);
  pool.latency = std::make_shared<FixedLatency>(10);
  plan.make_load = [load](std::uint64_t s, Diagnostics&) {
    return std::make_unique<SwarmLoad>(load, s);
  };
  return plan;
}

TEST(TimeSeries, CountsWhatAReaderCanCount) {
  // One request at 0 that takes `output` steps of 10 ms.
  SwarmLoadOptions load;
  load.users = load.turns = 1;
  load.output = 100;
  const RunPlan plan = one_server(load);
  TimeSeriesRecorder recorder(Duration::milliseconds(25));
  const RunResult result = run(plan, 3, {&recorder});
  const std::int64_t output = result.requests[0].output_tokens;
  const std::int64_t prompt = result.requests[0].prompt_tokens;
  ASSERT_GT(output, 8);
  const TimeSeries series = recorder.take();
  ASSERT_EQ(series.endpoints.size(), 1U);
  const EndpointSeries& e = series.endpoints[0];
  EXPECT_EQ(e.name, "solo-0");
  EXPECT_EQ(e.usable_blocks, 100);
  // Points at 0, 25, 50 … and none after the end at output * 10 ms.
  EXPECT_EQ(static_cast<std::int64_t>(series.size()), output * 10 / 25 + 1);
  EXPECT_EQ(e.points[0].running, 0);
  EXPECT_EQ(series.cluster[0].sent, 0);
  for (std::size_t i = 1; i + 1 < series.size(); ++i) {
    EXPECT_EQ(e.points[i].running, 1);
    EXPECT_EQ(e.points[i].in_flight, 1);
    EXPECT_EQ(e.points[i].waiting, 0);
    const std::int64_t ended = static_cast<std::int64_t>(i) * 25 / 10;
    EXPECT_EQ(e.points[i].steps, ended);
    // At 25 ms two steps have ended: the third computes the first generated token's KV.
    EXPECT_EQ(e.points[i].used_blocks, (prompt + ended + 15) / 16);
    EXPECT_DOUBLE_EQ(e.kv_cache_usage(i), static_cast<double>(e.points[i].used_blocks) / 100);
    EXPECT_NEAR(e.step_time_s(i), 0.010, 1e-12);
    EXPECT_EQ(series.cluster[i].outstanding, 1);
    EXPECT_EQ(series.cluster[i].unrouted, 0);
  }
  EXPECT_DOUBLE_EQ(e.prefix_hit_rate(1), 0) << "looked up once, found nothing";
  EXPECT_LT(e.prefix_hit_rate(2), 0) << "nothing looked up";
  EXPECT_LT(e.step_time_s(0), 0);
}

void expect_same(const EndpointPoint& a, const EndpointPoint& b) {
  EXPECT_EQ(a.waiting, b.waiting);
  EXPECT_EQ(a.running, b.running);
  EXPECT_EQ(a.in_flight, b.in_flight);
  EXPECT_EQ(a.used_blocks, b.used_blocks);
  EXPECT_EQ(a.query_tokens, b.query_tokens);
  EXPECT_EQ(a.hit_tokens, b.hit_tokens);
  EXPECT_EQ(a.steps, b.steps);
  EXPECT_EQ(a.busy, b.busy);
}

void expect_same(const TimeSeries& a, const TimeSeries& b) {
  ASSERT_EQ(a.interval, b.interval);
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t e = 0; e < a.endpoints.size(); ++e)
    for (std::size_t i = 0; i < a.size(); ++i)
      expect_same(a.endpoints[e].points[i], b.endpoints[e].points[i]);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a.cluster[i].done, b.cluster[i].done);
}

TEST(TimeSeries, HalvingIsTheDoubledGrid) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const RunPlan plan = swarm_plan(seed);
    SCOPED_TRACE(describe_plan(plan));
    TimeSeriesRecorder fine(Duration::milliseconds(3), 16);
    run(plan, seed, {&fine});
    EXPECT_LT(fine.series().size(), 16U);
    TimeSeriesRecorder coarse(fine.series().interval, 1'000'000);
    run(plan, seed, {&coarse});
    expect_same(fine.series(), coarse.series());
    if (HasFailure()) return;
  }
}

TEST(TimeSeries, WatchingChangesNothingAndFastEqualsSlow) {
  for (std::uint64_t seed = 100; seed < 250; ++seed) {
    const RunPlan plan = swarm_plan(seed);
    SCOPED_TRACE(describe_plan(plan));
    TimeSeriesRecorder fast(Duration::microseconds(777)), slow(Duration::microseconds(777));
    const RunResult unwatched = run(plan, seed, {});
    const RunResult watched = run(plan, seed, {&fast});
    run(plan, seed, {&slow}, true);
    ASSERT_EQ(unwatched.fingerprint, watched.fingerprint);
    ASSERT_EQ(unwatched.end, watched.end);
    ASSERT_EQ(unwatched.summary.inter_token_latency.sum(),
              watched.summary.inter_token_latency.sum());
    expect_same(fast.series(), slow.series());
    // Nothing is left in flight at an end without timeouts or rejections in progress.
    const ClusterPoint& last = fast.series().cluster.back();
    EXPECT_EQ(last.outstanding, last.sent - last.done);
    for (const ClusterPoint& p : fast.series().cluster) ASSERT_GE(p.unrouted, 0);
    for (const EndpointSeries& e : fast.series().endpoints)
      for (const EndpointPoint& p : e.points) ASSERT_GE(p.in_flight, 0);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace routesim::sim::testing

namespace routesim::sim {
namespace {

// Requests by when they were sent, and the stretches that miss their goals.

SimTime at_s(double s) { return SimTime::zero() + Duration::from_seconds(s); }

TEST(Timeline, CountsByTheBinOfTheSend) {
  TimelineCounter c;
  for (const double s : {0.0, 14.9, 15.0, 31.0}) c.on_sent(at_s(s));
  c.on_done(at_s(0), at_s(40), true, true);
  c.on_done(at_s(14.9), at_s(16), true, false);
  c.on_done(at_s(15), at_s(90), false, true);
  const Timeline t = c.timeline();
  EXPECT_EQ(t.bin_s, 15);
  EXPECT_EQ(t.sent, (std::vector<std::int64_t>{2, 1, 1}));
  EXPECT_EQ(t.answered, (std::vector<std::int64_t>{2, 0, 0}));
  EXPECT_EQ(t.failed, (std::vector<std::int64_t>{0, 1, 0}));
  EXPECT_EQ(c.good(), (std::vector<std::int64_t>{1, 0, 0}));
  EXPECT_EQ(c.last_miss_s({.from_s = 0, .to_s = 15}), 16);
  EXPECT_EQ(c.last_miss_s({.from_s = 15, .to_s = 30}), 90);
  EXPECT_EQ(t.minutes(), 0.75);
}

// 1,500 bins of 15 s hold 22,500 s; a send at that second makes them 30 s wide.
TEST(Timeline, MergesPairsOfBins) {
  TimelineCounter c;
  for (const double s : {1.0, 16.0, 31.0, 22'499.0}) c.on_sent(at_s(s));
  EXPECT_EQ(c.timeline().sent.size(), 1'500U);
  c.on_sent(at_s(22'500));
  const Timeline t = c.timeline();
  EXPECT_EQ(t.bin_s, 30);
  ASSERT_EQ(t.sent.size(), 751U);
  EXPECT_EQ(t.sent[0], 2);
  EXPECT_EQ(t.sent[1], 1);
  EXPECT_EQ(t.sent[749], 1);
  EXPECT_EQ(t.sent[750], 1);
}

// Whatever the order, the counts are those that the last width would have made from the start.
TEST(Timeline, MergedCountsAreExact) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomStream random(seed, Stream::kTest, 0);
    const double span = 1e3 * std::pow(2.0, static_cast<double>(random.below(12)));
    TimelineCounter c;
    std::vector<double> times;
    for (int i = 0; i < 2'000; ++i) {
      times.push_back(span * random.uniform());
      c.on_sent(at_s(times.back()));
      c.on_done(at_s(times[random.below(times.size())]), at_s(span), true, i % 3 == 0);
    }
    const TimelineCounter shown = c.folded();
    const Timeline t = shown.timeline();
    ASSERT_LE(t.sent.size(), TimelineCounter::kMostBins);
    std::vector<std::int64_t> expected(t.sent.size());
    for (const double s : times)
      ++expected[static_cast<std::size_t>(at_s(s).ns() / Duration::from_seconds(t.bin_s).ns())];
    EXPECT_EQ(t.sent, expected);
    const std::vector<std::int64_t> good = shown.good();
    EXPECT_EQ(std::accumulate(t.answered.begin(), t.answered.end(), 0), 2'000);
    EXPECT_EQ(std::accumulate(good.begin(), good.end(), 0), 667);
  }
}

// A run of 30 days is shown in bins of half an hour or so, and judged by the minute.
TEST(Timeline, LongRunsAreJudgedByTheMinute) {
  TimelineCounter c;
  for (int minute = 0; minute < 30 * 1'440; ++minute)
    for (int i = 0; i < 20; ++i) {
      const SimTime sent = at_s(60.0 * minute + i);
      c.on_sent(sent);
      c.on_done(sent, sent, true, minute != 61);
    }
  Timeline t = c.timeline();
  EXPECT_EQ(t.bin_s, 60);
  t.goals = Timeline::Goals{.good = c.good(), .share = 0.95};
  t.goals->missed = missed_spans(t);
  ASSERT_EQ(t.goals->missed.size(), 1U);
  EXPECT_EQ(t.goals->missed[0].from_s, 3'660);
  EXPECT_EQ(std::ranges::count(t.missed_bins(), true), 1);
  EXPECT_EQ(c.folded().timeline().bin_s, 1'920);
  EXPECT_EQ(c.folded().timeline().sent.front(), 32 * 20);
}

Timeline judged(std::vector<std::int64_t> sent, std::vector<std::int64_t> good, double share) {
  Timeline t{.bin_s = 60, .answered = sent, .failed = std::vector<std::int64_t>(sent.size())};
  t.sent = std::move(sent);
  t.goals = Timeline::Goals{.good = std::move(good), .share = share};
  return t;
}

TEST(Timeline, JoinsAdjacentMisses) {
  const Timeline t = judged({100, 100, 100, 100, 100, 100}, {100, 80, 60, 95, 10, 100}, 0.95);
  const std::vector<MissedSpan> found = missed_spans(t);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].from_s, 60);
  EXPECT_EQ(found[0].to_s, 180);
  EXPECT_EQ(found[0].sent, 200);
  EXPECT_EQ(found[0].good, 140);
  EXPECT_EQ(found[1].from_s, 240);
  EXPECT_EQ(found[1].to_s, 300);
}

// One request a minute, in the last of four bins: each minute counts as a whole.
TEST(Timeline, MinutesAreMissedAsAWhole) {
  Timeline t = judged({0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1}, {}, 0.95);
  t.bin_s = 15;
  t.goals->good.resize(t.sent.size());
  t.goals->missed = missed_spans(t);
  ASSERT_EQ(t.goals->missed.size(), 1U);
  // From the first of them on, 45 s after the start, to the end.
  EXPECT_EQ(std::ranges::count(t.missed_bins(), true), 17);
}

TEST(Timeline, GapsWithoutRequestsAreBridgedForFiveMinutes) {
  Timeline t = judged({20, 10, 0, 0, 10, 20}, {20, 0, 0, 0, 0, 20}, 0.95);
  t.goals->missed = missed_spans(t);
  EXPECT_EQ(t.goals->missed.size(), 1U);
  EXPECT_EQ(std::ranges::count(t.missed_bins(), true), 2)
      << "a minute without a request is none in which a goal is missed";
  EXPECT_EQ(t.minutes(), 6);
  const std::vector<std::int64_t> none(8);
  EXPECT_EQ(missed_spans(judged({10, 0, 0, 0, 0, 0, 0, 10}, none, 0.95)).size(), 2U);
}

// Of 5 requests 3 good ones have the chance 1 - P(4) - P(5) = 0.0226 at 95 % and 2 good ones have
// 0.00116; 1 good one has 0.00003. Four requests are too few whatever becomes of them.
TEST(Timeline, ChanceMakesNoMiss) {
  const auto misses = [](std::int64_t sent, std::int64_t good) {
    return !missed_spans(judged({sent}, {good}, 0.95)).empty();
  };
  EXPECT_FALSE(misses(5, 3));
  EXPECT_FALSE(misses(5, 2));
  EXPECT_TRUE(misses(5, 1));
  EXPECT_FALSE(misses(4, 0));
  // A large bin just below: 949 of 1,000 is chance, 920 is not (4.4 standard deviations).
  EXPECT_FALSE(misses(1'000, 949));
  EXPECT_TRUE(misses(1'000, 920));
  EXPECT_TRUE(misses(100'000'000, 94'900'000)) << "46 standard deviations";
  EXPECT_FALSE(misses(100'000'000, 94'999'000)) << "half a standard deviation";
  EXPECT_FALSE(missed_spans(judged({50}, {49}, 0.95)).size());
  EXPECT_TRUE(missed_spans(judged({50}, {49}, 1)).size()) << "all of them were asked for";
}

// At a share that is just met, a day of 1,440 bins shows hardly any miss.
TEST(Timeline, ADayAtTheShareShowsHardlyAMiss) {
  std::size_t found = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    RandomStream random(seed, Stream::kTest, 1);
    std::vector<std::int64_t> sent(1'440, 40), good(1'440);
    for (std::int64_t& g : good)
      for (int i = 0; i < 40; ++i) g += random.uniform() < 0.97 ? 1 : 0;
    found += missed_spans(judged(sent, good, 0.95)).size();
  }
  EXPECT_LE(found, 20U) << "seeds 1 to 20";
}

// How fast a queue grows, by hand.

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
