// DP ranks of one server: the steps that they take together, and who chooses among them.
#include "sim/engine/front_end.h"
#include "tests/sim/plan_fixture.h"
#include "tests/sim/sim_fixture.h"

namespace routesim::sim::testing {
namespace {

// DP ranks that step together, by hand. The number in a name refers to the list of engine test
// vectors in sim/README.md.

TEST(LockStep, V8TheSlowestRankSetsThePaceAndIdleRanksRunDummies) {
  // 40 ms for a prefill, 10 ms for anything else.
  class TwoSpeeds final : public models::LatencyModel {
   public:
    std::int64_t step_ticks(const models::BatchShape& s) const override {
      return (s.prefill_tokens > 0 ? 40 : 10) * models::kTicksPerMillisecond;
    }
    models::Trust trust(const models::BatchShape&) const override { return models::Trust::kFitted; }
    std::string provenance() const override { return "two speeds"; }
  };
  const auto latency = std::make_shared<TwoSpeeds>();
  Server group(plain_rules(), latency, false, 2);
  const auto decoder = group.send({.parts = {{1, 8}}, .output = 4}, at_ms(0), 1);
  const auto prefill = group.send({.parts = {{2, 8}}, .output = 1}, at_ms(45), 0);
  group.run();
  // Rank 1 prefills alone (40 ms; rank 0 runs a dummy), decodes to 50, then waits for rank 0's
  // prefill until 90, and decodes its last token by 100.
  EXPECT_EQ(group.fates[decoder].first, at_ms(40));
  EXPECT_EQ(group.fates[prefill].first, at_ms(90));
  EXPECT_EQ(group.fates[decoder].finish, at_ms(100));
  // The wave ends at a finish check, every 32 steps: 5 working steps and 27 dummies.
  EXPECT_EQ(group.replica().steps(), 32);
}

TEST(LockStep, ExpertsReceiveWholeBuffersOneByOne) {
  // 1 ms per token all ranks are padded to, and 100 ms per buffer.
  class Padded final : public models::LatencyModel {
   public:
    std::int64_t step_ticks(const models::BatchShape& s) const override {
      return (s.group_tokens + 100 * s.group_rounds) * models::kTicksPerMillisecond;
    }
    models::Trust trust(const models::BatchShape&) const override { return models::Trust::kFitted; }
    std::string provenance() const override { return "padded"; }
  };
  for (const std::int64_t chunk : {0, 16}) {
    EngineRules rules = plain_rules();
    rules.moe_dp_chunk_size = chunk;
    Server group(rules, std::make_shared<Padded>(), false, 2);
    const auto request = group.send({.parts = {{1, 20}}, .output = 2}, at_ms(0), 1);
    group.run();
    // A prompt of 20 tokens fills two buffers of 16, the token after it one.
    EXPECT_EQ(group.fates[request].first, at_ms(chunk == 0 ? 20 + 100 : 32 + 200));
    EXPECT_EQ(group.fates[request].finish, at_ms(chunk == 0 ? 21 + 200 : 48 + 300));
  }
}

TEST(LockStep, RanksAreNotPaddedBeyondTheLargestGraph) {
  // 1 ms per token a rank is padded to.
  class Padded final : public models::LatencyModel {
   public:
    std::int64_t step_ticks(const models::BatchShape& s) const override {
      const std::int64_t own = s.tokens() > 0 ? s.group_tokens : s.group_tokens * 100;
      return own * models::kTicksPerMillisecond;
    }
    models::Trust trust(const models::BatchShape&) const override { return models::Trust::kFitted; }
    std::string provenance() const override { return "padded"; }
  };
  for (const std::int64_t limit : {20, 19}) {
    EngineRules rules = plain_rules();
    rules.rank_padding_limit = limit;
    Server group(rules, std::make_shared<Padded>(), false, 2);
    const auto request = group.send({.parts = {{1, 20}}, .output = 1}, at_ms(0), 1);
    group.run();
    // The other rank's dummy batch is of 20 tokens, or of one.
    EXPECT_EQ(group.fates[request].first, at_ms(limit == 20 ? 2000 : 100));
  }
}

// A server's own choice among its DP ranks, by hand.

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
