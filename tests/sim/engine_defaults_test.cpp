// vLLM's published defaults, by value: vllm/engine/arg_utils.py (those of the OpenAI API server),
// vllm/config/cache.py and vllm/config/scheduler.py.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "sim/rules/engine_config.h"

namespace routesim::sim {
namespace {

constexpr std::int64_t kModelLength = 131'072;

TEST(EngineDefaults, BatchLimitsByDevice) {
  for (const EnginePreset preset :
       {EnginePreset::k2025H2, EnginePreset::k2026H1, EnginePreset::k2026H2}) {
    const EngineConfig c{.preset = preset};
    const EngineRules large = resolve_engine_rules(c, kModelLength, true);
    EXPECT_EQ(large.max_num_batched_tokens, 8192);
    EXPECT_EQ(large.max_num_seqs, 1024);
    const EngineRules small = resolve_engine_rules(c, kModelLength, false);
    EXPECT_EQ(small.max_num_batched_tokens, 2048);
    EXPECT_EQ(small.max_num_seqs, 256);
  }
}

TEST(EngineDefaults, BatchLimitsThatFollowFromOthers) {
  // No more tokens than all sequences can have: 4 x 100. No more sequences than tokens.
  EngineConfig few{.max_num_seqs = 4, .max_model_len = 100};
  EXPECT_EQ(resolve_engine_rules(few, kModelLength, true).max_num_batched_tokens, 400);
  EXPECT_EQ(resolve_engine_rules({.max_num_batched_tokens = 16}, kModelLength, true).max_num_seqs,
            16);
  // Without chunks a whole prompt must fit into a step.
  EXPECT_EQ(resolve_engine_rules({.enable_chunked_prefill = false}, kModelLength, true)
                .max_num_batched_tokens,
            kModelLength);
}

TEST(EngineDefaults, FlagsThatNobodySet) {
  const EngineConfig c;
  EXPECT_EQ(c.preset, EnginePreset::k2026H1);
  EXPECT_EQ(c.block_size, 16);
  EXPECT_EQ(c.max_lora_rank, 16);
  const EngineRules r = resolve_engine_rules(c, kModelLength, true);
  EXPECT_EQ(r.block_size, 16);
  EXPECT_EQ(r.max_model_len, kModelLength);
  EXPECT_EQ(r.long_prefill_token_threshold, 0);
  EXPECT_EQ(r.prefill_schedule_interval, 1);
  EXPECT_EQ(r.moe_dp_chunk_size, 0);
  EXPECT_EQ(r.watermark_blocks, 0);
  EXPECT_EQ(r.max_loras, 0);
  EXPECT_EQ(r.max_cpu_loras, 0);
  EXPECT_TRUE(r.enable_chunked_prefill);
  EXPECT_TRUE(r.enable_prefix_caching);
  EXPECT_EQ(r.scheduling_policy, SchedulingPolicy::kFcfs);
  EngineRules blocks;
  set_kv_blocks(blocks, {.watermark = 0.01}, 1000);
  EXPECT_EQ(blocks.num_gpu_blocks, 1000);
  EXPECT_EQ(blocks.watermark_blocks, 10);
}

TEST(EngineDefaults, SwitchesByRelease) {
  struct Switches {
    EnginePreset preset;
    bool reserve, async, skip, partial;
    FreeQueue queue;
    double utilization, graphs;
  };
  // 2026-H2: 0.92 of the memory; 0.82 then is as much as 0.8048 before: 0.0152 go to graphs.
  for (const Switches& s :
       {Switches{EnginePreset::k2025Q3, false, false, false, false, FreeQueue::kAppendAll, 0.9, 0},
        {EnginePreset::k2025H2, false, false, false, false, FreeQueue::kAppendAll, 0.9, 0},
        {EnginePreset::k2026H1, true, true, false, true, FreeQueue::kAppendAll, 0.9, 0},
        {EnginePreset::k2026H2, true, true, true, true, FreeQueue::kUnhashedFirst, 0.92, 0.0152}}) {
    const EngineConfig c{.preset = s.preset};
    const EngineRules r = resolve_engine_rules(c, kModelLength, true);
    EXPECT_EQ(r.reserve_full_isl, s.reserve);
    EXPECT_EQ(r.async_scheduling, s.async);
    EXPECT_EQ(r.skip_unallocatable_head, s.skip);
    EXPECT_EQ(r.remote_partial_block, s.partial);
    EXPECT_EQ(r.free_queue, s.queue);
    EXPECT_EQ(default_gpu_memory_utilization(s.preset), s.utilization);
    EXPECT_NEAR(graph_memory_share(c), s.graphs, 1e-12);
    EXPECT_EQ(graph_memory_share({.preset = s.preset, .enforce_eager = true}), 0);
  }
}

TEST(EngineDefaults, RanksArePaddedToTheLargestGraph) {
  const auto limit = [](EnginePreset preset, bool eager) {
    return resolve_engine_rules({.preset = preset, .enforce_eager = eager}, kModelLength, true)
        .rank_padding_limit;
  };
  EXPECT_EQ(limit(EnginePreset::k2025H2, false), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(limit(EnginePreset::k2026H1, false), 512);
  EXPECT_EQ(limit(EnginePreset::k2026H2, false), 512);
  EXPECT_EQ(limit(EnginePreset::k2026H1, true), 0);
}

TEST(EngineDefaults, ApiServerByRelease) {
  const ApiServerTimes old = resolve_api_server({}, EnginePreset::k2025H2, 1);
  EXPECT_EQ(old.request, Duration::milliseconds(6));
  EXPECT_EQ(old.prompt_token, Duration::nanoseconds(1500));
  const ApiServerTimes now = resolve_api_server({}, EnginePreset::k2026H1, 1);
  EXPECT_EQ(now.request, Duration::milliseconds(2));
  EXPECT_EQ(now.prompt_token, Duration::nanoseconds(1500));
}

}  // namespace
}  // namespace routesim::sim
