#include "workloads/sweep.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "tests/workloads/inference_perf_ladder.h"
#include "workloads/sessions/session_client.h"

namespace routesim::workloads::inference_perf {
namespace {

Duration ms(std::int64_t n) { return Duration::milliseconds(n); }

/// In flight: 10 from 1.2 s on, 7 from 2.1 s, 3 from 2.6 s, none from 4 s. The samples of half
/// seconds are therefore 0 0 0 10 10 7 3 3 3 and, at 4.5 s, 0.
std::vector<double> rates(Duration until, Duration end) {
  DrainProbe probe(until);
  probe.see(ms(1200), 10);
  probe.see(ms(2100), 7);
  probe.see(ms(2600), 3);
  probe.see(ms(4000), 0);
  return probe.drain_rates(end);
}

TEST(DrainProbe, CountsWhatEachHalfSecondDrains) {
  EXPECT_EQ(rates(Duration::seconds(60), Duration::seconds(5)), (std::vector<double>{6, 8, 6}));
}

TEST(DrainProbe, TakesNoSampleAtTheEndOrAfterTheTimeout) {
  EXPECT_EQ(rates(Duration::seconds(60), ms(4500)), (std::vector<double>{6, 8}));
  EXPECT_EQ(rates(Duration::seconds(3), Duration::seconds(5)), (std::vector<double>{6}));
}

TEST(PercentileOf, InterpolatesBetweenValues) {
  EXPECT_DOUBLE_EQ(percentile_of({8, 6, 6}, 95), 7.8);  // Place 1.9 of 6 6 8.
  EXPECT_DOUBLE_EQ(percentile_of({4, 1, 2, 3}, 50), 2.5);
  EXPECT_EQ(percentile_of({5, 7}, 100), 7);
  EXPECT_EQ(percentile_of({5, 7}, 0), 5);
  EXPECT_EQ(percentile_of({5}, 95), 5);
}

TEST(SweepRates, AreEvenOrDenseAtTheSaturation) {
  EXPECT_EQ(sweep_rates(RateSpacing::kLinear, 10, 4), (std::vector<double>{1, 4, 7, 10}));
  // 8 4 2 1 the other way round.
  EXPECT_EQ(sweep_rates(RateSpacing::kGeometric, 8, 4), (std::vector<double>{1, 5, 7, 8}));
  EXPECT_EQ(sweep_rates(RateSpacing::kLinear, 10, 1), (std::vector<double>{1}));
  EXPECT_EQ(sweep_rates(RateSpacing::kGeometric, 10, 1), (std::vector<double>{1}));
  // Below one request/s the stages go down.
  EXPECT_EQ(sweep_rates(RateSpacing::kLinear, 0.5, 3), (std::vector<double>{1, 0.75, 0.5}));
}

TEST(SweepRates, HaveTwoDigits) {
  // Halves go to the even digit, as numpy rounds.
  EXPECT_EQ(sweep_rates(RateSpacing::kLinear, 1.25, 3), (std::vector<double>{1, 1.12, 1.25}));
  EXPECT_EQ(sweep_rates(RateSpacing::kLinear, 23.456, 2), (std::vector<double>{1, 23.46}));
}

/// One server that takes `service` per request, in the order of their due times.
testing::Latency one_server(Duration service) {
  return [service, free = SimTime::zero()](const Request& r) mutable {
    free = std::max(free, r.due) + service;
    return free - r.due;
  };
}

Config swept(std::int64_t requests) {
  Config c = ladder();
  c.load.type = LoadType::kConstant;
  c.load.stages.clear();
  c.load.stage_teardown_grace_seconds = 0;
  c.load.sweep = Sweep{.type = SweepType::kLinear,
                       .num_requests = requests,
                       .timeout = 60,
                       .num_stages = 4,
                       .stage_duration = 20,
                       .saturation_percentile = 95};
  return c;
}

TEST(LoadSweep, FindsTheRateOfAServerAndSweepsUpToIt) {
  const Config c = swept(200);
  auto load = make(c);
  ASSERT_EQ(load->stages().size(), 5U);
  EXPECT_TRUE(load->stages()[0].is_preparation);
  EXPECT_FALSE(load->stages()[0].reported);
  EXPECT_EQ(load->stages()[0].requests, 200);
  EXPECT_EQ(load->stages()[1].requests, -1);
  EXPECT_EQ(load->stages()[1].requested_rate, 0);
  EXPECT_TRUE(load->notes().empty());

  const auto stages = by_stage(drive(*load, one_server(ms(100))));
  EXPECT_TRUE(load->finished());
  ASSERT_EQ(stages.size(), 5U);
  const std::vector<double> expected = {1, 4, 7, 10};
  for (std::size_t i = 1; i < 5; ++i) {
    EXPECT_EQ(load->stages()[i].requested_rate, expected[i - 1]);
    EXPECT_EQ(load->stages()[i].requests, static_cast<std::int64_t>(expected[i - 1] * 20));
    EXPECT_EQ(stages[i].size(), static_cast<std::size_t>(expected[i - 1] * 20));
    EXPECT_EQ(load->stages()[i].name, std::to_string(i - 1));
    EXPECT_TRUE(load->stages()[i].reported);
  }
  ASSERT_EQ(load->notes().size(), 1U);
  EXPECT_NE(load->notes()[0].find("drained at up to 10 requests/s"), std::string::npos)
      << load->notes()[0];
}

TEST(LoadSweep, BeginsItsStagesAtTheEndOfTheProbe) {
  auto load = make(swept(200));
  const auto stages = by_stage(drive(*load, one_server(ms(100))));
  EXPECT_EQ(seconds(stages[0].back().request.due), 6);
  // 200 requests in 20 s: the last has gone at 21 s and something, the end is seen at the next.
  const double probe_end = std::ceil(seconds(stages[0].back().done));
  EXPECT_EQ(seconds(stages[1].back().request.due), probe_end + 1 + 20);
  // Between stages there is the interval of 30 s.
  const double first_end = std::ceil(seconds(stages[1].back().done));
  EXPECT_EQ(seconds(stages[2].back().request.due), first_end + 30 + 1 + 20);
}

TEST(LoadSweep, CutsAProbeThatTakesTooLong) {
  Config c = swept(200);
  c.load.sweep->timeout = 9.5;
  auto load = make(c);
  const auto stages = by_stage(drive(*load, one_server(ms(200))));
  ASSERT_EQ(stages.size(), 5U);
  EXPECT_EQ(stages[0].size(), 200U);
  // Seen at the 11th second: 10.5 s after the start.
  std::int64_t cut = 0;
  for (const Sent& s : stages[0]) {
    EXPECT_LE(seconds(s.done), 11);
    if (s.outcome != Outcome::kTimeout) continue;
    EXPECT_EQ(seconds(s.done), 11);
    ++cut;
  }
  EXPECT_GT(cut, 100);
  // A second for the cancelled requests, and no interval.
  EXPECT_EQ(seconds(stages[1].back().request.due), 12 + 1 + 20);
  // Two or three of its five per second end in each half second: the tool's measure is that coarse.
  // That the cut drained a hundred at once does not count.
  EXPECT_EQ(load->stages()[4].requested_rate, 6);
}

TEST(LoadSweep, LetsWhatIsUnderWayAtTheCutEnd) {
  Config c = swept(200);
  c.load.sweep->timeout = 9.5;
  c.load.stage_teardown_grace_seconds = 20;
  auto load = make(c);
  const auto stages = by_stage(drive(*load, one_server(ms(200))));
  ASSERT_EQ(stages.size(), 5U);
  // Cut at 11 s, over at 31 s at the latest: 40 s of work do not end by then.
  EXPECT_DOUBLE_EQ(seconds(stages[0].back().done), 31);
  EXPECT_EQ(stages[0].back().outcome, Outcome::kTimeout);
  const auto in_time = std::count_if(stages[0].begin(), stages[0].end(), [](const Sent& s) {
    return s.outcome == Outcome::kSuccess && seconds(s.done) > 11;
  });
  EXPECT_NEAR(static_cast<double>(in_time), 100, 1);  // Five per second.
  EXPECT_EQ(seconds(stages[1].back().request.due), 31 + 1 + 20);
  EXPECT_EQ(load->stages()[4].requested_rate, 6);
}

TEST(LoadSweep, SendsNothingMoreAfterTheCut) {
  Config c = swept(200);
  c.load.sweep->timeout = 2;
  auto load = make(c);
  // All is due by the 6th second; the cut comes at the 3rd.
  const auto sent = drive(*load, fixed_latency(Duration::seconds(100)));
  EXPECT_GT(sent.size(), 50U);
  EXPECT_LT(sent.size(), 120U);
  for (const Sent& s : sent) {
    EXPECT_LT(seconds(s.sent), 3);
    EXPECT_EQ(seconds(s.done), 3);
  }
  EXPECT_TRUE(load->finished());
  EXPECT_EQ(load->notes().size(), 1U);
}

TEST(LoadSweep, GivesUpWhereTheProbeTellsNothing) {
  auto load = make(swept(1));
  EXPECT_EQ(drive(*load, one_server(ms(100))).size(), 1U);
  EXPECT_TRUE(load->finished());
  ASSERT_EQ(load->notes().size(), 1U);
  EXPECT_NE(load->notes()[0].find("no stage was run"), std::string::npos);
}

TEST(LoadSweep, DrawsTheSameProbeForEveryServer) {
  auto fast = make(swept(200));
  auto slow = make(swept(200));
  const auto a = by_stage(drive(*fast, one_server(ms(50))));
  const auto b = by_stage(drive(*slow, one_server(ms(100))));
  for (std::size_t i = 0; i < 200; ++i) {
    EXPECT_EQ(a[0][i].request.due, b[0][i].request.due);
    EXPECT_EQ(a[0][i].request.prompt->segments, b[0][i].request.prompt->segments);
  }
  EXPECT_EQ(fast->stages()[4].requested_rate, 20);
  EXPECT_EQ(slow->stages()[4].requested_rate, 10);
}

TEST(LoadSweep, WaitsForRoundsOfTheSameUser) {
  // Ten users in two groups, so that two workers are used: what waits for its round is under way.
  Config c = swept(100);
  c.data.shared_prefix->num_groups = 2;
  c.data.shared_prefix->enable_multi_turn_chat = true;
  c.load.num_workers = 2;
  c.load.worker_max_concurrency = 1000;
  auto load = make(c);
  const auto stages = by_stage(drive(*load, fixed_latency(Duration::seconds(1))));
  ASSERT_EQ(stages[0].size(), 100U);
  // Each of ten users takes ten rounds of a second: in half a second at most ten rounds end.
  EXPECT_LE(load->stages()[4].requested_rate, 20);
  EXPECT_GT(load->stages()[4].requested_rate, 5);
  EXPECT_EQ(stages[4].size(), static_cast<std::size_t>(load->stages()[4].requests));
}

TEST(LoadSweep, CutsConversationsToo) {
  Config c = swept(100);
  c.data.shared_prefix->num_groups = 2;
  c.data.shared_prefix->enable_multi_turn_chat = true;
  c.load.num_workers = 2;
  c.load.sweep->timeout = 9;
  auto load = make(c);
  const auto stages = by_stage(drive(*load, fixed_latency(Duration::seconds(1))));
  ASSERT_EQ(stages.size(), 5U);
  EXPECT_LT(stages[0].size(), 100U);
  for (const Sent& s : stages[0]) EXPECT_LE(seconds(s.done), 10);
  EXPECT_EQ(seconds(stages[1].back().request.due), 11 + 1 + 20);
  EXPECT_TRUE(load->finished());
}

/// Turns of two users, after each of which a tool works for a minute.
class Turns final : public SessionSource {
 public:
  std::uint64_t session_of(std::size_t, std::int64_t index) const override {
    return static_cast<std::uint64_t>(index % 2);
  }
  std::int64_t worker_of(std::int64_t) const override { return 0; }
  void fill(std::size_t, std::int64_t, Request& request) override {
    request.held_open = Duration::seconds(60);
  }
  void completed(std::size_t, std::int64_t, const Request&, Outcome) override {}
  void end_of_stage(std::size_t) override {}
};

TEST(LoadSweep, AProbeThatWasCutDoesNotWaitForToolCalls) {
  for (const double timeout_s : {2.0, 20.0}) {
    SweepSettings settings;
    settings.timeout_s = timeout_s;
    settings.grace = Duration::seconds(10);
    settings.arrivals = [](std::size_t, double) { return immediate_arrivals(1); };
    std::vector<SessionClient::Stage> stages(2);
    for (SessionClient::Stage& stage : stages) stage.permits = {1};
    stages[0].arrivals = immediate_arrivals(1);
    SessionClient load(std::move(stages), std::make_unique<Turns>(), {},
                       std::make_unique<RateSweep>(settings));
    std::vector<Request> sent;
    load.advance(SimTime::zero(), sent);
    ASSERT_EQ(sent.size(), 1U);
    const SimTime answer = SimTime::zero() + Duration::seconds(5);
    while (load.next_action() < answer) load.advance(load.next_action(), sent);
    load.on_completed(sent[0], Outcome::kSuccess, answer);
    // The probe is cut a second after its timeout: at 3 s, before the answer, or at 21 s.
    EXPECT_EQ(load.finished(), timeout_s == 2);
  }
}

TEST(LoadSweep, AProbeThatWasCutSendsNoRoundThatWaited) {
  SweepSettings settings;
  settings.timeout_s = 2;
  settings.grace = Duration::seconds(10);
  settings.arrivals = [](std::size_t, double) { return immediate_arrivals(1); };
  std::vector<SessionClient::Stage> stages(2);
  for (SessionClient::Stage& stage : stages) stage.permits = {3};
  stages[0].arrivals = immediate_arrivals(3);
  SessionClient load(std::move(stages), std::make_unique<Turns>(), {},
                     std::make_unique<RateSweep>(settings));
  std::vector<Request> sent;
  load.advance(SimTime::zero(), sent);
  ASSERT_EQ(sent.size(), 2U) << "the first user's second round waits for the first";
  const auto until = [&](std::int64_t second) {
    const SimTime end = SimTime::zero() + Duration::seconds(second);
    while (load.next_action() < end) load.advance(load.next_action(), sent);
    return end;
  };
  // The cut is at 3 s. Both answers come later, and the round that waited for one is not sent.
  load.on_completed(sent[0], Outcome::kSuccess, until(5));
  const SimTime last = until(6);
  ASSERT_EQ(sent.size(), 2U);
  load.on_completed(sent[1], Outcome::kSuccess, last);
  EXPECT_TRUE(load.finished());
}

TEST(LoadSweep, LeavesOutWarmUpStages) {
  WorkloadOptions options;
  options.warmup_stages = 1;
  auto load = make(swept(200), options);
  EXPECT_FALSE(load->stages()[1].reported);
  EXPECT_FALSE(load->stages()[1].is_preparation);
  EXPECT_TRUE(load->stages()[2].reported);
  options.warmup_stages = 4;
  EXPECT_EQ(errors_of(swept(200), options).at(0).path, "warmup_stages");
}

TEST(LoadSweep, SaysWhatItCannotSweep) {
  Config c = swept(200);
  c.load.type = LoadType::kConcurrent;
  EXPECT_EQ(errors_of(c).at(0).path, "load.sweep");
  c = swept(200);
  c.load.num_workers = 0;
  EXPECT_EQ(errors_of(c).at(0).path, "load.num_workers");
  c = swept(1'000'000);
  c.load.sweep->stage_duration = 501;
  EXPECT_EQ(errors_of(c).at(0).path, "load.sweep.stage_duration");
  c = swept(200);
  c.load.stages = {{.rate = 1, .duration = 10}};
  Diagnostics found;
  EXPECT_NE(make_load_generator(c, {}, {}, found), nullptr);
  ASSERT_EQ(found.items().size(), 1U);
  EXPECT_EQ(found.items()[0].path, "load.stages");
}

}  // namespace
}  // namespace routesim::workloads::inference_perf
