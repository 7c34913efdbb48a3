#include "policies/index/prefix_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "base/rng.h"
#include "policies/index/tier_registry.h"
#include "tests/policies/endpoint_names.h"
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

}  // namespace
}  // namespace routesim::policies
