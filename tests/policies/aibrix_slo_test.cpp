// Properties of AIBrix's strategy slo. Its decisions one by one are in data/balancers.
#include <gtest/gtest.h>

#include <vector>

#include "base/rng.h"
#include "policies/balancers/balancers.h"

namespace routesim::policies {
namespace {

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

}  // namespace
}  // namespace routesim::policies
