// The precise index of an endpoint picker after a server was started again.
#include <gtest/gtest.h>

#include <vector>

#include "sim/plan/fleet_plan.h"
#include "tests/sim/plan_fixture.h"

namespace routesim::sim {
namespace {

using testing::Sent;

/// The same prompt of 64 tokens at these times, to one server behind a precise index.
RunResult asked_again(policies::Era era, const std::vector<std::int64_t>& at_ms,
                      std::vector<FleetEventConfig> fleet_events) {
  std::vector<Sent> script;
  for (const std::int64_t at : at_ms) script.push_back({.at_ms = at, .parts = {{1, 64}}});
  RunPlan plan = testing::hand_made_plan(script, 1);
  plan.scenario.routing.balancer = BalancerKind::kEndpointPicker;
  plan.endpoint_picker = testing::precise_config(16);
  plan.endpoint_picker->era = era;
  plan.scenario.routing.discovery = DiscoveryConfig{.join = Duration::milliseconds(1),
                                                    .leave = Duration::milliseconds(1),
                                                    .leave_unseen = Duration::milliseconds(1)};
  plan.scenario.events = std::move(fleet_events);
  plan.scenario.cluster.pools = {plan.pools.front().config};
  plan.pools.front().extra_places = places_of(plan.scenario, 0) - 1;
  plan.pools.front().start_up.load = Duration::milliseconds(100);
  return testing::run_by_hand(plan);
}

FleetEventConfig at(FleetEventKind kind, std::int64_t ms, std::int64_t server) {
  FleetEventConfig e;
  e.kind = kind;
  e.at = Duration::milliseconds(ms);
  e.servers = {server};
  return e;
}

// The container of the pod is started again, at its address. llm-d-router forgets what it held
// since pull request 1738; from v0.7.0 to v0.9.0 it goes on believing in it.
TEST(StaleIndex, SurvivesARestartOfTheContainerUpToV090) {
  for (const policies::Era era : {policies::Era::kV0_6_0, policies::Era::kV0_7_0,
                                  policies::Era::kV0_9_0, policies::Era::kJul2026}) {
    const bool believes = era == policies::Era::kV0_7_0 || era == policies::Era::kV0_9_0;
    const RunResult r = asked_again(era, {0, 50, 300, 400}, {at(FleetEventKind::kCrash, 100, 0)});
    ASSERT_EQ(r.requests.size(), 4U);
    EXPECT_EQ(r.requests[1].predicted_hit_tokens, 64);
    EXPECT_EQ(r.requests[2].predicted_hit_tokens, believes ? 64 : 0) << policies::name(era);
    EXPECT_EQ(r.requests[2].cached_tokens, 0);
    EXPECT_EQ(r.requests[3].predicted_hit_tokens, 64);
  }
}

// A pod that takes the place of another has an address of its own, although it gets the row.
TEST(StaleIndex, IsNotLeftToAnotherPod) {
  const RunResult r =
      asked_again(policies::Era::kV0_9_0, {0, 50, 700},
                  {at(FleetEventKind::kDrain, 100, 0), at(FleetEventKind::kDrain, 400, 1)});
  ASSERT_EQ(r.requests.size(), 3U);
  EXPECT_EQ(r.requests[2].outcome, workloads::Outcome::kSuccess);
  EXPECT_EQ(r.requests[2].endpoint, r.requests[0].endpoint) << "the row";
  EXPECT_EQ(r.requests[2].predicted_hit_tokens, 0);
}

}  // namespace
}  // namespace routesim::sim
