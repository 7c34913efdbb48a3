// Decisions that wait: the queue of them, and picks that are held.
#include "sim/router/decision_queue.h"

#include <memory>
#include <vector>

#include "sim/plan/router_costs.h"
#include "tests/sim/plan_fixture.h"

namespace routesim::sim::testing {
namespace {

// Router processes that are busy, and the prices of decisions: by hand.

std::int64_t decided_ms(DecisionQueue& queue, std::int64_t arrival_ms,
                        std::int64_t service_ms = 10) {
  const SimTime end = queue.admit(at_ms(arrival_ms), Duration::milliseconds(service_ms)).end;
  return (end - SimTime::zero()).ns() / 1'000'000;
}

TEST(DecisionQueue, OneProcessDecidesOneAfterTheOther) {
  DecisionQueue queue(1);
  EXPECT_EQ(decided_ms(queue, 0), 10);
  EXPECT_EQ(decided_ms(queue, 4), 20);   // Waits 6 ms.
  EXPECT_EQ(decided_ms(queue, 5), 30);   // Waits 15 ms.
  EXPECT_EQ(decided_ms(queue, 50), 60);  // The process was idle.
  EXPECT_EQ(queue.longest_wait(), Duration::milliseconds(15));
  EXPECT_DOUBLE_EQ(queue.mean_wait_s(), 0.021 / 4);
  EXPECT_DOUBLE_EQ(queue.mean_service_s(), 0.010);
}

TEST(DecisionQueue, ProcessesTakeTurns) {
  DecisionQueue queue(2);
  EXPECT_EQ(decided_ms(queue, 0), 10);
  EXPECT_EQ(decided_ms(queue, 0), 10);
  EXPECT_EQ(decided_ms(queue, 2), 20);
}

// It ends, and the next one begins with nobody in front of it.
TEST(DecisionQueue, ALeaderDecidesAll) {
  DecisionQueue queue(3);
  const auto decide = [&](std::uint32_t leader) {
    queue.set_leader(leader);
    return queue.admit(SimTime::zero(), Duration::milliseconds(10));
  };
  EXPECT_EQ(decide(2).process, 2);
  EXPECT_EQ(decide(2).end, SimTime::zero() + Duration::milliseconds(20));
  queue.set_stopped(2, true);
  EXPECT_EQ(decide(1).process, 1);
  queue.set_stopped(2, false);
  EXPECT_EQ(decide(2).end, SimTime::zero() + Duration::milliseconds(10));
}

TEST(DecisionQueue, WithoutServiceTimeNobodyWaits) {
  DecisionQueue queue(1);
  EXPECT_EQ(decided_ms(queue, 7, 0), 7);
  EXPECT_EQ(decided_ms(queue, 7, 0), 7);
  EXPECT_EQ(queue.longest_wait(), Duration::zero());
}

TEST(DecisionQueue, CostsComeFromTheConfiguration) {
  const auto cost = [](BalancerKind balancer,
                       std::optional<policies::EndpointPickerConfig> document = std::nullopt) {
    RoutingConfig routing;
    routing.balancer = balancer;
    set_default_costs(routing, document);
    return std::pair(routing.decision_latency->ns() / 1000, routing.service_time->ns() / 1000);
  };
  const auto picker = [&](const policies::EndpointPickerConfig& document) {
    return cost(BalancerKind::kEndpointPicker, document);
  };
  const auto balancer = [&](std::string_view name) {
    for (std::size_t i = 0; i < policies::kBalancers.size(); ++i)
      if (policies::kBalancers[i].name == name) return cost(static_cast<BalancerKind>(i));
    ADD_FAILURE() << name;
    return cost(BalancerKind::kRandom);
  };
  const auto with_producer = [](const tree::Node& parameters) {
    return DocumentBuilder()
        .plugin("token-producer", parameters)
        .plugin("queue-scorer")
        .profile("default", {{"queue-scorer", 1}})
        .build();
  };
  using Microseconds = std::pair<std::int64_t, std::int64_t>;
  EXPECT_EQ(picker(precise_config(16, false)), Microseconds(15'000, 2'800));
  EXPECT_EQ(picker(load_aware_config(false)), Microseconds(2'000, 2'800));
  EXPECT_EQ(picker(with_producer(map({{"vllm", map({{"url", text("http://render:8000")}})}}))),
            Microseconds(15'000, 2'800));
  EXPECT_EQ(picker(with_producer(map({}))), Microseconds(2'000, 2'800)) << "it only estimates";
  EXPECT_EQ(balancer("aibrix-random"), Microseconds(2'000, 2'800));
  EXPECT_EQ(balancer("envoy-least-request"), Microseconds(500, 0));
  EXPECT_EQ(balancer("round-robin"), Microseconds(500, 0));
  EXPECT_EQ(balancer("k8s-service"), Microseconds(0, 0));
  EXPECT_EQ(balancer("omniscient"), Microseconds(0, 0));
}

TEST(DecisionQueue, WhatAScenarioSaysIsKept) {
  RoutingConfig routing;
  routing.balancer = BalancerKind::kEndpointPicker;
  routing.decision_latency = Duration::zero();
  set_default_costs(routing, std::nullopt);
  EXPECT_EQ(routing.decision_latency, Duration::zero());
  EXPECT_EQ(routing.service_time, Duration::microseconds(2'800));
  EXPECT_EQ(routing.service_time_per_megabyte, Duration::microseconds(22'500));
  // A time that is stated does not grow by itself.
  RoutingConfig stated;
  stated.balancer = BalancerKind::kEndpointPicker;
  stated.service_time = Duration::milliseconds(1);
  set_default_costs(stated, precise_config(16, false));
  EXPECT_EQ(stated.service_time_per_megabyte, Duration::zero());
  EXPECT_EQ(stated.decision_latency_per_1000_tokens, Duration::microseconds(1'700));
}

TEST(DecisionQueue, ANoteSaysThatOnePickerIsTooFew) {
  // 1,000 decisions of 2.8 ms at once: the last one waits for 999 others, 2.8 s.
  std::vector<Sent> script;
  for (std::uint64_t i = 0; i < 1000; ++i) script.push_back({.parts = {{i, 16}}});
  RunPlan plan = hand_made_plan(std::move(script), 2);
  plan.scenario.routing.balancer = BalancerKind::kRoundRobin;
  plan.scenario.routing.service_time = kPickerService;
  const RunResult r = run_by_hand(plan);
  EXPECT_NEAR(r.routing.longest_wait_s, 999 * 0.0028, 1e-9);
  const auto has = [&r](const char* text) {
    return std::any_of(r.notes.begin(), r.notes.end(), [text](const std::string& note) {
      return note.find(text) != std::string::npos;
    });
  };
  EXPECT_TRUE(has("requests wait up to 3 s for a decision, and its processes make 357 of them"));
  EXPECT_TRUE(has("one endpoint picker made 324 to 388 in published tests"));
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
  EXPECT_DOUBLE_EQ(r.routing.decisions_per_s.value(), 200);
  EXPECT_DOUBLE_EQ(r.routing.longest_wait_s, 0.004);
}

TEST(DecisionQueue, ANoteTellsOfTheStreamsOfExtProc) {
  const auto notes = [](std::uint64_t requests, bool with_gateway) {
    std::vector<Sent> script;
    for (std::uint64_t i = 0; i < requests; ++i) script.push_back({.parts = {{i, 16}}});
    RunPlan plan = hand_made_plan(std::move(script), 2);
    plan.scenario.routing.balancer = BalancerKind::kEndpointPicker;
    plan.endpoint_picker = load_aware_config(false);
    if (with_gateway) plan.scenario.routing.gateway.emplace().max_requests = 5'000;
    std::string all;
    for (const std::string& note : run_by_hand(plan).notes) all += note + "\n";
    return all;
  };
  EXPECT_NE(notes(1'025, false).find("up to 1025 requests were in flight: Envoy keeps"),
            std::string::npos);
  EXPECT_EQ(notes(1'024, false).find("ext_proc"), std::string::npos);
  EXPECT_EQ(notes(1'025, true).find("ext_proc"), std::string::npos);
}

TEST(DecisionQueue, LongPromptsCostMore) {
  // Both arrive at once, so the second is decided one service time behind the first.
  const auto run = [](std::int64_t tokens, Duration per_megabyte, Duration per_1000) {
    RunPlan plan = two_servers({{.at_ms = 0, .parts = {{1, tokens}}, .output = 10},
                                {.at_ms = 0, .parts = {{2, tokens}}, .output = 10}},
                               BalancerKind::kRoundRobin);
    plan.scenario.routing.service_time = Duration::milliseconds(1);
    plan.scenario.routing.service_time_per_megabyte = per_megabyte;
    plan.scenario.routing.decision_latency_per_1000_tokens = per_1000;
    return run_by_hand(plan);
  };
  const auto service_s = [&](std::int64_t tokens) {
    const RunResult r = run(tokens, Duration::seconds(10), Duration::zero());
    return (r.requests[1].first_token - r.requests[0].first_token).to_seconds();
  };
  EXPECT_GT(service_s(16), 0.0011);
  EXPECT_NEAR(service_s(32) - 0.001, 2 * (service_s(16) - 0.001), 2e-5) << "by the byte";
  // 16 tokens at a second for 1,000 are 16 ms; a step takes 10 ms.
  const RunResult r = run(16, Duration::zero(), Duration::seconds(1));
  EXPECT_EQ(r.requests[0].first_token, at_ms(1 + 16 + 10));
  EXPECT_EQ(r.requests[1].first_token, at_ms(2 + 16 + 10));
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

// Requests that a balancer holds: when they are tried again, in which order, and how they end.

using policies::BalancerAnswer;
using policies::BalancerRequest;

struct HoldRule {
  std::uint32_t most = 1;  ///< Requests in flight at a server.
  Duration retry_after = Duration::zero();
  std::int64_t tried_per_endpoint = 0;
  bool until_first_token = false;  ///< Only requests before their first token count.
  bool in_order = false;
};

/// Sends request i to server i modulo n, or holds it.
class Holding final : public policies::Balancer {
 public:
  explicit Holding(const HoldRule& rule) : rule_(rule) {}
  policies::BalancerNeeds needs() const override {
    policies::BalancerNeeds needs;
    needs.first_tokens = rule_.until_first_token;
    needs.tried_per_endpoint = rule_.tried_per_endpoint;
    needs.in_order = rule_.in_order;
    return needs;
  }
  BalancerAnswer pick(const BalancerRequest& request) override {
    const auto i = static_cast<std::uint32_t>(request.id % size());
    if ((rule_.until_first_token ? prefilling_ : in_flight()[i]) < rule_.most) return pick_of(i);
    if (rule_.retry_after > Duration::zero()) return BalancerAnswer::held(rule_.retry_after);
    return BalancerAnswer::held();
  }
  void on_sent(const policies::BalancerPick& pick, const BalancerRequest& request) override {
    Balancer::on_sent(pick, request);
    ++prefilling_;
  }
  void on_first_token(const policies::BalancerPick&, std::uint64_t, SimTime) override {
    --prefilling_;
  }

 private:
  HoldRule rule_;
  std::uint32_t prefilling_ = 0;
};

RunPlan holding_plan(std::vector<Sent> script, const HoldRule& rule, std::int64_t servers = 1) {
  RunPlan plan = hand_made_plan(std::move(script), servers);
  plan.scenario.routing.balancer = policies::BalancerKind::kRoundRobin;
  plan.make_balancer = [rule](std::uint64_t) { return std::make_unique<Holding>(rule); };
  return plan;
}

/// A request of `output` steps of 10 ms.
Sent request(std::int64_t at_ms, std::int64_t output = 10, std::int64_t timeout_ms = 0) {
  static std::uint64_t content = 0;
  return {.at_ms = at_ms, .parts = {{++content, 16}}, .output = output, .timeout_ms = timeout_ms};
}

std::vector<double> ms(const RunResult& r, SimTime RequestRecord::*time) {
  std::vector<double> out;
  for (const RequestRecord& q : r.requests)
    out.push_back(static_cast<double>((q.*time).ns()) * 1e-6);
  return out;
}

using Times = std::vector<double>;

TEST(HeldPicks, GoOneByOneWhenTheOneBeforeEnds) {
  const RunResult r = run_by_hand(holding_plan(
      {request(0), request(30), request(40), request(250), request(260), request(900)}, {}));
  EXPECT_EQ(ms(r, &RequestRecord::first_token), (Times{10, 110, 210, 310, 410, 910}));
  EXPECT_EQ(ms(r, &RequestRecord::end), (Times{100, 200, 300, 400, 500, 1000}));
  EXPECT_EQ(r.replicas[0].max_running, 1);
  EXPECT_EQ(r.routing.decisions, 6) << "attempts that end in waiting are no decisions";
  EXPECT_EQ(r.routing.rejected, 0);
}

TEST(HeldPicks, OneThatComesWhenAnotherEndsGoesBehindThoseHeld) {
  const RunResult r =
      run_by_hand(holding_plan({request(0), request(30), request(100), request(200)}, {}));
  EXPECT_EQ(ms(r, &RequestRecord::end), (Times{100, 200, 300, 400}));
}

TEST(HeldPicks, AreTriedAtTheTimeTheBalancerNames) {
  // The second is tried at 30, 90 and 150; the third, behind it, at 150, 210 and 270.
  const RunResult r = run_by_hand(holding_plan({request(0), request(30), request(40)},
                                               {.retry_after = Duration::milliseconds(60)}));
  EXPECT_EQ(ms(r, &RequestRecord::end), (Times{100, 250, 370}));
}

TEST(HeldPicks, AClientMayGiveUp) {
  const RunResult r = run_by_hand(holding_plan({request(0), request(30, 10, 50), request(40)}, {}));
  EXPECT_EQ(ms(r, &RequestRecord::end), (Times{100, 80, 200}));
  EXPECT_EQ(r.requests[1].outcome, workloads::Outcome::kTimeout);
  EXPECT_EQ(r.requests[1].endpoint, -1);
}

TEST(HeldPicks, WhoStoodBehindOneThatGaveUpIsTriedAtOnce) {
  // Request 1 is for the busy server, request 2 (ids modulo 2) for the other one's queue.
  const RunResult r = run_by_hand(
      holding_plan({request(0, 30), request(0, 30), request(10, 10, 50), request(20)}, {}, 2));
  EXPECT_EQ(ms(r, &RequestRecord::end), (Times{300, 300, 60, 400}));
  const RunResult idle = run_by_hand(
      holding_plan({request(0, 30), request(0), request(10, 10, 100), request(20)}, {}, 2));
  // At 100 the second server is free, but the oldest waits for the first one until 110.
  EXPECT_EQ(ms(idle, &RequestRecord::end), (Times{300, 100, 110, 210}));
}

TEST(HeldPicks, OvertakeWhereTheProductTriesSeveral) {
  const std::vector<Sent> script = {request(0, 20), request(0), request(1), request(2)};
  const RunResult one = run_by_hand(holding_plan(script, {}, 2));
  EXPECT_EQ(ms(one, &RequestRecord::end), (Times{200, 100, 300, 300}));
  const RunResult two = run_by_hand(holding_plan(script, {.tried_per_endpoint = 1}, 2));
  EXPECT_EQ(ms(two, &RequestRecord::end), (Times{200, 100, 300, 200}));
}

TEST(HeldPicks, TheOldestTakesWhatAnyoneFindsWhereTheProductServesInOrder) {
  // The second is tried at 30, 90, 150 and 210, the third at 40 and 100, when the server is free.
  HoldRule rule{.retry_after = Duration::milliseconds(60), .tried_per_endpoint = 3};
  const std::vector<Sent> script = {request(0), request(30), request(40)};
  EXPECT_EQ(ms(run_by_hand(holding_plan(script, rule)), &RequestRecord::end),
            (Times{100, 310, 200}));
  rule.in_order = true;
  EXPECT_EQ(ms(run_by_hand(holding_plan(script, rule)), &RequestRecord::end),
            (Times{100, 200, 310}));
  // One that arrives at a free server lets the oldest go, too, and has its turns: 150, 210, 270.
  EXPECT_EQ(ms(run_by_hand(holding_plan({request(0), request(30), request(120)}, rule)),
               &RequestRecord::end),
            (Times{100, 220, 370}));
}

TEST(HeldPicks, AFirstTokenIsAChange) {
  // A step that begins at 10 ms does not see the request that is sent then.
  const RunResult r =
      run_by_hand(holding_plan({request(0), request(0), request(0)}, {.until_first_token = true}));
  EXPECT_EQ(ms(r, &RequestRecord::first_token), (Times{10, 30, 50}));
}

TEST(HeldPicks, EveryProcessHasAQueueOfItsOwn) {
  RunPlan plan = holding_plan({request(0), request(0), request(0), request(0)}, {});
  plan.scenario.routing.router_replicas = 2;
  const RunResult r = run_by_hand(plan);
  // The second joins at the second step; both processes learn of their own ends only.
  EXPECT_EQ(ms(r, &RequestRecord::end), (Times{100, 110, 210, 220}));
}

TEST(HeldPicks, ThatNothingCanFreeEndTheRun) {
  for (const Duration after : {Duration::zero(), Duration::milliseconds(50)}) {
    const RunPlan plan = holding_plan({request(0)}, {.most = 0, .retry_after = after});
    Diagnostics found;
    Simulation simulation(plan, {.check = true, .observers = {}}, found);
    try {
      simulation.run();
      ADD_FAILURE() << "the run ended";
    } catch (const StuckError& e) {
      EXPECT_NE(std::string(e.what()).find("the router's balancer, which holds it"),
                std::string::npos)
          << e.what();
    }
  }
}

TEST(HeldPicks, WaitLongWhereOthersKeepTheRunGoing) {
  // Vain retries while a server works are no standstill, however long they go on.
  RunPlan plan =
      holding_plan({request(0, 10'000), request(0)}, {.retry_after = Duration::milliseconds(500)});
  plan.pools[0].latency = std::make_shared<FixedLatency>(100);
  const RunResult r = run_by_hand(plan);
  EXPECT_EQ(ms(r, &RequestRecord::end), (Times{1'000'000, 1'001'000}));
}

}  // namespace
}  // namespace routesim::sim::testing
