// The index against its model, after every one of many random operations.
#include "tests/policies/prefix_index_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/rng.h"
#include "policies/index/prefix_index.h"

namespace routesim::policies {
namespace {

/// How engine keys relate to request keys: equal; different, one to one; anything.
enum class EngineKeys { kEqual, kPaired, kMixed };

/// Drives the index and the model with the same random operations.
class Duel {
 public:
  /// `stretch`: how many times longer than a few blocks events and lookups are.
  Duel(std::uint64_t seed, PrefixIndexOptions options, EngineKeys engine_keys,
       std::size_t stretch = 1)
      : random_(seed, Stream::kTest),
        engine_keys_(engine_keys),
        stretch_(stretch),
        index_(options),
        model_(options) {}

  void step() {
    switch (random_.below(12)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return store();
      case 4:
      case 5:
        return remove();
      case 6:
        return match();
      case 7:
        return add();
      case 8:
        return evict();
      case 9:
        return tier_update();
      case 10:
        return resolve();
      default:
        return random_.below(10) == 0 ? clear() : match();
    }
  }

  void compare() {
    std::vector<BlockKey> order;
    for (auto& [key, holders] : model_.requests.items()) {
      order.push_back(key);
      ASSERT_EQ(index_.holders(key), holders) << "key " << key;
    }
    ASSERT_EQ(index_.keys_by_recency(), order);
    ASSERT_EQ(index_.request_key_count(), order.size());
    ASSERT_EQ(index_.engine_key_count(), model_.engines.items().size());
    for (auto& [key, list] : model_.engines.items())
      ASSERT_EQ(index_.request_keys_of(key), list) << "engine key " << key;
  }

 private:
  static constexpr std::uint64_t kChain = 12;  // Keys of one chain follow each other.

  // Tiers 1 and 2 have weights of their own, the third has none.
  // Enough, where engine keys are paired, for more holders of a key than are counted in a set.
  std::uint64_t endpoints() const { return engine_keys_ == EngineKeys::kPaired ? 12 : 4; }
  HolderEntry entry(bool speculative = false) {
    HolderEntry e{.endpoint = EndpointId(random_.below(endpoints())),
                  .tier = static_cast<TierId>(1 + random_.below(3)),
                  .speculative = false,
                  .group = std::nullopt};
    if (random_.below(4) == 0) e.group = static_cast<std::uint32_t>(random_.below(2));
    if (speculative)
      e = {.endpoint = e.endpoint, .tier = kNoTier, .speculative = true, .group = {}};
    return e;
  }
  // Mostly one; several take another way through the index.
  std::vector<HolderEntry> some_entries() {
    std::vector<HolderEntry> out;
    const std::size_t count = random_.below(3) == 0 ? 2 + random_.below(2) : 1;
    while (out.size() < count) out.push_back(entry(random_.below(3) != 0));
    return out;
  }
  std::size_t length(std::size_t most) { return 1 + random_.below(most * stretch_); }
  std::vector<std::uint64_t> run(std::uint64_t offset, std::size_t count) {
    const std::uint64_t first = random_.below(3) * 100 + random_.below(kChain * stretch_);
    std::vector<std::uint64_t> keys(count);
    for (std::size_t i = 0; i < count; ++i) keys[i] = offset + 1 + first + i;
    return keys;
  }
  std::vector<std::uint64_t> engine_run(std::size_t count) {
    if (engine_keys_ == EngineKeys::kPaired) return run(1000, count);
    return run(engine_keys_ == EngineKeys::kEqual || random_.below(2) == 0 ? 0 : 1000, count);
  }

  void store() {
    const HolderEntry e = entry();
    const auto keys = run(0, length(5));
    auto engine = keys;
    if (engine_keys_ == EngineKeys::kPaired)
      for (auto& key : engine) key += 1000;
    else if (engine_keys_ == EngineKeys::kMixed && random_.below(2) == 0)
      engine = engine_run(length(5));
    const std::uint64_t parent = random_.below(3) == 0 ? engine_run(1)[0] : 0;
    ASSERT_EQ(index_.stored(e.endpoint, e.tier, parent, engine, keys, true, e.group),
              model_.stored(e, parent, engine, keys, true));
  }
  void remove() {
    const HolderEntry e = entry();
    auto keys = engine_run(length(4));
    if (random_.below(2) == 0) std::reverse(keys.begin(), keys.end());
    index_.removed(e.endpoint, e.tier, keys, e.group);
    model_.removed(e, keys);
  }
  void tier_update() {
    const HolderEntry e = entry();
    const auto keys = engine_run(length(4));
    const bool tokens = random_.below(5) == 0;
    index_.stored(e.endpoint, e.tier, 0, keys, {}, tokens, e.group);
    model_.stored(e, 0, keys, {}, tokens);
  }
  void match() {
    const auto keys = run(0, length(6));
    const bool dry_run = random_.below(4) == 0;
    index_.match(keys, scratch_, dry_run);
    const auto expected = dry_run ? test::ModelIndex(model_).match(keys) : model_.match(keys);
    const auto got = scratch_.matches();
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i].endpoint, expected[i].endpoint);
      ASSERT_EQ(got[i].blocks, expected[i].blocks);
      ASSERT_EQ(got[i].weighted, expected[i].weighted) << "bit for bit";
    }
    std::vector<TierCount> tiers;
    index_.tier_counts(keys, tiers);
    ASSERT_EQ(tiers, model_.tier_counts(keys));
  }
  void add() {
    const std::vector<HolderEntry> entries = some_entries();
    const auto keys = run(0, length(4));
    const auto engine =
        random_.below(4) == 0 ? engine_run(length(4)) : std::vector<std::uint64_t>{};
    index_.add(engine, keys, entries);
    model_.add(engine, keys, entries);
  }
  void evict() {
    const std::vector<HolderEntry> entries = some_entries();
    if (random_.below(4) == 0) {
      const std::uint64_t key = engine_run(1)[0];
      index_.evict_engine_key(key, entries);
      model_.evict_engine_key(key, entries);
    } else {
      const auto keys = run(0, length(3));
      index_.evict_request_keys(keys, entries);
      for (const BlockKey key : keys) model_.evict_request_key(key, entries);
    }
  }
  void resolve() {
    const std::uint64_t key = engine_run(1)[0];
    ASSERT_EQ(index_.resolve_engine_key(key), model_.resolve(key));
  }
  void clear() {
    const EndpointId e(random_.below(endpoints()));
    index_.cleared(e);
    model_.clear(e);
  }

  RandomStream random_;
  EngineKeys engine_keys_;
  std::size_t stretch_;
  PrefixIndex index_;
  test::ModelIndex model_;
  MatchScratch scratch_;
};

TEST(PrefixIndex, EqualsTheModelUnderRandomEvents) {
  std::uint64_t seed = 1000;
  for (const std::size_t size : {1, 2, 5, 20, 1000}) {
    for (const std::size_t pods : {1, 2, 3, 10}) {
      for (const bool count : {true, false}) {
        for (const EngineKeys keys :
             {EngineKeys::kEqual, EngineKeys::kPaired, EngineKeys::kMixed}) {
          ++seed;
          SCOPED_TRACE("seed " + std::to_string(seed) + " size " + std::to_string(size) +
                       " podCacheSize " + std::to_string(pods) + " count " + std::to_string(count) +
                       " keys " + std::to_string(static_cast<int>(keys)));
          Duel duel(seed,
                    {.size = size,
                     .pod_cache_size = pods,
                     .count_duplicates = count,
                     .unlisted_tier_weight = count ? 1.0 : 0.0},
                    keys);
          for (int i = 0; i < 1500 && !testing::Test::HasFatalFailure(); ++i) {
            SCOPED_TRACE("step " + std::to_string(i));
            duel.step();
            if (!testing::Test::HasFatalFailure()) duel.compare();
          }
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

// Long prompts are kept as runs, which events cut, join and carry off in pieces.
TEST(PrefixIndex, RunsEqualTheModel) {
  std::uint64_t seed = 3000;
  for (const std::size_t size : {40, 200, 100'000}) {
    for (const bool count : {true, false}) {
      for (const EngineKeys keys : {EngineKeys::kEqual, EngineKeys::kPaired, EngineKeys::kMixed}) {
        ++seed;
        SCOPED_TRACE("seed " + std::to_string(seed) + " size " + std::to_string(size) + " count " +
                     std::to_string(count) + " keys " + std::to_string(static_cast<int>(keys)));
        Duel duel(seed, {.size = size, .pod_cache_size = 6, .count_duplicates = count}, keys, 10);
        for (int i = 0; i < 1200 && !testing::Test::HasFatalFailure(); ++i) {
          SCOPED_TRACE("step " + std::to_string(i));
          duel.step();
          if (i % 4 == 0 && !testing::Test::HasFatalFailure()) duel.compare();
        }
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

// Sets far larger than the search limit go through another path.
TEST(PrefixIndex, LargeHolderSetsEqualTheModel) {
  for (const std::uint64_t seed : {1, 2}) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomStream random(seed, Stream::kTest);
    const PrefixIndexOptions options{.size = 1000, .pod_cache_size = 600};
    PrefixIndex index(options);
    test::ModelIndex model(options);
    for (std::uint64_t key = 1; key <= 6; ++key) {
      for (std::uint32_t e = 0; e < 300; ++e) {
        if (random.below(10) < key) continue;
        const HolderEntry h{.endpoint = EndpointId(e),
                            .tier = random.below(2) == 0 ? kGpuTier : kCpuTier,
                            .speculative = false,
                            .group = std::nullopt};
        index.add({}, std::span(&key, 1), std::span(&h, 1));
        model.add({}, {key}, {h});
        if (random.below(3) == 0) {
          const HolderEntry spec{
              .endpoint = h.endpoint, .tier = kNoTier, .speculative = true, .group = std::nullopt};
          index.add({}, std::span(&key, 1), std::span(&spec, 1));
          model.add({}, {key}, {spec});
        }
      }
    }
    const std::vector<BlockKey> keys = {1, 2, 3, 4, 5, 6};
    MatchScratch scratch;
    index.match(keys, scratch);
    const auto expected = model.match(keys);
    ASSERT_EQ(scratch.matches().size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(scratch.matches()[i].endpoint, expected[i].endpoint);
      EXPECT_EQ(scratch.matches()[i].weighted, expected[i].weighted);
      EXPECT_EQ(scratch.matches()[i].blocks, expected[i].blocks);
    }
  }
}

}  // namespace
}  // namespace routesim::policies
