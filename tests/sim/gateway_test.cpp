// The proxy in front of the servers: schedules by hand, Envoy's rules one by one, and the limits
// over random scenarios.
#include "sim/gateway.h"

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "tests/sim/plan_fixture.h"
#include "tests/sim/swarm.h"

namespace routesim::sim::testing::gateway_tests {
namespace {

using policies::BalancerAnswer;
using policies::BalancerRequest;

GatewayConfig http2(std::int64_t max_requests) {
  return {.protocol = UpstreamProtocol::kHttp2,
          .max_requests = max_requests,
          .retry_budget = {},
          .retry = {}};
}

GatewayConfig http1(std::int64_t connections, std::int64_t pending) {
  return {.max_connections = connections,
          .max_pending_requests = pending,
          .retry_budget = {},
          .retry = {}};
}

RunPlan gateway_plan(std::vector<Sent> script, const GatewayConfig& gateway,
                     std::int64_t servers = 1) {
  RunPlan plan = hand_made_plan(std::move(script), servers);
  plan.scenario.routing.balancer = BalancerKind::kRoundRobin;
  plan.scenario.routing.gateway = gateway;
  return plan;
}

/// A request of `output` steps of 10 ms.
Sent request(std::int64_t at_ms, std::int64_t output = 10, std::int64_t timeout_ms = 0) {
  static std::uint64_t content = 0;
  return {.at_ms = at_ms, .parts = {{++content, 16}}, .output = output, .timeout_ms = timeout_ms};
}

using Times = std::vector<double>;
using Labels = std::vector<std::string>;

Times ends_ms(const RunResult& r) {
  Times out;
  for (const RequestRecord& q : r.requests) out.push_back(static_cast<double>(q.end.ns()) * 1e-6);
  return out;
}

Labels failures(const RunResult& r) {
  Labels out;
  for (const RequestRecord& q : r.requests) out.emplace_back(q.failure);
  return out;
}

bool has_note(const RunResult& r, const std::string& text) {
  return std::any_of(r.notes.begin(), r.notes.end(),
                     [&](const auto& note) { return note.find(text) != std::string::npos; });
}

constexpr const char* k503 = "503 Service Unavailable";

TEST(Gateway, Http2RefusesTheThirdOfThree) {
  // The second joins at the second step, the fourth at the step after the first one's end.
  const RunResult r =
      run_by_hand(gateway_plan({request(0), request(0), request(5), request(100)}, http2(2)));
  EXPECT_EQ(ends_ms(r), (Times{100, 110, 5, 210}));
  EXPECT_EQ(failures(r), (Labels{"", "", k503, ""}));
  EXPECT_EQ(r.requests[2].endpoint, -1);
  EXPECT_EQ(r.stages[0].failures_by_label, (std::map<std::string, std::int64_t>{{k503, 1}}));
  EXPECT_EQ(r.routing.decisions, 4);
  EXPECT_EQ(r.routing.rejected, 0) << "the router refused none";
  const GatewayResult& gateway = r.routing.gateway.value();
  EXPECT_EQ(gateway.refused, 1);
  EXPECT_EQ(gateway.most_in_flight, 2);
  EXPECT_EQ(gateway.waited, 0);
  EXPECT_TRUE(has_note(r,
                       "the gateway's limit of 2 requests in flight "
                       "(routing.gateway.max_requests) refused 1 requests in stage 0"));
}

TEST(Gateway, Http1LetsTheThirdWaitAndRefusesTheFourth) {
  const RunResult r = run_by_hand(
      gateway_plan({request(0), request(0), request(10), request(20), request(110)}, http1(2, 1)));
  // The third has its connection at 100 and joins at 110; at 110 there is one for the last.
  EXPECT_EQ(ends_ms(r), (Times{100, 110, 210, 20, 220}));
  EXPECT_EQ(failures(r), (Labels{"", "", "", k503, ""}));
  const GatewayResult& gateway = r.routing.gateway.value();
  EXPECT_EQ(gateway.refused, 1);
  EXPECT_EQ(gateway.waited, 1);
  EXPECT_EQ(gateway.most_waiting, 1);
  EXPECT_EQ(gateway.longest_wait, Duration::milliseconds(90));
  EXPECT_EQ(gateway.most_in_flight, 2);
  EXPECT_TRUE(has_note(r, "limit of 1 requests that wait for one of 2 connections"));
}

TEST(Gateway, Http1WaitsForConnectionsOfItsOwnServer) {
  // In turns to servers 0 and 1. Request 3 waits for server 1, and what server 0 gives back at 110
  // and 160 is not for it; a newcomer for server 1 opens the connection that it then gets.
  const RunResult r = run_by_hand(gateway_plan(
      {request(0), request(0, 20), request(10, 1), request(20), request(150, 1), request(172)},
      http1(2, 8), 2));
  EXPECT_EQ(ends_ms(r), (Times{100, 200, 110, 280, 160, 310}));
  EXPECT_EQ(r.routing.gateway->waited, 3);
  EXPECT_EQ(r.routing.gateway->most_waiting, 2);
  EXPECT_EQ(r.routing.gateway->longest_wait, Duration::milliseconds(152));
}

TEST(Gateway, Http1OpensOneConnectionToAServerWithoutAnyBeyondTheLimit) {
  const RunResult r =
      run_by_hand(gateway_plan({request(0), request(0), request(0)}, http1(1, 0), 2));
  EXPECT_EQ(failures(r), (Labels{"", "", k503}));
  EXPECT_EQ(r.routing.gateway->most_in_flight, 2);
}

// A connection that another server gave back is free for server 0, but its own queue goes first.
TEST(Gateway, NoMoreWaitThanAllowedBehindThoseWhoMayGoNow) {
  RoutingConfig routing;
  routing.gateway = http1(2, 1);
  Gateway gateway(routing, 1, 2, 1);
  EXPECT_TRUE(gateway.enter(1, StageId(0), 0, at_ms(0)));
  EXPECT_TRUE(gateway.enter(2, StageId(0), 1, at_ms(0)));
  EXPECT_TRUE(gateway.enter(3, StageId(0), 0, at_ms(1))) << "waits";
  gateway.leave(1, at_ms(2));
  EXPECT_FALSE(gateway.enter(4, StageId(0), 0, at_ms(3))) << "one waits already";
  EXPECT_EQ(gateway.result().most_waiting, 1);
  EXPECT_EQ(gateway.result().refused, 1);
}

TEST(Gateway, AClientThatGivesUpMakesRoom) {
  const RunResult r = run_by_hand(
      gateway_plan({request(0), request(10, 10, 50), request(20), request(70)}, http1(1, 1)));
  EXPECT_EQ(ends_ms(r), (Times{100, 60, 20, 200}));
  EXPECT_EQ(failures(r), (Labels{"", "TimeoutError", k503, ""}));
}

TEST(Gateway, OneThatGivesUpAtItsServerFreesItsConnection) {
  const RunResult r = run_by_hand(gateway_plan({request(0, 10, 35), request(10)}, http1(1, 1)));
  EXPECT_EQ(r.requests[0].end, at_ms(35));
  EXPECT_EQ(r.routing.gateway->longest_wait, Duration::milliseconds(25));
  EXPECT_EQ(failures(r), (Labels{"TimeoutError", ""}));
}

/// Refuses the first `times` attempts of each request.
class Refusing final : public policies::Balancer {
 public:
  Refusing(int times, int status) : times_(times), status_(status) {}
  BalancerAnswer pick(const BalancerRequest& request) override {
    if (++tried_[request.id] <= times_) return BalancerAnswer::refused(status_);
    return pick_of(0);
  }

 private:
  int times_, status_;
  std::map<std::uint64_t, int> tried_;
};

RunPlan refusing_plan(std::vector<Sent> script, int times, int status, GatewayConfig gateway,
                      const RetryConfig& retry) {
  gateway.retry = retry;
  RunPlan plan = gateway_plan(std::move(script), gateway);
  plan.make_balancer = [times, status](std::uint64_t) {
    return std::make_unique<Refusing>(times, status);
  };
  return plan;
}

RetryConfig on_5xx(std::int64_t num_retries) {
  return {.retry_on = {RetryOn::k5xx},
          .retriable_status_codes = {},
          .num_retries = num_retries,
          .max_interval = {}};
}

/// Envoy's `random() % bound` for retry `n` of a request.
std::int64_t back_off_ms(std::uint64_t id, std::uint64_t n, std::uint64_t bound) {
  return static_cast<std::int64_t>(RandomStream(1, Stream::kGateway, mix64(id, n)).below(bound));
}

TEST(Gateway, RefusalsAreRetriedAfterTheirBackOff) {
  RunPlan plan = refusing_plan({request(0)}, 2, 503, GatewayConfig(), on_5xx(2));
  plan.scenario.routing.decision_latency = Duration::milliseconds(4);
  const RunResult r = run_by_hand(plan);
  // Three decisions of 4 ms, two pauses below 25 and 50 ms, a step of 10 ms.
  const std::int64_t pauses = back_off_ms(0, 1, 25) + back_off_ms(0, 2, 50);
  ASSERT_GT(pauses, 0);
  EXPECT_EQ(r.requests[0].first_token, at_ms(3 * 4 + pauses + 10));
  EXPECT_EQ(r.routing.decisions, 3);
  EXPECT_EQ(r.routing.rejected, 0);
  EXPECT_EQ(r.routing.gateway->retries, 2);
  EXPECT_EQ(r.routing.gateway->most_in_flight, 1);
}

TEST(Gateway, TheLastRefusalReachesTheClient) {
  const RunResult r = run_by_hand(refusing_plan({request(0)}, 2, 503, GatewayConfig(), on_5xx(1)));
  EXPECT_EQ(failures(r), (Labels{k503}));
  EXPECT_EQ(r.requests[0].end, at_ms(back_off_ms(0, 1, 25)));
  EXPECT_EQ(r.routing.rejected, 1);
  EXPECT_EQ(r.routing.gateway->retries, 1);
  EXPECT_EQ(r.routing.gateway->refused, 0);
}

TEST(Gateway, SoManyRetriesAtOnceAndNoMore) {
  GatewayConfig gateway;
  gateway.max_retries = 1;
  const RunResult r =
      run_by_hand(refusing_plan({request(0), request(0)}, 1, 503, gateway, on_5xx(1)));
  EXPECT_EQ(failures(r), (Labels{"", k503}));
  EXPECT_EQ(r.routing.gateway->retries, 1);
  EXPECT_EQ(r.routing.gateway->retries_refused, 1);
  EXPECT_TRUE(has_note(r, "did not retry 1 refused requests, because 1 retries"));
}

RoutingConfig routing_with(const GatewayConfig& gateway,
                           BalancerKind balancer = BalancerKind::kRoundRobin) {
  RoutingConfig routing;
  routing.balancer = balancer;
  routing.gateway = gateway;
  return routing;
}

bool retries(RoutingConfig routing, int status) {
  Gateway gateway(routing, 1, 1, 1);
  Retries retries;
  return gateway.retry(RequestId(7), retries, status).has_value();
}

TEST(Gateway, ConditionsOfARetry) {
  struct Case {
    RetryOn on;
    std::vector<int> yes, no;
  };
  const Case cases[] = {{RetryOn::k5xx, {500, 503, 529}, {409, 429}},
                        {RetryOn::kGatewayError, {502, 503, 504}, {500, 529, 429}},
                        {RetryOn::kRetriable4xx, {409}, {412, 429, 503}},
                        {RetryOn::kRetriableStatusCodes, {429, 412}, {503}},
                        {RetryOn::kConnectFailure, {}, {429, 503}}};
  for (const Case& c : cases) {
    GatewayConfig gateway;
    gateway.retry = on_5xx(1);
    gateway.retry->retry_on = {c.on};
    gateway.retry->retriable_status_codes = {412, 429};
    for (const int status : c.yes)
      EXPECT_TRUE(retries(routing_with(gateway), status)) << enum_name(c.on) << " " << status;
    for (const int status : c.no)
      EXPECT_FALSE(retries(routing_with(gateway), status)) << enum_name(c.on) << " " << status;
  }
}

TEST(Gateway, AnswersOfExtProcAreRetriedOnlyByASecondGateway) {
  GatewayConfig gateway;
  gateway.retry = on_5xx(1);
  EXPECT_FALSE(retries(routing_with(gateway, BalancerKind::kEndpointPicker), 503));
  gateway.retry->picker_refusals = true;
  EXPECT_TRUE(retries(routing_with(gateway, BalancerKind::kEndpointPicker), 503));
}

TEST(Gateway, TheBoundOfTheBackOffDoublesUpToTenTimesTheBase) {
  GatewayConfig config;
  config.retry = on_5xx(6);
  config.max_retries = 1'000'000;
  const RoutingConfig routing = routing_with(config);
  Gateway gateway(routing, 1, 1, 1);
  const std::vector<std::int64_t> bounds = {25, 50, 100, 200, 250, 250};
  std::vector<double> sums(bounds.size());
  constexpr int kRequests = 4000;
  for (std::uint64_t id = 0; id < kRequests; ++id) {
    Retries state;
    for (std::size_t n = 0; n < bounds.size(); ++n) {
      const Duration pause = gateway.retry(RequestId(id), state, 503).value();
      EXPECT_GE(pause, Duration::zero());
      EXPECT_LT(pause, Duration::milliseconds(bounds[n]));
      sums[n] += pause.to_seconds() * 1000;
    }
    EXPECT_EQ(gateway.retry(RequestId(id), state, 503), std::nullopt);
  }
  // Uniform on 0 .. bound - 1: five standard errors of its mean.
  for (std::size_t n = 0; n < bounds.size(); ++n) {
    const auto bound = static_cast<double>(bounds[n]);
    EXPECT_NEAR(sums[n] / kRequests, (bound - 1) / 2, 5 * bound / std::sqrt(12.0 * kRequests));
  }
}

TEST(Gateway, ABudgetIsAShareOfRequestsAndAtLeastItsMinimum) {
  GatewayConfig config = http2(1000);
  config.retry = on_5xx(1);
  config.retry_budget = {.budget_percent = 25, .min_retry_concurrency = 2};
  const RoutingConfig routing = routing_with(config);
  Gateway gateway(routing, 1, 1, 1);
  const auto retried = [&](int requests) {
    std::vector<Retries> states(static_cast<std::size_t>(requests));
    int n = 0;
    for (Retries& state : states) n += gateway.retry(RequestId(1), state, 503) ? 1 : 0;
    for (Retries& state : states) gateway.end_retry(state);
    return n;
  };
  EXPECT_EQ(retried(10), 2);
  for (std::uint32_t i = 0; i < 23; ++i) gateway.enter(i, StageId(0), 0, SimTime::zero());
  EXPECT_EQ(retried(10), 5);  // A quarter of 23, rounded down.
}

/// Counts requests on their way to servers or there, by itself.
class InFlight final : public Observer {
 public:
  void on_routed(const workloads::Request&, const Route&, SimTime) override {
    most = std::max(most, ++now_);
  }
  void on_done(const RequestRecord& r) override {
    if (r.endpoint >= 0) --now_;
  }
  std::int64_t most = 0;

 private:
  std::int64_t now_ = 0;
};

TEST(Gateway, NoMoreInFlightThanAllowedInAnyScenario) {
  std::int64_t refused = 0, waited = 0, retried = 0;
  for (std::uint64_t seed = 1; seed <= 240; ++seed) {
    RunPlan plan = swarm_plan(seed);
    RandomStream dice(seed, Stream::kTest, 77);
    GatewayConfig gateway = dice.below(2) == 0 ? http2(1 + static_cast<std::int64_t>(dice.below(8)))
                                               : http1(1 + static_cast<std::int64_t>(dice.below(6)),
                                                       static_cast<std::int64_t>(dice.below(6)));
    gateway.retry = on_5xx(2);
    gateway.retry->retry_on.push_back(RetryOn::kRetriableStatusCodes);
    gateway.retry->retriable_status_codes = {429};
    gateway.retry->picker_refusals = true;
    plan.scenario.routing.gateway = gateway;
    Diagnostics found;
    InFlight observed;
    Simulation simulation(plan, {.seed = seed, .check = true, .observers = {&observed}}, found);
    const RunResult r = simulation.run();
    const GatewayResult& did = r.routing.gateway.value();
    // A server without a connection gets one in any case.
    const std::int64_t servers = static_cast<std::int64_t>(r.replicas.size());
    const std::int64_t allowed = gateway.protocol == UpstreamProtocol::kHttp2
                                     ? gateway.max_requests
                                     : gateway.max_connections + servers - 1;
    EXPECT_LE(observed.most, allowed) << describe_plan(plan);
    EXPECT_EQ(observed.most, did.most_in_flight) << describe_plan(plan);
    refused += did.refused;
    waited += did.waited;
    retried += did.retries;
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(waited, 100);
  EXPECT_GT(retried, 10);
}

TEST(Gateway, FastEqualsSlowBehindIt) {
  for (std::uint64_t seed = 200; seed < 220; ++seed) {
    RunPlan plan = swarm_plan(seed);
    plan.scenario.routing.gateway = http1(4, 3);
    run_by_hand(plan, seed);
  }
}

}  // namespace
}  // namespace routesim::sim::testing::gateway_tests
