// Flow control: limits, bands, fairness, ordering, ceilings, expiry.
#include "policies/flow/flow_control.h"

#include <gtest/gtest.h>

#include "policies/flow/flow_policies.h"
#include "tests/policies/scheduler_fixture.h"

namespace routesim::policies {
namespace {

class Flow {
 public:
  explicit Flow(const std::string& flow_control = "", const std::string& plugins = "") {
    scheduler = make_scheduler(
        document("- type: queue-scorer\n" + plugins, "  - pluginRef: queue-scorer\n") +
        "featureGates: [flowControl]\n" + flow_control);
    control.emplace(*scheduler);
    table = make_endpoints(1);
    set_queue(0);
  }
  void set_queue(double waiting, SimTime now = SimTime::zero()) {
    table.set_metrics(EndpointId(0), waiting, 0, 0, now);
  }
  int put(std::uint64_t id, std::int32_t priority = 0, const std::string& flow = "f",
          std::int64_t bytes = 1, SimTime now = SimTime::zero(), double slo_ms = 0) {
    QueuedRequest r;
    r.id = id;
    r.priority = priority;
    r.flow = flow;
    r.bytes = bytes;
    r.received = now;
    r.slo_ttft_ms = slo_ms;
    return control->enqueue(r, table, now);
  }
  std::vector<std::uint64_t> drain(SimTime now = SimTime::zero()) {
    std::vector<std::uint64_t> order;
    while (const auto id = control->dispatch(table, now)) order.push_back(*id);
    return order;
  }
  std::unique_ptr<Scheduler> scheduler;
  std::optional<FlowControl> control;
  EndpointTable table;
};

SimTime at(std::int64_t seconds) { return SimTime::zero() + Duration::seconds(seconds); }

TEST(FlowControl, ServesHigherBandsFirstThenInOrder) {
  Flow f;
  for (std::uint64_t id = 1; id <= 6; ++id) EXPECT_EQ(f.put(id, id % 2 == 0 ? 10 : 0), 0);
  EXPECT_EQ(f.drain(), (std::vector<std::uint64_t>{2, 4, 6, 1, 3, 5}));
  EXPECT_EQ(f.control->queued(), 0U);
  EXPECT_EQ(f.control->queued_bytes(), 0);
}

TEST(FlowControl, StopsWhileThePoolIsSaturated) {
  Flow f;
  f.put(1);
  f.set_queue(5);  // The utilization detector's threshold: saturation 1.
  EXPECT_FALSE(f.control->dispatch(f.table, SimTime::zero()));
  f.set_queue(4);
  EXPECT_EQ(f.control->dispatch(f.table, SimTime::zero()), 1U);
}

TEST(FlowControl, SaturationIsTheWorseOfPrefillAndDecode) {
  Flow f;
  EndpointInfo info;
  info.labels["llm-d.ai/role"] = "prefill";
  const EndpointId prefill = f.table.add(std::move(info));
  f.table.set_metrics(prefill, 10, 0, 0, SimTime::zero());
  f.set_queue(1);
  EXPECT_DOUBLE_EQ(f.control->saturation(f.table, SimTime::zero()), 2.0);
  f.table.set_metrics(prefill, 0, 0, 0, SimTime::zero());
  EXPECT_DOUBLE_EQ(f.control->saturation(f.table, SimTime::zero()), 0.2);
  f.table.mutable_info(prefill).labels["llm-d.ai/role"] = "encode";
  f.table.set_metrics(prefill, 10, 0, 0, SimTime::zero());
  EXPECT_DOUBLE_EQ(f.control->saturation(f.table, SimTime::zero()), 0.2) << "encoders are left out";
}

TEST(FlowControl, RefusesBeyondItsLimits) {
  Flow f("flowControl:\n  maxBytes: 100\n  priorityBands:\n  - priority: 1\n    maxRequests: 2\n");
  EXPECT_EQ(f.put(1, 1), 0);
  EXPECT_EQ(f.put(2, 1), 0);
  EXPECT_EQ(f.put(3, 1), 429);
  EXPECT_EQ(f.put(4, 0, "f", 98), 0);
  EXPECT_EQ(f.put(5, 0, "f", 1), 429) << "100 bytes are queued";
  f.table.set_ready(EndpointId(0), false);
  EXPECT_EQ(f.put(6, 1), 503);
  EXPECT_TRUE(f.control->cancel(2, SimTime::zero()));
  EXPECT_FALSE(f.control->cancel(2, SimTime::zero()));
  EXPECT_EQ(f.put(7, 1), 0);
}

TEST(FlowControl, RoundRobinAlternatesBetweenFlows) {
  Flow f("flowControl:\n  defaultPriorityBand:\n    fairnessPolicyRef: rr\n",
         "- name: rr\n  type: round-robin-fairness-policy\n");
  for (std::uint64_t id = 1; id <= 4; ++id) f.put(id, 0, "a");
  f.put(5, 0, "b");
  f.put(6, 0, "c");
  EXPECT_EQ(f.drain(), (std::vector<std::uint64_t>{1, 5, 6, 2, 3, 4}));
}

TEST(FlowControl, LeastAttainedServiceGoesFirst) {
  Flow f("flowControl:\n  defaultPriorityBand:\n    fairnessPolicyRef: las\n",
         "- name: las\n  type: program-aware-fairness\n");
  f.control->on_completed("greedy", 1000, 4000, SimTime::zero());
  f.control->on_completed("modest", 10, 10, SimTime::zero());
  f.put(1, 0, "greedy");
  f.put(2, 0, "modest");
  EXPECT_EQ(f.control->dispatch(f.table, SimTime::zero()), 2U);
}

// Upstream's program-aware fairness halves attained service every 60 s and counts an output token
// twice: 1,000 + 2 x 500 = 2,000 at 0 s are 1,000 at 60 s and 500 at 120 s.
TEST(FlowControl, AttainedServiceHalvesEveryMinute) {
  const auto first = [](std::int64_t seconds, std::int64_t other_prompt_tokens) {
    Flow f("flowControl:\n  defaultPriorityBand:\n    fairnessPolicyRef: las\n",
           "- name: las\n  type: program-aware-fairness\n");
    f.control->on_completed("early", 1000, 500, SimTime::zero());
    f.control->on_completed("late", other_prompt_tokens, 0, at(seconds));
    f.set_queue(0, at(seconds));
    f.put(1, 0, "early", 1, at(seconds));
    f.put(2, 0, "late", 1, at(seconds));
    return f.control->dispatch(f.table, at(seconds));
  };
  EXPECT_EQ(first(0, 1990), 2U);
  EXPECT_EQ(first(0, 2010), 1U);
  EXPECT_EQ(first(60, 990), 2U);
  EXPECT_EQ(first(60, 1010), 1U);
  EXPECT_EQ(first(120, 490), 2U);
  EXPECT_EQ(first(120, 510), 1U);
}

struct TurnFlow : Flow {
  explicit TurnFlow(const std::string& parameters = "")
      : Flow("flowControl:\n  defaultPriorityBand:\n    fairnessPolicyRef: turns\n",
             "- name: turns\n  type: program-aware-fairness\n  parameters:\n"
             "    strategy: turn-priority\n" +
                 parameters) {}
  /// `turns` requests of a session were forwarded, and all ended at `end`.
  void serve(const std::string& session, int turns, SimTime end) {
    for (int i = 0; i < turns; ++i) {
      control->on_routed(session, end);
      control->on_completed(session, 10, 10, end);
    }
  }
  std::optional<std::uint64_t> first(SimTime now) {
    set_queue(0, now);
    return control->dispatch(table, now);
  }
};

TEST(FlowControl, TheDeepestSessionGoesFirst) {
  TurnFlow f;
  f.serve("shallow", 2, at(0));
  f.serve("deep", 3, at(0));
  f.put(1, 0, "shallow", 1, at(1));
  f.put(2, 0, "deep", 1, at(1));
  f.put(3, 0, "new", 1, at(1));
  EXPECT_EQ(f.first(at(1)), 2U);
  EXPECT_EQ(f.first(at(1)), 1U);
  EXPECT_EQ(f.first(at(1)), 3U);
}

// Half a turn per second: three turns are six seconds of waiting.
TEST(FlowControl, WaitingIsWorthTurns) {
  for (const std::int64_t seconds : {5, 7}) {
    TurnFlow f;
    f.serve("deep", 3, at(0));
    f.put(1, 0, "new", 1, at(1));
    f.put(2, 0, "deep", 1, at(1 + seconds));
    EXPECT_EQ(f.first(at(1 + seconds)), seconds == 5 ? 2U : 1U) << seconds;
  }
  TurnFlow depth_only("    turnPriorityTimeWeight: 0\n");
  depth_only.serve("deep", 3, at(0));
  depth_only.put(1, 0, "new", 1, at(1));
  depth_only.put(2, 0, "deep", 1, at(50));
  EXPECT_EQ(depth_only.first(at(50)), 2U);
}

TEST(FlowControl, ASessionThatWasIdleStartsAtItsFirstTurn) {
  const auto first = [](std::int64_t idle_s, const std::string& parameters) {
    TurnFlow f(parameters);
    f.serve("deep", 9, at(0));
    f.serve("other", 3, at(idle_s));
    f.put(1, 0, "other", 1, at(idle_s));
    f.put(2, 0, "deep", 1, at(idle_s));
    return f.first(at(idle_s));
  };
  EXPECT_EQ(first(120, ""), 2U);
  EXPECT_EQ(first(121, ""), 1U);
  EXPECT_EQ(first(121, "    turnPriorityInactivitySeconds: 0\n"), 2U);
}

TEST(FlowControl, RequestsWithoutASessionHaveNoDepth) {
  TurnFlow f;
  f.serve("default-flow", 100, at(0));
  f.serve("session", 1, at(0));
  f.put(1, 0, "default-flow", 1, at(1));
  f.put(2, 0, "session", 1, at(1));
  EXPECT_EQ(f.first(at(1)), 2U);
}

TEST(FlowControl, DeadlinesOrderWithinAFlow) {
  Flow f("flowControl:\n  defaultPriorityBand:\n    orderingPolicyRef: slo\n",
         "- name: slo\n  type: slo-deadline-ordering-policy\n");
  f.put(1, 0, "f", 1, SimTime::zero(), 0);  // Without an objective: last.
  f.put(2, 0, "f", 1, SimTime::zero(), 900);
  f.put(3, 0, "f", 1, SimTime::zero(), 100);
  f.put(4, 0, "f", 1, SimTime::zero(), 100);
  EXPECT_EQ(f.drain(), (std::vector<std::uint64_t>{3, 4, 2, 1}));
}

TEST(FlowControl, DeadlinesOfCenturiesComeLast) {
  Flow f("flowControl:\n  defaultPriorityBand:\n    orderingPolicyRef: slo\n",
         "- name: slo\n  type: slo-deadline-ordering-policy\n");
  f.set_queue(0, at(1));
  f.put(1, 0, "f", 1, at(1), 1e17);  // Longer than 64 bits of nanoseconds.
  f.put(2, 0, "f", 1, at(1), 900);
  EXPECT_EQ(f.drain(at(1)), (std::vector<std::uint64_t>{2, 1}));
}

TEST(FlowControl, RequestsExpire) {
  Flow f("flowControl:\n  defaultRequestTTL: 10s\n  noEndpointRequestTTL: 3s\n");
  f.put(1);
  EXPECT_TRUE(f.control->expire(f.table, at(9)).empty());
  auto expired = f.control->expire(f.table, at(10));
  ASSERT_EQ(expired.size(), 1U);
  EXPECT_EQ(expired[0].request, 1U);
  EXPECT_EQ(expired[0].http_status, 429);
  f.put(2, 0, "f", 1, at(10));
  f.table.set_ready(EndpointId(0), false);
  EXPECT_TRUE(f.control->expire(f.table, at(15)).empty()) << "counted since the pool became empty";
  expired = f.control->expire(f.table, at(18));
  ASSERT_EQ(expired.size(), 1U);
  EXPECT_EQ(expired[0].http_status, 503);
}

TEST(FlowControl, HoldsBackLowBandsEarlier) {
  Flow f("flowControl:\n  usageLimitPolicyPluginRef: hold\n",
         "- name: hold\n  type: priority-holdback-policy\n  parameters:\n    minCeiling: 0.4\n");
  f.put(1, 0);
  f.put(2, 5);
  f.set_queue(3);  // Saturation 0.6: between the ceilings 0.4 and 1.
  EXPECT_EQ(f.drain(), std::vector<std::uint64_t>{2});
  f.set_queue(1);
  EXPECT_EQ(f.drain(), std::vector<std::uint64_t>{1});
}

// llm-d-router usagelimits/priorityholdback/config.go: shape and the explicit domain came later.
TEST(FlowControl, HoldbackTakesAShapeOrEachCeiling) {
  const auto ceilings = [](const std::string& parameters, std::vector<std::int32_t> priorities) {
    Flow f("flowControl:\n  usageLimitPolicyPluginRef: hold\n",
           "- name: hold\n  type: priority-holdback-policy\n  parameters: " + parameters + "\n");
    auto* policy = dynamic_cast<UsageLimitPolicy*>(f.scheduler->plugin("hold"));
    std::vector<double> out(priorities.size());
    policy->ceilings(priorities, 0.5, out);
    return out;
  };
  EXPECT_EQ(ceilings("{shape: linear, minCeiling: 0.5, maxCeiling: 0.9}", {3, 1}),
            (std::vector<double>{0.9, 0.5}));
  const std::string given = "{domain: explicit, ceilings: {10: 1, 0: 0.75, -5: 0.25}}";
  EXPECT_EQ(ceilings(given, {10, 5, 0, -5}), (std::vector<double>{1, 0, 0.75, 0.25}));
  EXPECT_EQ(ceilings(given, {0}), std::vector<double>{0.75}) << "no bypass for a single band";
}

TEST(FlowControl, HoldbackRefusesWhatUpstreamRefuses) {
  for (const char* parameters :
       {"{}", "{shape: step, minCeiling: 0.5}", "{minCeiling: 0.9, maxCeiling: 0.9}",
        "{domain: explicit}", "{domain: explicit, minCeiling: 0.5, ceilings: {1: 0.5}}",
        "{domain: explicit, ceilings: {high: 0.5}}", "{domain: explicit, ceilings: {1: 1.5}}",
        "{domain: explicit, ceilings: {1: 0.5, 0: 0.75}}", "{minCeiling: 0.5, ceilings: {1: 1}}"}) {
    Diagnostics found;
    const auto config = load_text(
        document("- type: queue-scorer\n- name: hold\n  type: priority-holdback-policy\n"
                 "  parameters: " +
                     std::string(parameters) + "\n",
                 "  - pluginRef: queue-scorer\n") +
            "featureGates: [flowControl]\nflowControl: {usageLimitPolicyPluginRef: hold}\n",
        found);
    if (config) {
      EXPECT_EQ(make_scheduler(*config, SchedulerOptions(), found), nullptr);
    }
    EXPECT_TRUE(found.has_errors()) << parameters;
  }
}

TEST(FlowControl, SoftCeilingLetsLowBandsThroughNowAndThen) {
  Flow f("flowControl:\n  usageLimitPolicyPluginRef: soft\n",
         "- name: soft\n  type: soft-reflective-ceiling-policy\n");
  auto* policy = dynamic_cast<UsageLimitPolicy*>(f.scheduler->plugin("soft"));
  ASSERT_NE(policy, nullptr);
  const std::vector<std::int32_t> priorities = {10, 0};
  std::vector<double> ceilings(2);
  policy->ceilings(priorities, 0.4, ceilings);
  EXPECT_EQ(ceilings, (std::vector<double>{1, 1})) << "saturation below 1 - 0.4";
  int open = 0;
  for (int i = 0; i < 300; ++i) {
    policy->ceilings(priorities, 0.75, ceilings);
    EXPECT_EQ(ceilings[0], 1);
    open += ceilings[1] == 1 ? 1 : 0;
  }
  EXPECT_EQ(open, 100) << "0.75/0.25 = every third call";
  policy->ceilings(priorities, 1.0, ceilings);
  EXPECT_EQ(ceilings[1], 0);
}

TEST(FlowControl, NamesTheFlowOfARequest) {
  RequestView request;
  EXPECT_EQ(FlowControl::flow_of(request), "default-flow");
  EXPECT_EQ(FlowControl::flow_of(request, "agent-7"), "agent-7");
  const Header header{"X-Gateway-Inference-Fairness-Id", "tenant"};
  request.headers = std::span(&header, 1);
  EXPECT_EQ(FlowControl::flow_of(request, "agent-7"), "tenant");
}

TEST(FlowControl, ABandMayHaveATimeToLiveOfItsOwn) {
  Flow f(
      "flowControl:\n  defaultRequestTTL: 10s\n  priorityBands:\n  - priority: -1\n"
      "    defaultRequestTTL: 100s\n  - priority: 1\n    defaultRequestTTL: 0s\n");
  f.set_queue(5);  // Saturated: everybody waits.
  EXPECT_EQ(f.put(1, 0), 0);
  EXPECT_EQ(f.put(2, -1), 0);
  EXPECT_EQ(f.put(3, 1), 0);
  auto expired = f.control->expire(f.table, at(10));
  ASSERT_EQ(expired.size(), 1U);
  EXPECT_EQ(expired[0].request, 1U);
  expired = f.control->expire(f.table, at(100));
  ASSERT_EQ(expired.size(), 1U);
  EXPECT_EQ(expired[0].request, 2U);
  EXPECT_TRUE(f.control->expire(f.table, at(10'000)).empty()) << "0s never expires";
}

TEST(UtilizationDetector, IsOpenInOldErasWhileOneEndpointHasRoom) {
  const std::string text =
      document("- type: queue-scorer\n", "  - pluginRef: queue-scorer\n") +
      "saturationDetector:\n  queueDepthThreshold: 5\n  kvCacheUtilThreshold: 0.8\n";
  EndpointTable table = make_endpoints(2);
  const auto saturation = [&](Era era, double waiting, double usage, std::int64_t age_ms) {
    LoadOptions load;
    load.era = era;
    const SimTime now = SimTime::zero() + Duration::seconds(10);
    table.set_metrics(EndpointId(0), 100, 50, 0.9, now);
    table.set_metrics(EndpointId(1), waiting, 1, usage, now - Duration::milliseconds(age_ms));
    return make_scheduler(text, load)->saturation(table, now);
  };
  for (const Era era : {Era::kV0_3_2, Era::kV0_4_0, Era::kV0_5_0}) {
    EXPECT_EQ(saturation(era, 5, 0.8, 0), 0.0) << "at both thresholds there is room";
    EXPECT_EQ(saturation(era, 6, 0.1, 0), 1.0);
    EXPECT_EQ(saturation(era, 0, 0.81, 0), 1.0);
    EXPECT_EQ(saturation(era, 0, 0.1, 201), 1.0) << "what is stale is not known to have room";
  }
  EXPECT_EQ(saturation(Era::kV0_6_0, 5, 0.8, 0), (20 + 1) / 2.0) << "the mean since then";
}

}  // namespace
}  // namespace routesim::policies
