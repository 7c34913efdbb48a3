// Properties of Envoy's balancers that single decisions cannot show.
#include "policies/balancers/envoy/envoy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <string>
#include <vector>

namespace routesim::policies {
namespace {

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
