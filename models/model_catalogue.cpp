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

ModelSpec gpt_oss_120b() {
  return {.name = "gpt-oss-120b",
          .source =
              "huggingface.co/openai/gpt-oss-120b config.json; workspace from the KV "
              "capacities llm-d reports on one H200 (1.22M tokens at utilisation 0.85)",
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
          .workspace_bytes = 14e9};
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
          qwen2_5_7b(),
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
          gpt_oss_120b()};
}

}  // namespace routesim::models
