// The blocks of a server's KV cache: how they are kept, used over time, and given up.
#include "sim/kv/kv_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/rng.h"
#include "tests/sim/block_cache.h"
#include "tests/sim/sim_fixture.h"

namespace routesim::sim::testing {
namespace {

// The cache by runs against the cache by blocks: the same hits, evictions and free queue, whatever
// comes and goes.

class Removals final : public KvEventSink {
 public:
  void removed(std::span<const BlockKey> k) override {
    keys.insert(keys.end(), k.rbegin(), k.rend());
  }
  std::vector<BlockKey> keys;
};

/// One sequence in both caches.
struct Twin {
  std::vector<BlockKey> keys;  ///< Of the prompt.
  BlockHolding holding;
  std::vector<std::size_t> owned;
  std::int64_t registered = 0;
  RunRef private_run;
};

class Pair {
 public:
  Pair(std::uint64_t seed, FreeQueue mode)
      : random_(seed, Stream::kTest),
        blocks_(2 + static_cast<std::int64_t>(random_.below(200))),
        runs_(blocks_, 16, mode),
        oracle_(blocks_, mode) {
    runs_.set_sink(&removals_);
    for (Twin& t : twins_) t.keys = chain();
  }

  void act() {
    Twin& t = twins_[random_.below(twins_.size())];
    if (t.owned.empty())
      begin(t);
    else if (random_.below(4) == 0)
      end(t);
    else if (random_.below(3) == 0)
      hide(t);
    else
      go_on(t);
  }

  void compare() {
    ASSERT_EQ(runs_.free_queue(), oracle_.free_queue());
    ASSERT_EQ(removals_.keys, oracle_.removed);
    ASSERT_EQ(runs_.free_blocks(), oracle_.free_blocks());
    ASSERT_EQ(runs_.evictions(), oracle_.evictions());
    ASSERT_EQ(runs_.shared_tokens(), 16 * oracle_.shared_blocks());
    ASSERT_EQ(runs_.shared_once(), 16 * oracle_.blocks_of_several());
    ASSERT_EQ(runs_.findable_blocks(), oracle_.findable_blocks());
    std::vector<const BlockHolding*> holdings;
    for (const Twin& t : twins_) holdings.push_back(&t.holding);
    runs_.verify();
    runs_.verify_holdings(holdings);
  }

  std::int64_t hits = 0, twins = 0, free_twins = 0;

 private:
  std::int64_t some(std::int64_t most) {
    return static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(most) + 1));
  }

  // Few contents, so that chains have prefixes in common and part anywhere.
  std::vector<BlockKey> chain() {
    std::vector<BlockKey> keys;
    BlockKey state = 0;
    for (std::int64_t n = 1 + some(40); n > 0; --n)
      keys.push_back(state = mix64(state, random_.below(12) == 0 ? 1 + random_.below(2) : 0) | 1);
    return keys;
  }

  void begin(Twin& t) {
    if (random_.below(3) == 0) t.keys = chain();
    const auto most = static_cast<std::size_t>(some(std::ssize(t.keys)));
    const std::span<const BlockKey> keys = std::span(t.keys).first(most);
    CachedPrefix found;
    const std::vector<std::size_t> expected = oracle_.lookup(keys);
    ASSERT_EQ(runs_.lookup(keys, found), std::ssize(expected));
    const std::int64_t free = oracle_.count_unreferenced(expected);
    ASSERT_EQ(runs_.count_unreferenced(found), free);
    const bool twin = oracle_.has_free_twin(expected);
    ASSERT_EQ(runs_.has_free_twin(found), twin);
    free_twins += twin ? 1 : 0;
    hits += found.blocks;
    runs_.take_hits(found, t.holding);
    oracle_.take(expected, t.owned);
    t.registered = found.blocks;
    go_on(t);
  }

  // More blocks, and keys for some of the blank ones.
  void go_on(Twin& t) {
    const std::int64_t n = std::min(some(12), oracle_.free_blocks());
    runs_.allocate(n, t.holding);
    oracle_.allocate(n, t.owned);
    const std::int64_t known = std::min(std::ssize(t.keys), std::ssize(t.owned));
    const std::int64_t more =
        t.private_run.run != 0 ? 0 : some(std::max<std::int64_t>(0, known - t.registered));
    const auto first = static_cast<std::size_t>(t.registered);
    for (std::int64_t i = 0; i < more; ++i) {
      const BlockKey key = t.keys[first + static_cast<std::size_t>(i)];
      twins += oracle_.lookup({&key, 1}).empty() ? 0 : 1;
      oracle_.register_key(t.owned[first + static_cast<std::size_t>(i)], key);
    }
    runs_.register_keys(t.holding,
                        std::span(t.keys).subspan(first, static_cast<std::size_t>(more)));
    t.registered += more;
  }

  // Keys that only the sequence knows for all that is blank; nothing is registered behind them.
  void hide(Twin& t) {
    const std::int64_t n = std::ssize(t.owned) - t.registered;
    if (n == 0 || t.private_run.run != 0) return;
    t.private_run = runs_.register_private(t.holding, n);
    for (auto i = static_cast<std::size_t>(t.registered); i < t.owned.size(); ++i)
      oracle_.register_key(t.owned[i], 0);
    t.registered = std::ssize(t.owned);
  }

  void end(Twin& t) {
    runs_.release(t.holding);
    oracle_.release(t.owned);
    t.registered = 0;
    t.private_run = {};
  }

  RandomStream random_;
  std::int64_t blocks_;
  KvCache runs_;
  BlockCache oracle_;
  Removals removals_;
  std::array<Twin, 6> twins_;
};

TEST(KvCache, RunsDoWhatBlocksDo) {
  std::int64_t hits = 0, twins = 0, free_twins = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Pair pair(seed, seed % 2 == 0 ? FreeQueue::kAppendAll : FreeQueue::kUnhashedFirst);
    for (int i = 0; i < 300; ++i) {
      pair.act();
      pair.compare();
      if (HasFatalFailure()) return;
    }
    hits += pair.hits;
    twins += pair.twins;
    free_twins += pair.free_twins;
  }
  EXPECT_GT(hits, 100'000) << "the chains must have something in common";
  EXPECT_GT(twins, 10'000) << "and be computed side by side";
  EXPECT_GT(free_twins, 1'000) << "and outlive their sequence";
}

TEST(KvCache, AGivenUpPrivateRunIsEatenFromItsEnd) {
  KvCache kv(11, 16, FreeQueue::kAppendAll);
  BlockHolding holding;
  kv.allocate(6, holding);
  const RunRef whole = kv.register_private(holding, 6);
  kv.release(holding);
  EXPECT_EQ(kv.blocks_of(whole), 6);
  kv.allocate(4 + 1, holding);  // four blank ones, then the last of the answer
  EXPECT_EQ(kv.blocks_of(whole), 5);
  kv.allocate(2, holding);
  EXPECT_EQ(kv.blocks_of(whole), 3);
  EXPECT_EQ(kv.evictions(), 3);
  kv.verify();
}

TEST(KvCache, ResetForgetsEverythingOnceNothingIsHeld) {
  KvCache kv(11, 16, FreeQueue::kAppendAll);
  BlockHolding holding;
  const std::vector<BlockKey> keys{3, 5, 7};
  kv.allocate(3, holding);
  kv.register_keys(holding, keys);
  EXPECT_FALSE(kv.reset());
  kv.release(holding);
  CachedPrefix hits;
  EXPECT_EQ(kv.lookup(keys, hits), 3);
  EXPECT_TRUE(kv.reset());
  EXPECT_EQ(kv.lookup(keys, hits), 0);
  EXPECT_EQ(kv.free_blocks(), 10);
  kv.verify();
}

// The time integral of used KV blocks, by hand.

// A stage may begin or end within a step, and what the step uses until then counts until then.
TEST(BlockUsage, CountsUpToTheInstantWithinAStep) {
  class Slow final : public models::LatencyModel {
   public:
    std::int64_t step_ticks(const models::BatchShape&) const override {
      return 100 * models::kTicksPerMillisecond;
    }
    models::Trust trust(const models::BatchShape&) const override { return models::Trust::kFitted; }
    std::string provenance() const override { return "slow"; }
  };
  EngineRules rules = plain_rules();
  rules.block_size = 4;
  Server server(rules, std::make_shared<Slow>());
  // 8 prompt tokens: 2 blocks in the step from 0 to 100 ms, 3 in the step from 100 to 200 ms.
  server.send({.parts = {{1, 8}}, .output = 2}, at_ms(0));
  for (const auto& [ms, block_ms, peak] :
       {std::array{0, 0, 2}, {40, 80, 2}, {100, 200, 3}, {150, 350, 3}}) {
    server.run_until(at_ms(ms));
    EXPECT_DOUBLE_EQ(server.replica().used_block_seconds(0, at_ms(ms)), 1e-3 * block_ms) << ms;
    EXPECT_EQ(server.replica().peak_used_blocks(0), peak) << ms;
  }
  server.run();
  EXPECT_DOUBLE_EQ(server.replica().used_block_seconds(0, at_ms(1000)), 0.5);
  EXPECT_EQ(server.replica().peak_used_blocks(0), 3);
}

// Layers with a window, by hand: blocks of their own, given up as the window moves on, and needed
// for a hit.

/// Blocks of 16 tokens, a window of 32.
EngineRules windowed(std::int64_t groups, std::int64_t usable_blocks) {
  EngineRules rules = plain_rules(usable_blocks + 1);
  rules.window_groups = groups;
  rules.window_tokens = 32;
  return rules;
}

/// A scheduler without a clock.
class Engine {
 public:
  explicit Engine(const EngineRules& rules) : shelf_(rules.block_size), scheduler(rules, false) {}
  /// Sends a request and steps until all is done; the prompt tokens it found.
  std::int64_t serve(const TestRequest& t) {
    const EngineRequest r = shelf_.add(t);
    scheduler.enqueue(r, SimTime::zero(), out_);
    while (!scheduler.idle()) step();
    for (const EngineOutput& o : out_)
      if (o.kind == EngineOutputKind::kFinished && o.handle == r.handle) return o.cached_tokens;
    return -1;
  }
  void send(const TestRequest& t) { scheduler.enqueue(shelf_.add(t), SimTime::zero(), out_); }
  /// Sends a request whose prompt lies on another server; the blocks it pulls.
  std::int64_t pull(const TestRequest& t) {
    EngineRequest r = shelf_.add(t);
    r.remote_tokens = r.prompt_tokens;
    scheduler.enqueue(r, SimTime::zero(), out_);
    step();
    return out_.back().kind == EngineOutputKind::kTransferNeeded ? out_.back().value : -1;
  }
  void step() {
    StepPlan plan;
    scheduler.schedule(plan, nullptr, SimTime::zero(), out_);
    scheduler.verify();
    scheduler.process(plan, SimTime::zero(), out_);
    scheduler.verify();
  }

 private:
  RequestShelf shelf_;
  std::vector<EngineOutput> out_;

 public:
  BatchScheduler scheduler;
};

// A prompt of ten blocks and 40 tokens of answer: its keys grow, its states do not.
TEST(WindowBlocks, AStateIsOneBlockOfEachGroup) {
  EngineRules rules = plain_rules(1001);
  rules.window_groups = 3;
  rules.state_groups = true;
  rules.enable_prefix_caching = false;
  Engine e(rules);
  e.send({.parts = {{1, 160}}, .output = 40});
  e.step();
  EXPECT_EQ(e.scheduler.kv().used_blocks(), 10 + 3);
  for (int i = 0; i < 20; ++i) e.step();
  EXPECT_EQ(e.scheduler.kv().used_blocks(), 12 + 3) << "180 tokens";
  rules.num_gpu_blocks = 1 + 10 + 2;
  EngineRequest long_one{.prompt_tokens = 160, .output_tokens = 1};
  EXPECT_FALSE(BatchScheduler(rules, false).can_serve(long_one)) << "no room for three states";
  rules.num_gpu_blocks += 1;
  EXPECT_TRUE(BatchScheduler(rules, false).can_serve(long_one));
}

TEST(WindowBlocks, AreGivenUpAsTheWindowMovesOn) {
  for (const std::int64_t groups : {0, 1, 6}) {
    Engine e(windowed(groups, 1000));
    e.send({.parts = {{1, 160}}, .output = 40});
    e.step();
    EXPECT_EQ(e.scheduler.kv().used_blocks(), 10 + groups * 10) << "the whole prompt in each group";
    e.step();
    // Token 161 begins a block and sees 129 ... 160, which are in the last two.
    EXPECT_EQ(e.scheduler.kv().used_blocks(), 11 + groups * 3);
  }
}

/// 160 tokens and an answer of two: 18 blank blocks are left of 40, and in the free queue behind
/// them the eight that left the window, then the others. 13 blocks in each group then evict the
/// eight.
std::int64_t hit_after_eviction(std::int64_t groups, const TestRequest& probe) {
  Engine e(windowed(groups, groups == 0 ? 24 : 40));
  e.serve({.parts = {{1, 160}}, .output = 2});
  e.serve({.parts = {{9, 208}}, .output = 1});
  return e.serve(probe);
}

TEST(WindowBlocks, AHitNeedsTheWindowBeforeItsEnd) {
  EXPECT_EQ(hit_after_eviction(1, {.parts = {{1, 160}, {2, 16}}}), 160)
      << "the last two blocks were given up last";
  EXPECT_EQ(hit_after_eviction(1, {.parts = {{1, 80}, {2, 16}}}), 0)
      << "nothing of the window before token 80 is left, nor of any before";
  EXPECT_EQ(hit_after_eviction(0, {.parts = {{1, 80}, {2, 16}}}), 80) << "one group has it all";
}

TEST(WindowBlocks, AreFoundWhileTheyLast) {
  Engine e(windowed(2, 1000));
  e.serve({.parts = {{1, 160}}, .output = 2});
  EXPECT_EQ(e.serve({.parts = {{1, 80}, {2, 16}}}), 80);
  EXPECT_EQ(e.serve({.parts = {{1, 16}, {3, 64}}}), 16) << "a window cut short by the beginning";
}

TEST(WindowBlocks, OnlyTheWindowIsPulled) {
  for (const std::int64_t groups : {0, 1, 6}) {
    Engine e(windowed(groups, 1000));
    EXPECT_EQ(e.pull({.parts = {{1, 160}}, .output = 4}), 10 + groups * 2);
  }
}

TEST(WindowBlocks, SharingThemIsNoSharedContext) {
  Engine e(windowed(1, 1000));
  e.send({.parts = {{1, 160}}, .output = 40});
  e.step();
  e.send({.parts = {{1, 160}, {2, 16}}, .output = 40});
  e.step();
  EXPECT_EQ(e.scheduler.kv().shared_tokens(), 160);
}

}  // namespace
}  // namespace routesim::sim::testing
