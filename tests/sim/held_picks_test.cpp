// Requests that a balancer holds: when they are tried again, in which order, and how they end.
#include <memory>
#include <vector>

#include "tests/sim/plan_fixture.h"

namespace routesim::sim::testing {
namespace {

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
