// Requests by when they were sent, and the stretches that miss their goals.
#include "sim/observe/timeline.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/rng.h"

namespace routesim::sim {
namespace {

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
  EXPECT_EQ(t.count_missed(), 1);
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

TEST(Timeline, GapsWithoutRequestsAreBridgedForFiveMinutes) {
  Timeline t = judged({20, 10, 0, 0, 10, 20}, {20, 0, 0, 0, 0, 20}, 0.95);
  t.goals->missed = missed_spans(t);
  EXPECT_EQ(t.goals->missed.size(), 1U);
  EXPECT_EQ(t.count_missed(), 2) << "a minute without a request is none in which a goal is missed";
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

}  // namespace
}  // namespace routesim::sim
