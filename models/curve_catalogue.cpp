// The built-in fitted curves. Each says from what data; the ones marked "initial estimate" are
// read off published aggregates by hand and want a fit.
#include "models/catalogue.h"

namespace routesim::models {
namespace {

/// Static-batch measurements of Qwen3-32B bf16 on H100: 8 to 128 sequences, prompts of 1k and 4k,
/// answers of 128 to 1024 tokens. θ cannot be seen there (0.45 is what the llm-d ladder says), and
/// hardly what a prompt chunk adds to a step: 12 ms, inside the fit's interval of 0 to 22 ms, is
/// what spreads gaps between tokens and TTFT as far as the published report of January 2026 has it.
constexpr const char* kStaticBatch =
    "NNLS fit (roofline prior) of 25-30 static-batch TPOT rows, vLLM 0.12, Qwen3-32B bf16 on "
    "H100-SXM (aiconfigurator silicon samples); shared_context_weight from the llm-d ladder, "
    "prefill_chunk_ms (TP 2) from the llm-d report of January 2026";

FittedCurve h100_qwen3_32b(std::int64_t tp, const CostCurveParameters& p) {
  return {.accelerator = "H100-SXM",
          .model = "Qwen3-32B",
          .parallelism = {.tp = tp},
          .preset = "2025-H2",
          .kv_cache_dtype = KvDtype::kBf16,
          .parameters = p,
          .range = {.max_decode_requests = 128,
                    .max_decode_context = tp == 2 ? 276'480 : 655'360,
                    .max_prefill_tokens = 8'192,
                    .max_prefill_context = 4'096},
          .provenance = kStaticBatch};
}

FittedCurve h100_qwen3_32b_tp2_2026() {
  return {
      .accelerator = "H100-SXM",
      .model = "Qwen3-32B",
      .parallelism = {.tp = 2},
      .preset = "2026-H1",
      .kv_cache_dtype = KvDtype::kBf16,
      .parameters = {.step_ms = 12.8,
                     .sequence_ms = 0.068,
                     .context_us_per_ktok = 43.9,
                     .shared_context_weight = 0.45,
                     .prefill_us_per_token = 47.7,
                     .prefill_pair_ns = 1.05,
                     .prefill_chunk_ms = 10},
      .range = {.max_decode_requests = 200,
                .max_decode_context = 1'000'000,
                .max_prefill_tokens = 8'192,
                .max_prefill_context = 8'192},
      .provenance =
          "vLLM 0.12 static-batch fit; step_ms, shared_context_weight and prefill_chunk_ms from "
          "a joint fit of both variants of the llm-d 16xH100 ladder (about vLLM 0.19)"};
}

FittedCurve a10g_qwen25_7b() {
  return {
      .accelerator = "A10G",
      .model = "Qwen2.5-7B",
      .parallelism = {},
      .preset = "2026-H1",
      .kv_cache_dtype = KvDtype::kBf16,
      .parameters = {.step_ms = 26.91,
                     .sequence_ms = 0.3919,
                     .context_us_per_ktok = 110.5,
                     .shared_context_weight = 0.4452,
                     .prefill_us_per_token = 191.1,
                     .prefill_pair_ns = 0.6617,
                     .prefill_chunk_ms = 18.31},
      .range = {.max_decode_requests = 128,
                .max_decode_context = 180'000,
                .max_prefill_tokens = 2'048,
                .max_prefill_context = 2'304},
      .provenance =
          "joint fit of the simulation to the closed loop and the rate ladder of the A10G llm-d "
          "article (June 2026, g5.xlarge); weights at 94 % and KV at 87 % of bandwidth"};
}

FittedCurve l4_llama_8b_fp8() {
  return {.accelerator = "L4",
          .model = "Llama-3.1-8B-FP8",
          .parallelism = {},
          .preset = "",
          .kv_cache_dtype = KvDtype::kBf16,
          .parameters = {.step_ms = 57.8,
                         .sequence_ms = 0.39,
                         .context_us_per_ktok = 514,
                         .shared_context_weight = 0.7,
                         .prefill_us_per_token = 223,
                         .prefill_pair_ns = 4.9},
          .range = {.max_decode_requests = 50,
                    .max_decode_context = 25'000,
                    .max_prefill_tokens = 16'384,
                    .max_prefill_context = 4'096},
          .provenance =
              "fit of the simulation to both variants of KubeAI's 2xL4 run (December 2024, vLLM "
              "0.6); prefill at a third of the fp8 peak"};
}

FittedCurve h100_llama_70b_fp8() {
  return {.accelerator = "H100-SXM",
          .model = "Llama-3.1-70B-FP8",
          .parallelism = {},
          .preset = "",
          .kv_cache_dtype = KvDtype::kFp8,
          .parameters = {.step_ms = 26,
                         .sequence_ms = 0.3,
                         .context_us_per_ktok = 57.5,
                         .shared_context_weight = 0.5,
                         .prefill_us_per_token = 163,
                         .prefill_pair_ns = 2.4},
          .range = {.max_decode_requests = 50,
                    .max_decode_context = 30'000,
                    .max_prefill_tokens = 16'384,
                    .max_prefill_context = 4'096},
          .provenance =
              "fit of the simulation to both variants of KubeAI's 8xH100 run (December 2024, vLLM "
              "0.6); prefill at 44 % of the fp8 peak"};
}

/// A step sends its tokens through the experts in rounds of a fixed size (4096 per rank on prefill
/// nodes, 512 on decode nodes). Each round reads all the experts' weights, and pays for the whole
/// buffer: a prompt found in the cache costs its rank 4096 tokens on a prefill node, and a prompt
/// recomputed on a decode node takes ten rounds. Context is dear because decode attention over a
/// latent of 576 is bound by arithmetic on a GPU that has all 128 heads (17 GFLOP per sequence and
/// 1000 tokens), so that sharing saves nothing; its cost is the slope between answers of 512 and
/// 2,000 tokens in Moreh's report of maximum throughput (445 sequences per rank). The cost of a
/// pair is the arithmetic of prefill attention at 600 TFLOP/s: one prompt length does not show it.
FittedCurve mi300x_deepseek_r1() {
  return {
      .accelerator = "MI300X",
      .model = "DeepSeek-R1",
      .parallelism = {.tp = 1, .pp = 1, .dp = 8, .ep = 8},
      .preset = "",
      .kv_cache_dtype = KvDtype::kFp8,
      .parameters = {.step_ms = 12.94,
                     .sequence_ms = 0.1788,
                     .context_us_per_ktok = 46.6,
                     .shared_context_weight = 1,
                     .prefill_us_per_token = 106.7,
                     .prefill_pair_ns = 4,
                     .group_round_ms = 35.77,
                     .group_padding_us = 99.96},
      .range = {.max_decode_requests = 450,
                .max_decode_context = 1'300'000,
                .max_prefill_tokens = 65'536,
                .max_prefill_context = 5'300},
      .provenance =
          "fit of the simulation to Moreh's prefix-routing report (early 2026, vLLM 0.11 fork, "
          "eager mode, expert buffers of 4096 and 512 tokens); context_us_per_ktok from Moreh's "
          "maximum-throughput report (the same fork)"};
}

}  // namespace

std::vector<FittedCurve> builtin_curves() {
  return {h100_qwen3_32b(2, {.step_ms = 14.297,
                             .sequence_ms = 0.06781,
                             .context_us_per_ktok = 44.02,
                             .shared_context_weight = 0.45,
                             .prefill_us_per_token = 47.78,
                             .prefill_pair_ns = 1.033,
                             .prefill_chunk_ms = 12}),
          h100_qwen3_32b(4, {.step_ms = 9.417,
                             .sequence_ms = 0.06216,
                             .context_us_per_ktok = 23.34,
                             .shared_context_weight = 0.45,
                             .prefill_us_per_token = 28.30,
                             .prefill_pair_ns = 0.4341}),
          h100_qwen3_32b(8, {.step_ms = 7.127,
                             .sequence_ms = 0.06367,
                             .context_us_per_ktok = 10.49,
                             .shared_context_weight = 0.45,
                             .prefill_us_per_token = 18.56,
                             .prefill_pair_ns = 0}),
          h100_qwen3_32b_tp2_2026(),
          a10g_qwen25_7b(),
          l4_llama_8b_fp8(),
          h100_llama_70b_fp8(),
          mi300x_deepseek_r1()};
}

}  // namespace routesim::models
