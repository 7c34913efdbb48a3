// A server's own choice among its DP ranks, by hand.
#include "sim/engine/front_end.h"

#include "tests/sim/plan_fixture.h"

namespace routesim::sim::testing {
namespace {

/// Chooses at `ms` with these loads of endpoints 10, 11, ...
std::uint32_t choose(FrontEnd& f, std::int64_t ms, const std::vector<FrontEnd::RankLoad>& loads) {
  return f.choose(at_ms(ms), [&](std::uint32_t endpoint) { return loads[endpoint - 10]; });
}

TEST(FrontEnd, OlderScoreIsFourTimesWaitingPlusRunning) {
  FrontEnd f(10, 2, {});
  const std::vector<FrontEnd::RankLoad> loads = {{.waiting = 1}, {.running = 3}};
  EXPECT_EQ(choose(f, 0, loads), 11U) << "4 against 3";
  EXPECT_EQ(choose(f, 1, loads), 10U) << "4 against 7: it counts what it sent";
  EXPECT_EQ(choose(f, 2, loads), 11U) << "8 against 7";
  EXPECT_EQ(choose(f, 99, loads), 10U) << "8 against 11";
  EXPECT_EQ(choose(f, 100, loads), 11U) << "published anew: 4 against 3";
}

TEST(FrontEnd, NewestScoreCountsItsOwnRequestsAndFullCaches) {
  FrontEnd f(10, 2, {.newest_score = true, .rotates = true});
  // 2 + 6 * 2 * 0.4 = 6.8 against 6.
  EXPECT_EQ(choose(f, 0, {{.waiting = 2, .kv_usage = 0.9}, {.running = 6}}), 11U);
  EXPECT_EQ(f.in_flight(11), 1);
  // Nothing is published of what it sent, but it knows: 0 against 1.
  EXPECT_EQ(choose(f, 200, {{}, {}}), 10U);
  f.on_completed(11);
  EXPECT_EQ(choose(f, 400, {{}, {}}), 11U) << "1 against 0";
}

TEST(FrontEnd, TiesRotate) {
  FrontEnd f(10, 3, {.rotates = true});
  for (const std::int64_t i : {0, 1, 2, 3})
    EXPECT_EQ(choose(f, 1000 * i, {{}, {}, {}}), 10 + i % 3);
}

TEST(FrontEnd, OlderTiesGoToTheFirstRank) {
  FrontEnd f(10, 3, {});
  for (const std::int64_t i : {0, 1, 2, 3}) EXPECT_EQ(choose(f, 1000 * i, {{}, {}, {}}), 10U);
}

TEST(FrontEnd, TakesTurnsWhereItSeesNoCounts) {
  FrontEnd f(10, 3, {.sees_counts = false});
  const std::vector<FrontEnd::RankLoad> loads = {{.running = 50}, {}, {}};
  for (const std::int64_t i : {0, 1, 2, 3})
    EXPECT_EQ(choose(f, 1000 * i, loads), 10 + i % 3) << "it counts what it sent, for ever";
}

TEST(InternalBalancing, TheRouterSeesOneEndpoint) {
  std::vector<Sent> script;
  for (std::int64_t i = 0; i < 6; ++i)
    script.push_back(
        {.at_ms = 10 * i, .parts = {{static_cast<std::uint64_t>(i), 64}}, .output = 50});
  RunPlan plan = hand_made_plan(script, 2);
  plan.scenario.routing.balancer = BalancerKind::kRoundRobin;
  ResolvedPool& pool = plan.pools[0];
  pool.config.data_parallel = 2;
  pool.config.data_parallel_balancing = DataParallelBalancing::kInternal;
  for (const bool lock_step : {false, true}) {
    pool.lock_step = lock_step;
    const RunResult r = run_by_hand(plan);
    std::vector<std::int32_t> endpoints;
    for (const RequestRecord& q : r.requests) endpoints.push_back(q.endpoint);
    // Round robin over two servers, each alternating between its two ranks.
    EXPECT_EQ(endpoints, (std::vector<std::int32_t>{0, 2, 1, 3, 0, 2}));
    ASSERT_EQ(r.replicas.size(), 4U);
    EXPECT_EQ(r.replicas[3].name, "pool-1-rank-1");
  }
  pool.config.data_parallel_balancing = DataParallelBalancing::kExternal;
  const RunResult r = run_by_hand(plan);
  EXPECT_EQ(r.requests[1].endpoint, 1) << "round robin over four ranks";
}

TEST(InternalBalancing, GaugesOfTheRanksAreAddedUp) {
  std::vector<Sent> script;
  for (std::int64_t i = 0; i < 5; ++i)
    script.push_back(
        {.at_ms = 100 * i, .parts = {{static_cast<std::uint64_t>(i), 64}}, .output = 500});
  RunPlan plan = hand_made_plan(script, 2);
  plan.endpoint_picker = load_aware_config();
  ResolvedPool& pool = plan.pools[0];
  pool.config.data_parallel = 2;
  pool.config.data_parallel_balancing = DataParallelBalancing::kInternal;
  const RunResult r = run_by_hand(plan);
  std::vector<int> servers(2);
  for (const RequestRecord& q : r.requests) ++servers[static_cast<std::size_t>(q.endpoint / 2)];
  // Less used cache scores higher, so the servers take turns.
  EXPECT_EQ(std::max(servers[0], servers[1]), 3);
  EXPECT_EQ(r.summary.successes, 5);
}

}  // namespace
}  // namespace routesim::sim::testing
