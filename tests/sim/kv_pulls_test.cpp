// Pulls of chunks between the host memories of two servers, by hand: steps of 10 ms, blocks of 16
// tokens and 1 MB that take 1 ms over the bus of a server, and 1 ms over the network.
#include "sim/tiers/kv_pulls.h"

#include "tests/sim/plan_fixture.h"

namespace routesim::sim::testing {
namespace {

/// The first run of the plan in which the last request is computed on another server than all
/// others.
RunResult run_apart(const RunPlan& plan) {
  for (std::uint64_t seed = 1; seed < 200; ++seed) {
    RunResult r = run_by_hand(plan, seed);
    bool apart = true;
    for (std::size_t i = 0; i + 1 < r.requests.size(); ++i)
      apart = apart && r.requests[i].endpoint == r.requests.front().endpoint &&
              r.requests[i].endpoint != r.requests.back().endpoint;
    if (apart) return r;
  }
  ADD_FAILURE() << "no seed keeps them apart";
  return run_by_hand(plan);
}

const TierCounters& pulls_of(const RunResult& r, std::int64_t endpoint) {
  return r.replicas[static_cast<std::size_t>(endpoint)].tiers->did;
}

TEST(KvPulls, CostFourMessagesAndTheBytes) {
  const RunResult r = run_apart(
      two_hosts({{.at_ms = 0, .parts = {{1, 160}}}, {.at_ms = 100, .parts = {{1, 160}, {2, 16}}}}));
  // Ten blocks are computed until 10 ms and stored until 20 ms. At 100 ms the other server asks; at
  // 101 the question is there, at 102 the answer, and at 103 the order to send. Ten blocks take
  // 10 ms over the network; the notice of it is there at 114. They are loaded until 124, and a step
  // computes the last block.
  const RequestRecord& asked = r.requests[1];
  EXPECT_EQ(asked.first_token, at_ms(100 + 3 + 10 + 1 + 10 + 10));
  EXPECT_EQ(asked.cached_tokens, 160);
  const TierCounters& here = pulls_of(r, asked.endpoint);
  EXPECT_EQ(here.pulls, 1);
  EXPECT_EQ(here.pulls_arrived, 1);
  EXPECT_EQ(here.pulled_bytes, 10e6);
  EXPECT_EQ(here.pull_waits.count, 1);
  EXPECT_EQ(here.pull_waits.total, Duration::milliseconds(14));
  EXPECT_EQ(here.hit_tokens, 160);
  EXPECT_EQ(here.loaded_bytes, 10e6);
  EXPECT_EQ(here.load_waits.total, Duration::milliseconds(10));
  const TierCounters& there = pulls_of(r, r.requests[0].endpoint);
  EXPECT_EQ(there.pulls_served, 1);
  EXPECT_EQ(there.pulls, 0);
}

TEST(KvPulls, TheSourceActsWhenItsStepEnds) {
  // It decodes in steps that end every 10 ms, so that the question waits from 101 to 110, the order
  // to send from 112 to 120. The bytes are gone at 130, when a step has just begun.
  const RunResult r = run_apart(two_hosts({{.at_ms = 0, .parts = {{1, 160}}, .output = 100},
                                           {.at_ms = 100, .parts = {{1, 160}, {2, 16}}}}));
  EXPECT_EQ(r.requests[1].first_token, at_ms(110 + 1 + 1 + 8 + 10 + 10 + 1 + 10 + 10));
  EXPECT_EQ(r.requests[1].cached_tokens, 160);
}

TEST(KvPulls, OnlyWhatIsMissingMoves) {
  // The server that asks has computed six blocks of the ten itself, for the second request.
  RunPlan plan = two_hosts({{.at_ms = 0, .parts = {{1, 160}}},
                            {.at_ms = 0, .parts = {{1, 96}}},
                            {.at_ms = 100, .parts = {{1, 160}, {2, 16}}}});
  for (std::uint64_t seed = 1; seed < 200; ++seed) {
    const RunResult r = run_by_hand(plan, seed);
    if (r.requests[0].endpoint == r.requests[1].endpoint ||
        r.requests[1].endpoint != r.requests[2].endpoint)
      continue;
    const TierCounters& here = pulls_of(r, r.requests[2].endpoint);
    EXPECT_EQ(here.pulled_bytes, 4e6);
    EXPECT_EQ(here.loaded_bytes, 4e6) << "GPU memory has the six";
    EXPECT_EQ(r.requests[2].first_token, at_ms(100 + 3 + 4 + 1 + 4 + 10));
    return;
  }
  FAIL() << "no seed does that";
}

TEST(KvPulls, AreGivenUpAfterHalfAMinute) {
  RunPlan plan =
      two_hosts({{.at_ms = 0, .parts = {{1, 160}}}, {.at_ms = 100, .parts = {{1, 160}, {2, 16}}}});
  plan.scenario.cluster.transfer.bandwidth_gbps = 0.001;  // 8 s per block
  const RunResult r = run_apart(plan);
  EXPECT_EQ(r.requests[1].first_token, at_ms(100 + 30'000 + 10)) << "all of it computed in a step";
  EXPECT_EQ(r.requests[1].cached_tokens, 0);
  const TierCounters& here = pulls_of(r, r.requests[1].endpoint);
  EXPECT_EQ(here.pulls_failed, 1);
  EXPECT_EQ(here.pulled_bytes, 0);
  EXPECT_EQ(here.pull_waits.total, Duration::seconds(30));
}

TEST(KvPulls, NeedRoomWhereTheyGo) {
  RunPlan plan =
      two_hosts({{.at_ms = 0, .parts = {{1, 160}}}, {.at_ms = 100, .parts = {{1, 240}, {2, 16}}}});
  plan.pools.front().rules.tiers.cpu_chunks = 10;
  const RunResult r = run_apart(plan);
  // Ten fit, and are there at 114 and in GPU memory at 124.
  EXPECT_EQ(r.requests[1].first_token, at_ms(134));
  EXPECT_EQ(pulls_of(r, r.requests[1].endpoint).pulled_bytes, 10e6);
}

}  // namespace
}  // namespace routesim::sim::testing
