// LoRA adapters: slots on a server, who may run beside whom, and what routers know of it.
#include <gtest/gtest.h>

#include "sim/engine/adapter_slots.h"
#include "sim/plan/adapter_demand.h"
#include "tests/sim/plan_fixture.h"

namespace routesim::sim::testing {
namespace {

RunPlan plan_with_adapters(std::vector<Sent> script, std::int64_t servers, std::int64_t slots) {
  RunPlan plan = hand_made_plan(std::move(script), servers);
  plan.scenario.routing.balancer = BalancerKind::kRoundRobin;
  plan.adapters = {"a", "b", "c"};
  plan.pools.front().rules.max_loras = plan.pools.front().rules.max_cpu_loras = slots;
  return plan;
}

Sent asking(std::uint32_t adapter, std::int64_t at, std::uint64_t content, std::int64_t output) {
  return {.at_ms = at, .parts = {{content, 64}}, .output = output, .adapter = adapter};
}

policies::EndpointPickerConfig by_adapters() {
  return DocumentBuilder()
      .plugin("single-profile-handler")
      .plugin("lora-affinity-scorer")
      .plugin("max-score-picker")
      .profile("default", {{"lora-affinity-scorer", 1}, {"max-score-picker"}})
      .build();
}

TEST(AdapterSlots, TheLeastRecentlyUsedGoes) {
  AdapterSlots slots(2, 3, 0);
  const auto use = [&](AdapterSet batch) {
    const AdapterSlots::Moves m = slots.use(batch);
    return std::pair(m.loads, m.reads);
  };
  EXPECT_EQ(use(adapter_bit(1) | adapter_bit(2)), std::pair(2L, 2L));
  EXPECT_EQ(use(adapter_bit(1)), std::pair(0L, 0L));
  EXPECT_EQ(use(adapter_bit(3)), std::pair(1L, 1L));
  EXPECT_EQ(slots.on_gpu(), adapter_bit(1) | adapter_bit(3)) << "2 was used before 1";
  EXPECT_EQ(use(adapter_bit(2)), std::pair(1L, 0L)) << "still in host memory";
  EXPECT_EQ(use(adapter_bit(4)), std::pair(1L, 1L));
  EXPECT_EQ(use(adapter_bit(1)), std::pair(1L, 1L)) << "went from both";
}

TEST(AdapterSlots, OneOfABatchMayMakeRoomForAnother) {
  AdapterSlots slots(2, 2, 0);
  (void)slots.use(adapter_bit(2));
  (void)slots.use(adapter_bit(3));
  const AdapterSlots::Moves m = slots.use(adapter_bit(1) | adapter_bit(2));
  EXPECT_EQ(m.reads, 2) << "1 takes the place of 2, which has to come back";
  EXPECT_EQ(m.loads, 2);
  EXPECT_EQ(slots.on_gpu(), adapter_bit(1) | adapter_bit(2));
}

TEST(AdapterSlots, ThoseKnownAtTheStartAreLoadedThen) {
  AdapterSlots slots(2, 3, 5);
  EXPECT_EQ(slots.on_gpu(), adapter_bit(4) | adapter_bit(5)) << "the last ones are left";
  EXPECT_EQ(slots.use(adapter_bit(3)).reads, 0);
}

TEST(Adapters, OneThatHasNoSlotWaitsAndIsOvertaken) {
  const RunResult r = run_by_hand(plan_with_adapters({asking(1, 0, 10, 3),   // runs until 30
                                                      asking(2, 5, 11, 1),   // has no slot before
                                                      asking(1, 5, 12, 1),   // shares the slot
                                                      asking(0, 5, 13, 1)},  // needs none
                                                     1, 1));
  EXPECT_EQ(r.requests[0].end, at_ms(30));
  EXPECT_EQ(r.requests[2].end, at_ms(20));
  EXPECT_EQ(r.requests[3].end, at_ms(20));
  EXPECT_EQ(r.requests[1].end, at_ms(40));
  const RunResult roomy =
      run_by_hand(plan_with_adapters({asking(1, 0, 10, 3), asking(2, 5, 11, 1)}, 1, 2));
  EXPECT_EQ(roomy.requests[1].end, at_ms(20));
}

// A prompt found in the cache may start in a pass that leaves prompts out, but not beside the
// adapter of one that was left out: the next batch has both.
TEST(Adapters, OnesOfPromptsLeftOutKeepTheirSlot) {
  RunPlan plan = plan_with_adapters({{.at_ms = 0, .parts = {{7, 33}}, .output = 1, .adapter = 2},
                                     asking(0, 100, 8, 100),
                                     {.at_ms = 200, .parts = {{9, 200}}, .output = 1, .adapter = 1},
                                     {.at_ms = 230, .parts = {{7, 33}}, .output = 5, .adapter = 2}},
                                    1, 1);
  plan.pools.front().rules.max_num_batched_tokens = 64;
  plan.pools.front().rules.prefill_schedule_interval = 4;
  const RunResult r = run_by_hand(plan);
  EXPECT_EQ(r.requests[3].cached_tokens, 32);
  EXPECT_GT(r.requests[3].first_token, r.requests[2].end);
}

TEST(Adapters, DoNotSharePrefixes) {
  const std::vector<Sent> script = {asking(1, 0, 7, 1), asking(1, 100, 7, 1), asking(2, 200, 7, 1),
                                    asking(0, 300, 7, 1), asking(0, 400, 7, 1)};
  RunPlan plan = plan_with_adapters(script, 1, 2);
  plan.scenario.routing.balancer = BalancerKind::kEndpointPicker;
  for (const std::int64_t router_block : {16, 32}) {
    plan.endpoint_picker = precise_config(router_block);
    const RunResult r = run_by_hand(plan);
    std::vector<std::int64_t> cached, known;
    for (const RequestRecord& q : r.requests) {
      cached.push_back(q.cached_tokens);
      known.push_back(q.predicted_hit_tokens);
    }
    EXPECT_EQ(cached, (std::vector<std::int64_t>{0, 48, 0, 0, 48})) << router_block;
    EXPECT_EQ(known, (std::vector<std::int64_t>{0, 64, 0, 0, 64})) << router_block;
  }
}

TEST(Adapters, AffinityFindsTheServerThatHasThem) {
  RunPlan plan =
      plan_with_adapters({asking(1, 0, 10, 100), asking(2, 100, 11, 100), asking(1, 200, 12, 1),
                          asking(2, 300, 13, 1), asking(1, 400, 14, 1)},
                         2, 1);
  plan.scenario.routing.balancer = BalancerKind::kEndpointPicker;
  plan.endpoint_picker = by_adapters();
  const RunResult r = run_by_hand(plan);
  EXPECT_EQ(r.requests[2].endpoint, r.requests[0].endpoint);
  EXPECT_EQ(r.requests[3].endpoint, r.requests[1].endpoint);
  EXPECT_EQ(r.requests[4].endpoint, r.requests[0].endpoint);
}

// Upstream a server that has not stepped yet has no lora_requests_info: 0 < 0 is no free slot.
TEST(Adapters, AreUnknownBeforeTheFirstStep) {
  std::vector<Sent> script;
  for (std::int64_t i = 0; i < 6; ++i)
    script.push_back(asking(0, 100 * i, 10 + static_cast<std::uint64_t>(i), 1));
  RunPlan plan = plan_with_adapters(std::move(script), 3, 4);
  plan.scenario.routing.balancer = BalancerKind::kEndpointPicker;
  plan.endpoint_picker = by_adapters();
  const RunResult r = run_by_hand(plan);
  for (const RequestRecord& q : r.requests) EXPECT_EQ(q.endpoint, r.requests.front().endpoint);
}

TEST(AdapterDemand, ComesFromTheScenarioOrItsLoadTool) {
  const auto is_base = [](const std::string& name) { return name == "base"; };
  WorkloadConfig w;
  w.load.emplace<workloads::vllm_bench::Config>().lora_modules = {"x", "y", "x"};
  AdapterDemand d = adapter_demand(w, is_base);
  EXPECT_EQ(d.names, (std::vector<std::string>{"x", "y"}));
  ASSERT_EQ(d.traffic.shares.size(), 3U);
  EXPECT_EQ(d.traffic.shares[2].adapter, 1U);
  EXPECT_TRUE(d.traffic.warms_up_base);
  w.lora_traffic_split = {{"base", 0.5}, {"z", 0.5}};
  d = adapter_demand(w, is_base);
  EXPECT_EQ(d.names, (std::vector<std::string>{"z"}));
  EXPECT_EQ(d.traffic.shares[0].adapter, 0U);
  w.lora_traffic_split = {{"base", 1.0}};
  EXPECT_TRUE(adapter_demand(w, is_base).traffic.shares.empty());
  w.load.emplace<workloads::inference_perf::Workload>().config.emplace().server.model_name =
      "served";
  w.lora_traffic_split = {{"served", 0.5}, {"z", 0.5}};
  EXPECT_EQ(adapter_demand(w, is_base).names, (std::vector<std::string>{"z"}));
}

}  // namespace
}  // namespace routesim::sim::testing
