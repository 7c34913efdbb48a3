// Properties of the balancers of the vLLM production stack, AIBrix and Ray Serve LLM, which single
// decisions cannot show.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"
#include "policies/balancers/balancers.h"
#include "policies/balancers/kit/hashes.h"
#include "policies/balancers/kit/text_blocks.h"
#include "policies/balancers/ray/ray.h"

namespace routesim::policies {
namespace {

// Properties of the balancers of the vLLM production stack and of AIBrix; their decisions one by
// one are in tests/policies/data/balancers.

std::unique_ptr<Balancer> make(std::string_view name, const BalancerSettings& settings = {}) {
  for (std::size_t i = 0; i < kBalancers.size(); ++i)
    if (kBalancers[i].name == name) return make_balancer(static_cast<BalancerKind>(i), settings, 1);
  ADD_FAILURE() << "no balancer is called " << name;
  return nullptr;
}

std::vector<BalancerEndpoint> servers(std::size_t n) {
  std::vector<BalancerEndpoint> out;
  for (std::size_t i = 0; i < n; ++i)
    out.push_back({.name = "http://10.0.0." + std::to_string(i) + ":8000"});
  return out;
}

/// Counts of picks; every request stays in flight only with `keep`.
std::vector<int> counts(Balancer& b, int requests, bool keep) {
  std::vector<int> out(b.size());
  for (int i = 0; i < requests; ++i) {
    const BalancerRequest request{.id = static_cast<std::uint64_t>(i)};
    const BalancerAnswer answer = b.pick(request);
    EXPECT_TRUE(answer.has_value());
    b.on_sent(*answer, request);
    if (!keep) b.on_completed(*answer, {.id = request.id});
    ++out[answer->endpoint];
  }
  return out;
}

// Chi-square with 7 degrees of freedom: the 99.9 % quantile is 24.3.
double chi_square(const std::vector<int>& counts) {
  double n = 0, sum = 0;
  for (const int c : counts) n += c;
  const double mean = n / static_cast<double>(counts.size());
  for (const int c : counts) sum += (c - mean) * (c - mean) / mean;
  return sum;
}

std::string hex(const Md5Number& n) {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(n.high),
                static_cast<unsigned long long>(n.low));
  return text;
}

TEST(Md5, VectorsOfRfc1321) {
  EXPECT_EQ(hex(md5("")), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(hex(md5("abc")), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(hex(md5("message digest")), "f96b697d7cb7938d525a2f31aaf161d0");
  EXPECT_EQ(hex(md5("12345678901234567890123456789012345678901234567890123456789012345678901234567"
                    "890")),
            "57edf4a22be3c955ac49da2e2107b67a");
}

TEST(TextBlocks, TheSplitOfATextDoesNotMatter) {
  const std::vector<TextRun> whole = {{.content = 7, .offset = 0, .length = 10},
                                      {.content = 9, .offset = 3, .length = 5}};
  const std::vector<TextRun> pieces = {{.content = 7, .offset = 0, .length = 1},
                                       {.content = 7, .offset = 1, .length = 6},
                                       {.content = 7, .offset = 7, .length = 3},
                                       {.content = 9, .offset = 3, .length = 4},
                                       {.content = 9, .offset = 7, .length = 1}};
  TextBlocks a, b;
  for (const std::int64_t units : {1, 2, 4, 7, 15, 16})
    for (const bool tail : {false, true}) {
      const auto left = a.cut({.runs = whole}, units, tail);
      const auto right = b.cut({.runs = pieces}, units, tail);
      EXPECT_TRUE(std::equal(left.begin(), left.end(), right.begin(), right.end()));
      EXPECT_EQ(left.size(),
                static_cast<std::size_t>(tail ? (15 + units - 1) / units : 15 / units));
    }
}

// The store against a list of blocks with sets of holders.
TEST(BlockStore, EqualsAPlainList) {
  RandomStream random(3, Stream::kTest);
  BlockStore store(40);
  std::vector<std::pair<std::uint64_t, std::set<std::uint32_t>>> list;  // Oldest first.
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::uint64_t> blocks;
    for (std::uint64_t k = 0, n = 1 + random.below(8), tree = random.below(12); k < n; ++k)
      blocks.push_back(tree * 100 + k);
    std::map<std::uint32_t, std::uint32_t> expected;
    for (std::uint32_t server = 0; server < 5; ++server)
      for (const std::uint64_t block : blocks) {
        const auto at = std::find_if(list.begin(), list.end(),
                                     [block](const auto& e) { return e.first == block; });
        if (at == list.end() || !at->second.contains(server)) break;
        ++expected[server];
      }
    std::map<std::uint32_t, std::uint32_t> got;
    for (const BlockStore::Match& m : store.match(blocks)) got[m.server] = m.blocks;
    ASSERT_EQ(got, expected) << "round " << round;
    const auto server = static_cast<std::uint32_t>(random.below(5));
    store.add(blocks, server, SimTime::zero());
    for (const std::uint64_t block : blocks) {
      const auto at = std::find_if(list.begin(), list.end(),
                                   [block](const auto& e) { return e.first == block; });
      std::set<std::uint32_t> holders;
      if (at != list.end()) {
        holders = at->second;
        list.erase(at);
      }
      holders.insert(server);
      list.emplace_back(block, holders);
      if (list.size() > 40) list.erase(list.begin());
    }
    ASSERT_EQ(store.size(), list.size());
  }
}

TEST(ProductionStack, ASessionMovesOnlyWhenItsServerLeaves) {
  BalancerSettings settings;
  settings.production_stack.emplace().session_key = "x-user-id";
  auto b = make("production-stack-session", settings);
  const auto all = servers(8);
  const auto owners = [&](std::span<const BalancerEndpoint> pool) {
    b->set_endpoints(pool);
    std::vector<std::string> out;
    for (int s = 0; s < 2000; ++s) {
      const std::string session = "session-" + std::to_string(s);
      const std::vector<Header> headers = {{.name = "x-user-id", .value = session}};
      out.push_back(pool[b->pick({.headers = headers})->endpoint].name);
    }
    return out;
  };
  const auto before = owners(all);
  const auto after = owners(std::span(all).first(7));
  int moved = 0;
  for (std::size_t s = 0; s < before.size(); ++s) {
    if (before[s] == after[s]) continue;
    ++moved;
    EXPECT_EQ(before[s], all[7].name);
  }
  EXPECT_EQ(moved, std::count(before.begin(), before.end(), all[7].name));
}

TEST(ProductionStack, PrefixAwareDrawsUniformlyWithoutAMatch) {
  auto b = make("production-stack-prefixaware");
  b->set_endpoints(servers(8));
  std::vector<int> seen(8);
  for (std::uint64_t i = 0; i < 4000; ++i) {
    const std::vector<TextRun> runs = {{.content = i + 1, .offset = 0, .length = 300}};
    ++seen[b->pick({.id = i, .text = {.runs = runs}})->endpoint];
  }
  EXPECT_LT(chi_square(seen), 24.3);
}

TEST(Aibrix, RandomChoicesAreUniform) {
  for (const std::string_view name :
       {"aibrix-random", "aibrix-least-kv-cache", "aibrix-least-gpu-cache", "aibrix-throughput",
        "aibrix-least-request", "aibrix-power-of-two"}) {
    SCOPED_TRACE(name);
    auto b = make(name);
    b->set_endpoints(servers(8));
    EXPECT_LT(chi_square(counts(*b, 4000, false)), 24.3);
  }
}

TEST(Aibrix, LeastRequestLevelsTheLoad) {
  auto b = make("aibrix-least-request");
  b->set_endpoints(servers(8));
  for (const int c : counts(*b, 400, true)) EXPECT_EQ(c, 50);
}

// Two different pods are drawn, so the most loaded of all never gets the next request.
TEST(Aibrix, PowerOfTwoNeverTakesTheMostLoaded) {
  auto b = make("aibrix-power-of-two");
  const auto all = servers(3);
  b->set_endpoints(std::span(all).first(1));
  counts(*b, 100, true);
  b->set_endpoints(all);
  const auto seen = counts(*b, 150, true);
  EXPECT_EQ(seen[0], 0);
  EXPECT_NEAR(seen[1], seen[2], 10);
}

TEST(Aibrix, ATextThatFitsTheTableIsFollowedAndALargerOneIsNot) {
  BalancerSettings settings;
  settings.aibrix.emplace();
  settings.aibrix->prefix_cache_block_number = 100;
  for (const std::int64_t length : {100, 101}) {
    auto b = make("aibrix-prefix-cache", settings);
    b->set_endpoints(servers(8));
    const std::vector<TextRun> runs = {{.content = 1, .offset = 0, .length = length}};
    std::set<std::uint32_t> seen;
    for (std::uint64_t i = 0; i < 50; ++i)
      seen.insert(b->pick({.id = i, .text = {.runs = runs, .characters_per_unit = 4}})->endpoint);
    EXPECT_EQ(seen.size() == 1, length == 100);
  }
}

// Properties of AIBrix's strategy slo. Its decisions one by one are in data/balancers.

SimTime at_ms(std::int64_t ms) { return SimTime::zero() + Duration::milliseconds(ms); }

/// One pod. A prompt of 16 tokens takes all of it for an answer of 1 token and a quarter for 64; a
/// prompt of 1024 takes a half.
std::unique_ptr<Balancer> one_pod() {
  AibrixProfile profile;
  profile.indexes = {{1, 64}, {16, 1024}};
  profile.tputs = {{1, 1}, {1, 1}};
  profile.e2e = {{1, 2}, {4, 4}};
  profile.slos.e2e = 100;
  auto out = make_aibrix(AibrixPolicy::kSlo, {.profiles = {profile}},
                         RandomStream(1, Stream::kBalancer, 0));
  const std::vector<BalancerEndpoint> pods = {{.name = "pod"}};
  out->set_endpoints(pods);
  return out;
}

// 300 answers of 1 token and 100 of 64: a request fits beside a half-full pod when 64 are drawn, a
// quarter of the time. Four standard deviations of 4,000 draws are 0.027.
TEST(AibrixSlo, DrawsLengthsAsOftenAsTheyWere) {
  const auto b = one_pod();
  std::uint64_t id = 0;
  for (int i = 0; i < 400; ++i) {
    const BalancerRequest request{.id = ++id, .prompt_tokens = 16};
    const BalancerPick pick = *b->pick(request);
    b->on_sent(pick, request);
    b->on_completed(pick, {.id = id, .prompt_tokens = 16, .output_tokens = i % 4 == 0 ? 64 : 1});
  }
  const BalancerRequest half{.id = ++id, .prompt_tokens = 1024};
  b->on_sent(*b->pick(half), half);
  int fits = 0;
  for (int i = 0; i < 4000; ++i) fits += b->pick({.id = id + 1, .prompt_tokens = 16}) ? 1 : 0;
  EXPECT_NEAR(fits / 4000.0, 0.25, 0.027);
}

// The short request waits behind the more urgent long one, whose client then gives up without a
// word: it is forgotten as soon as an end did not make it ask again.
TEST(AibrixSlo, ForgetsRequestsThatNoLongerAsk) {
  const auto b = one_pod();
  const BalancerRequest first{.id = 1, .now = at_ms(0), .prompt_tokens = 16};
  const BalancerPick pick = *b->pick(first);
  b->on_sent(pick, first);
  EXPECT_TRUE(b->pick({.id = 2, .now = at_ms(1), .prompt_tokens = 1024}).is_held());
  EXPECT_TRUE(b->pick({.id = 3, .now = at_ms(2), .prompt_tokens = 16}).is_held());
  b->on_completed(pick, {.id = 1, .now = at_ms(50), .prompt_tokens = 16, .output_tokens = 1});
  const BalancerAnswer outranked = b->pick({.id = 3, .now = at_ms(50), .prompt_tokens = 16});
  EXPECT_TRUE(outranked.is_held());
  EXPECT_EQ(outranked.retry_after(), Duration::microseconds(100));
  EXPECT_TRUE(b->pick({.id = 3, .now = at_ms(51), .prompt_tokens = 16}).has_value());
}

// Throughput times latency is below 1, so one request takes more than a whole pod.
TEST(AibrixSlo, RefusesWhatNoPodCanEverHold) {
  AibrixProfile profile;
  profile.indexes = {{16}, {128}};
  profile.tputs = {{2}};
  profile.e2e = {{0.4}};
  profile.slos.e2e = 4;
  EXPECT_EQ(profile_fault(profile), "");
  AibrixSettings settings;
  settings.profiles = {profile};
  const auto b = make_aibrix(AibrixPolicy::kSlo, settings, RandomStream(1, Stream::kBalancer));
  b->set_endpoints(std::vector<BalancerEndpoint>{{.name = "a"}, {.name = "b"}});
  const BalancerAnswer answer = b->pick({.id = 1, .now = at_ms(0), .prompt_tokens = 128});
  EXPECT_FALSE(answer.has_value());
  EXPECT_FALSE(answer.is_held());
  EXPECT_EQ(answer.http_status(), 503);
}

TEST(AibrixSlo, ProfilesHaveTwoRisingAxesAndTablesOfTheirShape) {
  AibrixProfile profile;
  EXPECT_EQ(profile_fault(profile), "indexes must be two lists: output and prompt tokens");
  profile.indexes = {{64, 16}, {128}};
  EXPECT_EQ(profile_fault(profile), "each list of indexes must rise from above 0");
  profile.indexes = {{16, 64}, {128}};
  profile.tputs = {{1}};
  EXPECT_EQ(profile_fault(profile),
            "its tables must have a row per output and a column per prompt length");
  profile.tputs = {{1}, {2}};
  EXPECT_EQ(profile_fault(profile), "");
}

// Properties of Ray Serve LLM's request routers. Their decisions one by one are in
// data/balancers/ray.json.

std::vector<BalancerEndpoint> replicas(int n) {
  std::vector<BalancerEndpoint> out;
  for (int i = 0; i < n; ++i) out.push_back({.name = "replica-" + std::to_string(i)});
  return out;
}

std::unique_ptr<Balancer> router(const RaySettings& settings, int n, std::uint64_t seed = 1,
                                 RayPolicy policy = RayPolicy::kPowerOfTwo) {
  auto out = make_ray(policy, settings, RandomStream(seed, Stream::kBalancer, 0));
  out->set_endpoints(replicas(n));
  return out;
}

// m balls into n bins, two choices each. For m = n the shares of bins with 1, 2 and 3 balls or more
// solve s' = (share of one less)^2 - s^2 (Mitzenmacher 1996): tanh(1) = 0.76159, 0.22950, 0.00890
// (the last two by Runge-Kutta). Four standard deviations of a share are below 0.013.
TEST(RayPowerOfTwo, SpreadsAsTheoryOfTwoChoicesSays) {
  constexpr int kBins = 10'000;
  const auto b = router({}, kBins);
  for (int i = 0; i < kBins; ++i) b->on_sent(*b->pick({}));
  const auto share = [&b](std::uint32_t least) {
    const auto load = b->in_flight();
    return static_cast<double>(std::count_if(load.begin(), load.end(),
                                             [least](std::uint32_t l) { return l >= least; })) /
           kBins;
  };
  EXPECT_NEAR(share(1), std::tanh(1.0), 0.013);
  EXPECT_NEAR(share(2), 0.22950, 0.013);
  EXPECT_NEAR(share(3), 0.00890, 0.004);
}

// The gap between the fullest bin and the mean stays at log2(log2 n) + O(1), however many balls
// there are (Berenbrink et al. 2000); a single choice gives about 130 here.
TEST(RayPowerOfTwo, KeepsTheGapWithManyBalls) {
  const auto b = router({}, 100, 2);
  for (int i = 0; i < 200'000; ++i) b->on_sent(*b->pick({}));
  EXPECT_LE(*std::max_element(b->in_flight().begin(), b->in_flight().end()), 2'000U + 5);
}

// RAY_SERVE_ROUTER_RETRY_*: 0, 0.025, 0.05, 0.1, 0.2, 0.4, 0.5, 0.5 s; the attempt after 0 s is
// part of the first call. Each turn has pauses of its own, and they begin anew after a success.
TEST(RayRouters, PauseLongerFromAttemptToAttempt) {
  for (const RayPolicy policy : {RayPolicy::kPowerOfTwo, RayPolicy::kPrefixCacheAffinity}) {
    const auto b = router({.max_ongoing_requests = 1}, 1, 3, policy);
    const BalancerRequest first{.id = 1, .turn = 1};
    const BalancerPick sent = *b->pick(first);
    b->on_sent(sent, first);
    const auto pauses = [&b](std::uint64_t turn, int n) {
      std::vector<double> out;
      for (int i = 0; i < n; ++i)
        out.push_back(b->pick({.id = 9, .turn = turn}).retry_after().to_milliseconds());
      return out;
    };
    EXPECT_EQ(pauses(2, 7), (std::vector<double>{25, 50, 100, 200, 400, 500, 500}));
    EXPECT_EQ(pauses(3, 2), (std::vector<double>{25, 50}));
    b->on_completed(sent);
    const BalancerRequest second{.id = 2, .turn = 2};
    b->on_sent(*b->pick(second), second);
    EXPECT_EQ(pauses(2, 1), (std::vector<double>{25}));
    EXPECT_EQ(pauses(3, 1), (std::vector<double>{100}));
  }
}

// min(50, 2 x replicas) routing tasks, and strict order only with FIFOMixin.
TEST(RayRouters, AskForAsManyTriesAsRayHasTasks) {
  EXPECT_EQ(router({}, 1)->needs().tried_per_endpoint, 2);
  EXPECT_EQ(router({}, 1)->needs().tried_at_most, 50);
  EXPECT_TRUE(router({}, 1)->needs().in_order);
  EXPECT_FALSE(router({}, 1, 1, RayPolicy::kPrefixCacheAffinity)->needs().in_order);
}

// A text in pieces of 4 characters counts 4 characters a piece: 3 x 40 are above 100, so the oldest
// insertion goes, and its prompt matches nobody: the emptier replica gets it.
TEST(RayPrefixCacheAffinity, EvictsByCharactersWhereUnitsAreTokens) {
  const RaySettings settings{.do_eviction = true,
                             .eviction_threshold_chars = 100,
                             .eviction_target_chars = 81,
                             .eviction_interval_secs = 10};
  const auto b = router(settings, 1, 1, RayPolicy::kPrefixCacheAffinity);
  const auto send = [&b](std::uint64_t content, std::int64_t seconds) {
    const TextRun run{.content = content, .offset = 0, .length = 10};
    const BalancerRequest request{.id = content,
                                  .now = SimTime::zero() + Duration::seconds(seconds),
                                  .text = {.runs = {&run, 1}, .characters_per_unit = 4}};
    const BalancerPick pick = *b->pick(request);
    b->on_sent(pick, request);
    return pick.endpoint;
  };
  send(1, 1), send(2, 2), send(3, 3);
  b->set_endpoints(replicas(2));
  EXPECT_EQ(send(2, 10), 0U) << "the second is still there";
  EXPECT_EQ(send(1, 11), 1U) << "the first is gone";
}

}  // namespace
}  // namespace routesim::policies
