// The index of prefixes: by hand, against a plain model, and from many threads.
#include "policies/index/prefix_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/rng.h"
#include "policies/index/tier_registry.h"
#include "tests/policies/endpoint_names.h"
#include "tests/policies/prefix_index_model.h"
#include "tests/policies/vector_file.h"

namespace routesim::policies {
namespace {

using test::Json;
using test::u64_list;
using test::vector_cases;

// ---- Vectors

/// Names to ids, and back, for one vector case.
struct Names {
  test::EndpointNames pods;
  TierRegistry tiers;

  HolderEntry entry(const Json& j) {
    HolderEntry e{.endpoint = pods.intern(j.at("pod").get<std::string>()),
                  .tier = *tiers.intern(j.value("tier", "")),
                  .speculative = j.value("speculative", false),
                  .group = std::nullopt};
    if (j.contains("group")) e.group = j["group"].get<std::uint32_t>();
    return e;
  }
  std::vector<HolderEntry> entries(const Json& j) {
    std::vector<HolderEntry> out;
    for (const Json& e : j) out.push_back(entry(e));
    return out;
  }
};

std::set<HolderEntry> as_set(const std::vector<HolderEntry>& v) { return {v.begin(), v.end()}; }

void apply_op(const Json& op, PrefixIndex& index, Names& names) {
  if (op.contains("add")) {
    const Json& a = op["add"];
    const auto engine =
        a["engine"].is_null() ? std::vector<std::uint64_t>{} : u64_list(a["engine"]);
    index.add(engine, u64_list(a["request"]), names.entries(a["entries"]));
  } else if (op.contains("evict_engine")) {
    index.evict_engine_key(op["evict_engine"].get<std::uint64_t>(), names.entries(op["entries"]));
  } else if (op.contains("clear")) {
    index.cleared(names.pods.intern(op["clear"].get<std::string>()));
  } else {
    ADD_FAILURE() << "unknown op " << op.dump();
  }
}

void expect_resolves(const Json& expected, PrefixIndex& index) {
  for (const auto& [engine, request] : expected.items()) {
    const auto got = index.resolve_engine_key(std::stoull(engine));
    EXPECT_EQ(got.has_value(), !request.is_null()) << engine;
    if (got && !request.is_null()) {
      EXPECT_EQ(*got, request.get<std::uint64_t>()) << engine;
    }
  }
}

void run_index_case(const Json& c) {
  PrefixIndexOptions options;
  if (c.contains("config")) {
    options.size = c["config"]["size"];
    options.pod_cache_size = c["config"]["podCacheSize"];
  }
  PrefixIndex index(options);
  Names names;
  for (const Json& op : c.at("ops")) apply_op(op, index, names);
  std::set<EndpointId> filter;
  for (const Json& pod : test::member(c, "filter"))
    filter.insert(names.pods.intern(pod.get<std::string>()));
  for (const Json& key : test::member(c, "lookup")) {
    std::set<HolderEntry> got;
    for (const HolderEntry& h : index.holders(key.get<std::uint64_t>()))
      if (filter.empty() || filter.count(h.endpoint)) got.insert(h);
    const Json& expected = c.at("expected");
    const std::string text = std::to_string(key.get<std::uint64_t>());
    EXPECT_EQ(got, as_set(names.entries(expected.value(text, Json::array())))) << "key " << text;
  }
  if (c.contains("resolve_engine")) expect_resolves(c["resolve_engine"], index);
  if (c.contains("then_evict_engine"))
    index.evict_engine_key(c["then_evict_engine"].get<std::uint64_t>(),
                           names.entries(c["ops"][0]["add"]["entries"]));
  if (c.contains("then_evict_engine_entries"))
    index.evict_engine_key(c["then_evict_engine_entries"][0].get<std::uint64_t>(),
                           names.entries(c["then_evict_engine_entries"][1]));
  for (const auto& [key, holders] : test::member(c, "expected_after").items())
    EXPECT_EQ(as_set(index.holders(std::stoull(key))), as_set(names.entries(holders))) << key;
  if (c.contains("resolve_engine_after")) expect_resolves(c["resolve_engine_after"], index);
}

TEST(PrefixIndex, IndexVectors) {
  for (const Json& c : vector_cases("kv_block_index")) {
    SCOPED_TRACE(c.at("name").get<std::string>());
    if (c.value("fn", "") == "engine_to_request") {
      PrefixIndex index;
      index.stored(EndpointId(0), kGpuTier, 0, u64_list(c["engine"]), u64_list(c["request"]));
      for (const auto& [engine, requests] : c["expected_mapping"].items())
        EXPECT_EQ(index.request_keys_of(std::stoull(engine)), u64_list(requests)) << engine;
    } else {
      run_index_case(c);
    }
  }
}

void run_scoring_case(const Json& c) {
  Names names;
  PrefixIndexOptions options;
  options.tier_weights.clear();
  for (const auto& [tier, weight] : test::member(c, "tier_weights").items()) {
    const TierId id = *names.tiers.intern(tier);
    if (options.tier_weights.size() <= id) options.tier_weights.resize(id + 1u, 1.0);
    options.tier_weights[id] = weight;
  }
  PrefixIndex index(options);
  for (const auto& [key, holders] : c.at("holders").items()) {
    const BlockKey k = std::stoull(key);
    index.add({}, std::span(&k, 1), names.entries(holders));
  }
  const auto keys = u64_list(c["keys"]);
  MatchScratch scratch;
  index.match(keys, scratch);
  if (c["fn"] == "matched_block_count") {
    const EndpointId pod = names.pods.intern(c["pod"].get<std::string>());
    std::uint32_t blocks = 0;
    for (const PrefixMatch& m : scratch.matches())
      if (m.endpoint == pod) blocks = m.blocks;
    EXPECT_EQ(blocks, c["expected_count"].get<std::uint32_t>());
    std::map<std::string, std::uint32_t> by_tier;
    std::vector<TierCount> counts;
    index.tier_counts(keys, counts);
    for (const TierCount& t : counts)
      if (t.endpoint == pod && t.rows != TierRows::kConfirmed)
        by_tier[t.rows == TierRows::kSpeculative ? "speculative" : names.tiers.name(t.tier)] =
            t.blocks;
    if (c.contains("expected_by_tier")) {
      EXPECT_EQ(by_tier, (c["expected_by_tier"].get<std::map<std::string, std::uint32_t>>()));
    }
    return;
  }
  std::map<std::string, double> raw;
  for (const PrefixMatch& m : scratch.matches()) raw[names.pods.name(m.endpoint)] = m.weighted;
  // "pod-b": 0 in the vectors means it is absent or scores nothing.
  for (const auto& [pod, score] : c["expected_raw_scores"].items())
    EXPECT_NEAR(raw[pod], score.get<double>(), 1e-9) << pod;
  for (const auto& [pod, score] : raw)
    EXPECT_TRUE(c["expected_raw_scores"].contains(pod)) << pod << " scored " << score;
}

TEST(PrefixIndex, ScoringVectors) {
  int run = 0;
  for (const Json& c : vector_cases("precise_prefix_cache_scorer")) {
    const std::string fn = c.at("fn");
    if (fn != "longest_prefix" && fn != "matched_block_count") continue;  // The scorer's tests.
    SCOPED_TRACE(c.at("name").get<std::string>());
    run_scoring_case(c);
    ++run;
  }
  EXPECT_EQ(run, 11);
}

// ---- Details

std::vector<std::uint64_t> chain(std::uint64_t seed, std::size_t n) {
  std::vector<std::uint64_t> keys(n);
  for (std::size_t i = 0; i < n; ++i) keys[i] = mix64(seed, i);
  return keys;
}

TEST(PrefixIndex, WeightedSumsAreAddedKeyByKey) {
  PrefixIndex index;
  const auto keys = chain(1, 10);
  index.stored(EndpointId(0), kCpuTier, 0, keys, keys);
  MatchScratch scratch;
  index.match(keys, scratch);
  double sum = 0;
  for (int i = 0; i < 10; ++i) sum += 0.8;
  ASSERT_NE(sum, 8.0) << "otherwise this test proves nothing";
  EXPECT_EQ(scratch.matches()[0].weighted, sum);
}

TEST(PrefixIndex, AllBlocksClearedFollowsTheEra) {
  for (const bool clears : {true, false}) {
    PrefixIndex index({.clear_on_all_blocks_cleared = clears});
    const auto keys = chain(3, 4);
    index.stored(EndpointId(0), kGpuTier, 0, keys, keys);
    index.cleared(EndpointId(0));
    EXPECT_EQ(index.request_key_count(), clears ? 0u : 4u);
    index.remove_endpoint(EndpointId(0));
    EXPECT_EQ(index.request_key_count(), 0u);
    EXPECT_EQ(index.engine_key_count(), 4u) << "clearing leaves engine mappings";
  }
}

TEST(PrefixIndex, SpeculativeRowsExpireWithoutReferenceCount) {
  PrefixIndex index;
  SpeculativeEntries speculative(Duration::seconds(2));
  const auto keys = chain(4, 3);
  const auto at = [](int ms) { return SimTime::zero() + Duration::milliseconds(ms); };
  MatchScratch scratch;
  const auto blocks = [&] {
    index.match(keys, scratch);
    return scratch.matches().empty() ? 0u : scratch.matches()[0].blocks;
  };
  speculative.add(index, EndpointId(5), keys, at(0));
  speculative.add(index, EndpointId(5), keys, at(1500));
  EXPECT_EQ(blocks(), 3u);
  EXPECT_EQ(scratch.matches()[0].weighted, 3.0) << "the empty tier weighs 1";
  speculative.expire(index, at(1999));
  EXPECT_EQ(blocks(), 3u);
  speculative.expire(index, at(2000));
  EXPECT_EQ(blocks(), 0u) << "the first expiry removes the row the second request refreshed";
  index.stored(EndpointId(5), kGpuTier, 0, keys, keys);
  speculative.expire(index, at(3500));
  EXPECT_EQ(blocks(), 3u) << "confirmed rows are separate";
  EXPECT_EQ(speculative.pending(), 0u);
}

TEST(PrefixIndex, MemoryIsBoundedByTheCap) {
  PrefixIndex index({.size = 2000, .pod_cache_size = 4});
  RandomStream random(6, Stream::kTest);
  std::size_t after_warm_up = 0;
  for (int i = 0; i < 4000; ++i) {
    const auto keys = chain(random.next(), 20);
    index.stored(EndpointId(random.below(50)), kGpuTier, 0, keys, keys);
    ASSERT_LE(index.request_key_count(), 2000u);
    ASSERT_LE(index.engine_key_count(), 2000u);
    if (i == 1000) after_warm_up = index.memory_bytes();
  }
  // Counts of blocks stored once but never removed outlive their keys, as upstream's do, but not
  // without end.
  EXPECT_LT(index.memory_bytes(), after_warm_up * 8);
  std::size_t full = 0;
  for (std::uint64_t key = 1; key <= 1'300'000; key += 20) {
    std::vector<std::uint64_t> keys(20);
    std::iota(keys.begin(), keys.end(), mix64(key));
    index.stored(EndpointId(0), kGpuTier, 0, keys, keys);
    if (key == 1'100'001) full = index.memory_bytes();
  }
  EXPECT_EQ(index.memory_bytes(), full);
  PrefixIndex plain({.size = 2000, .pod_cache_size = 4, .count_duplicates = false});
  for (int i = 0; i < 4000; ++i) {
    const auto keys = chain(random.next(), 20);
    plain.stored(EndpointId(random.below(50)), kGpuTier, 0, keys, keys);
    if (i == 1000) after_warm_up = plain.memory_bytes();
  }
  EXPECT_EQ(plain.memory_bytes(), after_warm_up);
}

TEST(PrefixIndex, RemovingEverythingLeavesNothing) {
  PrefixIndex index;
  std::vector<std::vector<std::uint64_t>> chains;
  for (std::uint64_t c = 0; c < 200; ++c) chains.push_back(chain(c, 50));
  for (std::uint32_t e = 0; e < 6; ++e)
    for (const auto& keys : chains) index.stored(EndpointId(e), kGpuTier, 0, keys, keys);
  EXPECT_EQ(index.request_key_count(), 200u * 50u);
  for (std::uint32_t e = 0; e < 6; ++e)
    for (const auto& keys : chains) index.removed(EndpointId(e), kGpuTier, keys);
  EXPECT_EQ(index.request_key_count(), 0u);
  EXPECT_EQ(index.engine_key_count(), 0u);
}

// The index against its model, after every one of many random operations.

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

// ConcurrentPrefixIndex under eight writers and eight readers; run it under ThreadSanitizer.

constexpr std::size_t kLength = 60;

std::vector<BlockKey> prompt(std::uint64_t n) {
  std::vector<BlockKey> keys(kLength);
  for (std::size_t i = 0; i < kLength; ++i) keys[i] = i < 30 ? mix64(n % 4, i) : mix64(n + 100, i);
  return keys;
}

// The events of round `i` of a writer. Each writer owns one endpoint and only ever stores whole
// prompts and removes them from the end, so every state a reader can see has contiguous prefixes.
void write(PrefixIndex& index, std::uint32_t writer, int i) {
  const auto keys = prompt(static_cast<std::uint64_t>(i % 24));
  index.stored(EndpointId(writer), kGpuTier, 0, keys, keys);
  if (i % 3 == 0)
    index.removed(EndpointId(writer), kGpuTier,
                  std::vector<std::uint64_t>(keys.rbegin(), keys.rend()));
  if (i % 50 == 49) index.cleared(EndpointId(writer));
}

void run(std::size_t size, int rounds) {
  ConcurrentPrefixIndex index({.size = size, .pod_cache_size = 16});
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> lookups{0};
  std::vector<std::thread> threads;
  for (std::uint32_t w = 0; w < 8; ++w)
    threads.emplace_back([&index, w, rounds] {
      for (int i = 0; i < rounds; ++i) {
        index.exclusive([&](PrefixIndex& inner) { write(inner, w, i); });
      }
    });
  for (std::uint32_t r = 0; r < 8; ++r)
    threads.emplace_back([&index, &stop, &lookups, r] {
      MatchScratch scratch;
      for (std::uint64_t i = r; !stop.load(std::memory_order_relaxed); ++i) {
        index.exclusive([&](PrefixIndex& inner) { inner.match(prompt(i % 24), scratch); });
        for (const PrefixMatch& m : scratch.matches()) {
          if (m.blocks > kLength || m.endpoint.value() >= 8 || m.weighted != m.blocks)
            ADD_FAILURE() << "endpoint " << m.endpoint.value() << " blocks " << m.blocks;
        }
        lookups.fetch_add(1, std::memory_order_relaxed);
      }
    });
  for (std::size_t w = 0; w < 8; ++w) threads[w].join();
  while (lookups.load() < 100) std::this_thread::yield();
  stop = true;
  for (std::size_t r = 8; r < 16; ++r) threads[r].join();

  // What is left equals what one thread alone leaves, as far as order cannot matter: each
  // endpoint's rows depend on its own writer only.
  if (size < 10'000) {
    EXPECT_LE(index.exclusive([](PrefixIndex& inner) { return inner.request_key_count(); }), size);
    return;
  }
  PrefixIndex alone({.size = size, .pod_cache_size = 16});
  for (int i = 0; i < rounds; ++i) write(alone, 0, i);
  MatchScratch many;
  MatchScratch one;
  for (std::uint64_t n = 0; n < 24; ++n) {
    index.exclusive([&](PrefixIndex& inner) { inner.match(prompt(n), many); });
    alone.match(prompt(n), one);
    const std::uint32_t expected = one.matches().empty() ? 0 : one.matches()[0].blocks;
    EXPECT_EQ(many.matches().size(), expected == 0 ? 0u : 8u);
    for (const PrefixMatch& m : many.matches()) EXPECT_EQ(m.blocks, expected);
  }
}

TEST(ConcurrentPrefixIndex, EightWritersEightReaders) { run(100'000'000, 200); }

TEST(ConcurrentPrefixIndex, EightWritersEightReadersAtTheCap) { run(500, 100); }

}  // namespace
}  // namespace routesim::policies
