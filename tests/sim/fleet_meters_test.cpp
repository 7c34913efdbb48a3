// The metrics that autoscalers read of servers and routers, to the step.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

#include "sim/plan/fleet_plan.h"
#include "tests/sim/plan_fixture.h"
#include "tests/sim/swarm.h"

namespace routesim::sim::testing {
namespace {

Duration ms(std::int64_t n) { return Duration::milliseconds(n); }

/// Sizes a pool at its one sync, at 60 ms: a server for each `target` of the query's total.
AutoscalerConfig sized_by(const std::string& query, double target) {
  AutoscalerConfig c;
  c.min_replicas = 1;
  c.max_replicas = 9;
  c.metrics = {{.query = query, .target = target}};
  c.prometheus.scrape_interval = ms(20);
  c.controller.sync_period = ms(50);
  return c;
}

void set_pool(RunPlan& plan, std::size_t i) {
  plan.pools[i].start_up.load = ms(1000);
  plan.scenario.cluster.pools.resize(plan.pools.size());
  plan.scenario.cluster.pools[i] = plan.pools[i].config;
  plan.pools[i].extra_places = places_of(plan.scenario, i) - plan.pools[i].config.replicas;
}

/// A server with steps of 10 ms. Answers of seven and of three tokens begin with the first step.
RunPlan two_answers(BalancerKind balancer, const std::string& query, double target) {
  RunPlan plan = hand_made_plan({{.parts = {{1, 64}}, .output = 7}, {.output = 3}}, 1);
  plan.scenario.routing.balancer = balancer;
  if (balancer == BalancerKind::kEndpointPicker) plan.endpoint_picker = load_aware_config();
  plan.scenario.routing.discovery = DiscoveryConfig{.join = ms(1), .leave = ms(1)};
  plan.pools[0].config.autoscaler = sized_by(query, target);
  set_pool(plan, 0);
  return plan;
}

std::int64_t servers_by(const RunPlan& plan, std::size_t pool = 0) {
  return run_by_hand(plan).fleet->pools[pool].most_servers;
}

// At 60 ms the first answer has six of its tokens, and the second one is complete. vLLM counts
// tokens as they come and prompts with their first token, SGLang both at a request's end.
TEST(FleetMeters, EnginesCountTokensAtTheirOwnTime) {
  constexpr auto kTurns = BalancerKind::kRoundRobin;
  EXPECT_EQ(servers_by(two_answers(kTurns, "sum(vllm:generation_tokens_total)", 3)), 3);
  EXPECT_EQ(servers_by(two_answers(kTurns, "sum(vllm:prompt_tokens_total)", 20)), 4);
  EXPECT_EQ(servers_by(two_answers(kTurns, "sum(vllm:request_success_total)", 0.5)), 2);
  for (const bool of_prompts : {false, true}) {
    RunPlan plan = two_answers(
        kTurns,
        of_prompts ? "sum(sglang:prompt_tokens_total)" : "sum(sglang:generation_tokens_total)",
        of_prompts ? 4 : 1.5);
    plan.pools[0].config.engine.kind = EngineKind::kSglang;
    plan.pools[0].rules.sglang = SglangRules{.max_prefill_tokens = 4096, .largest_graph = 256};
    set_pool(plan, 0);
    EXPECT_EQ(servers_by(plan), of_prompts ? 4 : 2);
  }
}

// The endpoint picker counts a request when it has a server, not at its end.
TEST(FleetMeters, PickersCountRequestsAsTheyAreRouted) {
  EXPECT_EQ(
      servers_by(two_answers(BalancerKind::kEndpointPicker, "sum(llm_d_epp_request_total)", 1)), 2);
  const RunPlan incoming = two_answers(*policies::find_balancer("production-stack-roundrobin"),
                                       "sum(vllm:num_incoming_requests_total)", 1);
  EXPECT_EQ(servers_by(incoming), 2);
}

/// Adds up what the engines of a run counted.
class EngineSum final : public Observer {
 public:
  void on_replica_advanced(const Replica& r, SimTime) override { engines_.insert(&r); }
  void on_end(SimTime) override {
    for (const Replica* r : engines_)
      for (int rank = 0; rank < r->ranks(); ++rank) sum.add(r->totals(rank).counters);
  }
  EngineCounters sum;

 private:
  std::set<const Replica*> engines_;
};

// Whatever is preempted, drafted, pulled or computed in stages, fast and slow: engines count each
// token of an answer once, and each prompt once where it is served. A prefill server adds its one.
TEST(FleetMeters, EveryTokenCountsOnce) {
  std::int64_t runs = 0, preempted = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    RunPlan plan = swarm_plan(seed);
    for (ResolvedPool& pool : plan.pools) {
      if (seed % 3 == 0 && !pool.rules.tiers.in_use())
        pool.rules.speculation = {.tokens = 2, .lookahead = 2, .acceptance = {0.7, 0.4}};
      if (seed % 3 == 1 && !pool.lock_step && !pool.rules.tiers.in_use()) {
        pool.rules.pipeline_stages = 2;
        pool.rules.async_scheduling = false;
      }
    }
    for (const bool reference : {false, true}) {
      EngineSum engines;
      Diagnostics found;
      Simulation simulation(
          plan,
          {.seed = seed, .reference = reference, .keep_requests = true, .observers = {&engines}},
          found);
      const RunResult r = simulation.run();
      std::int64_t prompts = 0, answers = 0;
      bool all = true;
      for (const RequestRecord& q : r.requests) {
        const std::int64_t prefills = q.prefill_endpoint >= 0 ? 1 : 0;
        all = all && q.outcome == workloads::Outcome::kSuccess;
        prompts += q.prompt_tokens * (1 + prefills);
        answers += q.output_tokens + prefills;
      }
      if (!all) continue;  // Some tokens had nobody to count them.
      ++runs;
      preempted += engines.sum.preemptions;
      EXPECT_EQ(engines.sum.prompt_tokens, prompts) << "seed " << seed;
      EXPECT_EQ(engines.sum.generation_tokens, answers) << "seed " << seed;
    }
  }
  EXPECT_GT(runs, 300);
  EXPECT_GT(preempted, 300);
}

/// One decode and one prefill server behind SMG; three prompts of 64 tokens come at once.
RunPlan split(const std::string& balancer, std::vector<Sent> script) {
  RunPlan plan = hand_made_plan(std::move(script), 1);
  plan.scenario.routing.balancer = *policies::find_balancer(balancer);
  plan.scenario.routing.discovery =
      DiscoveryConfig{.join = ms(1), .leave = ms(1), .leave_unseen = ms(1)};
  plan.pools[0].config.name = "decode";
  plan.pools[0].config.role = PoolRole::kDecode;
  plan.pools.push_back(plan.pools[0]);
  plan.pools[1].config.name = "prefill";
  plan.pools[1].config.role = PoolRole::kPrefill;
  set_pool(plan, 0);
  set_pool(plan, 1);
  return plan;
}

std::vector<Sent> three_prompts() {
  std::vector<Sent> script;
  for (const std::uint64_t i : {1, 2, 3}) script.push_back({.parts = {{i, 64}}, .output = 9});
  return script;
}

// A prefill server has the whole prompt, one token of the answer and its first token; the decode
// server counts the prompt, too.
TEST(FleetMeters, PrefillServersCountWhatTheyServe) {
  const std::pair<const char*, double> cases[] = {
      {"sum(vllm:prompt_tokens_total)", 64},
      {"sum(vllm:generation_tokens_total)", 1},
      {"sum(vllm:request_success_total)", 1},
      {"sum(vllm:time_to_first_token_seconds_count)", 1},
      {"sum(vllm:e2e_request_latency_seconds_count)", 1}};
  for (const auto& [query, target] : cases) {
    RunPlan plan = split("smg-round-robin", three_prompts());
    plan.pools[1].config.autoscaler = sized_by(query, target);
    set_pool(plan, 1);
    EXPECT_EQ(servers_by(plan, 1), 3) << query;
  }
  RunPlan plan = split("smg-round-robin", three_prompts());
  plan.pools[0].config.autoscaler = sized_by("sum(vllm:prompt_tokens_total)", 64);
  set_pool(plan, 0);
  EXPECT_EQ(servers_by(plan, 0), 3);
}

// Routers that were started for prefill and decode refuse requests for which a leg has no server.
TEST(FleetMeters, DisaggregatedRoutersNeedBothLegs) {
  for (const char* const balancer : {"smg-round-robin", "vllm-router-round-robin"})
    for (const char* const gone : {"prefill", "decode"}) {
      RunPlan plan = split(balancer, {{.at_ms = 200, .output = 2}});
      FleetEventConfig none;
      none.kind = FleetEventKind::kScale;
      none.at = ms(100);
      none.pool = gone;
      none.replicas = 0;
      plan.scenario.events = {none};
      for (const bool retries : {true, false}) {
        if (!retries) plan.scenario.routing.retries = 0;
        const RunResult r = run_by_hand(plan);
        EXPECT_EQ(r.requests[0].failure, std::string("503 Service Unavailable"))
            << balancer << gone;
        EXPECT_EQ(r.fleet->sent_again, retries ? 4 : 0);
        EXPECT_EQ(r.requests[0].end.ns() == 200'000'000, !retries);
      }
    }
}

std::string autoscaler_notes(const RunPlan& plan) {
  std::string text;
  for (const std::string& note : run_by_hand(plan).notes)
    if (note.starts_with("autoscaler")) text += note + "\n";
  return text;
}

// A series that nobody exports is empty: the HPA scales nothing, and a note says so.
TEST(FleetMeters, ProductsExportTheirOwnMetrics) {
  for (const char* const name : {"llm_d_epp_request_total", "kubeai_inference_requests_active",
                                 "sglang:num_requests_total"}) {
    const RunPlan plan = two_answers(BalancerKind::kRoundRobin, name, 1);
    EXPECT_EQ(servers_by(plan), 1);
    EXPECT_EQ(autoscaler_notes(plan), "autoscaler of pool: its query `" + std::string(name) +
                                          "` failed at 1 of 1 looks: the HPA gets no value from "
                                          "it\n");
    Diagnostics found;
    check_fleet(plan.scenario, {}, found);
    ASSERT_EQ(found.items().size(), 1U);
    EXPECT_EQ(found.items()[0].message,
              "reads " + std::string(name) + ", which nobody exports here: it has no series");
  }
  EXPECT_EQ(
      servers_by(two_answers(BalancerKind::kLeastLoad, "2 * kubeai_inference_requests_active", 1)),
      2);
}

// KEDA takes one element, and an HPA's metric of pods one for each pod.
TEST(FleetMeters, QueriesThatFailAreNamed) {
  RunPlan plan = two_answers(BalancerKind::kRoundRobin, "sum(vllm:num_requests_running)", 1);
  AutoscalerConfig& c = *plan.pools[0].config.autoscaler;
  EXPECT_EQ(autoscaler_notes(plan), "");
  c.metrics[0].type = ScalingMetricType::kPods;
  EXPECT_EQ(autoscaler_notes(plan),
            "autoscaler of pool: its query `sum(vllm:num_requests_running)` failed at 1 of 1 "
            "looks: the HPA gets no value from it\n");
  c.kind = AutoscalerKind::kKeda;
  c.min_replicas = c.max_replicas = std::nullopt;
  c.metrics.clear();
  c.triggers = {{.query = "vllm:num_requests_running"}};
  c.min_replica_count = 2;
  plan.pools[0].config.replicas = 2;
  set_pool(plan, 0);
  EXPECT_EQ(autoscaler_notes(plan),
            "autoscaler of pool: its query `vllm:num_requests_running` failed at 2 of 2 looks: "
            "KEDA takes one element\n");
}

}  // namespace
}  // namespace routesim::sim::testing
