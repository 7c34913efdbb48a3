// Every server over time: hand-made numbers, halving, and that watching changes nothing.
#include "sim/observe/time_series.h"

#include "sim/simulation.h"
#include "tests/sim/sim_fixture.h"
#include "tests/sim/swarm.h"
#include "tests/sim/swarm_load.h"

namespace routesim::sim::testing {
namespace {

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
