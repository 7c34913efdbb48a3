// The API server in front of an engine: rounds of the event loop, the tokeniser's queue, and what
// the rest of a run sees of both.
#include "sim/engine/api_server.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/rng.h"
#include "sim/observe/observer.h"
#include "tests/sim/plan_fixture.h"

namespace routesim::sim::testing {
namespace {

struct Arrival {
  std::int64_t at = 0;
  std::int64_t tokens = 0;
};

/// When each arrival leaves, in nanoseconds: drives an ApiServer as a simulation does.
std::vector<std::int64_t> leave(const ApiServerTimes& times, const std::vector<Arrival>& arrivals) {
  ApiServer server(times);
  std::vector<std::int64_t> left(arrivals.size(), -1);
  std::vector<ApiServer::Round> rounds;
  const auto deliver = [&](const ApiServer::Visitor& v, SimTime at) { left[v.handle] = at.ns(); };
  const auto begin_until = [&](SimTime now) {
    for (;;) {
      const auto next = std::min_element(rounds.begin(), rounds.end(),
                                         [](auto& a, auto& b) { return a.at < b.at; });
      if (next == rounds.end() || next->at > now) return;
      const ApiServer::Round round = *next;
      rounds.erase(next);
      if (const auto more = server.begin(round.process, round.at, deliver)) rounds.push_back(*more);
    }
  };
  for (std::uint32_t i = 0; i < arrivals.size(); ++i) {
    const SimTime now = SimTime::from_ns(arrivals[i].at);
    begin_until(now);
    const auto round = server.arrive(
        {.handle = i, .stamp = 0, .prompt_tokens = arrivals[i].tokens, .arrival = now}, deliver);
    if (round) rounds.push_back(*round);
  }
  begin_until(SimTime::max());
  return left;
}

/// The same by asking at every round who is there: one process.
std::vector<std::int64_t> leave_obviously(const ApiServerTimes& times,
                                          const std::vector<Arrival>& arrivals) {
  std::vector<std::int64_t> left;
  std::int64_t loop = 0, tokeniser = 0;
  std::size_t next = 0;
  while (next < arrivals.size()) {
    // An idle loop begins with the one that comes, a busy one with those that came before.
    const std::int64_t begin = std::max(loop, arrivals[next].at);
    std::size_t end = next + 1;
    while (end < arrivals.size() && arrivals[end].at < begin) ++end;
    loop = begin + static_cast<std::int64_t>(end - next) * times.request.ns();
    for (; next < end; ++next) {
      tokeniser = std::max(tokeniser, loop) + arrivals[next].tokens * times.prompt_token.ns();
      left.push_back(tokeniser);
    }
  }
  return left;
}

TEST(ApiServer, EqualsTheObviousLoop) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    RandomStream random(seed, Stream::kTest);
    const ApiServerTimes times{
        .processes = 1,
        .request = Duration::nanoseconds(static_cast<std::int64_t>(1 + random.below(40))),
        .prompt_token = Duration::nanoseconds(static_cast<std::int64_t>(random.below(4)))};
    std::vector<Arrival> arrivals;
    std::int64_t now = 0;
    for (int i = 0; i < 200; ++i) {
      if (random.below(3) > 0) now += static_cast<std::int64_t>(random.below(60));
      arrivals.push_back({.at = now, .tokens = static_cast<std::int64_t>(random.below(20))});
    }
    ASSERT_EQ(leave(times, arrivals), leave_obviously(times, arrivals)) << "seed " << seed;
  }
}

TEST(ApiServer, ABurstLeavesTheLoopTogether) {
  const ApiServerTimes times{
      .processes = 1, .request = Duration::nanoseconds(10), .prompt_token = {}};
  const std::vector<std::int64_t> left = leave(times, std::vector<Arrival>(50));
  EXPECT_EQ(left.front(), 10) << "the first finds the loop idle";
  EXPECT_EQ(left[1], 500);
  EXPECT_EQ(left.back(), 500) << "N requests after N times one request's";
}

TEST(ApiServer, TheTokeniserIsFirstComeFirstServed) {
  const ApiServerTimes times{
      .processes = 1, .request = {}, .prompt_token = Duration::nanoseconds(2)};
  EXPECT_EQ(leave(times, {{0, 100}, {0, 5}, {50, 10}, {1000, 1}}),
            (std::vector<std::int64_t>{200, 210, 230, 1002}));
}

TEST(ApiServer, ProcessesShareABurst) {
  const ApiServerTimes times{
      .processes = 4, .request = Duration::nanoseconds(10), .prompt_token = {}};
  const std::vector<std::int64_t> left = leave(times, std::vector<Arrival>(40));
  EXPECT_EQ(*std::max_element(left.begin(), left.end()), 100);
}

TEST(ApiServer, DefaultsFollowThePreset) {
  const ApiServerTimes old = resolve_api_server({}, EnginePreset::k2025H2, 8);
  EXPECT_EQ(old.processes, 1);
  EXPECT_EQ(old.request, Duration::milliseconds(6));
  EXPECT_EQ(old.prompt_token, Duration::nanoseconds(1500));
  const ApiServerTimes now = resolve_api_server({}, EnginePreset::k2026H1, 8);
  EXPECT_EQ(now.processes, 8) << "one for each rank it balances";
  EXPECT_LT(now.request, old.request);
  const ApiServerConfig own{.processes = 3,
                            .request_time = Duration::zero(),
                            .prompt_token_time = Duration::microseconds(2)};
  const ApiServerTimes times = resolve_api_server(own, EnginePreset::k2026H1, 8);
  EXPECT_EQ(times.processes, 3);
  EXPECT_EQ(times.request, Duration::zero());
  EXPECT_EQ(times.prompt_token, Duration::microseconds(2));
}

std::vector<Sent> burst(std::int64_t n) {
  std::vector<Sent> script;
  for (std::int64_t i = 0; i < n; ++i)
    script.push_back({.parts = {{static_cast<std::uint64_t>(i) + 1, 16}}});
  return script;
}

RunPlan burst_plan(std::int64_t n, std::int64_t servers = 1) {
  RunPlan plan = hand_made_plan(burst(n), servers);
  plan.scenario.routing.balancer = BalancerKind::kRoundRobin;
  plan.pools[0].api_server = {
      .processes = 1, .request = Duration::milliseconds(5), .prompt_token = {}};
  return plan;
}

TEST(ApiServerInARun, ABurstReachesTheEngineLate) {
  const RunResult r = run_by_hand(burst_plan(101));
  EXPECT_EQ(r.requests[0].first_token, at_ms(15)) << "5 ms, and a step of 10";
  EXPECT_EQ(r.requests[1].first_token, at_ms(515));
  EXPECT_EQ(r.requests[100].first_token, at_ms(525)) << "the engine begins with the first";
}

TEST(ApiServerInARun, FrontendLatencyIsBesideIt) {
  RunPlan plan = burst_plan(3);
  plan.scenario.cluster.frontend_latency = Duration::milliseconds(7);
  const RunResult r = run_by_hand(plan);
  EXPECT_EQ(r.requests[0].first_token, at_ms(7 + 5 + 10));
  EXPECT_EQ(r.requests[1].first_token, at_ms(7 + 15 + 10));
}

TEST(ApiServerInARun, RanksOfTheirOwnHaveApiServersOfTheirOwn) {
  RunPlan plan = burst_plan(101);
  plan.pools[0].config.data_parallel = 2;
  RunResult r = run_by_hand(plan);
  EXPECT_EQ(r.requests[100].first_token, at_ms(51 * 5 + 20));
  plan.pools[0].config.data_parallel_balancing = DataParallelBalancing::kInternal;
  r = run_by_hand(plan);
  EXPECT_EQ(r.requests[100].first_token, at_ms(525)) << "one for both";
  plan.pools[0].api_server.processes = 2;
  r = run_by_hand(plan);
  EXPECT_EQ(r.requests[100].first_token, at_ms(51 * 5 + 20));
}

TEST(ApiServerInARun, WhoGivesUpThereTakesNothingBack) {
  RunPlan plan = burst_plan(0);
  std::vector<Sent> script = burst(41);
  for (std::size_t i = 1; i < 21; ++i) script[i].timeout_ms = 100;
  plan.make_load = [script](std::uint64_t, Diagnostics&) {
    return std::make_unique<ScriptedLoad>(script);
  };
  const RunResult r = run_by_hand(plan);
  EXPECT_EQ(r.summary.failures, 20);
  EXPECT_EQ(r.requests[1].end, at_ms(100));
  EXPECT_EQ(r.requests[40].first_token, at_ms(41 * 5 + 20));
  EXPECT_EQ(r.replicas[0].requests, 21) << "the engine never heard of them";
}

TEST(ApiServerInARun, BothServersOfADisaggregatedRequestCharge) {
  RunPlan plan = hand_made_plan({{.parts = {{1, 64}}}}, 1);
  plan.pools[0].config.role = PoolRole::kDecode;
  plan.pools[0].config.name = "decode";
  plan.pools.push_back(plan.pools[0]);
  plan.pools[1].config.role = PoolRole::kPrefill;
  plan.pools[1].config.name = "prefill";
  plan.scenario.cluster.transfer = {.bandwidth_gbps = 1e6,
                                    .setup = Duration::zero(),
                                    .descriptor_time = Duration::zero(),
                                    .handover = Duration::zero(),
                                    .first_contact = Duration::zero(),
                                    .lease = std::nullopt};
  plan.endpoint_picker = disaggregated_config(16);
  plan.pools[0].api_server = {.request = {}, .prompt_token = Duration::milliseconds(1)};
  plan.pools[1].api_server = {.request = Duration::milliseconds(3), .prompt_token = {}};
  // 3 ms and a step at the one, 64 ms and a step at the other.
  EXPECT_NEAR(run_by_hand(plan).requests[0].first_token.to_seconds(), 0.087, 1e-6);
}

/// Looks at the server and at the router once, in the middle of the burst.
class Glance final : public Observer {
 public:
  void on_start(const RunView& view) override { view_ = &view; }
  SimTime next_tick() const override { return ticked_ ? SimTime::max() : at_ms(400); }
  void on_tick(SimTime) override {
    ticked_ = true;
    gauges_ = view_->replicas[0]->gauges(0);
  }
  const Gauges& gauges() const { return gauges_; }
  bool ticked() const { return ticked_; }

 private:
  const RunView* view_ = nullptr;
  bool ticked_ = false;
  Gauges gauges_;
};

TEST(ApiServerInARun, WhoWaitsThereIsInNoGauge) {
  const RunPlan plan = burst_plan(101);
  Glance glance;
  RunOptions options;
  options.observers.push_back(&glance);
  options.check = true;
  Diagnostics found;
  const RunResult r = Simulation(plan, options, found).run();
  ASSERT_TRUE(glance.ticked());
  EXPECT_EQ(glance.gauges().waiting, 0);
  EXPECT_EQ(glance.gauges().running, 0);
  EXPECT_EQ(r.summary.successes, 101);
}

TEST(ApiServerInARun, ALongWaitIsToldOfAndAShortOneIsNot) {
  const auto told = [](const RunPlan& plan) {
    Diagnostics found;
    const RunResult r = Simulation(plan, {}, found).run();
    return std::any_of(r.notes.begin(), r.notes.end(), [](const std::string& note) {
      return note.find("pool: before its engine heard of it a request spent up to") == 0;
    });
  };
  EXPECT_FALSE(told(burst_plan(101)));
  EXPECT_TRUE(told(burst_plan(401)));
}

}  // namespace
}  // namespace routesim::sim::testing
