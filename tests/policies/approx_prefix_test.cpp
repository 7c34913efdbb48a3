#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"
#include "policies/index/approx_prefix_index.h"
#include "policies/index/block_keys.h"
#include "policies/index/tier_registry.h"
#include "tests/policies/endpoint_names.h"
#include "tests/policies/plugin_bench.h"
#include "tests/policies/vector_file.h"

namespace routesim::policies {
namespace {

using test::Json;
using test::member;
using test::u64_list;
using test::vector_cases;

std::vector<std::uint64_t> hashes_of(const Json& tokens, std::uint32_t block_size) {
  return approx_hashes_tokens(tokens.get<std::vector<std::uint32_t>>(), "model", "", block_size);
}

void run_indexer(const Json& c) {
  ApproxPrefixIndex index(c["default_capacity"]);
  test::EndpointNames servers;
  for (const Json& op : c["ops"]) {
    if (op.contains("add_each")) {
      for (const Json& server : op["servers"])
        for (const std::uint64_t hash : u64_list(op["add_each"]))
          index.add(servers.intern(server.get<std::string>()), std::span(&hash, 1));
    } else if (op.contains("add")) {
      index.add(servers.intern(op["server"].get<std::string>()), u64_list(op["add"]));
    } else {
      index.remove_endpoint(servers.intern(op.at("remove_server").get<std::string>()));
    }
  }
  for (const auto& [server, size] : c["expected"]["lru_len"].items())
    EXPECT_EQ(index.lru_size(servers.intern(server)), size.get<std::size_t>()) << server;
  for (const auto& [hash, names] : c["expected"]["holders"].items()) {
    std::set<std::string> got;
    for (const EndpointId e : index.holders(std::stoull(hash))) got.insert(servers.name(e));
    EXPECT_EQ(got, names.get<std::set<std::string>>()) << "hash " << hash;
  }
  EXPECT_EQ(index.distinct_hashes(), c["expected"]["distinct_hashes"].get<std::size_t>());
}

void run_match(const Json& c) {
  ApproxPrefixIndex index;
  test::EndpointNames pods;
  const auto size = c["block_size"].get<std::uint32_t>();
  for (const Json& seed : c["seed"])
    for (const char* role : {"primary", "prefill"})
      if (seed.contains(role))
        index.add(pods.intern(seed[role].get<std::string>()), hashes_of(seed["tokens"], size));
  const auto query = hashes_of(c["query_tokens"], size);
  EXPECT_EQ(query.size(), c["expected_total"].get<std::size_t>());
  for (std::size_t i = 0; i < c["candidates"].size(); ++i) {
    const EndpointId pod = pods.intern(c["candidates"][i].get<std::string>());
    std::vector<std::uint32_t> counts(pod.value() + 1);
    index.add_matches(query, counts);
    EXPECT_EQ(counts.back(), c["expected_match"][i].get<std::uint32_t>()) << c["candidates"][i];
  }
}

void run_match_multi(const Json& c) {
  ApproxPrefixIndex index;
  const auto size = c["block_size"].get<std::uint32_t>();
  for (const Json& request : c["seed"])
    for (const Json& prompt : request) index.add(EndpointId(0), hashes_of(prompt, size));
  std::vector<std::uint32_t> counts(1);
  std::size_t total = 0;
  for (const Json& prompt : c["query_prompts"]) {
    const auto hashes = hashes_of(prompt, size);
    index.add_matches(hashes, counts);
    total += hashes.size();
  }
  EXPECT_EQ(counts[0], c["expected_match"].get<std::uint32_t>());
  EXPECT_EQ(total, c["expected_total"].get<std::size_t>());
}

void run_holders(const Json& c) {
  ApproxPrefixIndex index;
  test::EndpointNames pods;
  std::vector<std::uint64_t> hashes;
  for (std::uint64_t h = 1; h <= c["holders"].size(); ++h) {
    hashes.push_back(h);
    for (const Json& pod : c["holders"][h - 1])
      index.add(pods.intern(pod.get<std::string>()), std::span(&h, 1));
  }
  std::vector<std::uint32_t> counts(8);
  index.add_matches(hashes, counts);
  std::map<std::string, std::uint32_t> got;
  for (std::uint32_t e = 0; e < counts.size(); ++e)
    if (counts[e] > 0) got[pods.name(EndpointId(e))] = counts[e];
  EXPECT_EQ(got, (c["expected_match"].get<std::map<std::string, std::uint32_t>>()));
}

// What approx-prefix-cache-producer makes of the parameters; nothing when it refuses them.
std::optional<ApproxScheme> scheme_of(const Json& c) {
  Json document = {{"apiVersion", "llm-d.ai/v1alpha1"}, {"kind", "EndpointPickerConfig"}};
  document["plugins"].push_back(
      {{"type", "approx-prefix-cache-producer"}, {"parameters", c["params"]}});
  document["plugins"].push_back({{"type", "prefix-cache-scorer"}});
  Json profile = {{"name", "default"}};
  profile["plugins"].push_back({{"pluginRef", "prefix-cache-scorer"}});
  document["schedulingProfiles"].push_back(profile);
  Diagnostics diagnostics;
  const auto config = load_endpoint_picker_config(*parse_yaml(document.dump()), {}, diagnostics);
  if (!config) return std::nullopt;
  const std::optional<Requirements> needed = requirements(*config, diagnostics);
  if (!needed) return std::nullopt;
  const Json& reported = member(c, "reported_block_size");
  return needed->approx.scheme(reported.is_null() ? 0 : reported.get<std::int64_t>());
}

TEST(ApproxPrefixIndex, ProducerVectors) {
  for (const Json& c : vector_cases("approx_prefix_cache_producer")) {
    SCOPED_TRACE(c.at("name").get<std::string>());
    const std::string kind = c.at("kind");
    if (kind == "indexer") {
      run_indexer(c);
    } else if (kind == "match") {
      run_match(c);
    } else if (kind == "match_multi") {
      run_match_multi(c);
    } else if (kind == "holders") {
      run_holders(c);
    } else if (kind == "block_size") {
      EXPECT_EQ(scheme_of(c)->block_size, c["expected_block_size"].get<std::int64_t>());
    } else if (kind == "block_count") {
      ApproxScheme scheme = *scheme_of(c);
      if (c.contains("floor")) {
        // Upstream's test lowers the floor of 64 tokens to 1, which no parameter can.
        ASSERT_EQ(c["floor"], 1);
        scheme.block_size = c["params"]["blockSizeTokens"];
        scheme.max_blocks =
            c["params"]["maxPrefixTokensToMatch"].get<std::int64_t>() / scheme.block_size;
      }
      EXPECT_EQ(approx_hashes_tokens(test::counting_tokens(c["num_tokens"].get<std::size_t>()), "m",
                                     "", static_cast<std::uint32_t>(scheme.block_size),
                                     static_cast<std::size_t>(scheme.max_blocks))
                    .size(),
                c["expected_blocks"].get<std::size_t>());
    } else {
      ASSERT_EQ(kind, "config");
      const auto scheme = scheme_of(c);
      ASSERT_EQ(!scheme, c["expected_error"].get<bool>());
      if (scheme) {
        EXPECT_EQ(scheme->block_size,
                  effective_approx_block(c["expected_block_size_tokens"].get<std::uint32_t>()));
      }
    }
  }
}

/// The index as its documentation says it, in lists and maps.
struct Model {
  struct Lru {
    std::size_t capacity = 0;
    std::list<std::uint64_t> hashes;  // Least recent first.
  };
  std::map<std::uint32_t, Lru> lrus;
  std::map<std::uint64_t, std::set<std::uint32_t>> map;

  void drop(std::uint64_t hash, std::uint32_t e) {
    map[hash].erase(e);
    if (map[hash].empty()) map.erase(hash);
  }
  void add(std::uint32_t e, const std::vector<std::uint64_t>& hashes, std::size_t capacity) {
    Lru& lru = lrus[e];
    if (lru.capacity == 0) lru.capacity = capacity;
    for (const std::uint64_t h : hashes) {
      lru.hashes.remove(h);
      lru.hashes.push_back(h);
      if (lru.hashes.size() > lru.capacity) {
        drop(lru.hashes.front(), e);
        lru.hashes.pop_front();
      }
    }
    for (const std::uint64_t h : hashes) map[h].insert(e);
  }
  void remove(std::uint32_t e) {
    for (const std::uint64_t h : lrus[e].hashes) drop(h, e);
    lrus.erase(e);
  }
  std::map<std::uint32_t, std::uint32_t> match(const std::vector<std::uint64_t>& hashes) const {
    std::map<std::uint32_t, std::uint32_t> counts;
    for (const std::uint64_t h : hashes) {
      const auto at = map.find(h);
      if (at == map.end()) break;
      for (const std::uint32_t e : at->second) ++counts[e];
    }
    return counts;
  }
};

TEST(ApproxPrefixIndex, EqualsTheModelUnderRandomPrompts) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomStream random(seed, Stream::kTest);
    ApproxPrefixIndex index(4);
    Model model;
    for (int step = 0; step < 3000; ++step) {
      std::vector<std::uint64_t> hashes(1 + random.below(8));
      const std::uint64_t first = random.below(3) * 100 + random.below(10);
      for (std::size_t i = 0; i < hashes.size(); ++i) hashes[i] = first + i;
      const auto e = static_cast<std::uint32_t>(random.below(5));
      switch (random.below(8)) {
        case 0:
          if (random.below(20) == 0) {
            index.remove_endpoint(EndpointId(e));
            model.remove(e);
          }
          break;
        case 1:
        case 2:
        case 3: {
          const std::size_t capacity = random.below(2) == 0 ? 0 : 2 + seed * 3;
          index.add(EndpointId(e), hashes, capacity);
          model.add(e, hashes, capacity == 0 ? 4 : capacity);
          break;
        }
        default: {
          auto expected = model.match(hashes);
          std::vector<std::uint32_t> counts(5);
          index.add_matches(hashes, counts);
          for (std::uint32_t k = 0; k < 5; ++k)
            ASSERT_EQ(counts[k], expected[k]) << "step " << step << " endpoint " << k;
        }
      }
      ASSERT_EQ(index.distinct_hashes(), model.map.size()) << "step " << step;
      for (std::uint32_t k = 0; k < 5; ++k)
        ASSERT_EQ(index.lru_size(EndpointId(k)),
                  model.lrus.count(k) ? model.lrus[k].hashes.size() : 0);
    }
  }
}

TEST(ApproxPrefixIndex, TheMapRemembersWhatATooSmallLruForgot) {
  ApproxPrefixIndex index(2);
  const std::vector<std::uint64_t> prompt = {1, 2, 3, 4};
  index.add(EndpointId(0), prompt);
  EXPECT_EQ(index.lru_size(EndpointId(0)), 2u);
  EXPECT_EQ(index.distinct_hashes(), 4u) << "all hashes of the batch are set after the evictions";
  index.remove_endpoint(EndpointId(0));
  EXPECT_EQ(index.distinct_hashes(), 2u) << "only what the LRU knows is taken back";
}

}  // namespace
}  // namespace routesim::policies
