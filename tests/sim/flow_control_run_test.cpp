// Flow control and shedding as a run shows them: who waits at the router, who is refused, when.
#include "tests/sim/plan_fixture.h"

namespace routesim::sim::testing {
namespace {

/// Saturated by `cap` requests in flight per server. `flow` is the document's flowControl section.
policies::EndpointPickerConfig capped(std::int64_t cap, bool held_back, tree::Map flow = {}) {
  flow.emplace_back("saturationDetector", map({{"pluginRef", text("concurrency-detector")}}));
  DocumentBuilder document;
  document.plugin("single-profile-handler")
      .plugin("queue-scorer")
      .plugin("concurrency-detector", map({{"maxConcurrency", tree::number(cap)}}))
      .plugin("max-score-picker")
      .profile("default", {{"queue-scorer", 1}, {"max-score-picker"}})
      .set("flowControl", map(std::move(flow)));
  if (held_back) document.set("featureGates", list({text("flowControl")}));
  return document.build();
}

/// `n` requests of 100 ms each at one instant.
std::vector<Sent> burst(std::int64_t n, std::int64_t at = 0) {
  std::vector<Sent> script;
  for (std::int64_t i = 0; i < n; ++i)
    script.push_back({.at_ms = at, .parts = {{static_cast<std::uint64_t>(i), 16}}, .output = 10});
  return script;
}

std::vector<double> ends_ms(const RunResult& r) {
  std::vector<double> out;
  for (const RequestRecord& q : r.requests) out.push_back(static_cast<double>(q.end.ns()) * 1e-6);
  return out;
}

std::map<std::string, std::int64_t> failures(const RunResult& r) {
  return r.summary.failures_by_label;
}

TEST(FlowControlRun, RequestsWaitAtTheRouterAndGoOneByOne) {
  RunPlan plan = hand_made_plan(burst(4), 1);
  plan.endpoint_picker = capped(1, true);
  const RunResult held = run_by_hand(plan);
  // A request of ten steps ends, its router hears of it at once, the next one starts.
  EXPECT_EQ(ends_ms(held), (std::vector<double>{100, 200, 300, 400}));
  EXPECT_EQ(held.replicas[0].max_waiting, 1) << "only the one on its way in";
  EXPECT_EQ(held.replicas[0].max_running, 1);
  plan.endpoint_picker = capped(1, false);
  const RunResult open = run_by_hand(plan);
  EXPECT_EQ(ends_ms(open), (std::vector<double>{100, 110, 110, 110}))
      << "one batch, which the first one's first step keeps waiting";
}

TEST(FlowControlRun, ReliefIsSeenOnTheNextWholeMillisecond) {
  // The second request comes while the first runs, and ends 0.4 ms off the grid of ticks.
  RunPlan plan = hand_made_plan(burst(2), 1);
  plan.scenario.workload.client_overhead = Duration::microseconds(400);
  plan.endpoint_picker = capped(1, true);
  const RunResult r = run_by_hand(plan);
  EXPECT_EQ(r.requests[0].end, SimTime::from_ns(100'400'000));
  EXPECT_EQ(r.requests[1].end, at_ms(201));
}

TEST(FlowControlRun, BoundsTheServersQueues) {
  RunPlan plan = hand_made_plan(burst(40), 1, 1);
  plan.pools[0].rules.max_num_seqs = 1;
  plan.endpoint_picker = load_aware_config(true);
  const RunResult held = run_by_hand(plan);
  plan.endpoint_picker = load_aware_config(false);
  const RunResult open = run_by_hand(plan);
  EXPECT_EQ(open.replicas[0].max_waiting, 39) << "the first one runs at once";
  // The utilization detector closes at 5 waiting; what it sees is a scrape and a step old.
  EXPECT_GE(held.replicas[0].max_waiting, 5);
  EXPECT_LE(held.replicas[0].max_waiting, 8);
  EXPECT_NEAR(ends_ms(held).back(), ends_ms(open).back(), 2) << "the server hardly runs dry";
}

TEST(FlowControlRun, QueueLimitsRefuse) {
  RunPlan plan = hand_made_plan(burst(10), 1);
  plan.endpoint_picker = capped(1, true, {{"maxRequests", number(3)}});
  const RunResult r = run_by_hand(plan);
  EXPECT_EQ(r.summary.successes, 4) << "one let through, three queued";
  EXPECT_EQ(failures(r), (std::map<std::string, std::int64_t>{{"429 Too Many Requests", 6}}));
  EXPECT_EQ(r.routing.rejected, 6);
  EXPECT_EQ(r.requests[4].end, SimTime::zero()) << "a refusal is immediate";
  EXPECT_EQ(r.requests[4].endpoint, -1);
}

TEST(FlowControlRun, TimeToLiveEndsAtASweep) {
  std::vector<Sent> script = burst(1);
  script[0].output = 1000;  // ten seconds
  script.push_back({.at_ms = 300, .parts = {{9, 16}}});
  RunPlan plan = hand_made_plan(script, 1);
  plan.endpoint_picker = capped(1, true, {{"defaultRequestTTL", text("2s")}});
  const RunResult r = run_by_hand(plan);
  EXPECT_EQ(r.summary.successes, 1);
  EXPECT_EQ(failures(r), (std::map<std::string, std::int64_t>{{"429 Too Many Requests", 1}}));
  EXPECT_EQ(r.requests[1].end, at_ms(3000)) << "the first whole second at least 2 s after 0.3 s";
}

TEST(FlowControlRun, AClientMayGiveUpInTheQueue) {
  std::vector<Sent> script = burst(3);
  script[1].timeout_ms = 50;
  RunPlan plan = hand_made_plan(script, 1);
  plan.endpoint_picker = capped(1, true);
  const RunResult r = run_by_hand(plan);
  EXPECT_EQ(ends_ms(r), (std::vector<double>{100, 50, 200}));
  EXPECT_EQ(r.requests[1].outcome, workloads::Outcome::kTimeout);
  EXPECT_EQ(r.replicas[0].requests, 2) << "no server ever saw it";
}

TEST(FlowControlRun, SheddableRequestsGoLast) {
  RunPlan plan = hand_made_plan(burst(21), 1);
  plan.scenario.workload.sheddable_fraction = 0.5;
  plan.endpoint_picker = capped(1, true);
  const RunResult held = run_by_hand(plan);
  EXPECT_EQ(held.summary.successes, 21);
  // The first goes at once. Then all of band 0 in order, then all of band -1 in order.
  std::vector<std::int64_t> order(held.requests.size());
  for (const RequestRecord& q : held.requests)
    order[static_cast<std::size_t>(q.end.ns() / 100'000'000 - 1)] = q.id;
  int falls = 0;
  for (std::size_t i = 2; i < order.size(); ++i) falls += order[i] < order[i - 1] ? 1 : 0;
  EXPECT_EQ(falls, 1) << "two increasing runs";
}

TEST(FlowControlRun, SeveralRoutersHoldBackEachForItself) {
  RunPlan plan = hand_made_plan(burst(4), 1);
  plan.scenario.routing.router_replicas = 2;
  plan.endpoint_picker = capped(1, true);
  // Each counts only its own requests in flight: two run at a time.
  EXPECT_EQ(ends_ms(run_by_hand(plan)), (std::vector<double>{100, 110, 210, 220}));
}

TEST(Shedding, OnlySheddableRequestsAreRefusedAndOnlyWhileSaturated) {
  std::vector<Sent> script = burst(5);
  for (const Sent& s : burst(2, 150)) script.push_back(s);
  RunPlan plan = hand_made_plan(script, 1);
  plan.endpoint_picker = capped(2, false);
  EXPECT_EQ(run_by_hand(plan).summary.failures, 0) << "nobody is sheddable";
  plan.scenario.workload.sheddable_fraction = 1;
  const RunResult r = run_by_hand(plan);
  EXPECT_EQ(failures(r), (std::map<std::string, std::int64_t>{{"429 Too Many Requests", 3}}));
  EXPECT_EQ(r.routing.rejected, 3);
  EXPECT_EQ(r.requests[1].outcome, workloads::Outcome::kSuccess);
  EXPECT_EQ(r.requests[2].outcome, workloads::Outcome::kError);
  EXPECT_EQ(r.requests[6].outcome, workloads::Outcome::kSuccess) << "after the relief";
}

}  // namespace
}  // namespace routesim::sim::testing
