// KV blocks in host memory, by hand: steps of 10 ms, blocks of 16 tokens that take 1 ms each over a
// link of 1 GB/s.
#include "sim/tiers/kv_tiers.h"

#include "tests/sim/sim_fixture.h"

namespace routesim::sim::testing {
namespace {

EngineRules with_tier(std::int64_t usable_blocks, std::int64_t cpu_chunks) {
  EngineRules r = plain_rules(usable_blocks + 1);
  r.tiers = {
      .cpu_chunks = cpu_chunks, .block_bytes = 1e6, .link_bytes_per_s = 1e9, .prompt_only = true};
  return r;
}

/// A server that computed 160 tokens of content 1 at 0 ms and, at 30 ms, as many others as evict
/// `evicted` blocks of these from GPU memory, which has 11.
struct Warm {
  Warm(const EngineRules& rules, std::int64_t evicted)
      : server(rules, std::make_shared<FixedLatency>(10)) {
    server.send({.parts = {{1, 160}}}, at_ms(0));
    server.send({.parts = {{2, 16 * (evicted + 1)}}}, at_ms(30));
    server.run_until(at_ms(99));
  }
  /// Sends these 160 tokens at 100 ms, with 16 others behind them.
  const Fate& ask(std::uint64_t others = 3) {
    asked = server.send({.parts = {{1, 160}, {others, 16}}}, at_ms(100));
    server.run();
    server.replica().verify();
    return server.fates[asked];
  }
  Server server;
  std::uint32_t asked = 0;
};

TEST(KvTiers, WithRoomForAllEveryPromptChunkIsFoundAgain) {
  Warm w(with_tier(11, 100'000), 10);
  const Fate& f = w.ask();
  EXPECT_EQ(f.first, at_ms(100 + 10 + 10)) << "ten blocks to copy, then a step for the rest";
  EXPECT_EQ(f.cached, 160);
  const TierCounters& t = w.server.scheduler().tiers().counters();
  EXPECT_EQ(t.hit_tokens, 160);
  EXPECT_EQ(t.query_tokens, 160 + 176 + 176);
  EXPECT_EQ(t.stored_chunks, 10 + 11 + 1) << "what was loaded is not stored again";
  EXPECT_EQ(w.server.scheduler().tiers().chunks(), 22);
  EXPECT_EQ(t.evicted_chunks, 0);
}

TEST(KvTiers, WithoutRoomItIsAsIfThereWereNone) {
  for (const std::int64_t chunks : {0, 1}) {
    EngineRules rules = with_tier(11, chunks);
    rules.tiers.chunk_blocks = 64;  // No prompt has a whole chunk.
    Warm w(rules, 10);
    const Fate& f = w.ask();
    EXPECT_EQ(f.first, at_ms(110));
    EXPECT_EQ(f.cached, 0);
  }
}

TEST(KvTiers, WhatWasEvictedThereIsComputedAgain) {
  Warm w(with_tier(11, 11), 10);
  EXPECT_EQ(w.ask().first, at_ms(110)) << "the second prompt has taken all eleven chunks";
}

TEST(KvTiers, ExtendWhatGpuMemoryHas) {
  Warm w(with_tier(11, 1000), 5);
  const Fate& f = w.ask();
  EXPECT_EQ(f.first, at_ms(100 + 5 + 10)) << "the last five blocks were evicted";
  EXPECT_EQ(f.cached, 160);
  EXPECT_EQ(w.server.scheduler().tiers().counters().hit_tokens, 80);
}

TEST(KvTiers, LessThanAChunkIsNotLoaded) {
  EngineRules rules = with_tier(11, 1000);
  rules.tiers.chunk_blocks = 5;
  // Blocks 5 ... 9 are a chunk; GPU memory has 6 blocks of the prompt.
  Warm w(rules, 4);
  const Fate& f = w.ask();
  EXPECT_EQ(f.first, at_ms(110));
  EXPECT_EQ(f.cached, 96);
}

TEST(KvTiers, ARequestWaitsForWhatAnotherOneLoads) {
  Warm w(with_tier(12, 1000), 11);
  const std::uint32_t second = w.asked = w.server.send({.parts = {{1, 160}, {4, 16}}}, at_ms(100));
  const Fate& first = w.ask();
  EXPECT_EQ(first.first, at_ms(120));
  EXPECT_EQ(w.server.fates[second].first, at_ms(120)) << "it finds the blocks in GPU memory then";
  EXPECT_EQ(w.server.scheduler().tiers().counters().loads, 1);
}

TEST(KvTiers, ARequestWaitsForWhatIsBeingStored) {
  for (const bool waits : {false, true}) {
    EngineRules rules = with_tier(11, 1000);
    rules.tiers.block_bytes = 2e6;
    rules.tiers.waits_for_writes = waits;
    Server server(rules, std::make_shared<FixedLatency>(10));
    // The first prompt is copied from 10 to 30 ms; the second one evicts it at 10 ms.
    server.send({.parts = {{1, 160}}}, at_ms(0));
    server.send({.parts = {{2, 176}}}, at_ms(5));
    const std::uint32_t third = server.send({.parts = {{1, 160}, {3, 16}}}, at_ms(12));
    server.run();
    EXPECT_EQ(server.fates[third].first, waits ? at_ms(30 + 20 + 10) : at_ms(30));
  }
}

TEST(KvTiers, ALoadIsHeardOfOneOrTwoStepsLater) {
  for (const bool async : {false, true}) {
    EngineRules rules = with_tier(40, 1000);
    rules.async_scheduling = async;
    Server server(rules, std::make_shared<FixedLatency>(10));
    server.send({.parts = {{1, 160}}}, at_ms(0));
    server.send({.parts = {{2, 640}}}, at_ms(30));
    server.send({.parts = {{3, 16}}, .output = 40}, at_ms(100));  // keeps the server busy
    const std::uint32_t asked = server.send({.parts = {{1, 160}, {4, 16}}}, at_ms(125));
    server.run();
    // The request comes into the queue at 130, and the load ends at 140, in the step up to 150. The
    // step after that tells at 160, and the next one computes the rest. Asynchronous: a step later,
    // and the next one is already scheduled.
    EXPECT_EQ(server.fates[asked].first, async ? at_ms(190) : at_ms(170));
    EXPECT_EQ(server.fates[asked].cached, 160);
  }
}

TEST(KvTiers, BlocksAreKeptUntilTheyAreCopied) {
  for (const bool settles : {false, true}) {
    EngineRules rules = with_tier(11, 1000);
    rules.tiers.settles_at_request_end = settles;
    Server server(rules, std::make_shared<FixedLatency>(10));
    server.send({.parts = {{1, 160}}}, at_ms(0));
    server.run_until(at_ms(15));
    EXPECT_EQ(server.scheduler().kv().used_blocks(), settles ? 10 : 0);
    EXPECT_EQ(server.scheduler().storing(), settles ? 1 : 0);
    server.replica().verify();
    server.run_until(at_ms(20));
    EXPECT_EQ(server.scheduler().kv().used_blocks(), 0);
  }
}

/// The tiers of a core without its scheduler. Chunks are numbers.
class Tiers {
 public:
  explicit Tiers(const EngineRules& rules) : owned_(make_kv_tiers(rules, table_)), tiers(*owned_) {}
  ~Tiers() { tiers.verify(); }
  /// Asks for the chunks of a new request behind `gpu` ones.
  std::int64_t hit(const std::vector<BlockKey>& keys, std::int64_t gpu = 0) {
    slot = request(keys);
    return tiers.lookup(table_[slot], keys, gpu).blocks;
  }
  bool begin_store(const std::vector<BlockKey>& keys) {
    slot = request(keys);
    const bool stored = tiers.store(slot, keys, std::ssize(keys));
    copy = tiers.close_pass();
    return stored;
  }
  void end_store() { tiers.copy_done(static_cast<std::uint32_t>(copy), ready_); }
  void store(const std::vector<BlockKey>& keys) {
    ASSERT_TRUE(begin_store(keys));
    end_store();
  }
  Sequence& sequence() { return table_[slot]; }

  SequenceSlot slot = 0;
  std::int64_t copy = -1;

 private:
  SequenceSlot request(const std::vector<BlockKey>& keys) {
    const SequenceSlot s = table_.acquire();
    table_[s].tier.id = ++requests_;
    table_[s].target = std::ssize(keys) * 16 + 1;
    return s;
  }
  SequenceTable table_;
  std::uint64_t requests_ = 0;
  std::vector<SequenceSlot> ready_;
  std::unique_ptr<KvTiers> owned_;

 public:
  KvTiers& tiers;
};

TEST(KvTiers, TailsGoBeforeHeads) {
  Tiers t(with_tier(100, 3));
  t.store({11, 12});
  t.store({21, 22});
  EXPECT_EQ(t.hit({11, 12}), 1);
  EXPECT_EQ(t.hit({21, 22}), 2);
}

TEST(KvTiers, ALookupMakesChunksYoung) {
  Tiers t(with_tier(100, 4));
  t.store({11, 12});
  t.store({21, 22});
  EXPECT_EQ(t.hit({11, 12, 13}), 2);
  t.store({31, 32});
  EXPECT_EQ(t.hit({21, 22}), 0);
  EXPECT_EQ(t.hit({11, 12}), 2);
  EXPECT_EQ(t.hit({31, 32}), 2);
}

TEST(KvTiers, AHitMayBeginAnywhere) {
  Tiers t(with_tier(100, 10));
  t.store({11, 12, 13, 14, 15, 16});
  EXPECT_EQ(t.hit({11, 12, 13, 14, 15, 16}, 4), 2);
  EXPECT_EQ(t.hit({11, 12, 13, 24, 25}, 2), 1);
  // Only what is missing is stored, as another request with the same beginning has it.
  const std::int64_t before = t.tiers.counters().stored_chunks;
  t.store({11, 12, 13, 14, 15, 16, 17});
  EXPECT_EQ(t.tiers.counters().stored_chunks, before + 1);
}

TEST(KvTiers, AStoreThatFindsNoRoomComesBack) {
  Tiers t(with_tier(100, 3));
  ASSERT_TRUE(t.begin_store({11, 12}));
  const std::int64_t first = t.copy;
  EXPECT_FALSE(t.begin_store({21, 22})) << "what is being written cannot be evicted";
  EXPECT_EQ(t.copy, -1);
  EXPECT_EQ(t.sequence().tier.stored, 0);
  EXPECT_EQ(t.tiers.counters().refused_stores, 1);
  t.copy = first;
  t.end_store();
  t.store({21, 22});
  EXPECT_EQ(t.hit({21, 22}), 2);
}

TEST(KvTiers, OfWindowsOnlyTheLastChunksAreLoaded) {
  EngineRules rules = with_tier(100, 100);
  rules.window_groups = 2;
  rules.window_tokens = 32;
  Tiers t(rules);
  const std::vector<BlockKey> keys = {11, 12, 13, 14, 15, 16};
  t.store(keys);
  EXPECT_EQ(t.tiers.chunks(), 18) << "all chunks of each group";
  ASSERT_EQ(t.hit(keys), 6);
  t.sequence().tier.loading_tokens = 96;
  t.tiers.load(t.slot, keys, 0, 4);
  ASSERT_EQ(t.tiers.to_start().size(), 1U);
  EXPECT_EQ(t.tiers.to_start().front().bytes, (6 + 2 * 2) * 1e6);
  t.copy = t.tiers.to_start().front().id;
  t.tiers.verify();
  t.end_store();
}

TEST(KvTiers, AHitEndsWhereEveryGroupAgrees) {
  EngineRules rules = with_tier(100, 9);
  rules.window_groups = 1;
  rules.window_tokens = 32;
  Tiers t(rules);
  t.store({11, 12, 13, 14});
  // The last three chunks of the group that sees everything go: they were released first.
  t.store({21, 22});
  EXPECT_EQ(t.hit({11, 12, 13, 14, 15}), 1) << "the beginning cuts the window short";
}

}  // namespace
}  // namespace routesim::sim::testing
