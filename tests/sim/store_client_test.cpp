// Mooncake's store by hand: steps of 10 ms, blocks of 16 tokens that take 1 ms each over a server's
// network port.
#include "sim/tiers/store_client.h"

#include "tests/sim/plan_fixture.h"

namespace routesim::sim::testing {
namespace {

/// Requests go to the servers in turn. GPU memory has room for 11 blocks.
RunPlan with_store(std::vector<Sent> script, std::int64_t servers, std::int64_t chunks = 1000) {
  RunPlan plan = hand_made_plan(std::move(script), servers);
  plan.scenario.routing.balancer = BalancerKind::kRoundRobin;
  plan.scenario.cluster.transfer.bandwidth_gbps = 8;
  ResolvedPool& pool = plan.pools.front();
  pool.rules = plain_rules(12);
  pool.rules.tiers = {.cpu_chunks = chunks,
                      .block_bytes = 1e6,
                      .link_bytes_per_s = 1e9,
                      .prompt_only = true,
                      .waits_for_writes = false,
                      .shared_store = true,
                      .whole_store = true};
  return plan;
}

SimTime first_of(const RunResult& r, std::size_t i) { return r.requests[i].first_token; }

TEST(StoreClient, AServerLoadsWhatAnotherOnePut) {
  const RunResult r = run_by_hand(with_store(
      {{.at_ms = 0, .parts = {{1, 160}}}, {.at_ms = 100, .parts = {{1, 160}, {3, 16}}}}, 2));
  EXPECT_EQ(first_of(r, 0), at_ms(10));
  EXPECT_EQ(first_of(r, 1), at_ms(100 + 10 + 10)) << "ten blocks, then a step for the rest";
  EXPECT_EQ(r.requests[1].cached_tokens, 160);
  EXPECT_EQ(r.summary.tiers->did.loaded_bytes, 10e6);
  EXPECT_EQ(r.summary.tiers->did.stored_chunks, 10);
}

TEST(StoreClient, OfAPromptThatIsAllThereTheLastBlockIsComputed) {
  const RunResult r = run_by_hand(
      with_store({{.at_ms = 0, .parts = {{1, 160}}}, {.at_ms = 100, .parts = {{1, 160}}}}, 2));
  EXPECT_EQ(first_of(r, 1), at_ms(100 + 9 + 10));
  EXPECT_EQ(r.requests[1].cached_tokens, 144);
}

TEST(StoreClient, WhatIsThereIsNotPutAgain) {
  // The first prompt is out at 20 ms: too late for the second to load it, not for its put.
  const RunResult r = run_by_hand(
      with_store({{.at_ms = 0, .parts = {{1, 160}}}, {.at_ms = 12, .parts = {{1, 160}}}}, 2));
  EXPECT_EQ(first_of(r, 1), at_ms(22));
  EXPECT_LE(r.summary.tiers->did.stored_bytes, 10e6);
}

TEST(StoreClient, TheOldestMakeRoomForAllServers) {
  const RunResult r = run_by_hand(with_store({{.at_ms = 0, .parts = {{1, 160}}},
                                              {.at_ms = 50, .parts = {{2, 160}}},
                                              {.at_ms = 100, .parts = {{1, 160}, {3, 16}}}},
                                             3, 10));
  EXPECT_EQ(first_of(r, 2), at_ms(110));
  EXPECT_EQ(r.summary.tiers->did.evicted_chunks, 10);
}

TEST(StoreClient, EachServerMayGiveAPartOfTheStore) {
  for (const bool whole : {true, false}) {
    RunPlan plan = with_store({{.at_ms = 0, .parts = {{1, 160}}},
                               {.at_ms = 50, .parts = {{2, 160}}},
                               {.at_ms = 100, .parts = {{1, 160}, {3, 16}}}},
                              3, 10);
    plan.pools.front().rules.tiers.whole_store = whole;
    EXPECT_EQ(first_of(run_by_hand(plan), 2), at_ms(whole ? 110 : 120));
  }
}

TEST(StoreClient, BlocksAreKeptUntilTheyAreOut) {
  const RunResult r = run_by_hand(
      with_store({{.at_ms = 0, .parts = {{1, 160}}}, {.at_ms = 11, .parts = {{2, 176}}}}, 1));
  EXPECT_EQ(first_of(r, 1), at_ms(20 + 10));
}

TEST(StoreClient, ServersShareNothingElse) {
  // Both load over ports of their own.
  const RunResult r = run_by_hand(with_store({{.at_ms = 0, .parts = {{1, 160}}},
                                              {.at_ms = 100, .parts = {{1, 160}, {3, 16}}},
                                              {.at_ms = 100, .parts = {{1, 160}, {4, 16}}}},
                                             3));
  EXPECT_EQ(first_of(r, 1), at_ms(120));
  EXPECT_EQ(first_of(r, 2), at_ms(120));
}

}  // namespace
}  // namespace routesim::sim::testing
