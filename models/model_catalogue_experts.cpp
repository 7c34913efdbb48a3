// The built-in mixtures of experts, field by field from each model's config.json on Hugging Face.
#include "models/model_catalogue.h"

namespace routesim::models {
namespace {

/// What the mixtures of Qwen3 share.
ModelSpec qwen(const std::string& name, ModelSpec m) {
  m.name = name;
  m.head_dim = 128;
  m.kv_heads = m.kv_heads > 0 ? m.kv_heads : 4;
  m.vocab = 151936;
  m.max_context = m.max_context > 0 ? m.max_context : 40960;
  m.experts = m.experts > 0 ? m.experts : 128;
  m.experts_per_token = 8;
  return published("Qwen/" + name, m);
}

std::vector<ModelSpec> qwen3_models() {
  const ModelSpec b30 = qwen("Qwen3-30B-A3B", {.aliases = {"Qwen3-30B-A3B-Instruct-2507"},
                                               .layers = 48,
                                               .hidden = 2048,
                                               .heads = 32,
                                               .expert_ffn = 768});
  const ModelSpec coder30 =
      qwen("Qwen3-Coder-30B-A3B", {.aliases = {"Qwen3-Coder-30B-A3B-Instruct"},
                                   .layers = 48,
                                   .hidden = 2048,
                                   .heads = 32,
                                   .max_context = 262144,
                                   .expert_ffn = 768});
  const ModelSpec b235 = qwen("Qwen3-235B-A22B", {.aliases = {"Qwen3-235B-A22B-Instruct-2507"},
                                                  .layers = 94,
                                                  .hidden = 4096,
                                                  .heads = 64,
                                                  .expert_ffn = 1536});
  const ModelSpec coder480 =
      qwen("Qwen3-Coder-480B-A35B", {.aliases = {"Qwen3-Coder-480B-A35B-Instruct"},
                                     .layers = 62,
                                     .hidden = 6144,
                                     .heads = 96,
                                     .kv_heads = 8,
                                     .max_context = 262144,
                                     .experts = 160,
                                     .expert_ffn = 2560});
  return {b30,  fp8(b30),  nvfp4(b30),  coder30,  fp8(coder30),
          b235, fp8(b235), nvfp4(b235), coder480, fp8(coder480)};
}

/// What gpt-oss models share; no dense layers, every other layer looks back 128 tokens.
ModelSpec gpt_oss(ModelSpec m) {
  m.weights = WeightDtype::kMxfp4;
  m.hidden = 2880;
  m.heads = 64;
  m.kv_heads = 8;
  m.head_dim = 64;
  m.vocab = 201088;
  m.max_context = 131072;
  m.experts_per_token = 4;
  m.expert_ffn = 2880;
  m.sliding_window = 128;
  m.sliding_layers = m.layers / 2;
  m.bf16_attention = true;
  return published("openai/" + m.name, m);
}

std::vector<ModelSpec> gpt_oss_models() {
  return {gpt_oss({.name = "gpt-oss-120b",
                   .source = "huggingface.co/openai/gpt-oss-120b config.json; workspace between "
                             "what llm-d reports of one H200 (1.22M tokens at utilisation 0.85) "
                             "and of one H100 (131,072 tokens fit at 0.95 and just do not at 0.90)",
                   .layers = 36,
                   .experts = 128,
                   .workspace_bytes = 4e9}),
          gpt_oss({.name = "gpt-oss-20b", .layers = 24, .experts = 32})};
}

/// DeepSeek's latent attention, as V2, V3, R1 and those after them have it.
ModelSpec latent(ModelSpec m) {
  m.head_dim = m.v_head_dim = 128;
  m.kv_lora_rank = 512;
  m.rope_dim = 64;
  return m;
}

std::vector<ModelSpec> latent_models() {
  const ModelSpec r1 =
      latent({.name = "DeepSeek-R1",
              .source = "huggingface.co/deepseek-ai/DeepSeek-R1 config.json; workspace is an "
                        "estimate for the expert all-to-all buffers",
              .aliases = {"DeepSeek-V3", "DeepSeek-R1-0528", "DeepSeek-V3-0324", "DeepSeek-V3.1"},
              .weights = WeightDtype::kFp8,
              .layers = 61,
              .hidden = 7168,
              .heads = 128,
              .ffn = 18432,
              .vocab = 129280,
              .max_context = 163840,
              .experts = 256,
              .experts_per_token = 8,
              .shared_experts = 1,
              .expert_ffn = 2048,
              .dense_layers = 3,
              .q_lora_rank = 1536,
              .scaled_blocks = true,
              .workspace_bytes = 4e9});
  return {r1, nvfp4(r1),
          published("deepseek-ai/DeepSeek-V2-Lite-Chat", latent({.name = "DeepSeek-V2-Lite",
                                                                 .layers = 27,
                                                                 .hidden = 2048,
                                                                 .heads = 16,
                                                                 .ffn = 10944,
                                                                 .vocab = 102400,
                                                                 .max_context = 163840,
                                                                 .experts = 64,
                                                                 .experts_per_token = 6,
                                                                 .shared_experts = 2,
                                                                 .expert_ffn = 1408,
                                                                 .dense_layers = 1})),
          published("moonshotai/Kimi-K2-Instruct",
                    latent({.name = "Kimi-K2",
                            .source = "huggingface.co/moonshotai/Kimi-K2-Instruct config.json; "
                                      "workspace as of DeepSeek-R1",
                            .weights = WeightDtype::kFp8,
                            .layers = 61,
                            .hidden = 7168,
                            .heads = 64,
                            .ffn = 18432,
                            .vocab = 163840,
                            .max_context = 131072,
                            .experts = 384,
                            .experts_per_token = 8,
                            .shared_experts = 1,
                            .expert_ffn = 2048,
                            .dense_layers = 1,
                            .q_lora_rank = 1536,
                            .scaled_blocks = true,
                            .workspace_bytes = 4e9}))};
}

std::vector<ModelSpec> glm_models() {
  const ModelSpec large = published("zai-org/GLM-4.5", {.name = "GLM-4.5",
                                                        .layers = 92,
                                                        .hidden = 5120,
                                                        .heads = 96,
                                                        .kv_heads = 8,
                                                        .head_dim = 128,
                                                        .ffn = 12288,
                                                        .vocab = 151552,
                                                        .max_context = 131072,
                                                        .experts = 160,
                                                        .experts_per_token = 8,
                                                        .shared_experts = 1,
                                                        .expert_ffn = 1536,
                                                        .dense_layers = 3});
  const ModelSpec air = published("zai-org/GLM-4.5-Air", {.name = "GLM-4.5-Air",
                                                          .layers = 46,
                                                          .hidden = 4096,
                                                          .heads = 96,
                                                          .kv_heads = 8,
                                                          .head_dim = 128,
                                                          .ffn = 10944,
                                                          .vocab = 151552,
                                                          .max_context = 131072,
                                                          .experts = 128,
                                                          .experts_per_token = 8,
                                                          .shared_experts = 1,
                                                          .expert_ffn = 1408,
                                                          .dense_layers = 1});
  return {large, fp8(large), air, fp8(air)};
}

std::vector<ModelSpec> mixtral_models() {
  return {published("mistralai/Mixtral-8x7B-Instruct-v0.1", {.name = "Mixtral-8x7B",
                                                             .aliases = {"Mixtral-8x7B-v0.1"},
                                                             .layers = 32,
                                                             .hidden = 4096,
                                                             .heads = 32,
                                                             .kv_heads = 8,
                                                             .head_dim = 128,
                                                             .vocab = 32000,
                                                             .max_context = 32768,
                                                             .experts = 8,
                                                             .experts_per_token = 2,
                                                             .expert_ffn = 14336}),
          published("mistralai/Mixtral-8x22B-Instruct-v0.1", {.name = "Mixtral-8x22B",
                                                              .layers = 56,
                                                              .hidden = 6144,
                                                              .heads = 48,
                                                              .kv_heads = 8,
                                                              .head_dim = 128,
                                                              .vocab = 32768,
                                                              .max_context = 65536,
                                                              .experts = 8,
                                                              .experts_per_token = 2,
                                                              .expert_ffn = 16384})};
}

std::vector<ModelSpec> other_models() {
  const ModelSpec scout = published(
      "meta-llama/Llama-4-Scout-17B-16E-Instruct",
      {.name = "Llama-4-Scout",
       .source =
           "huggingface.co/meta-llama/Llama-4-Scout-17B-16E-Instruct config.json; where its "
           "chunks of 8,192 tokens have KV blocks of their own, they are simulated as a window",
       .layers = 48,
       .hidden = 5120,
       .heads = 40,
       .kv_heads = 8,
       .head_dim = 128,
       .vocab = 202048,
       .max_context = 10485760,
       .experts = 16,
       .experts_per_token = 1,
       .shared_experts = 1,
       .expert_ffn = 8192,
       .sliding_window = 8192,
       .sliding_layers = 36,
       .chunked_windows = true});
  ModelSpec maverick = scout;
  maverick.name = "Llama-4-Maverick";
  maverick.source =
      "huggingface.co/meta-llama/Llama-4-Maverick-17B-128E-Instruct config.json; where its chunks "
      "of "
      "8,192 tokens have KV blocks of their own, they are simulated as a window";
  maverick.aliases = {"Llama-4-Maverick-17B-128E-Instruct"};
  maverick.max_context = 1048576;
  maverick.experts = 128;
  maverick.dense_layers = 24;  // Every other one.
  maverick.ffn = 16384;
  ModelSpec scout_fp8 = fp8(scout);
  ModelSpec maverick_fp8 = fp8(maverick);
  scout_fp8.bf16_attention = maverick_fp8.bf16_attention = true;  // Their `ignore` lists say so.
  return {scout, scout_fp8, maverick, maverick_fp8,
          published("MiniMaxAI/MiniMax-M2", {.name = "MiniMax-M2",
                                             .aliases = {"MiniMax-M2.1", "MiniMax-M2.5"},
                                             .weights = WeightDtype::kFp8,
                                             .layers = 62,
                                             .hidden = 3072,
                                             .heads = 48,
                                             .kv_heads = 8,
                                             .head_dim = 128,
                                             .vocab = 200064,
                                             .max_context = 196608,
                                             .experts = 256,
                                             .experts_per_token = 8,
                                             .expert_ffn = 1536,
                                             .scaled_blocks = true})};
}

}  // namespace

std::vector<ModelSpec> expert_models() {
  std::vector<ModelSpec> all;
  for (const auto& family : {latent_models(), qwen3_models(), gpt_oss_models(), glm_models(),
                             mixtral_models(), other_models()})
    all.insert(all.end(), family.begin(), family.end());
  return all;
}

}  // namespace routesim::models
