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

// SGLang's, by value: sglang/srt/server_args.py, environ.py and
// model_executor/model_runner_kv_cache_mixin.py of 0.5.9.
TEST(SglangDefaults, ChunksAndGraphsByMemory) {
  const auto of = [](double gib, std::int64_t tp) {
    const SglangRules r = resolve_sglang({}, {.memory_bytes = gib * (1 << 30), .tp = tp});
    return std::pair(r.chunk_tokens, r.largest_graph);
  };
  using Both = std::pair<std::int64_t, std::int64_t>;
  EXPECT_EQ(of(16, 1), Both(2048, 8));
  EXPECT_EQ(of(24, 2), Both(2048, 24));
  EXPECT_EQ(of(24, 4), Both(2048, 80));
  EXPECT_EQ(of(48, 1), Both(4096, 32));
  EXPECT_EQ(of(48, 8), Both(4096, 160));
  EXPECT_EQ(of(79.6, 3), Both(8192, 256));
  EXPECT_EQ(of(79.6, 4), Both(8192, 512));
  EXPECT_EQ(of(140, 8), Both(8192, 512));
  EXPECT_EQ(of(180, 1), Both(16384, 512));
}

TEST(SglangDefaults, MemoryIsWhatPromptsAndGraphsLeave) {
  const auto share = [](double mib, std::int64_t tp) {
    const SglangDevice device{.memory_bytes = mib * (1 << 20), .tp = tp};
    return default_mem_fraction(resolve_sglang({}, device), device);
  };
  // 81,559 MiB less 512 + 1.5 * 8192 + 2 * 256 + 2 / 8 * 1024.
  EXPECT_DOUBLE_EQ(share(81'559, 2), 0.834);
  EXPECT_DOUBLE_EQ(share(143'771, 8), 0.897) << "512 + 12288 + 1024 + 1024";
  EXPECT_DOUBLE_EQ(share(24'564, 1), 0.847) << "512 + 3072 + 48 + 128";
  const SglangDevice device{.memory_bytes = 81'559.0 * (1 << 20), .tp = 1};
  const SglangRules few = resolve_sglang({.chunked_prefill_size = 2048}, device);
  EXPECT_DOUBLE_EQ(default_mem_fraction(few, device), 0.874) << "at least 10 GiB on large GPUs";
  const SglangRules whole = resolve_sglang({.chunked_prefill_size = 0}, device);
  EXPECT_EQ(whole.chunk_tokens, 0);
  EXPECT_DOUBLE_EQ(default_mem_fraction(whole, device), 0.685) << "1.5 * 16384 + 512 + 512 + 128";
}

TEST(SglangDefaults, TheShareOfAnswersFollowsConservativeness) {
  EXPECT_DOUBLE_EQ(resolve_sglang({}, {}).first_ratio, 0.7);
  EXPECT_DOUBLE_EQ(resolve_sglang({}, {}).least_ratio, 0.098);
  const SglangRules careful = resolve_sglang({.schedule_conservativeness = 2}, {});
  EXPECT_DOUBLE_EQ(careful.first_ratio, 1);
  EXPECT_DOUBLE_EQ(careful.least_ratio, 0.14);
}

TEST(SglangDefaults, RunningRequestsByTokens) {
  EXPECT_EQ(default_max_running(500'000, 40'960), 4096) << "500,000 / 40,960 * 512 = 6,250";
  EXPECT_EQ(default_max_running(250'000, 40'960), 3125);
  EXPECT_EQ(default_max_running(100'000, 40'960), 2048);
  EXPECT_EQ(default_max_running(3'000, 40'960), 1500) << "half of the tokens";
}

TEST(SglangDefaults, RulesOfAnEngine) {
  EngineConfig c{.kind = EngineKind::kSglang};
  EngineRules r = resolve_sglang_engine(c, kModelLength, {.memory_bytes = 85.5e9, .tp = 1});
  EXPECT_EQ(r.block_size, 1);
  EXPECT_TRUE(r.async_scheduling);
  EXPECT_TRUE(r.enable_prefix_caching);
  EXPECT_EQ(r.max_model_len, kModelLength);
  EXPECT_EQ(r.free_queue, FreeQueue::kUnhashedFirst);
  EXPECT_EQ(r.sglang->policy, SglangPolicy::kFcfs);
  EXPECT_EQ(r.sglang->max_prefill_tokens, 16384);
  set_kv_blocks(r, c, 600'001);
  EXPECT_EQ(r.max_num_seqs, 2343) << "600,000 / 131,072 * 512";
  c.max_num_seqs = 48;
  r = resolve_sglang_engine(c, kModelLength, {});
  set_kv_blocks(r, c, 600'001);
  EXPECT_EQ(r.max_num_seqs, 48);
}

TEST(SglangDefaults, KeysOfTheOtherEngineAreNamed) {
  EXPECT_EQ(foreign_key({}), "");
  EXPECT_EQ(foreign_key({.sglang = SglangConfig{}}), "sglang");
  EngineConfig c{.kind = EngineKind::kSglang};
  EXPECT_EQ(foreign_key(c), "");
  c.block_size = 64;
  EXPECT_EQ(foreign_key(c), "block_size");
  EXPECT_EQ(foreign_key({.kind = EngineKind::kSglang, .watermark = 0.1}), "watermark");
  EXPECT_EQ(foreign_key({.kind = EngineKind::kSglang, .max_loras = 2}), "max_loras");
  EXPECT_EQ(foreign_key({.kind = EngineKind::kSglang, .kv_tiers = KvTierConfig{}}), "kv_tiers");
}

}  // namespace
}  // namespace routesim::sim
