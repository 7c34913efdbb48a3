// KV bytes per token and capacities, against what engines report.
#include "models/kv_cache_spec.h"

#include <gtest/gtest.h>

#include "tests/models/model_fixture.h"

namespace routesim::models {
namespace {

const ModelSpec& model(const char* name) { return *catalogue().find_model(name); }
const AcceleratorSpec& gpu(const char* name) { return *catalogue().find_accelerator(name); }

/// vLLM's server defaults: large cards batch 8192 tokens of 1024 sequences, small ones 2048 of 256.
std::int64_t tokens(const char* accelerator, const char* name, std::int64_t tp,
                    double utilisation) {
  KvCacheInput in{.accelerator = gpu(accelerator), .model = model(name), .parallelism = {.tp = tp}};
  in.gpu_memory_utilization = utilisation;
  if (in.accelerator.memory_bytes < 70e9) {
    in.max_num_batched_tokens = 2048;
    in.max_num_seqs = 256;
  }
  Diagnostics d;
  const auto plan = plan_kv_cache(in, d);
  EXPECT_TRUE(plan.has_value());
  return plan ? plan->tokens() : 0;
}

void expect_within(std::int64_t value, double reference, double percent) {
  EXPECT_NEAR(static_cast<double>(value), reference, reference * percent / 100)
      << 100 * (static_cast<double>(value) / reference - 1) << " % off";
}

TEST(KvBytes, PerTokenOfTheWholeModel) {
  EXPECT_EQ(kv_bytes_per_token(model("Qwen3-0.6B"), KvDtype::kBf16), 114'688);
  EXPECT_EQ(kv_bytes_per_token(model("Qwen2.5-7B"), KvDtype::kBf16), 57'344);
  EXPECT_EQ(kv_bytes_per_token(model("Llama-3.1-8B"), KvDtype::kBf16), 131'072);
  EXPECT_EQ(kv_bytes_per_token(model("Llama-3.1-8B"), KvDtype::kFp8), 65'536);
  EXPECT_EQ(kv_bytes_per_token(model("Qwen3-32B"), KvDtype::kBf16), 262'144);
  EXPECT_EQ(kv_bytes_per_token(model("Llama-3.3-70B"), KvDtype::kBf16), 327'680);
  EXPECT_EQ(kv_bytes_per_token(model("Llama-3.1-70B"), KvDtype::kFp8), 163'840);
  EXPECT_EQ(kv_bytes_per_token(model("gpt-oss-120b"), KvDtype::kBf16), 73'728);
  EXPECT_EQ(kv_bytes_per_token(model("DeepSeek-R1"), KvDtype::kBf16), 70'272);
  EXPECT_EQ(kv_bytes_per_token(model("DeepSeek-R1"), KvDtype::kFp8), 35'136);
}

TEST(KvBytes, HeadsDivideByTpDownToOneAndLatentsNever) {
  const ModelSpec& qwen = model("Qwen3-32B");  // 8 KV heads.
  EXPECT_EQ(kv_bytes_per_token_per_gpu(qwen, KvDtype::kBf16, {.tp = 2}), 131'072);
  EXPECT_EQ(kv_bytes_per_token_per_gpu(qwen, KvDtype::kBf16, {.tp = 8}), 32'768);
  EXPECT_EQ(kv_bytes_per_token_per_gpu(qwen, KvDtype::kBf16, {.tp = 16}), 32'768);
  EXPECT_EQ(kv_bytes_per_token_per_gpu(qwen, KvDtype::kBf16, {.tp = 2, .pp = 2}), 65'536);
  EXPECT_EQ(kv_bytes_per_token_per_gpu(model("DeepSeek-R1"), KvDtype::kFp8, {.tp = 8}), 35'136);
}

TEST(KvBytes, WindowedLayersCountWithoutTheHybridManager) {
  const ModelSpec& gemma = model("Gemma-3-27B");  // 10 of 62 layers see everything.
  const std::int64_t all = kv_bytes_per_token_per_gpu(gemma, KvDtype::kBf16, {}, false);
  EXPECT_EQ(kv_bytes_per_token_per_gpu(gemma, KvDtype::kBf16, {}) * 62, all * 10);
}

TEST(Weights, BytesOfEveryModel) {
  const auto check = [](const char* name, double parameters, double bytes, double percent) {
    EXPECT_NEAR(total_parameters(model(name)), parameters, parameters * percent / 100) << name;
    EXPECT_NEAR(weight_bytes(model(name)), bytes, bytes * percent / 100) << name;
  };
  check("Qwen3-0.6B", 0.596e9, 1.19e9, 1);
  check("Qwen2.5-7B", 7.616e9, 15.23e9, 0.5);
  check("Llama-3.1-8B", 8.03e9, 16.06e9, 0.5);
  check("Llama-3.1-8B-FP8", 8.03e9, 9.1e9, 0.5);
  check("Qwen3-32B", 32.76e9, 65.5e9, 0.5);
  check("Llama-3.1-70B", 70.6e9, 141e9, 0.5);
  check("Llama-3.1-70B-FP8", 70.6e9, 72.7e9, 0.5);
  check("Qwen3-8B", 8.19e9, 16.38e9, 0.5);
  check("Qwen3-14B", 14.77e9, 29.54e9, 0.5);
  check("Qwen3-30B-A3B", 30.53e9, 61.07e9, 0.5);
  check("Qwen2.5-72B", 72.7e9, 145.4e9, 0.5);
  check("Llama-3.1-405B-FP8", 405.9e9, 410e9, 0.5);
  check("gpt-oss-120b", 117e9, 65.2e9, 0.5);
  check("DeepSeek-R1", 671e9, 6.9e11, 3);
}

TEST(Weights, ActiveParametersOfTheMoeModels) {
  EXPECT_NEAR(active_parameters(model("DeepSeek-R1")), 37e9, 1.5e9);
  EXPECT_NEAR(active_parameters(model("gpt-oss-120b")), 5.1e9, 0.6e9);
  EXPECT_NEAR(active_parameters(model("Qwen3-30B-A3B")), 3.3e9, 0.4e9);
}

TEST(Weights, DeepSeekRankUnderDp8Ep8) {
  EXPECT_NEAR(weight_bytes_per_gpu(model("DeepSeek-R1"), {.tp = 1, .pp = 1, .dp = 8, .ep = 8}),
              100.6e9, 0.5e9);
}

TEST(KvCapacity, ReproducesReportedCapacities) {
  // llm-d reports of Qwen3-32B on two H100: 307,328 and 298,000 at default utilisation, 148k at
  // 0.65 and, by fit of the ladder, 330k to 344k at 0.95.
  expect_within(tokens("H100-SXM", "Qwen3-32B", 2, 0.90), 307'328, 2);
  expect_within(tokens("H100-SXM", "Qwen3-32B", 2, 0.90), 298'000, 5);
  expect_within(tokens("H100-SXM", "Qwen3-32B", 2, 0.65), 148'336, 3);
  EXPECT_GE(tokens("H100-SXM", "Qwen3-32B", 2, 0.95), 330'000);
  EXPECT_LE(tokens("H100-SXM", "Qwen3-32B", 2, 0.95), 344'000);
  expect_within(tokens("H100-SXM", "Llama-3.1-70B", 4, 0.90), 461'376, 2);
  expect_within(tokens("A10G", "Qwen2.5-7B", 1, 0.90), 86'500, 2);
}

TEST(KvCapacity, HybridModelGrowsByItsFullLayersOnly) {
  KvCacheInput in{.accelerator = gpu("H200"), .model = model("gpt-oss-120b"), .parallelism = {}};
  in.gpu_memory_utilization = 0.85;
  Diagnostics d;
  const auto low = plan_kv_cache(in, d);
  in.gpu_memory_utilization = 0.95;
  const auto high = plan_kv_cache(in, d);
  ASSERT_TRUE(low && high);
  // llm-d reports 1.22M at 0.85 and 1.63M at 0.95. For a hybrid model vLLM reports how many
  // sequences of max_model_len (65,536) fit, times that length, and a sequence holds a window and
  // a step's 8,192 tokens in the other layers, too: these are its tokens at 18 of 36 layers.
  const auto reported = [](const KvCachePlan& p) {
    return static_cast<std::int64_t>(static_cast<double>(p.tokens()) * 65'536 /
                                     (65'536 + 8'192 + 128));
  };
  expect_within(reported(*low), 1'220'000, 10);
  expect_within(reported(*high), 1'630'000, 5);
}

TEST(KvCapacity, GptOssOnOneH100AsTheGuideServesIt) {
  // llm-d's guide raises the utilisation to 0.95 because 131,072 tokens need 0.01 GiB more than
  // 0.90 leaves.
  KvCacheInput in{.accelerator = gpu("H100"), .model = model("gpt-oss-120b"), .parallelism = {}};
  in.max_num_batched_tokens = 8192;
  in.max_num_seqs = 1024;
  in.max_model_len = 131'072;
  in.gpu_memory_utilization = 0.95;
  Diagnostics d;
  EXPECT_TRUE(plan_kv_cache(in, d));
  in.gpu_memory_utilization = 0.90;
  EXPECT_FALSE(plan_kv_cache(in, d));
}

TEST(KvCapacity, ConsumerCard) {
  // vLLM reported 41,408 tokens.
  expect_within(tokens("RTX-4090", "Llama-3.1-8B", 1, 0.90), 41'408, 5);
}

TEST(KvCapacity, MoreUtilisationGivesSixAndAHalfThousandTokensPerPoint) {
  const auto gain =
      tokens("H100-SXM", "Qwen3-32B", 2, 0.91) - tokens("H100-SXM", "Qwen3-32B", 2, 0.90);
  EXPECT_NEAR(static_cast<double>(gain), 6'500, 100);
}

TEST(KvCapacity, ExplicitBlocksOverrideTheEstimate) {
  KvCacheInput in{.accelerator = gpu("L4"), .model = model("Llama-3.1-70B"), .parallelism = {}};
  in.block_size = 64;
  in.num_gpu_blocks = 5'375;
  Diagnostics d;
  const auto plan = plan_kv_cache(in, d);  // The weights alone would not fit on an L4.
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->explicit_blocks);
  EXPECT_EQ(plan->tokens(), 344'000);
  EXPECT_TRUE(d.items().empty());
}

// gpt-oss-120b has two KV groups: vLLM's log counts tokens, and blocks of both.
TEST(KvCapacity, AStatedSizeFarFromTheMemoryIsAWarning) {
  KvCacheInput in{.accelerator = gpu("H200"), .model = model("gpt-oss-120b"), .parallelism = {}};
  Diagnostics none;
  const std::int64_t fits = plan_kv_cache(in, none)->num_gpu_blocks;
  const auto said = [&](std::int64_t blocks) {
    in.num_gpu_blocks = blocks;
    Diagnostics d;
    const auto plan = plan_kv_cache(in, d);
    EXPECT_EQ(plan->num_gpu_blocks, blocks);
    EXPECT_FALSE(d.has_errors());
    return d.items().empty() ? std::string() : d.items().front().message;
  };
  EXPECT_EQ(said(fits), "");
  EXPECT_EQ(said(fits / 3 + 1), "");
  EXPECT_EQ(said(fits + fits / 2), "");
  EXPECT_EQ(said(fits / 50), "is 0.02 times the " + std::to_string(fits) +
                                 " blocks that fit into the memory (got " +
                                 std::to_string(fits / 50) + ")");
  EXPECT_EQ(said(fits * 16), "is 16 times the " + std::to_string(fits) +
                                 " blocks that fit into the memory (got " +
                                 std::to_string(fits * 16) + ")");
}

TEST(KvCapacity, DoesNotFitSaysByHowMuch) {
  KvCacheInput in{.accelerator = gpu("H100"), .model = model("Llama-3.1-70B"), .parallelism = {}};
  in.overhead_bytes = 0;
  in.max_model_len = 16;
  Diagnostics d;
  EXPECT_FALSE(plan_kv_cache(in, d));
  ASSERT_EQ(d.items().size(), 1u);
  // 141.1e9 bytes of weights and one 16-token block of 5,242,880 bytes against 0.9 * 85.5e9 bytes:
  // 141,107,396,608 + 2 * 5,242,880 - 76,950,000,000 = 64.2e9 bytes = 59.8 GiB.
  EXPECT_NE(d.items()[0].message.find("short by 59.8 GiB per GPU"), std::string::npos)
      << d.items()[0].message;
  EXPECT_NE(d.items()[0].hint.find("raise tp"), std::string::npos);
}

TEST(KvCapacity, OneLongSequenceMustFit) {
  KvCacheInput in{.accelerator = gpu("A10G"), .model = model("Qwen2.5-7B"), .parallelism = {}};
  in.max_num_batched_tokens = 2048;
  in.max_num_seqs = 256;
  in.max_model_len = 200'000;
  Diagnostics d;
  EXPECT_FALSE(plan_kv_cache(in, d));
  EXPECT_TRUE(d.has_errors());
}

TEST(KvCapacity, ReportsEveryBadInputAtOnce) {
  KvCacheInput in{
      .accelerator = gpu("H100"), .model = model("Qwen3-32B"), .parallelism = {.tp = 3}};
  in.block_size = 0;
  in.gpu_memory_utilization = 1.5;
  Diagnostics d;
  EXPECT_FALSE(plan_kv_cache(in, d));
  std::string paths;
  for (const Diagnostic& item : d.items()) paths += item.path + " ";
  EXPECT_EQ(paths, "block_size gpu_memory_utilization tp tp tp ");  // Heads, KV heads, MLP width.
}

TEST(Parallelism, EpOnlyForMoeAndOnlyTheWholeGroup) {
  Diagnostics d;
  EXPECT_FALSE(check_parallelism(model("Qwen3-32B"), {.tp = 1, .pp = 1, .dp = 8, .ep = 8}, d));
  EXPECT_FALSE(check_parallelism(model("DeepSeek-R1"), {.tp = 1, .pp = 1, .dp = 8, .ep = 4}, d));
  EXPECT_EQ(d.items().size(), 2u);
  EXPECT_TRUE(check_parallelism(model("DeepSeek-R1"), {.tp = 1, .pp = 1, .dp = 8, .ep = 8}, d));
  EXPECT_TRUE(check_parallelism(model("Qwen3-32B"), {.tp = 16}, d)) << "KV heads are replicated";
}

TEST(Parallelism, ContextsAreSharedByGpusThatHaveCopies) {
  const auto fault = [](const char* name, std::int64_t tp, std::int64_t dcp) {
    Diagnostics d;
    return check_parallelism(model(name), {.tp = tp, .dcp = dcp}, d) ? ""
                                                                     : d.items().front().message;
  };
  EXPECT_EQ(fault("DeepSeek-R1", 8, 8), "");
  EXPECT_EQ(fault("DeepSeek-R1", 8, 3), "must divide the 8 tensor-parallel GPUs (got 3)");
  EXPECT_EQ(fault("Qwen3-32B", 16, 2), "");
  EXPECT_EQ(fault("Qwen3-32B", 16, 4), "cannot exceed tp / KV heads = 2 of Qwen3-32B (got 4)");
  EXPECT_EQ(fault("Qwen3-32B", 8, 2), "cannot exceed tp / KV heads = 1 of Qwen3-32B (got 2)");
  EXPECT_NE(fault("gpt-oss-120b", 16, 2), "");
}

TEST(KvLayout, GpusThatShareAContextHoldABlockOfItTogether) {
  const ModelSpec& m = model("DeepSeek-R1");
  const KvLayout alone = kv_layout(m, KvDtype::kBf16, {.tp = 8}, 64);
  const KvLayout shared = kv_layout(m, KvDtype::kBf16, {.tp = 8, .dcp = 8}, 64);
  EXPECT_EQ(shared.block_size, 512);
  EXPECT_EQ(shared.bytes_per_block, alone.bytes_per_block);
  EXPECT_EQ(kv_bytes_per_token_per_gpu(m, KvDtype::kBf16, {.tp = 8, .dcp = 8}), 70'272 / 8);
}

}  // namespace
}  // namespace routesim::models
