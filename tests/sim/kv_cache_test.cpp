// The cache by runs against the cache by blocks: the same hits, evictions and free queue, whatever
// comes and goes.
#include "sim/kv/kv_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/rng.h"
#include "tests/sim/block_cache.h"

namespace routesim::sim::testing {
namespace {

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

}  // namespace
}  // namespace routesim::sim::testing
