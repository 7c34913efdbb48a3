// The built-in models, field by field from each model's config.json on Hugging Face.
#include "models/catalogue.h"

namespace routesim::models {
namespace {

ModelSpec qwen3_32b() {
  return {.name = "Qwen3-32B",
          .source = "huggingface.co/Qwen/Qwen3-32B config.json",
          .layers = 64,
          .hidden = 5120,
          .heads = 64,
          .kv_heads = 8,
          .head_dim = 128,
          .ffn = 25600,
          .vocab = 151936,
          .max_context = 40960};
}

ModelSpec qwen3_0_6b() {
  return {.name = "Qwen3-0.6B",
          .source = "huggingface.co/Qwen/Qwen3-0.6B config.json",
          .layers = 28,
          .hidden = 1024,
          .heads = 16,
          .kv_heads = 8,
          .head_dim = 128,
          .ffn = 3072,
          .vocab = 151936,
          .max_context = 40960,
          .tied_embeddings = true};
}

/// A dense Qwen model with heads of 128.
ModelSpec qwen(std::string name, std::int64_t layers, std::int64_t hidden, std::int64_t heads,
               std::int64_t ffn, std::int64_t vocab, std::int64_t max_context) {
  const std::string source = "huggingface.co/Qwen/" + name + " config.json";
  return {.name = std::move(name),
          .source = source,
          .layers = layers,
          .hidden = hidden,
          .heads = heads,
          .kv_heads = 8,
          .head_dim = 128,
          .ffn = ffn,
          .vocab = vocab,
          .max_context = max_context};
}

ModelSpec qwen3_8b() { return qwen("Qwen3-8B", 36, 4096, 32, 12288, 151936, 40960); }

ModelSpec qwen3_14b() { return qwen("Qwen3-14B", 40, 5120, 40, 17408, 151936, 40960); }

ModelSpec qwen2_5_72b() {
  ModelSpec m = qwen("Qwen2.5-72B", 80, 8192, 64, 29568, 152064, 32768);
  m.aliases = {"Qwen2.5-72B-Instruct"};
  return m;
}

ModelSpec qwen3_30b_a3b() {
  ModelSpec m = qwen("Qwen3-30B-A3B", 48, 2048, 32, 0, 151936, 40960);
  m.aliases = {"Qwen3-30B-A3B-Instruct-2507"};
  m.kv_heads = 4;
  m.experts = 128;
  m.experts_per_token = 8;
  m.expert_ffn = 768;
  return m;
}

ModelSpec qwen2_5_7b() {
  return {.name = "Qwen2.5-7B",
          .source = "huggingface.co/Qwen/Qwen2.5-7B-Instruct config.json",
          .aliases = {"Qwen2.5-7B-Instruct"},
          .layers = 28,
          .hidden = 3584,
          .heads = 28,
          .kv_heads = 4,
          .head_dim = 128,
          .ffn = 18944,
          .vocab = 152064,
          .max_context = 32768};
}

ModelSpec llama_8b(WeightDtype weights) {
  const bool fp8 = weights == WeightDtype::kFp8;
  return {.name = fp8 ? "Llama-3.1-8B-FP8" : "Llama-3.1-8B",
          .source = "huggingface.co/meta-llama/Llama-3.1-8B-Instruct config.json",
          .aliases =
              fp8 ? std::vector<std::string>{"Meta-Llama-3.1-8B-Instruct-FP8",
                                             "Llama-3.1-8B-Instruct-FP8"}
                  : std::vector<std::string>{"Llama-3.1-8B-Instruct", "Meta-Llama-3.1-8B-Instruct"},
          .weights = weights,
          .layers = 32,
          .hidden = 4096,
          .heads = 32,
          .kv_heads = 8,
          .head_dim = 128,
          .ffn = 14336,
          .vocab = 128256,
          .max_context = 131072};
}

ModelSpec llama_70b(std::string name, std::vector<std::string> aliases, WeightDtype weights) {
  return {.name = std::move(name),
          .source = "huggingface.co/meta-llama/Llama-3.1-70B-Instruct config.json",
          .aliases = std::move(aliases),
          .weights = weights,
          .layers = 80,
          .hidden = 8192,
          .heads = 64,
          .kv_heads = 8,
          .head_dim = 128,
          .ffn = 28672,
          .vocab = 128256,
          .max_context = 131072};
}

ModelSpec llama_405b_fp8() {
  return {.name = "Llama-3.1-405B-FP8",
          .source = "huggingface.co/meta-llama/Llama-3.1-405B-Instruct-FP8 config.json",
          .aliases = {"Llama-3.1-405B-Instruct-FP8"},
          .weights = WeightDtype::kFp8,
          .layers = 126,
          .hidden = 16384,
          .heads = 128,
          .kv_heads = 8,
          .head_dim = 128,
          .ffn = 53248,
          .vocab = 128256,
          .max_context = 131072};
}

ModelSpec gpt_oss_120b() {
  return {.name = "gpt-oss-120b",
          .source =
              "huggingface.co/openai/gpt-oss-120b config.json; workspace between what llm-d "
              "reports of one H200 (1.22M tokens at utilisation 0.85) and of one H100 (131,072 "
              "tokens fit at 0.95 and just do not at 0.90)",
          .weights = WeightDtype::kMxfp4,
          .layers = 36,
          .hidden = 2880,
          .heads = 64,
          .kv_heads = 8,
          .head_dim = 64,
          .ffn = 0,
          .vocab = 201088,
          .max_context = 131072,
          .experts = 128,
          .experts_per_token = 4,
          .expert_ffn = 2880,
          .sliding_window = 128,
          .sliding_layers = 18,
          .workspace_bytes = 4e9};
}

ModelSpec deepseek_r1() {
  return {.name = "DeepSeek-R1",
          .source =
              "huggingface.co/deepseek-ai/DeepSeek-R1 config.json; workspace is an estimate "
              "for the expert all-to-all buffers",
          .aliases = {"DeepSeek-V3", "DeepSeek-R1-0528", "DeepSeek-V3-0324"},
          .weights = WeightDtype::kFp8,
          .layers = 61,
          .hidden = 7168,
          .heads = 128,
          .kv_heads = 0,
          .head_dim = 128,
          .ffn = 18432,
          .vocab = 129280,
          .max_context = 163840,
          .experts = 256,
          .experts_per_token = 8,
          .shared_experts = 1,
          .expert_ffn = 2048,
          .dense_layers = 3,
          .kv_lora_rank = 512,
          .q_lora_rank = 1536,
          .rope_dim = 64,
          .v_head_dim = 128,
          .workspace_bytes = 4e9};
}

}  // namespace

std::vector<ModelSpec> builtin_models() {
  return {deepseek_r1(),
          qwen3_32b(),
          qwen3_0_6b(),
          qwen3_8b(),
          qwen3_14b(),
          qwen3_30b_a3b(),
          qwen2_5_7b(),
          qwen2_5_72b(),
          llama_8b(WeightDtype::kBf16),
          llama_8b(WeightDtype::kFp8),
          llama_70b("Llama-3.1-70B", {"Llama-3.1-70B-Instruct", "Meta-Llama-3.1-70B-Instruct"},
                    WeightDtype::kBf16),
          llama_70b("Llama-3.1-70B-FP8",
                    {"Meta-Llama-3.1-70B-Instruct-FP8", "Llama-3.1-70B-Instruct-FP8"},
                    WeightDtype::kFp8),
          llama_70b("Llama-3.3-70B", {"Llama-3.3-70B-Instruct"}, WeightDtype::kBf16),
          llama_70b("Llama-3.3-70B-FP8",
                    {"Llama-3.3-70B-Instruct-FP8", "Llama-3.3-70B-Instruct-FP8-dynamic"},
                    WeightDtype::kFp8),
          llama_405b_fp8(),
          gpt_oss_120b()};
}

}  // namespace routesim::models
