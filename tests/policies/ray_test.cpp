// Properties of Ray Serve LLM's request routers. Their decisions one by one are in
// data/balancers/ray.json.
#include "policies/balancers/ray/ray.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/rng.h"

namespace routesim::policies {
namespace {

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
