// What a pool's settings come to: which ranks step together, what a transfer moves, how much KV
// fits.
#include "sim/resolve.h"

#include "tests/sim/plan_fixture.h"

namespace routesim::sim::testing {
namespace {

Scenario one_pool(const std::string& model, EnginePreset preset) {
  Scenario s;
  PoolConfig& pool = s.cluster.pools.emplace_back();
  pool.accelerator = "H100-SXM";
  pool.model = model;
  pool.engine.preset = preset;
  pool.engine.max_model_len = 4096;
  s.routing.balancer = BalancerKind::kRoundRobin;
  s.workload.groups.emplace();
  return s;
}

ResolvedPool resolved(const Scenario& s, const ScenarioInputs& inputs = {}) {
  Diagnostics d;
  const std::optional<RunPlan> plan = resolve(s, inputs, d);
  EXPECT_TRUE(plan.has_value()) << (d.items().empty() ? "" : d.items().front().message);
  return plan ? plan->pools.front() : ResolvedPool{};
}

TEST(LockStepRule, ExpertsAndOldReleasesStepTogether) {
  const auto steps_together = [](const char* model, EnginePreset preset, bool experts,
                                 std::int64_t ranks) {
    Scenario s = one_pool(model, preset);
    s.cluster.pools[0].data_parallel = ranks;
    s.cluster.pools[0].expert_parallel = experts;
    return resolved(s).lock_step;
  };
  EXPECT_TRUE(steps_together("Qwen3-30B-A3B", EnginePreset::k2026H1, true, 2));
  EXPECT_TRUE(steps_together("Qwen3-30B-A3B", EnginePreset::k2026H1, false, 2))
      << "without expert parallelism the experts are one wide tensor-parallel group";
  EXPECT_FALSE(steps_together("Qwen3-30B-A3B", EnginePreset::k2025H2, false, 1));
  EXPECT_TRUE(steps_together("Qwen3-8B", EnginePreset::k2025H2, false, 2));
  EXPECT_FALSE(steps_together("Qwen3-8B", EnginePreset::k2026H1, false, 2));
}

TEST(TransferBytes, EveryTensorParallelGpuPullsTheWholeLatent) {
  Scenario s = one_pool("DeepSeek-R1", EnginePreset::k2026H1);
  s.cluster.pools[0].accelerator = "H200-SXM";
  s.cluster.pools[0].tensor_parallel = 8;
  EXPECT_EQ(resolved(s).kv_bytes_per_token, 8 * 70'272.0);
  Scenario heads = one_pool("Qwen3-32B", EnginePreset::k2026H1);
  heads.cluster.pools[0].tensor_parallel = 2;
  EXPECT_EQ(resolved(heads).kv_bytes_per_token, 262'144.0) << "heads are divided";
}

TEST(HybridKvManager, IsOffWhereVllmTurnsItOff) {
  const auto on = [](EnginePreset preset, HybridKvUse use, std::optional<bool> said = {}) {
    EngineConfig c;
    c.preset = preset;
    c.hybrid_kv_manager = said;
    return uses_hybrid_kv_manager(c, use);
  };
  using P = EnginePreset;
  for (const P preset : {P::k2025H2, P::k2026H1, P::k2026H2}) {
    EXPECT_TRUE(on(preset, {}));
    EXPECT_FALSE(on(preset, {.chunked_windows = true}));
    EXPECT_TRUE(on(preset, {.kv_events = true, .chunked_windows = true}, true));
    EXPECT_FALSE(on(preset, {}, false));
    EXPECT_EQ(on(preset, {.kv_events = true}), preset != P::k2025H2);
    EXPECT_EQ(on(preset, {.kv_transfer = true}), preset == P::k2026H2);
  }
}

TEST(HybridKvManager, HalvesTheCacheOfGptOssBehindAPreciseRouterOf2025) {
  Scenario s = one_pool("gpt-oss-120b", EnginePreset::k2025H2);
  const ResolvedPool alone = resolved(s);
  ScenarioInputs inputs;
  inputs.endpoint_picker = precise_config(16);
  s.routing.balancer = BalancerKind::kEndpointPicker;
  const ResolvedPool behind = resolved(s, inputs);
  EXPECT_NEAR(static_cast<double>(alone.rules.num_gpu_blocks),
              2.0 * static_cast<double>(behind.rules.num_gpu_blocks), 2.0);
}

TEST(HybridKvManager, DisaggregatedPairsHaveWindowBlocksFrom2026H2On) {
  for (const EnginePreset preset : {EnginePreset::k2026H1, EnginePreset::k2026H2}) {
    Scenario s = one_pool("gpt-oss-120b", preset);
    s.cluster.pools.front().role = PoolRole::kDecode;
    const ResolvedPool pool = resolved(s);
    EXPECT_EQ(pool.rules.window_groups, preset == EnginePreset::k2026H2 ? 1 : 0);
  }
}

TEST(DecidingDocument, IsNoneWhereAnotherBalancerIsNamed) {
  Scenario s = one_pool("gpt-oss-120b", EnginePreset::k2025H2);
  ScenarioInputs inputs;
  inputs.endpoint_picker = precise_config(16);
  for (const BalancerKind balancer : {BalancerKind::kLeastLoad, BalancerKind::kEndpointPicker}) {
    s.routing.balancer = balancer;
    Diagnostics d;
    const std::optional<RunPlan> plan = resolve(s, inputs, d);
    ASSERT_TRUE(plan.has_value());
    EXPECT_EQ(plan->endpoint_picker.has_value(), balancer == BalancerKind::kEndpointPicker);
    EXPECT_EQ(plan->pools.front().rules.window_groups > 0, balancer == BalancerKind::kLeastLoad)
        << "nobody listens to KV events, so the hybrid manager is on";
  }
}

TEST(GraphMemory, IsSetAsideByTheNewestReleases) {
  EngineConfig c;
  EXPECT_EQ(graph_memory_share(c), 0);
  c.preset = EnginePreset::k2026H2;
  EXPECT_NEAR(graph_memory_share(c), 0.0152, 1e-9) << "vLLM's log: 0.82 is as much as 0.8048 was";
  c.enforce_eager = true;
  EXPECT_EQ(graph_memory_share(c), 0);
}

}  // namespace
}  // namespace routesim::sim::testing
