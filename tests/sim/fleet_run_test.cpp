// Whole runs in which servers come and go: what becomes of each request, to the millisecond.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "sim/fleet/fleet_config.h"
#include "sim/outages.h"
#include "sim/plan/fleet_plan.h"
#include "tests/sim/plan_fixture.h"
#include "tests/sim/swarm.h"
#include "tools/study/experiment/experiment.h"

namespace routesim::sim {
namespace {

using testing::at_ms;
using testing::hand_made_plan;
using testing::run_by_hand;
using testing::Sent;

Duration ms(std::int64_t n) { return Duration::milliseconds(n); }

FleetEventConfig event(FleetEventKind kind, std::int64_t at,
                       std::vector<std::int64_t> servers = {}) {
  FleetEventConfig e;
  e.kind = kind;
  e.at = ms(at);
  e.servers = std::move(servers);
  return e;
}

/// Servers with steps of 10 ms behind a router that takes turns; they start in 100 ms, and the
/// router hears of them after 1 ms.
RunPlan turns(std::vector<Sent> script, std::int64_t servers,
              std::vector<FleetEventConfig> events) {
  RunPlan plan = hand_made_plan(std::move(script), servers);
  plan.scenario.routing.balancer = BalancerKind::kRoundRobin;
  plan.scenario.routing.discovery =
      DiscoveryConfig{.join = ms(1), .leave = ms(1), .leave_unseen = ms(1)};
  plan.scenario.events = std::move(events);
  PoolConfig pool = plan.pools.front().config;
  plan.scenario.cluster.pools = {pool};
  plan.pools.front().extra_places = places_of(plan.scenario, 0) - servers;
  plan.pools.front().start_up.load = ms(100);
  return plan;
}

std::int64_t end_ms(const RequestRecord& r) { return r.end.ns() / 1'000'000; }

GatewayConfig retrying(std::int64_t retries) {
  GatewayConfig g;
  g.protocol = UpstreamProtocol::kHttp2;
  g.retry = RetryConfig{};
  g.retry->retry_on = {RetryOn::kConnectFailure, RetryOn::kReset};
  g.retry->num_retries = retries;
  g.retry->base_interval = ms(1);  // a draw below 1 ms is 0
  return g;
}

// Two requests go to servers 0 and 1. Server 0 crashes at 25 ms, in the middle of its answer: its
// request fails then, the other one ends with its fifth step.
TEST(FleetRun, ACrashEndsTheRequestsInTheServer) {
  const RunResult r = run_by_hand(turns({{.at_ms = 0, .output = 5}, {.at_ms = 0, .output = 5}}, 2,
                                        {event(FleetEventKind::kCrash, 25, {0})}));
  EXPECT_EQ(r.requests[0].outcome, workloads::Outcome::kError);
  EXPECT_EQ(end_ms(r.requests[0]), 25);
  EXPECT_EQ(r.requests[0].failure, std::string("ClientPayloadError"));
  EXPECT_EQ(r.requests[1].outcome, workloads::Outcome::kSuccess);
  EXPECT_EQ(end_ms(r.requests[1]), 50);
  EXPECT_EQ(r.fleet->lost, 1);
  EXPECT_EQ(r.replicas[0].requests, 1);
}

// Until the router hears of the crash it sends to a port that nobody listens on; from 26 ms on it
// sends everything to server 1; server 0 takes its turn again when it is back at 125 ms and the
// router has heard of it.
TEST(FleetRun, TheRouterSendsToADeadServerUntilItKnows) {
  std::vector<Sent> script;
  for (const std::int64_t at : {25, 25, 30, 30, 130, 130}) script.push_back({.at_ms = at});
  const RunResult r = run_by_hand(turns(script, 2, {event(FleetEventKind::kCrash, 25, {0})}));
  EXPECT_EQ(r.requests[0].failure, std::string("ClientConnectorError"));
  EXPECT_EQ(end_ms(r.requests[0]), 25);
  for (const int i : {1, 2, 3}) EXPECT_EQ(r.requests[i].endpoint, 1) << i;
  EXPECT_EQ(r.requests[4].endpoint + r.requests[5].endpoint, 1);
  EXPECT_EQ(r.summary.failures, 1);
}

// The same with a gateway that tries again: the second attempt goes to server 1.
TEST(FleetRun, AGatewaySendsARefusedRequestAgain) {
  RunPlan plan = turns({{.at_ms = 25}}, 2, {event(FleetEventKind::kCrash, 25, {0})});
  plan.scenario.routing.gateway = retrying(1);
  const RunResult r = run_by_hand(plan);
  EXPECT_EQ(r.requests[0].outcome, workloads::Outcome::kSuccess);
  EXPECT_EQ(r.requests[0].endpoint, 1);
  EXPECT_EQ(end_ms(r.requests[0]), 35);
  EXPECT_EQ(r.fleet->sent_again, 1);
  EXPECT_EQ(r.routing.gateway->retries, 1);
}

// Headers of a stream are sent before its first token: such a request cannot be sent again.
TEST(FleetRun, AnAnswerThatHasBegunIsLost) {
  RunPlan plan = turns({{.at_ms = 0, .output = 5}}, 2, {event(FleetEventKind::kCrash, 25, {0})});
  plan.scenario.routing.gateway = retrying(1);
  const RunResult r = run_by_hand(plan);
  EXPECT_EQ(r.requests[0].outcome, workloads::Outcome::kError);
  EXPECT_EQ(r.fleet->sent_again, 0);
}

// A new process has an empty prefix cache: the third request hits nothing, the fourth what the
// third has left.
TEST(FleetRun, ARestartedServerHasAColdCache) {
  const std::vector<std::pair<std::uint64_t, std::int64_t>> prompt = {{1, 64}};
  std::vector<Sent> script;
  for (const std::int64_t at : {0, 20, 300, 400}) script.push_back({.at_ms = at, .parts = prompt});
  const RunResult r = run_by_hand(turns(script, 1, {event(FleetEventKind::kCrash, 100, {0})}));
  EXPECT_EQ(r.requests[0].cached_tokens, 0);
  EXPECT_GT(r.requests[1].cached_tokens, 0);
  EXPECT_EQ(r.requests[2].cached_tokens, 0);
  EXPECT_EQ(r.requests[3].cached_tokens, r.requests[1].cached_tokens);
  // Counters go on over the restart.
  EXPECT_EQ(r.replicas[0].prefix_query_tokens, 4 * 64);
  EXPECT_EQ(r.replicas[0].prefix_hit_tokens, 2 * r.requests[1].cached_tokens);
}

// Steps of 10 ms take 30 ms from the next one on.
TEST(FleetRun, ASlowServerTakesLonger) {
  FleetEventConfig slow = event(FleetEventKind::kSlow, 15, {0});
  slow.factor = 3;
  slow.lasts = ms(50);
  const RunResult r = run_by_hand(turns({{.at_ms = 0, .output = 6}}, 1, {slow}));
  // Steps end at 10, 20, 50, 80 (begun before 65), 90, 100.
  EXPECT_EQ(end_ms(r.requests[0]), 100);
}

// Nobody answers any more, and nobody says so: a request in the server waits until TCP gives up,
// one that is sent later until the connection does.
TEST(FleetRun, AVanishedMachineSaysNothing) {
  const RunResult r = run_by_hand(turns({{.at_ms = 0, .output = 9}, {.at_ms = 1'000}}, 1,
                                        {event(FleetEventKind::kNodeLoss, 25, {0})}));
  EXPECT_EQ(end_ms(r.requests[0]), 25 + 924'600);
  EXPECT_EQ(end_ms(r.requests[1]), 1'000 + 10'000);
}

// A request that is on its way into the engine when the machine is lost never reaches it.
TEST(FleetRun, AVanishedMachineAnswersNobodyAtItsFrontEnd) {
  RunPlan plan = turns({{.at_ms = 10}}, 1, {event(FleetEventKind::kNodeLoss, 25, {0})});
  plan.scenario.cluster.frontend_latency = ms(20);
  const RunResult r = run_by_hand(plan);
  EXPECT_EQ(r.replicas[0].requests, 0);
  EXPECT_EQ(end_ms(r.requests[0]), 25 + 924'600);
}

// Places for servers that a roll-out would add hold no KV, and are not averaged over.
TEST(FleetRun, KvUseIsThatOfServersThatExist) {
  const auto use = [](const std::vector<FleetEventConfig>& events) {
    return run_by_hand(turns({{.at_ms = 0, .output = 50}}, 2, events))
        .stages.front()
        .kv_cache_usage_mean;
  };
  EXPECT_GT(use({}), 0);
  EXPECT_DOUBLE_EQ(use({event(FleetEventKind::kRollOut, 480)}), use({}));
  // Without the machine of the idle server, which is gone from 250 of 500 ms on, the mean is of
  // one and a half servers instead of two.
  EXPECT_NEAR(use({event(FleetEventKind::kNodeLoss, 250, {1})}), use({}) * 2 / 1.5, 1e-9);
}

TEST(FleetRun, AClientsTimeoutEndsTheWaitForAVanishedMachine) {
  const RunResult r = run_by_hand(turns({{.at_ms = 0, .output = 9, .timeout_ms = 500}}, 1,
                                        {event(FleetEventKind::kNodeLoss, 25, {0})}));
  EXPECT_EQ(r.requests[0].outcome, workloads::Outcome::kTimeout);
  EXPECT_EQ(end_ms(r.requests[0]), 500);
}

// With a preStop hook that outlasts it, the answer under way is completed.
TEST(FleetRun, APreStopHookLetsAnswersEnd) {
  for (const bool hook : {false, true}) {
    RunPlan plan = turns({{.at_ms = 0, .output = 5}, {.at_ms = 200}}, 1,
                         {event(FleetEventKind::kDrain, 25, {0})});
    if (hook) plan.pools.front().config.termination.pre_stop = ms(40);
    const RunResult r = run_by_hand(plan);
    EXPECT_EQ(r.requests[0].outcome == workloads::Outcome::kSuccess, hook);
    // The replacement serves the second one.
    EXPECT_EQ(r.requests[1].endpoint, 1);
    EXPECT_EQ(end_ms(r.requests[1]), 210);
  }
}

TEST(FleetRun, ARouterThatRestartsCutsWhatItCarries) {
  FleetEventConfig e = event(FleetEventKind::kRouterRestart, 25);
  e.lasts = ms(50);
  const RunResult r =
      run_by_hand(turns({{.at_ms = 0, .output = 5}, {.at_ms = 50}, {.at_ms = 100}}, 1, {e}));
  EXPECT_EQ(end_ms(r.requests[0]), 25);
  EXPECT_EQ(r.requests[0].failure, std::string("ServerDisconnectedError"));
  EXPECT_EQ(end_ms(r.requests[1]), 50);
  EXPECT_EQ(r.requests[1].failure, std::string("ClientConnectorError"));
  EXPECT_EQ(r.requests[2].outcome, workloads::Outcome::kSuccess);
}

// A decision takes 100 ms. Two requests wait for theirs when the router ends at 150 ms; the process
// that is there at 155 ms decides at once about the next one. Of two processes only the first ends:
// it loses what waits there, and the other one gets the request that comes meanwhile.
TEST(FleetRun, ARouterThatRestartsForgetsWhatWaitsForItsDecision) {
  FleetEventConfig e = event(FleetEventKind::kRouterRestart, 150);
  e.lasts = ms(5);
  RunPlan plan =
      turns({{.at_ms = 0}, {.at_ms = 0}, {.at_ms = 20}, {.at_ms = 152}, {.at_ms = 160}}, 1, {e});
  plan.scenario.routing.service_time = ms(100);
  RunResult r = run_by_hand(plan);
  EXPECT_EQ(end_ms(r.requests[0]), 110);
  for (const int i : {1, 2}) {
    EXPECT_EQ(end_ms(r.requests[i]), 150) << i;
    EXPECT_EQ(r.requests[i].failure, std::string("ServerDisconnectedError")) << i;
  }
  EXPECT_EQ(r.requests[3].failure, std::string("ClientConnectorError"));
  EXPECT_EQ(end_ms(r.requests[3]), 152);
  EXPECT_EQ(end_ms(r.requests[4]), 270);
  plan.scenario.routing.router_replicas = 2;
  r = run_by_hand(plan);
  EXPECT_EQ(end_ms(r.requests[0]), 110);
  EXPECT_EQ(end_ms(r.requests[1]), 120);  // The server takes it with its second step,
  EXPECT_EQ(end_ms(r.requests[2]), 150);
  EXPECT_EQ(end_ms(r.requests[3]), 262);
  EXPECT_EQ(end_ms(r.requests[4]), 272);  // and this one with the step after that one's.
}

/// The fleet that a plan makes of two pools, p and q.
struct TwoPools {
  std::vector<std::int64_t> replicas, places;
};
TwoPools two_pools(std::vector<FleetEventConfig> events,
                   std::optional<AutoscalerConfig> autoscaler = {}) {
  RunPlan plan = turns({}, 2, {});
  plan.pools.push_back(plan.pools.front());
  plan.pools[0].config.name = "p";
  plan.pools[1].config.name = "q";
  plan.pools[0].config.autoscaler = std::move(autoscaler);
  plan.scenario.cluster.pools = {plan.pools[0].config, plan.pools[1].config};
  set_events(plan, std::move(events));
  TwoPools out;
  for (const FleetPool& pool : fleet_pools(plan)) {
    out.replicas.push_back(pool.replicas);
    out.places.push_back(pool.places);
  }
  return out;
}

// A pool that its first roll-out leads to is empty before; one that it leads away from is not, even
// if a later one leads back.
TEST(FleetRun, ARollOutFillsThePoolThatItLeadsTo) {
  const auto roll = [](std::int64_t at, const char* from, const char* to) {
    FleetEventConfig e = event(FleetEventKind::kRollOut, at);
    e.pool = from;
    e.to = to;
    return e;
  };
  using Numbers = std::vector<std::int64_t>;
  EXPECT_EQ(two_pools({roll(20, "p", "q")}).replicas, (Numbers{2, 0}));
  EXPECT_EQ(two_pools({roll(20, "p", "q"), roll(200, "q", "p")}).replicas, (Numbers{2, 0}));
  EXPECT_EQ(two_pools({roll(200, "p", "q"), roll(20, "q", "p")}).replicas, (Numbers{0, 2}));
  EXPECT_EQ(two_pools({roll(20, "q", ""), roll(200, "p", "q")}).replicas, (Numbers{2, 2}));
}

// It has places for all servers that an autoscaler or a person may want where they come from: 12
// and a surge of 3, and as many that end.
TEST(FleetRun, ARollOutFindsPlacesForAllServers) {
  FleetEventConfig roll = event(FleetEventKind::kRollOut, 20),
                   up = event(FleetEventKind::kScale, 5);
  roll.pool = up.pool = "p";
  roll.to = "q";
  up.replicas = 12;
  AutoscalerConfig scaler;
  scaler.max_replicas = 12;
  EXPECT_EQ(two_pools({roll}, scaler).places.at(1), 27);
  EXPECT_EQ(two_pools({roll, up}).places.at(1), 27);
  EXPECT_EQ(two_pools({roll}).places.at(1), 5);
}

// Servers that end over an hour keep their places: 12 of 2 servers that are scaled away six times,
// and at a rate of one drain in 20 s for each of two, 360 and four times their root.
TEST(FleetRun, ServersThatEndSlowlyHavePlaces) {
  std::vector<FleetEventConfig> events;
  for (std::int64_t i = 0; i < 6; ++i) {
    events.push_back(event(FleetEventKind::kScale, 20'000 * i));
    events.back().replicas = i % 2 == 0 ? 0 : 4;
    events.back().pool = "p";
  }
  EXPECT_EQ(two_pools(events).places.at(0), 4 + 2 + 4 + 4);
  FleetEventConfig drains = event(FleetEventKind::kDrain, 0);
  drains.at.reset();
  drains.mean_time_between = Duration::seconds(20);
  RunPlan plan = turns({}, 2, {});
  plan.scenario.cluster.pools.front().termination.grace = Duration::seconds(3'600);
  set_events(plan, {drains});
  EXPECT_EQ(plan.pools.front().places(), 2 + 435);
}

// Without any server every request is refused, and the run ends.
TEST(FleetRun, AnEmptyPoolRefuses) {
  FleetEventConfig none = event(FleetEventKind::kScale, 0);
  none.replicas = 0;
  for (const BalancerKind kind :
       {BalancerKind::kRoundRobin, BalancerKind::kRandom, BalancerKind::kK8sService}) {
    RunPlan plan = turns({{.at_ms = 100}, {.at_ms = 200}}, 2, {none});
    plan.scenario.routing.balancer = kind;
    const RunResult r = run_by_hand(plan);
    EXPECT_EQ(r.summary.failures, 2) << static_cast<int>(kind);
  }
}

// Server 0 is gone from 25 ms on, which the router learns at 225 ms. SMG sends the request of 30 ms
// there, is refused, and after 40 to 60 ms takes the next server, which answers in 10 ms. Whoever
// was being answered is lost.
TEST(FleetRun, SomeRoutersTryAgainThemselves) {
  for (const bool retries : {false, true}) {
    RunPlan plan = turns({{.at_ms = 0, .output = 5}, {.at_ms = 1}, {.at_ms = 30}}, 2,
                         {event(FleetEventKind::kCrash, 25, {0})});
    plan.scenario.routing.discovery->leave_unseen = ms(200);
    if (retries) plan.scenario.routing.balancer = *policies::find_balancer("smg-round-robin");
    const RunResult r = run_by_hand(plan);
    EXPECT_EQ(r.requests[0].outcome, workloads::Outcome::kError);
    EXPECT_EQ(r.requests[1].outcome, workloads::Outcome::kSuccess);
    EXPECT_EQ(r.requests[2].outcome == workloads::Outcome::kSuccess, retries);
    EXPECT_EQ(r.fleet->sent_again, retries ? 1 : 0);
    if (!retries) continue;
    EXPECT_GE(end_ms(r.requests[2]), 80);
    EXPECT_LE(end_ms(r.requests[2]), 100);
  }
}

// Without any server vLLM's router tries five times: 50 + 75 + 112 + 168 ms, a fifth more or less.
// A router that is restarted meanwhile loses the request.
TEST(FleetRun, ARouterGivesUpInTheEnd) {
  FleetEventConfig none = event(FleetEventKind::kScale, 0), restart = none;
  none.replicas = 0;
  restart.kind = FleetEventKind::kRouterRestart;
  restart.at = ms(210);
  restart.lasts = ms(5);
  RunPlan plan = turns({{.at_ms = 100}}, 2, {none});
  plan.scenario.routing.balancer = *policies::find_balancer("vllm-router-round-robin");
  RunResult r = run_by_hand(plan);
  EXPECT_EQ(r.requests[0].outcome, workloads::Outcome::kError);
  EXPECT_EQ(r.fleet->sent_again, 4);
  EXPECT_GE(end_ms(r.requests[0]), 100 + 4 * 405 / 5);
  EXPECT_LE(end_ms(r.requests[0]), 100 + 6 * 405 / 5 + 1);
  plan.scenario.events.push_back(restart);
  r = run_by_hand(plan);
  EXPECT_EQ(end_ms(r.requests[0]), 210);
  EXPECT_EQ(r.requests[0].failure, std::string("ServerDisconnectedError"));
}

/// SMG or vLLM's router, which takes turns, and whose server 0 ends at 25 ms for `down`. It does
/// not hear of it before `unseen`.
RunPlan breaking(const std::string& product, std::vector<Sent> script, std::int64_t servers,
                 std::int64_t down, std::int64_t unseen = 600'000) {
  FleetEventConfig crash = event(FleetEventKind::kCrash, 25, {0});
  crash.lasts = ms(down);
  RunPlan plan = turns(std::move(script), servers, {crash});
  plan.scenario.routing.balancer = *policies::find_balancer(product + "-round-robin");
  plan.scenario.routing.discovery->leave_unseen = ms(unseen);
  return plan;
}

/// Requests at each whole second of [first, last].
std::vector<Sent> every_second(std::int64_t first, std::int64_t last) {
  std::vector<Sent> script;
  for (std::int64_t s = first; s <= last; ++s) script.push_back({.at_ms = s * 1'000});
  return script;
}

// A failed try at server 0, and the next one at server 1: that leaves the turn to server 0. After
// ten of them its breaker opens, at 10 s, and requests go to server 1 at once. From 70 s on server
// 0 has its turns again; one more failure, at 70 or 71 s, is enough then.
TEST(FleetRun, ABreakerPassesOverAServerThatFails) {
  for (const std::string product : {"smg", "vllm-router"}) {
    RunPlan plan = breaking(product, every_second(1, 69), 2, 900'000);
    RunResult r = run_by_hand(plan);
    EXPECT_EQ(r.fleet->sent_again, 10);
    EXPECT_EQ(r.summary.failures, 0);
    for (int i = 10; i < 69; ++i) EXPECT_EQ(end_ms(r.requests[i]), 1'000 * (i + 1) + 10) << i;
    const auto opens =
        std::ranges::find(r.fleet->marks, "trips a router's breaker", &FleetMark::what);
    ASSERT_NE(opens, r.fleet->marks.end());
    EXPECT_EQ(opens->at_s, 10);
    EXPECT_EQ(opens->subject, "pool-0");
    r = run_by_hand(breaking(product, every_second(1, 129), 2, 900'000));
    EXPECT_EQ(r.fleet->sent_again, 11);
    // Each process has its own, and a process that starts has a new one.
    plan.scenario.routing.router_replicas = 2;
    EXPECT_EQ(run_by_hand(plan).fleet->sent_again, 20);
    plan.scenario.routing.router_replicas = 1;
    plan.scenario.events.push_back(event(FleetEventKind::kRouterRestart, 30'500));
    plan.scenario.events.back().lasts = ms(5);
    EXPECT_EQ(run_by_hand(plan).fleet->sent_again, 20);
    // So has a server that leaves, at 15.025 s, and returns.
    r = run_by_hand(breaking(product, every_second(1, 30), 2, 20'000, 15'000));
    EXPECT_EQ(r.fleet->sent_again, 10);
    EXPECT_EQ(r.requests[20].endpoint + r.requests[21].endpoint, 1);
    plan = breaking(product, every_second(1, 69), 2, 900'000);
    policies::BalancerSettings& settings = plan.scenario.routing.balancing;
    settings.smg.emplace().breaker.disable_circuit_breaker = true;
    settings.vllm_router.emplace().breaker.disable_circuit_breaker = true;
    EXPECT_EQ(run_by_hand(plan).fleet->sent_again, 69);
  }
}

// Health checks, which SMG trusts, do not see that a server was away that is back. Its breaker
// stays open until 70 s. vLLM's router hears of the crash, late, and of a server that has a new
// breaker.
TEST(FleetRun, HealthChecksSeeWhatIsNow) {
  for (const bool smg : {true, false}) {
    const RunResult r =
        run_by_hand(breaking(smg ? "smg" : "vllm-router", every_second(1, 50), 2, 20'000, 30'000));
    EXPECT_EQ(r.fleet->sent_again, 10);
    EXPECT_EQ(r.requests[48].endpoint + r.requests[49].endpoint, smg ? 2 : 1);
  }
}

// The pod that crashed is deleted at 3 s, and SMG hears of that 0.1 s later; without, it would send
// there until its checks have failed.
TEST(FleetRun, SmgHearsOfADeletedPod) {
  for (const bool deleted : {false, true}) {
    RunPlan plan = breaking("smg", every_second(1, 9), 2, 900'000);
    if (deleted) {
      plan.scenario.events.push_back(event(FleetEventKind::kScale, 3'000));
      plan.scenario.events.back().replicas = 1;
    }
    EXPECT_EQ(run_by_hand(plan).fleet->sent_again, deleted ? 3 : 9);
  }
}

// The first request to the dead server is lost, and with it Dynamo knows: the others go elsewhere.
// A router that only watches sends each second one there.
TEST(FleetRun, DynamoLeavesOutADeadServerWithTheFirstRequestLost) {
  EXPECT_EQ(run_by_hand(breaking("dynamo", every_second(1, 9), 2, 900'000)).summary.failures, 1);
  EXPECT_GE(run_by_hand(breaking("envoy", every_second(1, 9), 2, 900'000)).summary.failures, 4);
}

// SMG that knows no server answers 404, and does not try again.
TEST(FleetRun, SmgWithoutServersAnswers404) {
  RunPlan plan = breaking("smg", {{.at_ms = 5'000}}, 1, 900'000);
  plan.scenario.events.push_back(event(FleetEventKind::kScale, 1'000));
  plan.scenario.events.back().replicas = 0;
  const RunResult r = run_by_hand(plan);
  EXPECT_EQ(r.requests[0].failure, std::string("404 Not Found"));
  EXPECT_EQ(r.fleet->sent_again, 0);
}

// One server, which is back at 20 s. Two requests fail ten times, the last time 0.4 s after 1 s.
// The next ones are refused after five tries, also when it is back. From 61.4 s on it is half-open;
// two answers leave it so, the third closes it. When the server fails again, at 70 s, a breaker
// that is half-open opens with the first failure, and a closed one not with five: what comes when
// the server is back tells them apart.
TEST(FleetRun, ABreakerClosesAfterThreeAnswers) {
  for (const std::int64_t answers : {2, 3}) {
    std::vector<Sent> script;
    for (const std::int64_t at : {30, 1'000, 2'000, 30'000}) script.push_back({.at_ms = at});
    for (std::int64_t i = 0; i < answers; ++i) script.push_back({.at_ms = 62'000 + 100 * i});
    script.push_back({.at_ms = 71'000});
    script.push_back({.at_ms = 81'000});
    RunPlan plan = breaking("smg", script, 1, 20'000);
    plan.scenario.events.push_back(event(FleetEventKind::kCrash, 70'000, {0}));
    plan.scenario.events.back().lasts = ms(10'000);
    const RunResult r = run_by_hand(plan);
    for (const int i : {0, 1})
      EXPECT_EQ(r.requests[i].failure, std::string("ClientConnectorError")) << i;
    for (const int i : {2, 3})
      EXPECT_EQ(r.requests[i].failure, std::string("503 Service Unavailable")) << i;
    for (int i = 4; i < 4 + answers; ++i)
      EXPECT_EQ(r.requests[i].outcome, workloads::Outcome::kSuccess) << i;
    EXPECT_EQ(r.requests[4 + answers].failure,
              std::string(answers == 3 ? "ClientConnectorError" : "503 Service Unavailable"));
    EXPECT_EQ(r.requests[5 + answers].outcome == workloads::Outcome::kSuccess, answers == 3);
  }
}

// A stream that breaks has been answered: twelve of them open nothing. Answers that are not
// streamed fail, and are tried again; the tenth of twelve opens the breaker.
TEST(FleetRun, AStreamThatBreaksIsNoFailure) {
  for (const bool streams : {true, false}) {
    RunPlan plan = breaking("smg", std::vector<Sent>(12, {.at_ms = 0, .output = 9}), 1, 100);
    if (!streams)
      plan.scenario.workload.load.emplace<workloads::inference_perf::Workload>().config.emplace();
    const RunResult r = run_by_hand(plan);
    EXPECT_EQ(r.fleet->lost, 12);
    const bool opened = std::ranges::any_of(
        r.fleet->marks, [](const FleetMark& m) { return m.what.starts_with("trips a router"); });
    EXPECT_EQ(opened, !streams);
    EXPECT_EQ(r.fleet->sent_again > 0, !streams);
  }
}

// The tries of a request that failed count at server 0 until it ends, so that the next try goes to
// server 1. If they did not, one of 16 requests would meet server 0 four times and fail.
TEST(FleetRun, KubeAiCountsFailedTries) {
  FleetEventConfig crash = event(FleetEventKind::kCrash, 25, {0});
  crash.lasts = ms(600'000);
  RunPlan plan = turns(every_second(1, 100), 2, {crash});
  plan.scenario.routing.balancer = BalancerKind::kLeastLoad;
  plan.scenario.routing.discovery->leave_unseen = ms(600'000);
  const RunResult r = run_by_hand(plan);
  EXPECT_EQ(r.summary.failures, 0);
  EXPECT_GT(r.fleet->sent_again, 30);
  EXPECT_LT(r.fleet->sent_again, 70);
}

// A pool that begins without a server: its first one is started at 20 ms, ready at 120 ms and known
// at 121 ms.
TEST(FleetRun, APoolMayBeginEmpty) {
  FleetEventConfig one = event(FleetEventKind::kScale, 20);
  one.replicas = 1;
  const RunResult r = run_by_hand(turns({{.at_ms = 0}, {.at_ms = 119}, {.at_ms = 130}}, 0, {one}));
  EXPECT_EQ(r.requests[0].outcome, workloads::Outcome::kError);
  EXPECT_EQ(r.requests[1].outcome, workloads::Outcome::kError);
  EXPECT_EQ(r.requests[2].outcome, workloads::Outcome::kSuccess);
  EXPECT_EQ(end_ms(r.requests[2]), 140);
  EXPECT_EQ(r.fleet->pools[0].starts, 1);
}

// KubeAI holds the first two until 121 ms. The server has a step for each.
TEST(FleetRun, KubeAiWaitsForAServer) {
  FleetEventConfig one = event(FleetEventKind::kScale, 20);
  one.replicas = 1;
  RunPlan plan = turns({{.at_ms = 0}, {.at_ms = 119}, {.at_ms = 140}}, 0, {one});
  for (const BalancerKind kind : {BalancerKind::kLeastLoad, BalancerKind::kPrefixHash}) {
    plan.scenario.routing.balancer = kind;
    const RunResult r = run_by_hand(plan);
    EXPECT_EQ(r.summary.failures, 0);
    EXPECT_EQ(end_ms(r.requests[0]), 131);
    EXPECT_EQ(end_ms(r.requests[1]), 141);
    EXPECT_EQ(end_ms(r.requests[2]), 151);
  }
}

// Ray Serve and KubeAI hold requests until there is a server. An autoscaler that looks, and never
// asks for one, does not keep the run alive for ever.
TEST(FleetRun, AWaitInVainEnds) {
  RunPlan plan = turns({{.at_ms = 100}}, 0, {});
  AutoscalerConfig c;
  c.kind = AutoscalerKind::kKeda;
  c.min_replica_count = 0;
  c.max_replica_count = 2;
  c.triggers = {{.name = "q", .query = "sum(vllm:num_requests_waiting)", .threshold = 1}};
  plan.pools.front().config.autoscaler = c;
  plan.pools.front().extra_places = 4;
  plan.scenario.cluster.pools = {plan.pools.front().config};
  for (const char* const name : {"ray-power-of-two", "least-load", "prefix-hash"}) {
    plan.scenario.routing.balancer = *policies::find_balancer(name);
    EXPECT_THROW((void)run_by_hand(plan), NoServerError) << name;
  }
  // One that counts what waits at KubeAI starts a server; the last router is KubeAI's.
  plan.scenario.cluster.pools[0].autoscaler->triggers[0].query = "kubeai_inference_requests_active";
  plan.pools[0].config = plan.scenario.cluster.pools[0];
  const RunResult r = run_by_hand(plan);
  EXPECT_EQ(r.summary.failures, 0);
  EXPECT_EQ(r.fleet->pools[0].starts, 1);
}

// The crash fails one request, and an autoscaler that wants half an error for each server asks for
// two of them.
TEST(FleetRun, RoutersCountErrors) {
  RunPlan plan = turns({{.at_ms = 0, .output = 9}, {.at_ms = 300}, {.at_ms = 900}}, 1,
                       {event(FleetEventKind::kCrash, 25, {0})});
  AutoscalerConfig c;
  c.min_replicas = 1;
  c.max_replicas = 3;
  plan.scenario.routing.balancer = BalancerKind::kEndpointPicker;
  plan.endpoint_picker = testing::load_aware_config();
  c.metrics = {{.query = "llm_d_epp_request_error_total", .target = 0.5}};
  c.prometheus.scrape_interval = ms(20);
  c.controller.sync_period = ms(50);
  plan.pools.front().config.autoscaler = c;
  plan.pools.front().extra_places = 5;
  plan.scenario.cluster.pools = {plan.pools.front().config};
  const RunResult r = run_by_hand(plan);
  EXPECT_EQ(r.summary.failures, 1);
  EXPECT_EQ(r.fleet->pools[0].most_servers, 2);
}

// ---- Several endpoint pickers with a leader. ----------------------------------------------------

/// One prompt at these times, to one server behind two pickers.
RunResult led(policies::EndpointPickerConfig picker, const std::vector<std::int64_t>& at,
              FleetEventConfig restart) {
  std::vector<Sent> script;
  for (const std::int64_t ms : at) script.push_back({.at_ms = ms, .parts = {{1, 64}}});
  RunPlan plan = turns(std::move(script), 1, {std::move(restart)});
  plan.scenario.routing.balancer = BalancerKind::kEndpointPicker;
  plan.scenario.routing.router_replicas = 2;
  plan.scenario.routing.leader_election = true;
  plan.endpoint_picker = std::move(picker);
  return run_by_hand(plan);
}

// For 13 to 26 s nobody serves, although the crashed process is back after 5 s. The other one has
// heard all KV events, from v0.10.0 on; before, it begins with nothing, and the server has nothing
// new to say.
TEST(FleetRun, AStandbyTakesOverWhenTheLeaseEnds) {
  for (const int round : {0, 1, 2}) {
    const bool warm = round > 0;
    FleetEventConfig restart = event(FleetEventKind::kRouterRestart, 100);
    if (round == 2) restart.lasts = ms(28'000);
    policies::EndpointPickerConfig picker =
        warm ? testing::replaying_config(16, false) : testing::precise_config(16);
    if (!warm) picker.era = policies::Era::kV0_9_0;
    const RunResult r = led(picker, {0, 50, 6'000, 13'000, 27'000, 29'000}, restart);
    EXPECT_EQ(r.requests[1].predicted_hit_tokens, 64);
    for (const int i : {2, 3}) EXPECT_EQ(r.requests[i].outcome, workloads::Outcome::kError);
    for (const int i : {4, 5}) EXPECT_EQ(r.requests[i].predicted_hit_tokens, warm ? 64 : 0);
    EXPECT_EQ(std::ranges::count(r.fleet->marks, "leads", &FleetMark::what), 1);
    const auto leads = std::ranges::find(r.fleet->marks, "leads", &FleetMark::what);
    ASSERT_NE(leads, r.fleet->marks.end());
    EXPECT_EQ(leads->subject, "router 1");
    EXPECT_GT(leads->at_s, 13.1);
    EXPECT_LT(leads->at_s, 25.9);
  }
}

// A leader that is asked to end gives up its lease, and another one has it within 6.4 s. From
// v0.10.0 on nobody is refused, since the old one serves for 30 s more.
TEST(FleetRun, ALeaderThatIsAskedToEndHandsOver) {
  FleetEventConfig restart = event(FleetEventKind::kRouterRestart, 100);
  restart.graceful = true;
  for (const bool drains : {true, false}) {
    policies::EndpointPickerConfig picker = testing::replaying_config(16, false);
    if (!drains) picker.era = policies::Era::kV0_9_0;
    const RunResult r = led(picker, {101, 6'500, 31'000}, restart);
    EXPECT_EQ(r.requests[0].outcome == workloads::Outcome::kSuccess, drains);
    for (const int i : {1, 2}) EXPECT_EQ(r.requests[i].outcome, workloads::Outcome::kSuccess);
  }
}

// ---- Lost scrapes. ------------------------------------------------------------------------------

// Two long requests take turns. The second prompt is longer, so the third goes to the first server,
// unless the router has not seen the second one's cache fill up.
TEST(FleetRun, LostScrapesFreezeWhatTheRouterKnows) {
  const std::vector<Sent> script = {{.at_ms = 0, .parts = {{1, 16}}, .output = 60},
                                    {.at_ms = 30, .parts = {{2, 320}}, .output = 60},
                                    {.at_ms = 60},
                                    {.at_ms = 200}};
  RunPlan plan = turns(script, 2, {event(FleetEventKind::kScale, 1)});
  plan.scenario.events.front().replicas = 2;
  plan.scenario.routing.balancer = BalancerKind::kEndpointPicker;
  plan.endpoint_picker = testing::load_aware_config();
  const RunResult seen = run_by_hand(plan);
  const auto first = seen.requests[0].endpoint;
  EXPECT_EQ(seen.requests[1].endpoint, 1 - first);
  for (const int i : {2, 3}) EXPECT_EQ(seen.requests[i].endpoint, first);
  FleetEventConfig lost = event(FleetEventKind::kScrapesLost, 20, {1 - first});
  lost.lasts = ms(100);
  plan.scenario.events.push_back(lost);
  const RunResult unseen = run_by_hand(plan);
  EXPECT_EQ(unseen.requests[2].endpoint, 1 - first) << "as empty as at 20 ms";
  EXPECT_EQ(unseen.requests[3].endpoint, first) << "read again from 120 ms on";
}

// ---- Random scenarios with random events. -------------------------------------------------------

std::int64_t draw(RandomStream& random, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(high - low + 1)));
}

/// Between one and a few servers, by the requests that run in each.
AutoscalerConfig quick_autoscaler(RandomStream& random) {
  AutoscalerConfig c;
  c.min_replicas = 1;
  c.max_replicas = static_cast<std::int32_t>(draw(random, 1, 5));
  c.metrics = {{.type = ScalingMetricType::kPods,
                .query = "vllm:num_requests_running + vllm:num_requests_waiting",
                .target = static_cast<double>(draw(random, 1, 6))}};
  const std::array queries{"", "rate(vllm:generation_tokens_total[100ms])",
                           "rate(vllm:prompt_tokens_total[100ms])"};
  if (const std::string query = queries[random.below(queries.size())]; !query.empty()) {
    c.metrics[0].query = query;
    c.metrics[0].target *= 200;
  }
  c.behavior.emplace();
  c.behavior->scale_down.emplace();
  c.behavior->scale_down->stabilization_window_seconds = 0;
  c.prometheus.scrape_interval = ms(draw(random, 5, 30));
  c.controller.sync_period = ms(draw(random, 10, 60));
  return c;
}

/// Some scenarios get routers that try again themselves, or links that are lost.
void vary(RunPlan& plan, std::uint64_t seed) {
  Scenario& s = plan.scenario;
  for (FleetEventConfig& e : s.events)
    if (e.kind == FleetEventKind::kSlow && s.cluster.pools.size() > 1 && seed % 2 == 0) {
      e.kind = FleetEventKind::kLinkLost;
      e.factor.reset();
    }
  const BalancerKind was = s.routing.balancer;
  RandomStream random(seed, Stream::kTest, 78);
  if (random.below(3) == 0) s.routing.service_time = ms(draw(random, 0, 20));
  const bool with_prefill = plan.pools.size() > 1 && random.below(2) == 0;
  if (was != BalancerKind::kRoundRobin && was != BalancerKind::kRandom && !with_prefill) return;
  const std::array names{"smg-round-robin", "vllm-router-random", "ray-power-of-two", ""};
  const std::string name = names[random.below(with_prefill ? 2 : names.size())];
  if (name.empty()) return;
  s.routing.balancer = *policies::find_balancer(name);
  plan.endpoint_picker.reset();
  const policies::CircuitBreakerSettings breaker{.cb_failure_threshold = draw(random, 1, 4),
                                                 .cb_success_threshold = draw(random, 1, 3),
                                                 .cb_timeout_duration = ms(draw(random, 0, 80))};
  s.routing.balancing.smg.emplace().breaker = breaker;
  s.routing.balancing.vllm_router.emplace().breaker = breaker;
  if (random.below(3) == 0)  // Answers are not streamed.
    s.workload.load.emplace<workloads::inference_perf::Workload>().config.emplace();
}

/// Requests wait at the gateway until a leader is elected.
void elect_leader(Scenario& s, RandomStream& random) {
  s.routing.router_replicas = draw(random, 2, 3);
  s.routing.leader_election = true;
  for (FleetEventConfig& e : s.events)
    e.graceful = e.kind == FleetEventKind::kRouterRestart && random.below(2) == 0;
  s.routing.gateway = retrying(8);
  s.routing.gateway->max_retries = 1'000;
  s.routing.gateway->retry->retry_on.push_back(RetryOn::k5xx);
  s.routing.gateway->retry->picker_refusals = true;
  s.routing.gateway->retry->base_interval = Duration::seconds(2);
}

/// Some scenarios lose scrapes, elect a leader, or ask engines for what was lost.
void vary_feeds(RunPlan& plan, std::uint64_t seed) {
  RandomStream random(seed, Stream::kTest, 79);
  Scenario& s = plan.scenario;
  for (FleetEventConfig& e : s.events)
    if (e.kind == FleetEventKind::kKvEventsLost && random.below(2) == 0)
      e.kind = FleetEventKind::kScrapesLost;
  if (!plan.endpoint_picker) return;
  const policies::PluginSpec* precise = plan.endpoint_picker->find("precise-prefix-cache-scorer");
  if (precise != nullptr && plan.pools.size() == 1 && random.below(2) == 0)
    plan.endpoint_picker =
        testing::replaying_config(plan.pools[0].rules.block_size, random.below(4) > 0);
  if (random.below(3) == 0) elect_leader(s, random);
}

/// Some roll-outs wait for available servers, or end all old ones first, and some budgets are of
/// what is wanted at the time.
void vary_life(RunPlan& plan, std::uint64_t seed) {
  RandomStream random(seed, Stream::kTest, 80);
  for (FleetEventConfig& e : plan.scenario.events) {
    if (e.kind != FleetEventKind::kRollOut) continue;
    e.min_ready_seconds = ms(draw(random, 0, 1) * draw(random, 0, 100));
    if (random.below(3) > 0) continue;
    e.recreate = true;
    e.max_surge.clear();
    e.max_unavailable.clear();
  }
  for (ResolvedPool& pool : plan.pools)
    if (random.below(3) == 0) {
      pool.config.most_evicted.clear();
      pool.config.min_available = std::to_string(draw(random, 0, 100)) + "%";
    }
}

/// Scenario number `seed` of the swarm, with up to five events in its first 300 ms.
RunPlan eventful_plan(std::uint64_t seed) {
  RunPlan plan = testing::swarm_plan(seed);
  RandomStream random(seed, Stream::kTest, 77);
  Scenario& s = plan.scenario;
  for (std::size_t i = 0; i < plan.pools.size(); ++i) {
    plan.pools[i].config.name += std::to_string(i);
    s.cluster.pools.push_back(plan.pools[i].config);
  }
  if (random.below(3) == 0) {
    for (std::size_t i = 0; i < plan.pools.size(); ++i)
      s.cluster.pools[i].autoscaler = plan.pools[i].config.autoscaler = quick_autoscaler(random);
  }
  const std::int64_t events = draw(random, 1, 5);
  for (std::int64_t i = 0; i < events; ++i) {
    auto kind = static_cast<FleetEventKind>(draw(random, 0, 7));
    if (kind == FleetEventKind::kRouterRestart && s.routing.balancer == BalancerKind::kK8sService)
      kind = FleetEventKind::kCrash;
    FleetEventConfig e = event(kind, draw(random, 0, 300));
    const bool of_servers = kind <= FleetEventKind::kKvEventsLost;
    if (kind != FleetEventKind::kRouterRestart)
      e.pool = plan.pools[random.below(plan.pools.size())].config.name;
    if (of_servers && random.below(2) == 0) e.servers = {0};
    if (of_servers && random.below(5) == 0) {
      e.at.reset();
      e.mean_time_between = ms(draw(random, 20, 400));
    }
    if (kind == FleetEventKind::kSlow) e.factor = 0.5 + random.uniform() * 4;
    if (kind == FleetEventKind::kScale) e.replicas = draw(random, 0, 4);
    if (kind == FleetEventKind::kSlow || kind == FleetEventKind::kKvEventsLost ||
        kind == FleetEventKind::kRouterRestart || (kind == FleetEventKind::kCrash && i % 2 == 0))
      e.lasts = ms(draw(random, 1, 100));
    if (kind == FleetEventKind::kRollOut) {
      e.max_surge = std::to_string(draw(random, 0, 2));
      e.max_unavailable = std::to_string(draw(random, 0, 2));
    }
    s.events.push_back(e);
  }
  for (std::size_t i = 0; i < plan.pools.size(); ++i) {
    ResolvedPool& pool = plan.pools[i];
    pool.start_up.load = ms(draw(random, 0, 80));
    if (pool.config.data_parallel == 1 && !pool.rules.async_scheduling &&
        !pool.rules.tiers.in_use() && random.below(4) == 0)
      pool.rules.pipeline_stages = 2;
    pool.config.termination.pre_stop = ms(draw(random, 0, 40));
    pool.config.termination.shutdown_timeout = ms(draw(random, 0, 1) * draw(random, 0, 300));
    pool.config.termination.grace = ms(draw(random, 0, 200));
    pool.config.most_evicted = std::to_string(draw(random, 0, 2));
    s.cluster.pools[i].termination = pool.config.termination;
    pool.extra_places = places_of(s, i) - pool.config.replicas;
  }
  s.routing.discovery = DiscoveryConfig{.join = ms(draw(random, 0, 10)),
                                        .leave = ms(draw(random, 0, 30)),
                                        .leave_unseen = ms(draw(random, 0, 60))};
  if (random.below(2) == 0) s.routing.gateway = retrying(draw(random, 1, 3));
  vary(plan, seed);
  vary_feeds(plan, seed);
  vary_life(plan, seed);
  return plan;
}

/// Which connector found something, and whether a pull or a load of its store failed.
void count_tiers(const TierRules& tiers, const RunResult& r, std::array<std::int64_t, 5>& counts) {
  if (!tiers.in_use() || !r.summary.tiers) return;
  const TierCounters& did = r.summary.tiers->did;
  const std::size_t kind = tiers.copies_in_steps ? 0 : tiers.shared_store ? 1 : 2;
  counts[kind] += did.hit_tokens > 0 ? 1 : 0;
  counts[3] += did.pulls_failed > 0 ? 1 : 0;
  counts[4] += tiers.shared_store &&
               std::any_of(r.requests.begin(), r.requests.end(), [](const RequestRecord& q) {
                 return q.failure == std::string_view("500 Internal Server Error");
               });
}

TEST(FleetRun, FastEqualsSlowWhateverHappens) {
  const char* first = std::getenv("ROUTESIM_SWARM_FIRST");
  const char* count = std::getenv("ROUTESIM_SWARM_COUNT");
  const std::uint64_t begin = first != nullptr ? std::strtoull(first, nullptr, 10) : 1;
  const std::uint64_t scenarios = count != nullptr ? std::strtoull(count, nullptr, 10) : 2'000;
  std::int64_t lost = 0, again = 0, fell_back = 0, starts = 0, led = 0, opened = 0;
  std::array<std::int64_t, 5> of_tiers{};  ///< Runs with hits of each kind, failed pulls and loads.
  for (std::uint64_t seed = begin; seed < begin + scenarios; ++seed) {
    const RunPlan plan = eventful_plan(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + testing::describe_plan(plan));
    try {
      const RunResult r = run_by_hand(plan, seed);
      lost += r.fleet->lost;
      again += r.fleet->sent_again;
      fell_back += r.fleet->fell_back;
      for (const FleetPoolResult& p : r.fleet->pools) starts += p.starts;
      if (r.fleet->lost > 0) count_tiers(plan.pools.front().rules.tiers, r, of_tiers);
      led += std::ranges::count(r.fleet->marks, "leads", &FleetMark::what);
      for (const FleetMark& m : r.fleet->marks) opened += m.what.starts_with("trips") ? 1 : 0;
    } catch (const NoServerError&) {
      // Flow control, and Ray Serve, wait for ever for a pool that stays empty.
    } catch (const std::exception& e) {
      FAIL() << e.what();
    }
    if (HasFailure()) return;
  }
  if (scenarios < 1'000) return;
  EXPECT_GT(lost, 1'000);
  EXPECT_GT(again, 200);
  EXPECT_GT(fell_back, 20);
  EXPECT_GT(starts, 1'000);
  for (const std::int64_t n : of_tiers) EXPECT_GT(n, 5) << &n - of_tiers.data();
  EXPECT_GT(led, 20);
  EXPECT_GT(opened, 50);
}

// Nine pools of two servers but for one of five, and three roll-outs from each to each other. A
// pool may get the servers of any other: five, 24 times a surge of 2, and as many as five that end.
TEST(FleetRun, RollOutsInEveryDirectionTakeNoTimeToCount) {
  Scenario s;
  for (int p = 0; p < 9; ++p) {
    s.cluster.pools.emplace_back();
    s.cluster.pools.back().name = "p" + std::to_string(p);
    s.cluster.pools.back().replicas = p == 4 ? 5 : 2;
  }
  for (int round = 0; round < 3; ++round)
    for (const PoolConfig& from : s.cluster.pools)
      for (const PoolConfig& to : s.cluster.pools)
        if (from.name != to.name)
          s.events.push_back({.kind = FleetEventKind::kRollOut, .pool = from.name, .to = to.name});
  for (std::size_t p = 0; p < s.cluster.pools.size(); ++p)
    EXPECT_EQ(places_of(s, p), 5 + 24 * 2 + 5) << p;
}

// Every request of a reported stage is once good, late or failed.
TEST(FleetRun, TheTimelineHasEveryRequestOnce) {
  std::int64_t good = 0, late = 0, failed = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const RunPlan plan = eventful_plan(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + testing::describe_plan(plan));
    tools::ExperimentProgress progress;
    Diagnostics found;
    tools::Experiment experiment(1, progress, found);
    std::optional<RunResult> r;
    try {
      r = experiment.run({.plan = plan, .seed = seed, .goals = {.request_latency = 0.2}}, found);
    } catch (const NoServerError&) {
      continue;
    }
    ASSERT_TRUE(r && r->timeline && r->timeline->goals);
    const Timeline& t = *r->timeline;
    std::int64_t all = 0;
    for (std::size_t i = 0; i < t.sent.size(); ++i) {
      EXPECT_EQ(t.sent[i], t.answered[i] + t.failed[i]);
      EXPECT_LE(t.goals->good[i], t.answered[i]);
      all += t.goals->good[i];
      late += t.answered[i] - t.goals->good[i];
      failed += t.failed[i];
    }
    EXPECT_EQ(all, *r->summary.good_requests);
    good += all;
  }
  for (const std::int64_t n : {good, late, failed}) EXPECT_GT(n, 300);
}

// Found by longer runs, each once a fault.
TEST(FleetRun, WhatOnceBroke) {
  // Two restarts of a router overlap: the end of the first must not start it twice, which forgot
  // the requests in its flow control.
  EXPECT_GT(run_by_hand(eventful_plan(28581), 28581).summary.successes, 0);
  // Requests that waited for the machine of a prefill server, or behind KV held for it, for ever.
  for (const std::uint64_t seed : {6'004'031, 6'018'364})
    EXPECT_GT(run_by_hand(eventful_plan(seed), seed).summary.requests, 0);
}

}  // namespace
}  // namespace routesim::sim
