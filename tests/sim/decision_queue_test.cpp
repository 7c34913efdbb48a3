// Router processes that are busy, and the prices of decisions: by hand.
#include "sim/router/decision_queue.h"

#include <memory>

#include "tests/sim/plan_fixture.h"

namespace routesim::sim::testing {
namespace {

std::int64_t decided_ms(DecisionQueue& queue, std::int64_t arrival_ms) {
  return (queue.admit(at_ms(arrival_ms)) - SimTime::zero()).ns() / 1'000'000;
}

TEST(DecisionQueue, OneProcessDecidesOneAfterTheOther) {
  DecisionQueue queue(1, Duration::milliseconds(10));
  EXPECT_EQ(decided_ms(queue, 0), 10);
  EXPECT_EQ(decided_ms(queue, 4), 20);   // Waits 6 ms.
  EXPECT_EQ(decided_ms(queue, 5), 30);   // Waits 15 ms.
  EXPECT_EQ(decided_ms(queue, 50), 60);  // The process was idle.
  EXPECT_EQ(queue.longest_wait(), Duration::milliseconds(15));
  EXPECT_DOUBLE_EQ(queue.mean_wait_s(), 0.021 / 4);
}

TEST(DecisionQueue, ProcessesTakeTurns) {
  DecisionQueue queue(2, Duration::milliseconds(10));
  EXPECT_EQ(decided_ms(queue, 0), 10);
  EXPECT_EQ(decided_ms(queue, 0), 10);
  EXPECT_EQ(decided_ms(queue, 2), 20);
}

TEST(DecisionQueue, WithoutServiceTimeNobodyWaits) {
  DecisionQueue queue(1, Duration::zero());
  EXPECT_EQ(decided_ms(queue, 7), 7);
  EXPECT_EQ(decided_ms(queue, 7), 7);
  EXPECT_EQ(queue.longest_wait(), Duration::zero());
}

RunPlan two_servers(std::vector<Sent> script, BalancerKind balancer) {
  RunPlan plan = hand_made_plan(std::move(script), 2);
  plan.scenario.routing.balancer = balancer;
  plan.pools[0].kv_cache_tokens = 100'000;
  return plan;
}

std::vector<Sent> two_prompts() {
  return {{.at_ms = 0, .parts = {{1, 16}}, .output = 10},
          {.at_ms = 1, .parts = {{2, 16}}, .output = 10}};
}

TEST(DecisionQueue, ARunTellsItsWaits) {
  RunPlan plan = two_servers(two_prompts(), BalancerKind::kRoundRobin);
  plan.scenario.routing.service_time = Duration::milliseconds(5);
  const RunResult r = run_by_hand(plan);
  // Decided at 5 and at 10 ms: the second waits 4 ms. A step takes 10 ms.
  EXPECT_EQ(r.requests[0].first_token, at_ms(15));
  EXPECT_EQ(r.requests[1].first_token, at_ms(20));
  EXPECT_DOUBLE_EQ(r.routing.mean_wait_s.value(), 0.002);
  EXPECT_DOUBLE_EQ(r.routing.longest_wait_s, 0.004);
}

/// Sends everything to the first server.
class FirstServer final : public policies::Balancer {
 public:
  policies::BalancerAnswer pick(const policies::BalancerRequest&) override { return pick_of(0); }
};

TEST(Omniscient, RegretIsThePriceAboveTheBestServer) {
  RunPlan plan = two_servers(two_prompts(), BalancerKind::kRoundRobin);
  plan.make_balancer = [](std::uint64_t) { return std::make_unique<FirstServer>(); };
  plan.price_decisions = true;
  const RunResult r = run_by_hand(plan);
  // When the second comes, the first server still has the first one's 16 tokens to compute, and a
  // full step of 10 ms computes max_num_batched_tokens.
  const double token_s = 0.010 / static_cast<double>(plan.pools[0].rules.max_num_batched_tokens);
  EXPECT_EQ(r.requests[0].regret_s, 0);
  EXPECT_NEAR(r.requests[1].regret_s, 16 * token_s, 1e-15);
  EXPECT_NEAR(r.routing.mean_regret_s(), 8 * token_s, 1e-15);
}

TEST(Omniscient, RegretsNothingAndSpreadsWork) {
  const RunResult r = run_by_hand(two_servers(two_prompts(), BalancerKind::kOmniscient));
  EXPECT_NE(r.requests[0].endpoint, r.requests[1].endpoint);
  EXPECT_EQ(r.routing.regret_s, 0);
  EXPECT_TRUE(r.routing.priced);
}

TEST(Omniscient, GoesWhereThePromptIsCached) {
  std::vector<Sent> script = {{.at_ms = 0, .parts = {{1, 64}}, .output = 1},
                              {.at_ms = 100, .parts = {{2, 64}}, .output = 1},
                              {.at_ms = 200, .parts = {{2, 64}, {3, 16}}, .output = 1}};
  const RunResult r = run_by_hand(two_servers(std::move(script), BalancerKind::kOmniscient));
  EXPECT_EQ(r.requests[2].endpoint, r.requests[1].endpoint);
  EXPECT_EQ(r.requests[2].cached_tokens, 64);
}

}  // namespace
}  // namespace routesim::sim::testing
