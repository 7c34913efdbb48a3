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
  return {.accelerator = "A10G",
          .model = "Qwen2.5-7B",
          .parallelism = {},
          .preset = "2026-H1",
          .parameters = {.step_ms = 26,
                         .sequence_ms = 0.4,
                         .context_us_per_ktok = 95.6,
                         .shared_context_weight = 0.78,
                         .prefill_us_per_token = 203,
                         .prefill_pair_ns = 0.8,
                         .prefill_chunk_ms = 10},
          .range = {.max_decode_requests = 128,
                    .max_decode_context = 180'000,
                    .max_prefill_tokens = 2'048,
                    .max_prefill_context = 2'304},
          .provenance =
              "fit of the simulation to the closed loop and the rate ladder of the A10G llm-d "
              "article (June 2026, g5.xlarge); weights at 98 % and KV at 100 % of bandwidth"};
}

FittedCurve l4_llama_8b_fp8() {
  return {.accelerator = "L4",
          .model = "Llama-3.1-8B-FP8",
          .parallelism = {},
          .preset = "",
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

/// Experts receive buffers of a fixed size (4096 tokens per rank on prefill nodes, 512 on decode
/// nodes), and a step pays for all of it: what is constant in a decode step at 100 to 250 sequences
/// per rank is 512 such tokens, and eight times as much is what a prompt found in the cache costs
/// on a prefill node. The cost of a prompt is seen from the idle TTFT of the random variant and
/// from the plateau its recomputed prompts cause. The cost per token of context is near the
/// bandwidth bound: data of one prompt length do not show it.
FittedCurve mi300x_deepseek_r1() {
  return {
      .accelerator = "MI300X",
      .model = "DeepSeek-R1",
      .parallelism = {.tp = 1, .pp = 1, .dp = 8, .ep = 8},
      .preset = "",
      .parameters = {.step_ms = 23,
                     .sequence_ms = 0.525,
                     .context_us_per_ktok = 8.2,
                     .shared_context_weight = 0.45,
                     .prefill_us_per_token = 150,
                     .prefill_pair_ns = 9,
                     .group_padding_us = 81},
      .range = {.max_decode_requests = 450,
                .max_decode_context = 1'300'000,
                .max_prefill_tokens = 65'536,
                .max_prefill_context = 5'300},
      .provenance =
          "fit of the simulation to Moreh's prefix-routing report (early 2026, vLLM 0.11 fork, "
          "eager mode, expert buffers of 4096 and 512 tokens): throughput and median TTFT of both "
          "variants"};
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
