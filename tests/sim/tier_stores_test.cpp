// What keeps blocks outside GPU memory: the pool of chunks, LMCache in the workers, Mooncake's
// store.
#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>

#include "base/rng.h"
#include "sim/tiers/chunk_pool.h"
#include "sim/tiers/store_client.h"
#include "sim/tiers/worker_cache.h"
#include "tests/sim/plan_fixture.h"
#include "tests/sim/sim_fixture.h"

namespace routesim::sim {
namespace {

/// The same as a list and a map.
struct Plain {
  std::int64_t capacity;
  std::list<BlockKey> order;
  std::map<BlockKey, int> keepers;
  std::int64_t evictions = 0;

  bool insert(BlockKey key) {
    if (keepers.contains(key)) return true;
    if (std::ssize(order) == capacity) {
      const auto old =
          std::find_if(order.begin(), order.end(), [this](BlockKey k) { return keepers[k] == 0; });
      if (old == order.end()) return false;
      keepers.erase(*old);
      order.erase(old);
      ++evictions;
    }
    order.push_back(key);
    keepers[key] = 0;
    return true;
  }
  std::int64_t look_up(const std::vector<BlockKey>& chunks) {
    std::size_t n = 0;
    while (n < chunks.size() && keepers.contains(chunks[n])) ++n;
    for (std::size_t i = n; i-- > 0;) {
      order.remove(chunks[i]);
      order.push_back(chunks[i]);
    }
    return static_cast<std::int64_t>(n);
  }
};

TEST(ChunkPool, AgreesWithAListAndAMap) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    RandomStream random(seed, Stream::kTest, 11);
    const auto capacity = static_cast<std::int64_t>(1 + random.below(seed % 2 ? 20 : 3000));
    ChunkPool pool(capacity);
    Plain plain{.capacity = capacity, .order = {}, .keepers = {}};
    std::vector<BlockKey> kept;
    for (int i = 0; i < 4000; ++i) {
      const BlockKey first = 1 + random.below(static_cast<std::uint64_t>(2 * capacity));
      std::vector<BlockKey> chunks;
      for (BlockKey k = 0; k < 1 + random.below(6); ++k) chunks.push_back(first + k);
      if (random.below(3) == 0) {
        ASSERT_EQ(pool.leading(chunks), plain.look_up(chunks));
        ASSERT_EQ(pool.look_up(chunks), plain.look_up(chunks));
      } else {
        for (const BlockKey key : chunks) ASSERT_EQ(pool.insert(key), plain.insert(key));
      }
      if (pool.contains(first) && random.below(8) == 0) {
        pool.keep({&first, 1});
        ++plain.keepers[first];
        kept.push_back(first);
      } else if (!kept.empty() && random.below(4) == 0) {
        pool.release({&kept.back(), 1});
        --plain.keepers[kept.back()];
        kept.pop_back();
      }
      ASSERT_EQ(pool.size(), std::ssize(plain.order));
      ASSERT_EQ(pool.evictions(), plain.evictions);
    }
    pool.verify();
  }
}

// Two parts of three chunks: what lay in the lost one is found until it is forgotten, cannot be
// read, takes no room and is not stored again.
TEST(ChunkPool, APartMayBeLost) {
  ChunkPool pool(0);
  EXPECT_TRUE(pool.in_parts());
  EXPECT_FALSE(pool.insert(1));
  const std::uint32_t first = pool.add_part(3), second = pool.add_part(3);
  const std::vector<BlockKey> keys = {1, 2, 3, 4, 5, 6};
  for (const BlockKey key : keys) EXPECT_TRUE(pool.insert(key));
  EXPECT_EQ(pool.readable(keys), 6);
  pool.lose_part(first);
  pool.verify();
  EXPECT_EQ(pool.size(), 3);
  EXPECT_EQ(pool.capacity(), 3);
  EXPECT_EQ(pool.look_up(keys), 6);
  for (const BlockKey key : keys) EXPECT_TRUE(pool.insert(key));
  std::int64_t readable = 0;
  for (const BlockKey key : keys) readable += pool.readable({&key, 1});
  EXPECT_EQ(readable, 3);
  EXPECT_EQ(pool.evictions(), 0);
  // Others make room in what is left.
  EXPECT_TRUE(pool.insert(7));
  EXPECT_EQ(pool.evictions(), 1);
  pool.forget_part(first);
  pool.verify();
  std::int64_t left = 0;
  for (const BlockKey key : keys) left += pool.contains(key) ? 1 : 0;
  EXPECT_EQ(left, 2);
  EXPECT_EQ(pool.add_part(1), first) << "numbers are used again";
  pool.verify();
  EXPECT_TRUE(pool.insert(8));
  EXPECT_EQ(pool.size(), 4);
  pool.lose_part(second);
  EXPECT_EQ(pool.size(), 1);
  pool.verify();
}

// A part without room has a number of its own until it is forgotten, and the others stay.
TEST(ChunkPool, APartMayHaveNoRoom) {
  ChunkPool pool(0);
  const std::uint32_t empty = pool.add_part(0);
  pool.lose_part(empty);
  const std::uint32_t part = pool.add_part(3);
  EXPECT_NE(part, empty);
  pool.forget_part(empty);
  EXPECT_EQ(pool.add_part(0), empty);
  for (BlockKey key = 1; key <= 4; ++key) EXPECT_TRUE(pool.insert(key));
  pool.verify();
  EXPECT_EQ(pool.size(), 3);
  EXPECT_EQ(pool.evictions(), 1);
}

}  // namespace
}  // namespace routesim::sim

namespace routesim::sim::testing {
namespace {

// LMCache in an engine's workers, by hand: steps of 10 ms, blocks of 16 tokens that take 1 ms each,
// chunks of two blocks that cost 0.5 ms more to load and 0.25 ms to store.

EngineRules with_workers(std::int64_t usable_blocks, std::int64_t cpu_chunks) {
  EngineRules r = plain_rules(usable_blocks + 1);
  r.tiers = {.cpu_chunks = cpu_chunks,
             .chunk_blocks = 2,
             .block_bytes = 1e6,
             .link_bytes_per_s = 1e9,
             .prompt_only = true,
             .copies_in_steps = true,
             .load_chunk_s = 0.5e-3,
             .store_chunk_s = 0.25e-3};
  return r;
}

constexpr SimTime at_us(std::int64_t us) { return SimTime::from_ns(us * 1000); }

/// A server that computed 160 tokens of content 1 at 0 ms and, at 50 ms, as many others as evict
/// `evicted` blocks of these from GPU memory, which has 11.
struct Warm {
  Warm(const EngineRules& rules, std::int64_t evicted)
      : server(rules, std::make_shared<FixedLatency>(10)) {
    server.send({.parts = {{1, 160}}}, at_ms(0));
    server.send({.parts = {{2, 16 * (evicted + 1)}}}, at_ms(50));
    server.run_until(at_ms(149));
  }
  const Fate& ask(std::int64_t own = 160, std::int64_t others = 16) {
    TestRequest request{.parts = {{1, own}}};
    if (others > 0) request.parts.push_back({3, others});
    const std::uint32_t asked = server.send(request, at_ms(150));
    server.run();
    server.replica().verify();
    return server.fates[asked];
  }
  const TierCounters& did() const { return server.scheduler().tiers().counters(); }
  Server server;
};

TEST(WorkerCache, StepsWaitForTheirOwnCopies) {
  Warm w(with_workers(11, 1000), 10);
  EXPECT_EQ(w.server.fates[0].first, at_us(10'000 + 5 * 2'250)) << "five chunks are stored";
  const Fate& f = w.ask();
  EXPECT_EQ(f.first, at_us(150'000 + 5 * 2'500 + 10'000)) << "five loaded, and then nothing stored";
  EXPECT_EQ(f.cached, 160);
  EXPECT_EQ(w.did().hit_tokens, 160);
  EXPECT_EQ(w.did().query_tokens, 160 + 176 + 176);
  EXPECT_EQ(w.did().stored_chunks, 10);
  EXPECT_EQ(w.did().loaded_bytes, 10e6);
  EXPECT_EQ(w.did().load_waits.longest, Duration::microseconds(12'500));
}

TEST(WorkerCache, OthersInTheStepWaitToo) {
  Server server(with_workers(100, 1000), std::make_shared<FixedLatency>(10));
  const std::uint32_t decoding = server.send({.parts = {{9, 16}}, .output = 3}, at_ms(0));
  server.send({.parts = {{1, 160}}}, at_ms(5));
  server.run();
  EXPECT_EQ(server.fates[decoding].finish, at_us(10'000 + 10'000 + 11'250 + 10'000));
}

TEST(WorkerCache, AChunkOfWhichGpuMemoryHasAPartIsLoadedWhole) {
  Warm w(with_workers(11, 1000), 5);
  const Fate& f = w.ask();
  EXPECT_EQ(f.first, at_us(150'000 + 3 * 2'500 + 10'000)) << "GPU memory has two chunks and a half";
  EXPECT_EQ(f.cached, 160);
  EXPECT_EQ(w.did().hit_tokens, 80);
}

TEST(WorkerCache, OfAPromptThatIsAllThereTheLastTokenIsComputed) {
  Warm w(with_workers(11, 1000), 10);
  const Fate& f = w.ask(160, 0);
  EXPECT_EQ(f.first, at_us(150'000 + 5 * 2'500 + 10'000));
  EXPECT_EQ(f.cached, 159);
}

TEST(WorkerCache, WithoutTheHeadTheRestIsOfNoUse) {
  // The second prompt takes five of nine chunks: the head of the first one goes.
  Warm w(with_workers(11, 9), 10);
  const Fate& f = w.ask();
  EXPECT_EQ(f.first, at_us(150'000 + 10'000 + 5 * 2'250)) << "what is still there is copied again";
  EXPECT_EQ(f.cached, 0);
  EXPECT_EQ(w.did().stored_chunks, 5 + 5 + 1 + 4) << "each one evicts the next";
}

TEST(WorkerCache, AHitThatSavesLittleIsComputed) {
  EngineRules rules = with_workers(11, 1000);
  rules.tiers.min_hit_tokens = 161;
  Warm w(rules, 10);
  EXPECT_EQ(w.ask().first, at_us(160'000)) << "and not stored again";
}

TEST(WorkerCache, AnswersAreNotStored) {
  Server server(with_workers(100, 1000), std::make_shared<FixedLatency>(10));
  server.send({.parts = {{1, 16}}, .output = 20}, at_ms(0));
  server.run();
  EXPECT_EQ(server.scheduler().tiers().counters().stored_chunks, 0);
  EXPECT_EQ(server.fates[0].finish, at_us(200'000));
}

TEST(WorkerCache, WithoutRoomOnlyTheHeadIsStored) {
  Warm w(with_workers(11, 3), 10);
  EXPECT_EQ(w.did().refused_stores, 2);
  EXPECT_EQ(w.server.scheduler().tiers().chunks(), 3);
}

TEST(WorkerCache, ALookupTurnsTheOrderRound) {
  SequenceTable table;
  TierRules rules = with_workers(100, 4).tiers;
  rules.chunk_blocks = 1;
  WorkerCache cache(rules, 16, table);
  const auto store = [&](const std::vector<BlockKey>& keys) {
    cache.store(table.acquire(), keys, std::ssize(keys));
    cache.end_step(cache.close_pass());
  };
  store({11, 12});
  store({21, 22});
  Sequence q;
  q.target = 100;
  EXPECT_EQ(cache.lookup(q, std::vector<BlockKey>{11, 12}, 0).tokens, 32);
  store({31, 32, 33});
  EXPECT_EQ(cache.held_blocks(std::vector<BlockKey>{11, 12}, 0), 1) << "12 stood before 11";
  EXPECT_EQ(cache.held_blocks(std::vector<BlockKey>{21, 22}, 0), 0);
  cache.verify();
}

// Mooncake's store by hand: steps of 10 ms, blocks of 16 tokens that take 1 ms each over a server's
// network port.

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
