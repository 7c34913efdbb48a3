#include "models/roofline.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <tuple>

#include "models/calibration.h"
#include "models/kv_cache_spec.h"
#include "models/launches.h"
#include "tests/models/engine_steps.h"
#include "tests/models/model_fixture.h"

namespace routesim::models {
namespace {

Roofline roofline(const char* gpu, const char* model, const Parallelism& p,
                  const RooflineOptions& options = {}) {
  return Roofline(*catalogue().find_accelerator(gpu), *catalogue().find_model(model), p, options);
}

BatchShape decode(std::int64_t b, std::int64_t context) {
  return {.decode_requests = b, .decode_context = b * context};
}

BatchShape prefill(std::int64_t n) {
  return {.prefill_requests = 1, .prefill_tokens = n, .prefill_context = n, .prefill_pairs = n * n};
}

/// An accelerator whose every rate is 1 in a handy unit and that has no overheads.
AcceleratorSpec ideal() {
  AcceleratorSpec a{.name = "ideal", .source = "test", .bf16_tflops = 1};
  a.memory_tb_per_s = 1;
  a.link_gb_per_s = 1000;
  a.nic_gb_per_s = 1000;
  a.prefill_mfu = a.attention_mfu = a.weight_mbu = a.kv_mbu = 1;
  a.mxfp4_mbu = a.fp8_expert_mbu = 1;
  a.kernel_us = a.layer_us = a.expert_layer_us = a.scaled_product_us = 0;
  a.gpu_step_ms = a.host_step_ms = a.host_sequence_ms = a.collective_us = 0;
  return a;
}

/// Attention 3e6 and MLP 12e6 parameters per layer: 150e6 in layers, 50e6 in the output.
ModelSpec toy() {
  ModelSpec m{.name = "toy", .source = "test"};
  m.layers = 10;
  m.hidden = 1000;
  m.heads = 10;
  m.kv_heads = 5;
  m.head_dim = 100;
  m.ffn = 4000;
  m.vocab = 50'000;
  return m;
}

constexpr double kToyAttentionMs = 320 * (1 + 0.27 * (1.28 - 1));

TEST(Roofline, TermsByHandOnAnIdealAccelerator) {
  const ModelSpec m = toy();
  const Roofline r(ideal(), m, {}, {.cuda_graphs = false});
  // One token: 400e6 bytes of weights at 1 TB/s = 0.4 ms; 1,000 tokens of context at 20,000 bytes
  // take 20 us. Eager launches take 1.1 ms at least, which binds instead of the weights.
  EXPECT_NEAR(ms(r.step_ticks(decode(1, 1000))), 1.1 + 0.020, 1e-6);
  // 4,000 prompt tokens: 2 * 150e6 * 4000 FLOP at 1 TFLOP/s = 1.2 s; output weights 0.1 ms;
  // 16e6 / 2 pairs * 10 layers * 10 heads * 400 FLOP = 0.32 s for heads of 128, 7.56 % more for
  // heads of 100: kToyAttentionMs.
  EXPECT_NEAR(ms(r.step_ticks(prefill(4000))), 1200 + 0.1 + kToyAttentionMs, 1e-3);
  const Roofline graphs(ideal(), m, {});
  EXPECT_NEAR(ms(graphs.step_ticks(decode(1, 1000))), 0.4 + 0.020, 1e-6);
  // Nine sequences run padded to 16: 16 * 300e6 FLOP = 4.8 ms beats 0.3 ms of weights; the output
  // projection takes nine rows, 0.9 ms.
  EXPECT_NEAR(ms(graphs.step_ticks(decode(9, 0))), 4.8 + 0.9, 1e-6);
}

// Ten GPUs with a query head each and two copies of five KV heads.
TEST(Roofline, SharedContextsByHand) {
  AcceleratorSpec a = ideal();
  a.collective_us = 1;
  a.collective_efficiency = 0.5;
  const Roofline alone(a, toy(), {.tp = 10}), two(a, toy(), {.tp = 10, .dcp = 2});
  // 400 bytes per token and layer: 4 ns, of which each GPU now reads half. Query and output are 100
  // wide and the LSE of two heads has 8 bytes, in 10 layers at 500 GB/s; and three collectives of
  // 1 us per layer.
  const double exchange = 10.0 * (200 + 200 + 8) / 500;
  EXPECT_NEAR(ms(alone.step_ticks(decode(8, 5000)) - two.step_ticks(decode(8, 5000))),
              (8 * 5000 * 2 - 8 * exchange - 30'000) * 1e-6, 1e-6);
  EXPECT_EQ(two.decode_run(decode(8, 5000)).increment, 8 * 2 * kTicksPerNanosecond);
  EXPECT_NEAR(ms(two.step_ticks(prefill(4000)) - alone.step_ticks(prefill(4000))),
              (4000 * exchange + 30'000) * 1e-6, 1e-6);
  // A latent of 512 + 64: its products bind, and they stay as many. Queries and outputs are as
  // wide; a chunk gathers what was before it.
  ModelSpec m = toy();
  m.kv_lora_rank = 512;
  m.rope_dim = 64;
  m.v_head_dim = 100;
  const Roofline latent(a, m, {.tp = 10}), shared(a, m, {.tp = 10, .dcp = 2});
  const double absorbed = 10.0 * (2 * (576 + 512) + 8) / 500;
  EXPECT_NEAR(ms(shared.step_ticks(decode(8, 5000)) - latent.step_ticks(decode(8, 5000))),
              (8 * absorbed + 30'000) * 1e-6, 1e-6);
  BatchShape chunk = prefill(1000);
  const double first = ms(shared.step_ticks(chunk) - latent.step_ticks(chunk));
  EXPECT_NEAR(first, 0.030, 1e-6);
  chunk.prefill_context += 3000;
  const double second = ms(shared.step_ticks(chunk) - latent.step_ticks(chunk));
  EXPECT_NEAR(second - first, 10.0 * 0.5 * 3000 * 1152 / 500 * 1e-6, 1e-6);
}

TEST(Roofline, Nvfp4IsMultipliedWhereTheGpuCanAndWidenedElsewhere) {
  ModelSpec m = toy();
  m.weights = WeightDtype::kNvfp4;
  AcceleratorSpec widens = ideal();
  widens.scaled_product_us = 10;
  AcceleratorSpec multiplies = widens;
  multiplies.fp4_tflops = 4;
  multiplies.prefill_mfu_fp4 = 1;
  const Roofline wide(widens, m, {});
  const Roofline narrow(multiplies, m, {});
  // 150e6 parameters of 9/16 bytes, 50e6 of the output in bf16, at 1 TB/s; two products of
  // attention and two of the MLP quantise their activations first, 10 us each in 10 layers.
  // Widened, the arithmetic of one token binds: 300e6 FLOP at 1 TFLOP/s.
  EXPECT_NEAR(ms(wide.step_ticks(decode(1, 0))), 0.3 + 0.1, 1e-6);
  EXPECT_NEAR(ms(narrow.step_ticks(decode(1, 0))), 0.084375 + 0.1 + 0.4, 1e-6);
  // The prompt of TermsByHand: its products at 4 TFLOP/s, not its attention.
  EXPECT_NEAR(ms(narrow.step_ticks(prefill(4000))), 300 + 0.1 + kToyAttentionMs + 0.4, 1e-3);
  // With attention in bf16, 30e6 of the 150e6 are of 2 bytes, at the bf16 rate, and not quantised.
  m.bf16_attention = true;
  const Roofline mixed(multiplies, m, {});
  EXPECT_NEAR(ms(mixed.step_ticks(decode(1, 0))), 0.06 + 0.0675 + 0.1 + 0.2, 1e-6);
  EXPECT_NEAR(ms(mixed.step_ticks(prefill(4000))), 240 + 240 + 0.1 + kToyAttentionMs + 0.2, 1e-3);
}

// vllm-project/vllm#30885: one sequence of 1 + 1,024 tokens takes 11.91 ms a token, and took 5 %
// more before. Nothing is fitted to it.
TEST(Roofline, Llama70BInNvfp4OnB200) {
  const Roofline r = roofline("B200", "nvidia/Llama-3.3-70B-Instruct-NVFP4", {});
  EXPECT_NEAR(ms(r.step_ticks(decode(1, 512))) / 11.91, 1, 0.15);
}

TEST(Roofline, GraphSizesAreVllms) {
  for (const auto& [tokens, size] : {std::pair{1, 1},
                                     {2, 2},
                                     {3, 4},
                                     {5, 8},
                                     {8, 8},
                                     {9, 16},
                                     {248, 248},
                                     {249, 256},
                                     {257, 272},
                                     {512, 512},
                                     {513, 513}})
    EXPECT_EQ(padded_to_graph(tokens), size) << tokens;
}

TEST(Roofline, ExpertsTouchedGrowWithTheBatch) {
  // gpt-oss-120b: a token touches 4 of 128 experts. The weights read by n tokens follow
  // 1 - (1 - 4/128)^n: 3.1 % for one, 64 % for 32, all for thousands.
  AcceleratorSpec fast = ideal();
  fast.bf16_tflops = 1e9;  // Only memory counts.
  const ModelSpec& m = *catalogue().find_model("gpt-oss-120b");
  const Roofline r(fast, m, {}, {});
  const double experts = count_parameters(m).routed_mlp * bytes_per_weight(m.weights) * 1e-9;
  const double one = ms(r.step_ticks(decode(1, 0)));
  EXPECT_NEAR(ms(r.step_ticks(decode(32, 0))) - one,
              experts * ((1 - std::pow(124.0 / 128, 32)) - 4.0 / 128), 1e-3);
  EXPECT_NEAR(ms(r.step_ticks(decode(2048, 0))) - one, experts * (1 - 4.0 / 128), 1e-3);
}

TEST(Roofline, ExpertsComputeWholeTilesOfRows) {
  for (const auto& [rows, tile] :
       {std::pair{0.1, 16}, {16, 16}, {17, 32}, {64, 64}, {65, 128}, {5000, 128}})
    EXPECT_EQ(expert_tile(rows), tile) << rows;
  // Only arithmetic counts, and only that of the experts: 128 of them, of which a token visits 4.
  AcceleratorSpec wide = ideal();
  wide.memory_tb_per_s = 1e9;
  const ModelSpec& m = *catalogue().find_model("gpt-oss-120b");
  const ParameterCount c = count_parameters(m);
  const Roofline r(wide, m, {}, {});
  const double row_ms = 2.0 * c.routed_mlp / 128 * 1e-9 / 0.52;  // Widened 4-bit weights.
  const double others_ms = 2.0 * 1e-9 *
                           (c.attention + c.dense_mlp + c.shared_mlp + c.router +
                            static_cast<double>(m.vocab * m.hidden));
  const auto expert_ms = [&](std::int64_t tokens) {
    return ms(r.step_ticks(decode(tokens, 0))) - static_cast<double>(tokens) * others_ms;
  };
  // 64 rows each and half a tile of 64 that is padding; 8 rows each in one tile of 16.
  EXPECT_NEAR(expert_ms(2048) / row_ms, 128 * (64 + 31.5), 1);
  const double touched = 1 - std::pow(124.0 / 128, 256);
  EXPECT_NEAR(expert_ms(256) / row_ms, 128 * touched * 16, 1);
}

TEST(Roofline, ExpectedMaximumOfNormals) {
  EXPECT_EQ(expected_maximum(1), 0);
  EXPECT_NEAR(expected_maximum(2), 1 / std::sqrt(M_PI), 1e-3);
  EXPECT_NEAR(expected_maximum(3), 1.5 / std::sqrt(M_PI), 0.06);
  EXPECT_NEAR(expected_maximum(5), 1.163, 0.04);
  EXPECT_NEAR(expected_maximum(100), 2.508, 0.03);
  EXPECT_GT(expected_maximum(1 << 20), 3);
}

TEST(Roofline, ExpertParallelGpusWaitForTheBusiest) {
  // Only the experts' bytes count. Four GPUs hold 64 of DeepSeek's 256 experts each; a token
  // touches 8 of them: 2 per GPU in the mean, and a standard deviation of sqrt(8 / 4 * 3 / 4 * 248
  // / 256) more often than not on one of the four, 1.029 of them on the busiest.
  AcceleratorSpec fast = ideal();
  fast.bf16_tflops = fast.fp8_tflops = 1e9;
  const ModelSpec& m = *catalogue().find_model("DeepSeek-R1");
  const auto step = [&](const Parallelism& p, std::int64_t tokens) {
    return ms(Roofline(fast, m, p, {}).step_ticks(decode(tokens, 0)));
  };
  const Parallelism sliced{.tp = 4};
  const Parallelism spread{.tp = 4, .ep = 4};
  const double all = count_parameters(m).routed_mlp * 1e-9 / 4;
  fast.link_gb_per_s = fast.nic_gb_per_s = 1e12;
  const double uneven = 1.029 * std::sqrt(8.0 / 4 * 3 / 4 * 248 / 256) / 2;
  EXPECT_NEAR(step(spread, 1) - step(sliced, 1), all * 8 / 256 * uneven, 1e-6);
  // A batch that touches every expert leaves nothing to chance.
  EXPECT_NEAR(step(spread, 4096), step(sliced, 4096), 1e-6);
}

TEST(Roofline, Fp8ProductsByHand) {
  ModelSpec m = toy();
  m.weights = WeightDtype::kFp8;
  AcceleratorSpec a = ideal();
  a.fp8_tflops = 4;
  a.prefill_mfu_fp8 = 0.8;
  a.fp8_product_us = 3;
  const Roofline r(a, m, {});
  // 150e6 parameters of one byte and 100e6 bytes of output at 1 TB/s; four products in each of ten
  // layers quantise their activations first, 3 us each.
  EXPECT_NEAR(ms(r.step_ticks(decode(1, 0))), 0.15 + 0.1 + 0.12, 1e-6);
  // The prompt of TermsByHand at 3.2 TFLOP/s: 1.2e12 / 3.2e12 s. Its attention is in bf16.
  EXPECT_NEAR(ms(r.step_ticks(prefill(4000))), 375 + 0.1 + kToyAttentionMs + 0.12, 1e-3);
}

TEST(Roofline, CacheInFp8ByHand) {
  // 2 x 10 layers x 5 heads x 100 bytes = 10,000 bytes a token: 1,000 tokens take 10 us at 1 TB/s,
  // and 25 us at the 0.4 of the bandwidth that older kernels reach.
  AcceleratorSpec a = ideal();
  a.kv_mbu_fp8 = 0.4;
  const auto thousand_us = [&](bool older) {
    const Roofline r(a, toy(), {}, {.kv_dtype = KvDtype::kFp8, .older_fp8_cache = older});
    return 1e3 * (ms(r.step_ticks(decode(1, 1000))) - ms(r.step_ticks(decode(1, 0))));
  };
  EXPECT_NEAR(thousand_us(false), 10, 1e-2);
  EXPECT_NEAR(thousand_us(true), 25, 1e-2);
}

TEST(Roofline, AttentionOfALatentByHand) {
  const ModelSpec& m = *catalogue().find_model("DeepSeek-R1");
  const Roofline r(ideal(), m, {}, {.kv_dtype = KvDtype::kFp8, .older_fp8_cache = false});
  // 128 heads x 61 layers x 2 FLOP x (two products over 512 and one over 64) = 16,990,208 FLOP for
  // a token of context: 16.99 us at 1 TFLOP/s. Its 35,136 bytes take 0.035 us at 1 TB/s.
  const double thousand = ms(r.step_ticks(decode(1, 1000))) - ms(r.step_ticks(decode(1, 0)));
  EXPECT_NEAR(thousand, 16.990208, 1e-3);
  // Arithmetic binds, so nothing is saved where others read the same blocks.
  const BatchShape shared{.decode_requests = 1, .decode_context = 1000, .shared_context = 1000};
  EXPECT_EQ(r.step_ticks(shared), r.step_ticks(decode(1, 1000)));
  // A prompt: 128 heads x 61 layers x (128 + 64 + 128) FLOP for each of n^2 = 10,000 (a causal pair
  // counts twice): 24.9856 ms, where reading the context would take 100 x 0.035136 us.
  BatchShape prompt = prefill(100);
  const double with = ms(r.step_ticks(prompt));
  prompt.prefill_pairs = 0;
  EXPECT_NEAR(with - ms(r.step_ticks(prompt)), 24.9856 - 0.0035136, 1e-4);
}

TEST(Roofline, SharedPrefixesCostByTheirReaders) {
  // gpt-oss-120b reads 8 heads x 64 x 2 values x 2 bytes = 2,048 bytes a token and full layer, of
  // which it has 18. Four readers of 12,000 tokens save 0.75 of what many do: 0.26 on an H200.
  const Roofline r = roofline("H200", "gpt-oss-120b", {});
  BatchShape s = decode(4, 20'000);
  const std::int64_t alone = r.step_ticks(s);
  s.shared_context = 3 * 12'000;
  s.shared_once = 12'000;
  const std::int64_t four = r.step_ticks(s);
  EXPECT_NEAR(ms(alone - four), 0.75 * 0.26 * 36'000 * 18 * 2'048 / (0.85 * 4.8e9), 1e-4);
}

TEST(Roofline, AllReduceByHand) {
  AcceleratorSpec a = ideal();
  a.collective_us = 4;
  a.collective_efficiency = 0.5;  // Of 1,000 GB/s.
  // Without a switch: 4 us and 2 x 3/4 of 1 MB at 500 GB/s.
  EXPECT_NEAR(AllReduce(a, 4).ns(1e6), 4'000 + 3'000, 1e-6);
  // With one, 5 % more for each GPU beyond two, 550 GB/s, and of the 6.5 us x (1 - 2/4) of waiting
  // for each other as much as 64 KiB have of their double.
  a.switched_link = true;
  EXPECT_NEAR(AllReduce(a, 4).ns(65'536), 4'000 + 1'625 + 65'536 * 1.5 / 550, 1e-6);
  // Beyond a node over its network card: no switch.
  a.nic_gb_per_s = 100;
  EXPECT_NEAR(AllReduce(a, 16).ns(1e6), 4'000 + 1e6 * 2 * 15 / 16 / 50, 1e-6);
}

TEST(Roofline, RatesOfGroupedProducts) {
  // Only the arithmetic of experts counts: 2,048 tokens x 4 of 128 experts are 64 rows each and
  // half a tile of 64 that is padding. Shares of the rate of plain products: models/roofline.cpp.
  AcceleratorSpec wide = ideal();
  wide.memory_tb_per_s = 1e9;
  ModelSpec m = *catalogue().find_model("gpt-oss-120b");
  m.bf16_attention = false;
  m.scaled_blocks = true;  // Not quantised as a whole: no fixed time, as that of blocks is 0.
  const auto share_of_plain = [&](WeightDtype weights, bool marlin, double rate) {
    m.weights = weights;
    const ParameterCount c = count_parameters(m);
    const double step =
        ms(Roofline(wide, m, {}, {.older_experts = marlin}).step_ticks(decode(2048, 0)));
    const double plain = 2.0 * c.routed_mlp / 128 * 1e-9 / rate * 128 * (64 + 31.5);
    const double others = 2048 * 2.0 * 1e-9 *
                          ((c.attention + c.dense_mlp + c.shared_mlp + c.router) / rate +
                           static_cast<double>(m.vocab * m.hidden));
    return plain / (step - others);
  };
  EXPECT_NEAR(share_of_plain(WeightDtype::kBf16, false, 1), 0.84, 1e-3);
  EXPECT_NEAR(share_of_plain(WeightDtype::kMxfp4, false, 1), 0.52, 1e-3);
  wide.fp8_tflops = 2;
  wide.prefill_mfu_fp8 = 1;
  EXPECT_NEAR(share_of_plain(WeightDtype::kFp8, false, 2), 0.40, 1e-3);
  EXPECT_NEAR(share_of_plain(WeightDtype::kMxfp4, true, 1), 0.29, 1e-3);
  // Tiles of 64 widen 128 experts at 1 TB/s one and a half times, and multiply at the plain rate.
  wide.widening_tb_per_s = 1;
  m.weights = WeightDtype::kMxfp4;
  const double bytes = count_parameters(m).routed_mlp * bytes_per_weight(m.weights);
  const double rows = 2.0 * count_parameters(m).routed_mlp * 1e-9 * (64 + 31.5);
  EXPECT_NEAR(share_of_plain(WeightDtype::kMxfp4, false, 1),
              rows / (rows + bytes * 1e-9 * (64 + 31.5) / 64), 1e-3);
  EXPECT_NEAR(share_of_plain(WeightDtype::kMxfp4, true, 1), 0.29, 1e-3);
  EXPECT_NEAR(share_of_plain(WeightDtype::kNvfp4, false, 1), 0.52, 1e-3);
  wide.fp8_tflops = 0;  // Marlin uses the matrix units of GPUs before Hopper.
  EXPECT_NEAR(share_of_plain(WeightDtype::kMxfp4, true, 1), 0.52, 1e-3);
}

TEST(Roofline, BlockScalesCostAKernelPerProduct) {
  AcceleratorSpec a = ideal();
  a.fp8_tflops = 1;
  a.scaled_product_us = 10;
  ModelSpec dense = *catalogue().find_model("Llama-3.1-8B-FP8");
  EXPECT_FALSE(dense.scaled_blocks);
  const auto step = [&](const ModelSpec& m) {
    return ms(Roofline(a, m, {}, {}).step_ticks(decode(1, 0)));
  };
  const double plain = step(dense);
  dense.scaled_blocks = true;  // Four products in each of 32 layers.
  EXPECT_NEAR(step(dense) - plain, 32 * 4 * 0.010, 1e-6);
  ModelSpec experts = *catalogue().find_model("Qwen3-30B-A3B-FP8");
  EXPECT_TRUE(experts.scaled_blocks);
  const double scaled = step(experts);
  experts.scaled_blocks = false;  // Two of attention in each of 48 layers.
  EXPECT_NEAR(scaled - step(experts), 48 * 2 * 0.010, 1e-6);
}

TEST(Roofline, AsynchronousSchedulingHidesTheHostOnly) {
  AcceleratorSpec a = ideal();
  a.gpu_step_ms = 0.5;
  a.host_step_ms = 0.25;
  const ModelSpec& m = *catalogue().find_model("Qwen3-8B");
  const auto step = [&](bool async) {
    return ms(Roofline(a, m, {}, {.async_scheduling = async}).step_ticks(decode(1, 0)));
  };
  EXPECT_NEAR(step(false) - step(true), 0.25, 1e-6);
  a.gpu_step_ms = 0;
  const double without = step(true);
  a.gpu_step_ms = 0.5;
  EXPECT_NEAR(step(true) - without, 0.5, 1e-6);
}

TEST(Roofline, LockStepRankReadsExpertsForTheWholeGroup) {
  const Roofline r = roofline("MI300X", "DeepSeek-R1", {.tp = 1, .pp = 1, .dp = 8, .ep = 8});
  BatchShape alone = decode(1, 1000);
  alone.group_tokens = 1;
  alone.group_total_tokens = 8;
  BatchShape busy = alone;
  busy.group_total_tokens = 800;
  EXPECT_GT(r.step_ticks(busy), r.step_ticks(alone) * 3 / 2);
  BatchShape dummy{.group_tokens = 64, .group_total_tokens = 512};
  EXPECT_GT(r.step_ticks(dummy), 0) << "an idle rank still takes part";
}

TEST(Roofline, WindowedLayersStopGrowing) {
  const Roofline r = roofline("H200", "gpt-oss-120b", {});
  const auto grow = [&](std::int64_t from) {
    return r.step_ticks(decode(1, from + 64)) - r.step_ticks(decode(1, from));
  };
  EXPECT_NEAR(static_cast<double>(grow(0)), 2.0 * static_cast<double>(grow(1000)), 64.0);
  EXPECT_EQ(r.decode_run(decode(4, 100)).steps, 29) << "to 128 tokens of context";
}

TEST(Roofline, Fp8HalvesWeightTimeAndPrefillTime) {
  const auto bf16 = roofline("H100", "Llama-3.1-70B", {.tp = 2}).as_cost_curve();
  const auto fp8 = roofline("H100", "Llama-3.1-70B-FP8", {.tp = 2}).as_cost_curve();
  EXPECT_LT(fp8.step_ms, 0.64 * bf16.step_ms);
  EXPECT_LT(fp8.prefill_us_per_token, 0.79 * bf16.prefill_us_per_token);
}

TEST(Roofline, MoreTensorParallelIsFasterButNotForFree) {
  const auto step_of = [](std::int64_t tp) {
    return ms(roofline("H100", "Qwen3-32B", {.tp = tp}).step_ticks(decode(16, 2000)));
  };
  double previous = step_of(1);
  for (const std::int64_t tp : {2, 4, 8}) {
    const double step = step_of(tp);
    EXPECT_LT(step, previous);
    EXPECT_GT(step, previous / 2) << "collectives and host cost do not shrink";
    previous = step;
  }
}

TEST(Roofline, AllReduceNearTheMeasuredOne) {
  // vLLM's all-reduces in a CUDA graph on H100 (aiconfigurator), us by GPUs and KiB.
  const AcceleratorSpec& h100 = *catalogue().find_accelerator("H100");
  for (const auto& [gpus, kib, us] : {std::tuple{2, 8, 4.36},
                                      {2, 256, 5.16},
                                      {2, 1024, 8.3},
                                      {2, 524'288, 1672.0},
                                      {4, 8, 4.77},
                                      {4, 256, 7.12},
                                      {4, 1024, 12.6},
                                      {4, 4096, 30.4},
                                      {4, 524'288, 2310.0},
                                      {8, 8, 4.98},
                                      {8, 256, 10.7},
                                      {8, 1024, 14.8},
                                      {8, 4096, 30.6},
                                      {8, 131'072, 574.6},
                                      {8, 524'288, 2109.0}})
    EXPECT_NEAR(AllReduce(h100, gpus).ns(1024.0 * kib) * 1e-3, us, 0.23 * us) << gpus << " " << kib;
}

/// How long a layer of gpt-oss-120b's experts takes for a prompt, ms: the step with them less the
/// one of a model without, so with the fixed times of routing and of two products.
double expert_layer_ms(const char* gpu, std::int64_t tp, std::int64_t tokens) {
  ModelSpec m = *catalogue().find_model("gpt-oss-120b");
  const auto step = [&](const ModelSpec& model) {
    const Roofline r(*catalogue().find_accelerator(gpu), model, {.tp = tp});
    return ms(r.step_ticks({.prefill_requests = 1, .prefill_tokens = tokens}));
  };
  const double with = step(m);
  m.experts = m.experts_per_token = m.expert_ffn = 0;
  return (with - step(m)) / 36;
}

TEST(Roofline, ExpertsOfGptOssNearTheMeasuredOnes) {
  // Triton's MXFP4 kernel in vLLM 0.24 (aiconfigurator-core 0.12.0, `power_law_1.01`), ms by
  // tokens. Balanced experts, full tiles: 0.66, 0.84, 1.04, 1.50, 2.91, 5.88 ms for 32 (H200) and
  // the rest.
  struct Row {
    const char* gpu;
    std::int64_t tp, tokens;
    double ms;
  };
  for (const Row& r : {Row{"H200", 1, 1024, 1.340},
                       {"H200", 1, 2048, 1.675},
                       {"H200", 1, 4096, 2.439},
                       {"H200", 1, 8192, 3.942},
                       {"H200", 1, 16384, 6.678},
                       {"H200", 2, 8192, 2.154},
                       {"H100", 1, 1024, 1.311},
                       {"H100", 1, 2048, 1.689},
                       {"H100", 1, 4096, 2.461},
                       {"H100", 1, 8192, 3.968},
                       {"H100", 1, 16384, 6.673},
                       {"H100", 2, 8192, 2.174}})
    EXPECT_NEAR(expert_layer_ms(r.gpu, r.tp, r.tokens) / r.ms, 1, 0.2)
        << r.gpu << " tp" << r.tp << " " << r.tokens;
}

TEST(Roofline, PromptsOfGptOssBetweenTheMeasuredLadders) {
  // One request on one H200 in chunks of 8,192 tokens, without what HTTP, the tokeniser and the
  // engine's ticks take (25 to 28 ms in both ladders): llm-d's guide p2p-kv-cache-sharing at
  // 067fe1b and as replaced later, which are 11 to 22 % apart.
  const Roofline r = roofline("H200", "gpt-oss-120b", {});
  for (const auto& [tokens, fast, slow] : {std::tuple{8192, 205.4, 249.9},
                                           {16384, 426.3, 510.3},
                                           {32768, 983.0, 1173.2},
                                           {49152, 1695.0, 1987.7}}) {
    double sum = 26;
    for (std::int64_t end = 8192; end <= tokens; end += 8192) {
      const std::int64_t before = end - 8192;
      sum += ms(r.step_ticks({.prefill_requests = 1,
                              .prefill_tokens = 8192,
                              .prefill_context = end,
                              .prefill_pairs = end * end - before * before}));
    }
    EXPECT_GT(sum, fast) << tokens;
    EXPECT_LT(sum, slow) << tokens;
  }
}

TEST(Roofline, PromptsOfGptOssAsScenariosReadmeQuotesThem) {
  // The steps of one request on one H200, and its API server: 2 ms and 1.5 us a token.
  const Roofline r = roofline("H200", "gpt-oss-120b", {}, {.async_scheduling = true});
  for (const auto& [tokens, quoted] :
       {std::pair{2048, 74}, {8192, 209}, {16384, 455}, {32768, 1064}, {49152, 1830}}) {
    double sum = 2 + 0.0015 * tokens;
    for (std::int64_t before = 0; before < tokens; before += 8192) {
      const std::int64_t end = std::min<std::int64_t>(before + 8192, tokens);
      sum += ms(r.step_ticks({.prefill_requests = 1,
                              .prefill_tokens = end - before,
                              .prefill_context = end,
                              .prefill_pairs = end * end - before * before}));
    }
    EXPECT_EQ(std::lround(sum), quoted) << tokens;
  }
}

TEST(Roofline, OlderKernelsAreSlower) {
  const ModelSpec& m = *catalogue().find_model("gpt-oss-120b");
  const AcceleratorSpec& h100 = *catalogue().find_accelerator("H100");
  const BatchShape prompt{.prefill_requests = 1, .prefill_tokens = 8192, .prefill_context = 8192};
  const auto prompt_ms = [&](bool marlin) {
    return ms(Roofline(h100, m, {}, {.older_experts = marlin}).step_ticks(prompt));
  };
  EXPECT_GT(prompt_ms(true), 1.4 * prompt_ms(false)) << "Marlin does not use Hopper's matrix units";
  const ModelSpec& dense = *catalogue().find_model("Llama-3.1-8B");
  const auto context_ms = [&](KvDtype dtype, bool older) {
    const Roofline r(h100, dense, {}, {.kv_dtype = dtype, .older_fp8_cache = older});
    return ms(r.step_ticks(decode(64, 4000))) - ms(r.step_ticks(decode(64, 1)));
  };
  const double bf16 = context_ms(KvDtype::kBf16, true);
  EXPECT_NEAR(context_ms(KvDtype::kFp8, true) / bf16, 1, 0.03) << "as slow as bf16";
  EXPECT_NEAR(context_ms(KvDtype::kFp8, false) / bf16, 0.5, 0.01);
}

TEST(Roofline, APromptInTheStepCostsEveryLayer) {
  const ModelSpec& m = *catalogue().find_model("Llama-3.1-8B");
  AcceleratorSpec a = *catalogue().find_accelerator("H100");
  const BatchShape prompt{.prefill_requests = 1, .prefill_tokens = 100, .prefill_context = 100};
  const double with = ms(Roofline(a, m, {}, {}).step_ticks(prompt));
  const double eager = ms(Roofline(a, m, {}, {.cuda_graphs = false}).step_ticks(prompt));
  a.chunk_layer_us = 0;
  EXPECT_NEAR(with - ms(Roofline(a, m, {}, {}).step_ticks(prompt)), 32 * 0.09, 1e-6);
  // The last token of a prompt alone is like a decoded one: a full graph fits.
  const BatchShape last{.prefill_requests = 1, .prefill_tokens = 1, .prefill_context = 100};
  const double without = ms(Roofline(a, m, {}, {}).step_ticks(last));
  a.chunk_layer_us = 90;
  EXPECT_EQ(ms(Roofline(a, m, {}, {}).step_ticks(last)), without);
  EXPECT_EQ(eager, ms(Roofline(a, m, {}, {.cuda_graphs = false}).step_ticks(prompt)));
}

// 64 rows of ten heads of 400 FLOP in ten layers at 1 TFLOP/s: 2.56 us a token, heads of 100 cost
// 7.56 % more each (kToyAttentionMs); memory takes 0.02 us.
TEST(Roofline, DecodesBesideAPromptComputeATileOnFlashAttention2) {
  AcceleratorSpec a = ideal();
  const auto extra_us = [&](const ModelSpec& m, std::int64_t prompt_tokens) {
    BatchShape with{.decode_requests = 2,
                    .decode_context = 1000,
                    .prefill_requests = 1,
                    .prefill_tokens = prompt_tokens};
    BatchShape without = with;
    without.decode_context = 0;
    const Roofline r(a, m, {}, {});
    return 1e3 * ms(r.step_ticks(with) - r.step_ticks(without)) / 1000;
  };
  EXPECT_NEAR(extra_us(toy(), 10), 0.02, 1e-6);
  a.mixed_decode_rows = 64;
  EXPECT_NEAR(extra_us(toy(), 10), 2.56 * kToyAttentionMs / 320, 1e-3);
  EXPECT_NEAR(extra_us(toy(), 1), 0.02, 1e-6) << "a full graph";
  EXPECT_NEAR(Roofline(a, toy(), {}, {}).as_cost_curve().mixed_context_us_per_ktok,
              2560 * kToyAttentionMs / 320, 1e-2);
  ModelSpec windows = toy();  // Half of the layers see at most 100 of a decode's 500 tokens.
  windows.sliding_layers = 5;
  windows.sliding_window = 100;
  EXPECT_NEAR(extra_us(windows, 10), (0.5 + 0.5 * 0.2) * 2.56 * kToyAttentionMs / 320, 1e-3);
}

// Ten layers of latent attention that read the 1,000 entries that indexers of five of them select.
// An entry has 12 numbers: 24 bytes, at 1 TB/s 0.024 us for 1,000 of a layer; a key has 10 bytes.
TEST(Roofline, SelectingLayersReadTheirChoiceAndAKeyOfEveryToken) {
  ModelSpec m = toy();
  m.kv_lora_rank = 8;
  m.rope_dim = 4;
  m.v_head_dim = m.head_dim;
  AcceleratorSpec a = ideal();
  a.bf16_tflops = 1e6;  // Compute binds nowhere.
  const auto context_us = [&](std::int64_t tokens) {
    BatchShape s = decode(1, tokens);
    const std::int64_t with = Roofline(a, m, {}, {}).step_ticks(s);
    s.decode_context = 0;
    return 1e3 * ms(with - Roofline(a, m, {}, {}).step_ticks(s));
  };
  constexpr double kRounding = 0.008;  // A token's ticks are whole: 8,000 times 2^-10 ns.
  const double bandwidth = a.memory_tb_per_s * a.kv_mbu;  // MB per us.
  EXPECT_NEAR(context_us(8'000), 10 * 24 * 8'000 / bandwidth * 1e-6, kRounding);
  m.sparse = {.layers = 10,
              .top_k = 1'000,
              .index_layers = 5,
              .index_heads = 2,
              .index_dim = 8,
              .index_key_bytes = 10};
  EXPECT_NEAR(context_us(500), (10 * 24 + 5 * 10) * 500 / bandwidth * 1e-6, kRounding);
  EXPECT_NEAR(context_us(8'000), (10 * 24 * 1'000 + 5 * 10 * 8'000) / bandwidth * 1e-6, kRounding);
  // An entry for four tokens, chosen from, and one for eight, not, of five layers each.
  m.compressed = {{.ratio = 4, .layers = 5}, {.ratio = 8, .layers = 5}};
  m.sparse.layers = 5;
  m.sliding_layers = 10;
  m.sliding_window = 100;
  EXPECT_NEAR(context_us(8'000),
              (10 * 24 * 100 + 5 * 24 * 1'000 + 5 * 10 * 2'000 + 5 * 24 * 1'000) / bandwidth * 1e-6,
              kRounding);
}

// Layers with a state read and write it whole, whatever the context.
TEST(Roofline, StatesCostTheSameForEveryContext) {
  ModelSpec m = toy();
  m.state = {
      .layers = 5, .heads = 4, .value_dim = 32, .groups = 2, .key_dim = 16, .conv = 4, .gates = 8};
  const AcceleratorSpec a = ideal();
  // 4 matrices of 32 x 16 in fp32, three inputs of 4 x 32 + 2 x 2 x 16 channels in bf16.
  EXPECT_EQ(state_bytes(m.state, 1), 8'192 + 3 * 192 * 2);
  const AttentionCost cost(a, m, {}, KvDtype::kBf16, false);
  BatchShape s = decode(8, 0);
  const double bytes = 8 * 5 * 2 * 9'344;
  EXPECT_NEAR(1e3 * ms(cost.decode_ticks(s)), bytes / (a.memory_tb_per_s * a.kv_mbu) * 1e-6, 1e-3);
  ModelSpec none = m;
  none.layers = 5;
  none.state = {};
  s.decode_context = 8'000;
  const std::int64_t keys = AttentionCost(a, none, {}, KvDtype::kBf16, false).decode_ticks(s);
  const std::int64_t both = cost.decode_ticks(s);
  s.decode_context = 0;
  EXPECT_EQ(both - cost.decode_ticks(s), keys) << "five layers keep keys and values";
}

// 150e6 weights in layers. Until v0.10 each of ten layers waits 10 us, on four GPUs 17.5 us.
TEST(Roofline, GraphsInPiecesCostEveryLayerAGap) {
  const auto gap_us = [](const Parallelism& p, std::int64_t prompt) {
    BatchShape s = decode(1, 0);
    s.prefill_requests = prompt > 0 ? 1 : 0;
    s.prefill_tokens = prompt;
    const Roofline whole(ideal(), toy(), p, {}), pieces(ideal(), toy(), p, {.full_graphs = false});
    return 1e3 * ms(pieces.step_ticks(s) - whole.step_ticks(s));
  };
  EXPECT_NEAR(gap_us({}, 0), 100, 1e-6);
  EXPECT_NEAR(gap_us({.tp = 4}, 0), 175, 1e-6);
  EXPECT_NEAR(gap_us({}, 8), 0, 1e-6) << "a prompt is in no full graph anyway";
}

TEST(Roofline, OneGpuHasNoOtherToTellOfASequence) {
  AcceleratorSpec a = ideal();
  a.host_sequence_ms = 0.05;
  const auto host_ms = [&](const Parallelism& p) {
    const auto step = [&](const AcceleratorSpec& on) {
      return ms(Roofline(on, toy(), p, {}).step_ticks(decode(8, 0)));
    };
    AcceleratorSpec none = a;
    none.host_sequence_ms = none.one_gpu_sequence_ms = 0;
    return step(a) - step(none);
  };
  EXPECT_NEAR(host_ms({}), 8 * 0.05, 1e-6);
  a.one_gpu_sequence_ms = 0.02;
  EXPECT_NEAR(host_ms({}), 8 * 0.02, 1e-6);
  EXPECT_NEAR(host_ms({.tp = 2}), 8 * 0.05, 1e-6);
}

TEST(Roofline, Fp8ExpertsWithOneScalePerTensorStreamFasterThanBlocks) {
  AcceleratorSpec a = ideal();
  a.fp8_tflops = 1000;
  a.bf16_tflops = 1000;
  a.weight_mbu = 0.8;
  a.fp8_expert_mbu = 0.5;
  a.scaled_product_us = 0;
  ModelSpec m = *catalogue().find_model("Qwen3-30B-A3B-FP8");
  const double bytes = count_parameters(m).routed_mlp * static_cast<double>(m.experts_per_token) /
                       static_cast<double>(m.experts);
  const auto step = [&] { return ms(Roofline(a, m, {}, {}).step_ticks(decode(1, 0))); };
  const double block = step();
  m.scaled_blocks = false;  // 0.95 of what plain products reach.
  EXPECT_NEAR(block - step(), bytes * 1e-9 * (1 / 0.5 - 1 / (0.95 * 0.8)), 1e-3);
}

/// Mean, mean absolute and worst error of mean TPOT over the measured rows, in percent.
ResidualSummary errors_against_steps(const AcceleratorSpec& a, int tp) {
  const Roofline r(a, *catalogue().find_model("Qwen3-32B"), {.tp = tp}, {});
  std::vector<double> relative;
  for (const StaticBatchRow& row : engine_steps(tp))
    relative.push_back(predicted_tpot_ms(r, row) / row.tpot_ms - 1);
  return summarise_residuals(relative);
}

/// models/README.md prints these numbers; it must have the row that comes out now, to the digit.
void expect_in_readme(const std::string& row) {
  std::ifstream file(ROUTESIM_SOURCE_DIR "/models/README.md");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_NE(text.str().find(row + "\n"), std::string::npos) << "models/README.md lacks\n" << row;
}

std::string step_errors_row(const AcceleratorSpec& a, int tp) {
  const ResidualSummary s = errors_against_steps(a, tp);
  std::array<char, 128> row{};
  std::snprintf(row.data(), row.size(), "| %d | %zu | %.1f %% | %+.1f %% | %.1f %% |", tp,
                static_cast<std::size_t>(s.samples), s.mean_absolute, s.bias, s.max);
  return row.data();
}

// These rows are in the sample: the fixed times of the H100 (layer_us, gpu_step_ms, host_step_ms)
// are what its operator tables leave unexplained of them.
TEST(Roofline, StepsThatSetTheFixedTimesOfTheH100) {
  for (const int tp : {2, 4, 8})
    expect_in_readme(step_errors_row(*catalogue().find_accelerator("H100"), tp));
}

// Out of the sample: without those fixed times, from operator measurements only.
TEST(Roofline, StepsFromOperatorTablesAlone) {
  AcceleratorSpec bare = *catalogue().find_accelerator("H100");
  bare.layer_us = bare.gpu_step_ms = bare.host_step_ms = bare.chunk_layer_us = 0;
  for (const int tp : {2, 4, 8}) expect_in_readme(step_errors_row(bare, tp));
}

// How far each coefficient of a blind prediction is from the curve shipped for the deployment.
TEST(Roofline, CoefficientsAgainstTheShippedCurves) {
  for (const auto& [gpu, model, kv] : {std::tuple{"A10G", "Qwen2.5-7B", KvDtype::kBf16},
                                       {"L4", "Llama-3.1-8B-FP8", KvDtype::kBf16},
                                       {"H100-SXM", "Llama-3.1-70B-FP8", KvDtype::kFp8}}) {
    const FittedCurve* shipped = catalogue().find_cost_curve(gpu, model, {}, "");
    ASSERT_NE(shipped, nullptr) << gpu;
    const CostCurveParameters& c = shipped->parameters;
    const CostCurveParameters p = roofline(gpu, model, {}, {.kv_dtype = kv}).as_cost_curve();
    const auto percent = [](double is, double was) { return 100 * (is / was - 1); };
    std::array<char, 160> row{};
    std::snprintf(row.data(), row.size(), "| %s %s | %+.0f %% | %+.0f %% | %+.0f %% | %+.0f %% |",
                  gpu, model, percent(p.step_ms, c.step_ms), percent(p.sequence_ms, c.sequence_ms),
                  percent(p.context_us_per_ktok, c.context_us_per_ktok),
                  percent(p.prefill_us_per_token, c.prefill_us_per_token));
    expect_in_readme(row.data());
  }
}

}  // namespace
}  // namespace routesim::models
