// When a router learns that servers come and go, and when another router takes over.
#include "sim/plan/discovery.h"

#include <gtest/gtest.h>

#include <string>

#include "sim/fleet/election.h"
#include "sim/plan/fleet_plan.h"

namespace routesim::sim {
namespace {

// When the router of each product learns that servers come and go, by value.

const DiscoveryFacts& facts_of(const std::string& balancer) {
  return discovery_facts(*policies::find_balancer(balancer));
}

/// join, leave and leave_unseen in ms.
std::string delays(const std::string& balancer) {
  const DiscoveryFacts& f = facts_of(balancer);
  std::string text;
  for (const Duration d : {f.join, f.leave, f.leave_unseen})
    text += (text.empty() ? "" : " ") + std::to_string(d.ns() / 1'000'000);
  return text;
}

TEST(Discovery, WatchesPods) {
  // llm-d-router v0.10.0 pkg/epp/controller/pod_reconciler.go:98
  EXPECT_EQ(delays("endpoint-picker"), "1000 100 1000");
  // Kubernetes 1.36.1 pkg/kubelet/kubelet.go, genericPlegRelistPeriod = 1 s
  EXPECT_EQ(delays("k8s-service"), "1000 100 1000");
  // kubeai @2f32ef4 internal/k8sutils/pods.go:17: a pod that ends is one that is ready
  EXPECT_EQ(delays("least-load"), "1000 1000 1000");
  EXPECT_EQ(delays("prefix-hash"), "1000 1000 1000");
  // aibrix v0.7.0 pkg/utils/pod.go:215
  EXPECT_EQ(delays("aibrix-random"), "1000 100 1000");
  // vllm-stack 0.1.12 src/vllm_router/service_discovery.py:697
  EXPECT_EQ(delays("production-stack-roundrobin"), "1000 100 1000");
  // vllm-router 0.1.17 src/service_discovery.rs:516
  EXPECT_EQ(delays("vllm-router-random"), "1000 100 1000");
  EXPECT_EQ(delays("envoy-least-request"), "1000 100 1000");
}

TEST(Discovery, HasLeasesAndHealthChecks) {
  // Dynamo @0f249f5 lib/runtime/src/transports/etcd.rs: create_lease(connector, 10, ...); lease.rs
  // renews at half of it, so a crash is seen after 5 to 10 s
  EXPECT_EQ(delays("dynamo-kv"), "1000 100 7500");
  // Ray @0016b72 python/ray/serve/_private/constants.py: DEFAULT_HEALTH_CHECK_PERIOD_S = 10
  EXPECT_EQ(delays("ray-power-of-two"), "100 100 5000");
  EXPECT_EQ(delays("mooncake-conductor"), "1000 1000 1000");
  // smg v1.9.0 model_gateway/src/service_discovery.rs:963: "the router's own health checker handles
  // unhealthy workers"; src/main.rs: three failures, --health-check-interval-secs 60
  EXPECT_EQ(delays("smg-random"), "1000 100 150000");
}

// A balancer that is nobody's product hears as an endpoint picker does.
TEST(Discovery, TakesAWatchOfPodsForTheRest) {
  for (const char* const name : {"round-robin", "random", "expression", "library", "omniscient"})
    EXPECT_EQ(&facts_of(name), &facts_of("endpoint-picker")) << name;
}

TEST(Discovery, KnowsTheRetriesOfRouters) {
  // smg v1.9.0 model_gateway/src/config/types.rs:683 and 760, vllm-project/router @06127e3
  // src/config/types.rs
  for (const char* const name : {"smg-random", "vllm-router-random"}) {
    const DiscoveryFacts& f = facts_of(name);
    EXPECT_EQ(f.retries.most, 4);  // five tries
    EXPECT_EQ(f.retries.first_back_off, Duration::milliseconds(50));
    EXPECT_EQ(f.retries.back_off_factor, 1.5);
  }
  // kubeai @2f32ef4 internal/manager/run.go:264
  EXPECT_EQ(facts_of("least-load").retries.most, 3);
  EXPECT_EQ(facts_of("least-load").retries.first_back_off, Duration::zero());
  for (const char* const name : {"endpoint-picker", "k8s-service", "production-stack-roundrobin",
                                 "aibrix-random", "dynamo-kv", "envoy-least-request"}) {
    EXPECT_EQ(facts_of(name).retries.most, 0) << name;
  }
}

// SMG's fifth try is its last. Its back-offs: floor(50 * 1.5^n) ms, and a fifth more or less.
TEST(Discovery, BacksOffAsTheRoutersDo) {
  RouterRetries smg = facts_of("smg-random").retries;
  const auto all = [](const RouterRetries& facts, RetriedByRouter what, int tries) {
    std::vector<std::int64_t> ms;
    for (int made = 0; made < tries; ++made)
      if (const auto after = router_retry(facts, what, made, 1, 7))
        ms.push_back(after->ns() / 1'000'000);
    return ms;
  };
  using Ms = std::vector<std::int64_t>;
  std::int64_t least = 1'000, most = 0;
  for (std::uint64_t request = 0; request < 1'000; ++request) {
    const std::int64_t ms =
        router_retry(smg, RetriedByRouter::kLost, 0, 1, request)->ns() / 1'000'000;
    least = std::min(least, ms);
    most = std::max(most, ms);
  }
  EXPECT_EQ(least, 40);
  EXPECT_EQ(most, 60);
  smg.jitter = 0;
  EXPECT_EQ(all(smg, RetriedByRouter::kUnserved, 9), (Ms{50, 75, 112, 168}));
  const RouterRetries& ray = facts_of("ray-power-of-two").retries;
  EXPECT_EQ(all(ray, RetriedByRouter::kRefused, 8), (Ms{0, 25, 50, 100, 200, 400, 500, 500}));
  EXPECT_EQ(all(ray, RetriedByRouter::kLost, 8), Ms{});
  EXPECT_EQ(all(facts_of("least-load").retries, RetriedByRouter::kLost, 8), (Ms{0, 0, 0}));
  EXPECT_EQ(all(facts_of("k8s-service").retries, RetriedByRouter::kRefused, 8), Ms{});
}

TEST(Discovery, HasASource) {
  for (const policies::BalancerRow& row : policies::kBalancers) {
    const DiscoveryFacts& f = facts_of(std::string(row.name));
    EXPECT_FALSE(f.source.empty()) << row.name;
    EXPECT_LE(f.leave, f.leave_unseen) << row.name;
  }
}

TEST(Discovery, TheScenarioHasTheLastWord) {
  RoutingConfig routing;
  routing.balancer = *policies::find_balancer("dynamo-kv");
  Discovery c = discovery_of(routing);
  EXPECT_EQ(c.join, Duration::seconds(1));
  EXPECT_EQ(c.leave, Duration::milliseconds(100));
  EXPECT_EQ(c.leave_unseen, Duration::milliseconds(7'500));
  routing.discovery = DiscoveryConfig{.leave = Duration::seconds(3)};
  c = discovery_of(routing);
  EXPECT_EQ(c.join, Duration::seconds(1));
  EXPECT_EQ(c.leave, Duration::seconds(3));
  EXPECT_EQ(c.leave_unseen, Duration::milliseconds(7'500));
  routing.discovery->leave_unseen = Duration::seconds(2);
  EXPECT_EQ(discovery_of(routing).leave_unseen, Duration::seconds(2));
  // A lease of Dynamo ends with the machine, too; others wait for Kubernetes, for 50 s.
  EXPECT_EQ(discovery_of(routing).leave_vanished, Duration::seconds(2));
  routing.balancer = BalancerKind::kRoundRobin;
  EXPECT_EQ(discovery_of(routing).leave_vanished, Duration::seconds(52));
}

// When another endpoint picker gets the lease of its leader: ranges and means by hand.

SimTime second(double s) { return SimTime::zero() + Duration::from_seconds(s); }
double seconds(SimTime at) { return static_cast<double>(at.ns()) * 1e-9; }

// Tries come every 2 to 4.4 s. A crash comes up to 2 s after the leader renewed its lease (-1 s in
// the mean), the other process sees that with its next try (1.6 s), tries in vain for 15 s, is the
// leader with the next try (1.7 s), and is ready when its probe says so (1 s).
TEST(Election, ACrashedLeaderIsReplacedWhenItsLeaseHasRunOut) {
  double sum = 0;
  for (std::uint64_t seed = 1; seed <= 1'000; ++seed) {
    Election e(2, false, seed);
    e.end(0, false, second(0));
    ASSERT_TRUE(e.term());
    EXPECT_EQ(e.term()->leader, 1u);
    const double ready = seconds(e.term()->ready);
    EXPECT_GE(ready, 13);
    EXPECT_LE(ready, 15 + 4.4 + 4.4 + 2);
    sum += ready;
  }
  EXPECT_NEAR(sum / 1'000, 18.3, 0.2);
}

// The lease of a leader that was asked to end is free at the next try.
TEST(Election, AnotherProcessTakesALeaseThatIsGivenUp) {
  double sum = 0;
  for (std::uint64_t seed = 1; seed <= 1'000; ++seed) {
    Election e(2, false, seed);
    e.end(0, true, second(0));
    const double ready = seconds(e.term()->ready);
    EXPECT_LE(ready, 4.4 + 2);
    sum += ready;
  }
  EXPECT_NEAR(sum / 1'000, 2.6, 0.2);
}

// A process that comes back to a lease that nobody renews waits for its end, its own included.
TEST(Election, AProcessThatComesBackWaitsToo) {
  for (const bool given_up : {false, true}) {
    Election e(2, false, 1);
    e.end(1, false, second(0));
    EXPECT_EQ(e.term()->leader, 0u) << "it did not lead";
    e.end(0, given_up, second(1));
    EXPECT_FALSE(e.term());
    e.begin(0, second(5));
    ASSERT_TRUE(e.term());
    EXPECT_EQ(e.term()->leader, 0u);
    EXPECT_GE(seconds(e.term()->ready), given_up ? 5 : 20);
    EXPECT_LE(seconds(e.term()->ready), given_up ? 7 : 26.4);
  }
}

// Whoever would have had the lease next dies before: the third one has it, a little later.
TEST(Election, TheNextInLineMayEnd) {
  Election e(3, false, 1);
  e.end(0, false, second(0));
  const Election::Term next = *e.term();
  const std::int64_t number = e.number();
  e.end(next.leader, false, second(1));
  ASSERT_TRUE(e.term());
  EXPECT_EQ(e.term()->leader, 3 - next.leader);
  EXPECT_GT(e.number(), number);
  EXPECT_LE(seconds(e.term()->ready), 25.8);
}

TEST(Election, ADrainEndsOnce) {
  Election e(2, true, 1);
  EXPECT_TRUE(e.begin_drain(0));
  EXPECT_FALSE(e.begin_drain(0));
  EXPECT_TRUE(e.end_drain(0));
  EXPECT_FALSE(e.end_drain(0));
}

}  // namespace
}  // namespace routesim::sim
