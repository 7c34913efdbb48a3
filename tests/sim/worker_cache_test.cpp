// LMCache in an engine's workers, by hand: steps of 10 ms, blocks of 16 tokens that take 1 ms each,
// chunks of two blocks that cost 0.5 ms more to load and 0.25 ms to store.
#include "sim/tiers/worker_cache.h"

#include "tests/sim/sim_fixture.h"

namespace routesim::sim::testing {
namespace {

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

}  // namespace
}  // namespace routesim::sim::testing
