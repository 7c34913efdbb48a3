// Properties of the balancers of gateways and proxies, which single decisions cannot show.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"
#include "policies/balancers/balancers.h"
#include "policies/balancers/envoy/envoy.h"
#include "policies/balancers/kit/hashes.h"
#include "policies/balancers/kit/legs.h"
#include "policies/balancers/kit/tenant_tree.h"

namespace routesim::policies {
namespace {

// Properties of the SGLang gateway's and the vLLM router's balancers, and of what they share.
// Their decisions one by one are in data/balancers.

std::string bytes_of(std::size_t n) {
  std::string out;
  for (std::size_t i = 0; i < n; ++i) out += static_cast<char>((i * 7 + 3) % 251);
  return out;
}

// By the Python packages blake3 and xxhash. Each length takes another way through XXH3.
TEST(GatewayHashes, AgreeWithTheReferences) {
  EXPECT_EQ(xxh3_64(bytes_of(4)), 0x6d9253b16c8b1ed3ULL);
  EXPECT_EQ(xxh3_64(bytes_of(8)), 0x60539db630471163ULL);
  EXPECT_EQ(xxh3_64(bytes_of(12)), 0x6829454be0cc3199ULL);
  EXPECT_EQ(xxh3_64(bytes_of(16)), 0xb8c859b0f030b585ULL);
  EXPECT_EQ(xxh3_64(bytes_of(36)), 0xdd6c3c863f063ab7ULL);
  EXPECT_EQ(xxh3_64(bytes_of(100)), 0x0de27c6732e616cbULL);
  EXPECT_EQ(xxh3_64(bytes_of(128)), 0x4634ae6a253a60e4ULL);
  EXPECT_EQ(xxh3_64(bytes_of(132)), 0x6507de8ff6ba085fULL);
  EXPECT_EQ(xxh3_64(bytes_of(240)), 0x887af00281f75d38ULL);
  EXPECT_EQ(xxh3_64(bytes_of(244)), 0xd1cc04f555c47950ULL);
  EXPECT_EQ(xxh3_64(bytes_of(1024)), 0xf75e768c7cdd54b2ULL);
  EXPECT_EQ(xxh3_64(bytes_of(1028)), 0x2c68a58873e07366ULL);
  EXPECT_EQ(xxh3_64(bytes_of(5000)), 0x8e5898f51713d386ULL);
  EXPECT_EQ(blake3_64(bytes_of(0)), 0xa6a1f9f5b94913afULL);
  EXPECT_EQ(blake3_64(bytes_of(1)), 0x0c9ba36e1de8e0e1ULL);
  EXPECT_EQ(blake3_64(bytes_of(64)), 0xe2a478a1b6473eb8ULL);
  EXPECT_EQ(blake3_64(bytes_of(65)), 0xf5ffe3cc498b0703ULL);
  EXPECT_EQ(blake3_64(bytes_of(1024)), 0x5866993a439b291dULL);
  EXPECT_EQ(blake3_64(bytes_of(1025)), 0x6778167a9453ba23ULL);
  EXPECT_EQ(blake3_64(bytes_of(2049)), 0x060406aa217fce9cULL);
  EXPECT_EQ(blake3_64(bytes_of(5000)), 0x4a07ecd27f9b13dfULL);
}

std::vector<BalancerEndpoint> workers(std::size_t n) {
  std::vector<BalancerEndpoint> out;
  for (std::size_t i = 0; i < n; ++i)
    out.push_back({.name = "http://worker" + std::to_string(i) + ":8000"});
  return out;
}

BalancerKind kind_of(std::string_view name) {
  for (std::size_t i = 0; i < kBalancers.size(); ++i)
    if (kBalancers[i].name == name) return static_cast<BalancerKind>(i);
  ADD_FAILURE() << name;
  return BalancerKind::kRandom;
}

// ---- TenantTree
// ----------------------------------------------------------------------------------

std::vector<TextRun> runs_of(const std::string& text) {
  std::vector<TextRun> runs;
  for (const char c : text)
    runs.push_back({.content = static_cast<unsigned char>(c), .offset = 0, .length = 1});
  return runs;
}
std::string random_text(RandomStream& random, std::size_t most) {
  std::string text;
  for (std::size_t n = 1 + random.below(most); n > 0; --n)
    text += static_cast<char>('a' + random.below(2));
  return text;
}

// Against sets of prefixes: the size of a tenant is the number of prefixes that it has sent.
TEST(TenantTree, MatchesAndCountsAsSetsOfPrefixesDo) {
  RandomStream random(1, Stream::kTest);
  TenantTree tree(TenantTreeKind::kText);
  std::array<std::set<std::string>, 3> owned;
  for (int i = 0; i < 2000; ++i) {
    const std::string text = random_text(random, 14);
    const std::vector<TextRun> runs = runs_of(text);
    std::size_t known = 0;
    while (known < text.size() && std::any_of(owned.begin(), owned.end(), [&](const auto& s) {
             return s.count(text.substr(0, known + 1)) > 0;
           }))
      ++known;
    const TenantTree::Match match = tree.match({.runs = runs});
    ASSERT_EQ(match.matched, static_cast<std::int64_t>(known)) << text;
    if (known > 0) {
      ASSERT_TRUE(match.tenant);
      EXPECT_TRUE(owned[*match.tenant].count(text.substr(0, known)) > 0) << text;
    }
    const auto tenant = static_cast<std::uint32_t>(random.below(owned.size()));
    tree.insert({.runs = runs}, tenant);
    for (std::size_t n = 1; n <= text.size(); ++n) owned[tenant].insert(text.substr(0, n));
    if (i % 300 == 299) {
      tree.remove_tenant(tenant);
      owned[tenant].clear();
    }
    for (std::uint32_t t = 0; t < owned.size(); ++t)
      ASSERT_EQ(tree.size_of(t), static_cast<std::int64_t>(owned[t].size()));
  }
}

// The cuts of a text into runs do not matter.
TEST(TenantTree, FindsATextHoweverItIsCut) {
  for (const TenantTreeKind kind : {TenantTreeKind::kText, TenantTreeKind::kTokens}) {
    RandomStream random(2, Stream::kTest);
    TenantTree tree(kind);
    const auto cut = [&random](std::int64_t length) {
      std::vector<TextRun> runs;
      for (std::int64_t at = 0; at < length;) {
        const auto n =
            std::min<std::int64_t>(1 + static_cast<std::int64_t>(random.below(9)), length - at);
        runs.push_back({.content = 7, .offset = 100 + at, .length = n});
        at += n;
      }
      return runs;
    };
    for (const std::int64_t length : {96, 32, 64, 128}) tree.insert({.runs = cut(length)}, 0);
    for (int i = 0; i < 50; ++i) {
      const std::int64_t length = 16 * (1 + static_cast<std::int64_t>(random.below(8)));
      EXPECT_EQ(tree.match({.runs = cut(length)}).matched, length);
    }
    EXPECT_EQ(tree.node_count(), 5U);
  }
}

TEST(TenantTree, EvictsTheLeastRecentLeavesOfLargeTenantsOnly) {
  TenantTree tree(TenantTreeKind::kText);
  for (const char* text : {"aaaa", "bbbb", "cccc", "aaaa"}) {
    const std::vector<TextRun> runs = runs_of(text);
    tree.insert({.runs = runs}, 0);
  }
  const std::vector<TextRun> a = runs_of("aaaa"), b = runs_of("bbbb"), c = runs_of("cccc");
  tree.insert({.runs = b}, 1);
  tree.evict(8);
  EXPECT_EQ(tree.size_of(0), 8);
  EXPECT_EQ(tree.size_of(1), 4);
  EXPECT_EQ(*tree.match({.runs = b}).tenant, 1U) << "0 made the leaf and lost it";
  tree.evict(4);
  EXPECT_EQ(*tree.match({.runs = a}).tenant, 0U);
  EXPECT_EQ(tree.match({.runs = c}).matched, 0);
  EXPECT_EQ(tree.node_count(), 3U);
}

// token_tree.rs counts full nodes again with every prompt through them.
TEST(TenantTree, CountsTokensTwiceAndOwnsThemOnce) {
  TenantTree tree(TenantTreeKind::kTokens);
  const std::vector<TextRun> text = {{.content = 1, .offset = 0, .length = 39}};
  for (int i = 0; i < 3; ++i) tree.insert({.runs = text}, 0);
  EXPECT_EQ(tree.size_of(0), 96);
  EXPECT_EQ(tree.match({.runs = text}).matched, 32);
  tree.evict(64);
  EXPECT_EQ(tree.match({.runs = text}).matched, 0);
  EXPECT_EQ(tree.size_of(0), 64);
}

// ---- Rules at their edges
// ------------------------------------------------------------------------

TEST(Imbalance, WantsBothBoundsExceeded) {
  EXPECT_FALSE(imbalanced(0, 64, 64, 1.5));
  EXPECT_TRUE(imbalanced(0, 65, 64, 1.5));
  EXPECT_FALSE(imbalanced(130, 195, 64, 1.5));
  EXPECT_TRUE(imbalanced(130, 196, 64, 1.5));
  EXPECT_FALSE(imbalanced(100, 150, 10, 1.5));
}

// ---- Draws
// ---------------------------------------------------------------------------------------

// Twelve servers at equal load: 12,000 decisions, 1,000 each; four standard deviations are 121.
TEST(GatewayDraws, AreUniform) {
  for (const char* name : {"smg-random", "smg-power-of-two", "vllm-router-random",
                           "vllm-router-power-of-two", "smg-manual", "smg-consistent-hashing"}) {
    const auto balancer = make_balancer(kind_of(name), {}, 5);
    balancer->set_endpoints(workers(12));
    std::array<int, 12> count{};
    for (int i = 0; i < 12'000; ++i) ++count[balancer->pick({})->endpoint];
    for (const int n : count) EXPECT_NEAR(n, 1000, 121) << name;
  }
}

// Two different servers are drawn, so that the busiest of all never gets a request.
TEST(GatewayDraws, PowerOfTwoDrawsTwo) {
  for (const char* name : {"smg-power-of-two", "vllm-router-power-of-two"}) {
    const auto balancer = make_balancer(kind_of(name), {}, 6);
    auto pool = workers(4);
    for (std::size_t i = 0; i < 4; ++i) pool[i].healthy = i == 2;
    balancer->set_endpoints(pool);
    balancer->on_sent(*balancer->pick({}));
    balancer->set_endpoints(workers(4));
    for (int i = 0; i < 2000; ++i) EXPECT_NE(balancer->pick({})->endpoint, 2U) << name;
  }
}

// ---- Hashes of sessions
// --------------------------------------------------------------------------

// Server 3 of 8 leaves: only its sessions move, and the others had about an eighth each.
TEST(GatewayHashing, MovesOnlyTheSessionsOfAServerThatLeft) {
  const std::array<std::pair<const char*, const char*>, 3> cases = {
      {{"smg-consistent-hashing", "x-smg-routing-key"},
       {"vllm-router-consistent-hash", "x-session-id"},
       {"vllm-router-rendezvous-hash", "x-session-id"}}};
  for (const auto& [name, header] : cases) {
    const auto balancer = make_balancer(kind_of(name), {}, 1);
    const auto where = [&](int session) {
      const std::string value = "session-" + std::to_string(session);
      const std::array<Header, 1> headers = {Header{.name = header, .value = value}};
      return balancer->pick({.headers = headers})->endpoint;
    };
    balancer->set_endpoints(workers(8));
    std::vector<std::uint32_t> before;
    std::array<int, 8> count{};
    for (int i = 0; i < 4000; ++i) ++count[before.emplace_back(where(i))];
    for (const int n : count) EXPECT_NEAR(n, 500, 200) << name;
    auto left = workers(8);
    left.erase(left.begin() + 3);
    balancer->set_endpoints(left);
    for (int i = 0; i < 4000; ++i) {
      const std::uint32_t old = before[static_cast<std::size_t>(i)];
      if (old == 3) continue;
      EXPECT_EQ(where(i), old > 3 ? old - 1 : old) << name;
    }
  }
}

// Properties of Envoy's balancers that single decisions cannot show.

std::vector<BalancerEndpoint> hosts(std::size_t n) {
  std::vector<BalancerEndpoint> out;
  for (std::size_t i = 0; i < n; ++i)
    out.push_back({.name = "10.0.0." + std::to_string(i) + ":8000"});
  return out;
}

std::unique_ptr<Balancer> envoy(EnvoyPolicy policy, const EnvoySettings& settings, std::size_t n,
                                std::uint64_t seed = 1) {
  auto b = make_envoy(policy, settings, RandomStream(seed, Stream::kTest));
  b->set_endpoints(hosts(n));
  return b;
}

/// Picks per host of `n` requests that never end.
std::vector<int> shares(Balancer& b, int n) {
  std::vector<int> counts(b.size(), 0);
  for (int i = 0; i < n; ++i) {
    const BalancerAnswer pick = b.pick({});
    b.on_sent(*pick);
    ++counts[pick->endpoint];
  }
  return counts;
}

std::uint32_t owner(Balancer& b, const std::string& key) {
  const Header header{.name = "x-key", .value = key};
  return b.pick({.headers = {&header, 1}})->endpoint;
}

EnvoySettings by_header() {
  EnvoySettings settings;
  settings.hash_policy = {{.header = "x-key"}};
  return settings;
}

// Deadlines are sums of rounded numbers, so that equal ones may pass each other by one pick.
TEST(Envoy, WeightedRotationIsExactOverWholeTurns) {
  EnvoySettings settings;
  settings.weights = {1, 2, 5};
  const auto b = envoy(EnvoyPolicy::kRoundRobin, settings, 3, 7);
  const std::vector<int> counts = shares(*b, 800);
  EXPECT_NEAR(counts[0], 100, 1);
  EXPECT_NEAR(counts[1], 200, 1);
  EXPECT_NEAR(counts[2], 500, 1);
}

TEST(Envoy, EqualWeightsRotateFromARandomStart) {
  std::vector<int> starts(5, 0);
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const auto b = envoy(EnvoyPolicy::kRoundRobin, {}, 5, seed);
    const std::uint32_t first = b->pick({})->endpoint;
    ++starts[first];
    for (std::uint32_t i = 1; i < 10; ++i) EXPECT_EQ(b->pick({})->endpoint, (first + i) % 5);
  }
  for (const int n : starts) EXPECT_NEAR(n, 100, 45);  // Five standard deviations.
}

// Two draws with replacement of two hosts take the busy one where both draws are it: 1 in 4.
TEST(Envoy, TwoChoicesTakeTheBusyOneOfTwoInAQuarterOfTheCases) {
  const auto b = envoy(EnvoyPolicy::kLeastRequest, {}, 2);
  b->on_sent({.endpoint = 0, .server = 0});
  int busy = 0;
  for (int i = 0; i < 40'000; ++i) busy += b->pick({})->endpoint == 0 ? 1 : 0;
  EXPECT_NEAR(busy, 10'000, 5 * std::sqrt(40'000 * 0.25 * 0.75));
}

// Balls into bins: the fullest of n bins exceeds the mean by about ln ln n / ln 2 with two choices,
// and by much more with one.
TEST(Envoy, TwoChoicesBalanceAsTheoryTells) {
  const auto excess = [](EnvoyPolicy policy) {
    const auto b = envoy(policy, {}, 1024);
    const std::vector<int> counts = shares(*b, 1024 * 16);
    return *std::max_element(counts.begin(), counts.end()) - 16;
  };
  EXPECT_LE(excess(EnvoyPolicy::kLeastRequest), 5);  // ln ln 1024 / ln 2 = 2.8.
  EXPECT_GE(excess(EnvoyPolicy::kRandom), 10);       // About sqrt(2 * 16 * ln 1024) = 15.
}

TEST(Envoy, FullScanKeepsEveryHostWithinOneRequest) {
  EnvoySettings settings;
  settings.selection_method = EnvoySelection::kFullScan;
  const auto b = envoy(EnvoyPolicy::kLeastRequest, settings, 64);
  const std::vector<int> counts = shares(*b, 64 * 9 + 20);
  EXPECT_EQ(*std::min_element(counts.begin(), counts.end()), 9);
  EXPECT_EQ(*std::max_element(counts.begin(), counts.end()), 10);
}

// Deadlines move with 1 / (weight / (active + 1)): with weights 1 and 3 and no completion the
// heavier host ends up with about three times the requests, as equal ratios active / weight do.
TEST(Envoy, WeightedLeastRequestSharesByWeight) {
  EnvoySettings settings;
  settings.weights = {1, 3};
  const auto b = envoy(EnvoyPolicy::kLeastRequest, settings, 2);
  const std::vector<int> counts = shares(*b, 4'000);
  // Picks follow d(active)/dt = weight / active, so active ~ sqrt(weight): 1 to sqrt(3).
  EXPECT_NEAR(static_cast<double>(counts[1]) / counts[0], std::sqrt(3.0), 0.05);
}

/// The share of keys that change their owner, and of those that had to.
void expect_little_disruption(EnvoyPolicy policy, double most_needless) {
  const EnvoySettings settings = by_header();
  const auto before = envoy(policy, settings, 10);
  const auto after = envoy(policy, settings, 9);
  int needless = 0, kept = 0;
  for (int i = 0; i < 5'000; ++i) {
    const std::string key = "key-" + std::to_string(i);
    const std::uint32_t old = owner(*before, key);
    if (old == 9) continue;
    (owner(*after, key) == old ? kept : needless) += 1;
  }
  EXPECT_LE(needless, most_needless * (kept + needless));
}

TEST(Envoy, RingMovesOnlyTheKeysOfTheHostThatLeft) {
  // 103 points a host for ten hosts and 114 for nine: the added points take some keys, too.
  expect_little_disruption(EnvoyPolicy::kRingHash, 0.15);
}

TEST(Envoy, MaglevMovesFewOtherKeys) { expect_little_disruption(EnvoyPolicy::kMaglev, 0.05); }

TEST(Envoy, MaglevSharesItsTableEvenly) {
  const auto b = envoy(EnvoyPolicy::kMaglev, by_header(), 7);
  std::vector<int> counts(7, 0);
  for (int i = 0; i < 35'000; ++i) ++counts[owner(*b, "k" + std::to_string(i))];
  for (const int n : counts) EXPECT_NEAR(n, 5'000, 350);
}

// A host may hold slots + 1 requests, slots = ceil((total + 1) * factor * share).
TEST(Envoy, BoundedLoadHolds) {
  for (const EnvoyPolicy policy : {EnvoyPolicy::kRingHash, EnvoyPolicy::kMaglev}) {
    EnvoySettings settings = by_header();
    settings.hash_balance_factor = 125;
    const auto b = envoy(policy, settings, 8);
    std::deque<BalancerPick> sent;
    RandomStream random(3, Stream::kTest);
    for (int i = 0; i < 4'000; ++i) {
      const std::string key = "hot-" + std::to_string(random.below(3));
      const Header header{.name = "x-key", .value = key};
      const BalancerAnswer pick = b->pick({.headers = {&header, 1}});
      const double slots = std::max(
          std::ceil(static_cast<double>(((b->total_in_flight() + 1) * 125 + 99) / 100) / 8), 1.0);
      b->on_sent(*pick);
      EXPECT_LE(b->in_flight()[pick->endpoint], slots + 1);
      sent.push_back(*pick);
      if (sent.size() > 200) {
        b->on_completed(sent.front());
        sent.pop_front();
      }
    }
  }
}

TEST(Envoy, WithoutAHashTheChoiceIsRandom) {
  const auto b = envoy(EnvoyPolicy::kRingHash, by_header(), 4);
  const std::vector<int> counts = shares(*b, 4'000);
  for (const int n : counts) EXPECT_NEAR(n, 1'000, 250);
}

}  // namespace
}  // namespace routesim::policies
