// The built-in dense models, field by field from each model's config.json on Hugging Face.
// Their parameter counts are tested against the sizes their makers state.
#include "models/model_catalogue.h"

#include "models/catalogue.h"

namespace routesim::models {

ModelSpec published(const std::string& repository, ModelSpec m) {
  if (m.source.empty()) m.source = "huggingface.co/" + repository + " config.json";
  const std::string name = repository.substr(repository.find('/') + 1);
  if (name != m.name) m.aliases.insert(m.aliases.begin(), name);
  return m;
}

ModelSpec requantised(const ModelSpec& m, WeightDtype weights, const std::string& suffix,
                      const std::vector<std::string>& other_suffixes) {
  ModelSpec q = m;
  q.name += suffix;
  q.weights = weights;
  for (std::string& alias : q.aliases) alias += suffix;
  for (const std::string& other : other_suffixes) {
    q.aliases.push_back(m.name + other);
    for (const std::string& alias : m.aliases) q.aliases.push_back(alias + other);
  }
  return q;
}

ModelSpec fp8(const ModelSpec& m) {
  ModelSpec q = requantised(m, WeightDtype::kFp8, "-FP8", {"-FP8-dynamic", "-FP8-block"});
  q.scaled_blocks = m.name.starts_with("Qwen3");
  return q;
}

ModelSpec nvfp4(const ModelSpec& m) {
  ModelSpec q = requantised(m, WeightDtype::kNvfp4, "-NVFP4", {"-FP4"});
  q.bf16_attention = m.is_mla();
  q.scaled_blocks = false;
  return q;
}

namespace {

ModelSpec awq(const ModelSpec& m) {
  return requantised(m, WeightDtype::kInt4, "-AWQ",
                     {"-AWQ-INT4", "-GPTQ-Int4", "-GPTQ", "-quantized.w4a16"});
}

/// What the Qwen models of 2.5 and 3 share.
ModelSpec qwen(const std::string& name, ModelSpec m) {
  m.name = name;
  m.head_dim = m.head_dim > 0 ? m.head_dim : 128;
  m.vocab = m.vocab > 0 ? m.vocab : 151936;
  if (name.rfind("Qwen3", 0) == 0) {
    m.max_context = 40960;
    return published("Qwen/" + name, m);
  }
  m.max_context = 32768;
  return published("Qwen/" + name + "-Instruct", m);
}

std::vector<ModelSpec> qwen3_models() {
  const ModelSpec b32 =
      qwen("Qwen3-32B", {.layers = 64, .hidden = 5120, .heads = 64, .kv_heads = 8, .ffn = 25600});
  const ModelSpec b14 =
      qwen("Qwen3-14B", {.layers = 40, .hidden = 5120, .heads = 40, .kv_heads = 8, .ffn = 17408});
  const ModelSpec b8 =
      qwen("Qwen3-8B", {.layers = 36, .hidden = 4096, .heads = 32, .kv_heads = 8, .ffn = 12288});
  return {
      b32,
      fp8(b32),
      awq(b32),
      nvfp4(b32),
      b14,
      fp8(b14),
      awq(b14),
      nvfp4(b14),
      b8,
      fp8(b8),
      awq(b8),
      nvfp4(b8),
      qwen("Qwen3-4B", {.layers = 36,
                        .hidden = 2560,
                        .heads = 32,
                        .kv_heads = 8,
                        .ffn = 9728,
                        .tied_embeddings = true}),
      qwen("Qwen3-1.7B", {.layers = 28,
                          .hidden = 2048,
                          .heads = 16,
                          .kv_heads = 8,
                          .ffn = 6144,
                          .tied_embeddings = true}),
      qwen("Qwen3-0.6B", {.layers = 28,
                          .hidden = 1024,
                          .heads = 16,
                          .kv_heads = 8,
                          .ffn = 3072,
                          .tied_embeddings = true}),
  };
}

std::vector<ModelSpec> qwen2_5_models() {
  const ModelSpec b72 = qwen(
      "Qwen2.5-72B",
      {.layers = 80, .hidden = 8192, .heads = 64, .kv_heads = 8, .ffn = 29568, .vocab = 152064});
  const ModelSpec b32 = qwen("Qwen2.5-32B", {.aliases = {"Qwen2.5-Coder-32B-Instruct"},
                                             .layers = 64,
                                             .hidden = 5120,
                                             .heads = 40,
                                             .kv_heads = 8,
                                             .ffn = 27648,
                                             .vocab = 152064});
  const ModelSpec b14 = qwen(
      "Qwen2.5-14B",
      {.layers = 48, .hidden = 5120, .heads = 40, .kv_heads = 8, .ffn = 13824, .vocab = 152064});
  const ModelSpec b7 = qwen("Qwen2.5-7B", {.aliases = {"Qwen2.5-Coder-7B-Instruct"},
                                           .layers = 28,
                                           .hidden = 3584,
                                           .heads = 28,
                                           .kv_heads = 4,
                                           .ffn = 18944,
                                           .vocab = 152064});
  return {
      b72,
      fp8(b72),
      awq(b72),
      b32,
      fp8(b32),
      awq(b32),
      b14,
      fp8(b14),
      awq(b14),
      b7,
      fp8(b7),
      awq(b7),
      qwen("Qwen2.5-3B", {.layers = 36,
                          .hidden = 2048,
                          .heads = 16,
                          .kv_heads = 2,
                          .ffn = 11008,
                          .tied_embeddings = true}),
      qwen("Qwen2.5-1.5B", {.layers = 28,
                            .hidden = 1536,
                            .heads = 12,
                            .kv_heads = 2,
                            .ffn = 8960,
                            .tied_embeddings = true}),
      qwen("Qwen2.5-0.5B", {.layers = 24,
                            .hidden = 896,
                            .heads = 14,
                            .kv_heads = 2,
                            .head_dim = 64,
                            .ffn = 4864,
                            .tied_embeddings = true}),
  };
}

/// What the Llama models from 3 on share.
ModelSpec llama(const std::string& repository, ModelSpec m) {
  m.kv_heads = 8;
  m.head_dim = m.head_dim > 0 ? m.head_dim : 128;
  m.vocab = 128256;
  m.max_context = 131072;
  return published("meta-llama/" + repository, m);
}

/// The model of before 3.1: the same architecture, a shorter context.
ModelSpec llama_3(ModelSpec m, const std::string& name) {
  m.name = name;
  m.aliases = {"Meta-" + name, "Meta-" + name + "-Instruct", name + "-Instruct"};
  m.max_context = 8192;
  return m;
}

std::vector<ModelSpec> llama_models() {
  const ModelSpec b8 = llama("Llama-3.1-8B-Instruct", {.name = "Llama-3.1-8B",
                                                       .aliases = {"Meta-Llama-3.1-8B-Instruct"},
                                                       .layers = 32,
                                                       .hidden = 4096,
                                                       .heads = 32,
                                                       .ffn = 14336});
  const ModelSpec b70 = llama("Llama-3.1-70B-Instruct", {.name = "Llama-3.1-70B",
                                                         .aliases = {"Meta-Llama-3.1-70B-Instruct"},
                                                         .layers = 80,
                                                         .hidden = 8192,
                                                         .heads = 64,
                                                         .ffn = 28672});
  ModelSpec newer = b70;  // The same architecture.
  newer.name = "Llama-3.3-70B";
  newer.aliases = {"Llama-3.3-70B-Instruct"};
  const ModelSpec b405 =
      llama("Llama-3.1-405B-Instruct", {.name = "Llama-3.1-405B",
                                        .aliases = {"Meta-Llama-3.1-405B-Instruct"},
                                        .layers = 126,
                                        .hidden = 16384,
                                        .heads = 128,
                                        .ffn = 53248});
  return {b8,
          fp8(b8),
          awq(b8),
          nvfp4(b8),
          b70,
          fp8(b70),
          awq(b70),
          nvfp4(b70),
          newer,
          fp8(newer),
          awq(newer),
          nvfp4(newer),
          b405,
          fp8(b405),
          nvfp4(b405),
          llama_3(b8, "Llama-3-8B"),
          llama_3(b70, "Llama-3-70B"),
          llama("Llama-3.2-3B-Instruct", {.name = "Llama-3.2-3B",
                                          .layers = 28,
                                          .hidden = 3072,
                                          .heads = 24,
                                          .ffn = 8192,
                                          .tied_embeddings = true}),
          llama("Llama-3.2-1B-Instruct", {.name = "Llama-3.2-1B",
                                          .layers = 16,
                                          .hidden = 2048,
                                          .heads = 32,
                                          .head_dim = 64,
                                          .ffn = 8192,
                                          .tied_embeddings = true})};
}

std::vector<ModelSpec> llama_2_models() {
  return {published("meta-llama/Llama-2-7b-chat-hf", {.name = "Llama-2-7B",
                                                      .aliases = {"Llama-2-7b-hf"},
                                                      .layers = 32,
                                                      .hidden = 4096,
                                                      .heads = 32,
                                                      .kv_heads = 32,
                                                      .head_dim = 128,
                                                      .ffn = 11008,
                                                      .vocab = 32000,
                                                      .max_context = 4096}),
          published("meta-llama/Llama-2-70b-chat-hf", {.name = "Llama-2-70B",
                                                       .aliases = {"Llama-2-70b-hf"},
                                                       .layers = 80,
                                                       .hidden = 8192,
                                                       .heads = 64,
                                                       .kv_heads = 8,
                                                       .head_dim = 128,
                                                       .ffn = 28672,
                                                       .vocab = 32000,
                                                       .max_context = 4096})};
}

/// What the Mistral models share.
ModelSpec mistral(const std::string& repository, ModelSpec m) {
  m.kv_heads = 8;
  m.head_dim = 128;
  return published("mistralai/" + repository, m);
}

std::vector<ModelSpec> mistral_models() {
  const ModelSpec small = mistral("Mistral-Small-3.2-24B-Instruct-2506",
                                  {.name = "Mistral-Small-24B",
                                   .aliases = {"Mistral-Small-3.1-24B-Instruct-2503"},
                                   .layers = 40,
                                   .hidden = 5120,
                                   .heads = 32,
                                   .ffn = 32768,
                                   .vocab = 131072,
                                   .max_context = 131072});
  return {mistral("Mistral-7B-Instruct-v0.3", {.name = "Mistral-7B",
                                               .aliases = {"Mistral-7B-v0.3"},
                                               .layers = 32,
                                               .hidden = 4096,
                                               .heads = 32,
                                               .ffn = 14336,
                                               .vocab = 32768,
                                               .max_context = 32768}),
          small, fp8(small),
          mistral("Mistral-Large-Instruct-2411", {.name = "Mistral-Large-123B",
                                                  .aliases = {"Mistral-Large-Instruct-2407"},
                                                  .layers = 88,
                                                  .hidden = 12288,
                                                  .heads = 96,
                                                  .ffn = 28672,
                                                  .vocab = 32768,
                                                  .max_context = 131072})};
}

std::vector<ModelSpec> other_models() {
  return {published("microsoft/phi-4", {.name = "Phi-4",
                                        .layers = 40,
                                        .hidden = 5120,
                                        .heads = 40,
                                        .kv_heads = 10,
                                        .head_dim = 128,
                                        .ffn = 17920,
                                        .vocab = 100352,
                                        .max_context = 16384}),
          published("google/gemma-3-27b-it", {.name = "Gemma-3-27B",
                                              .layers = 62,
                                              .hidden = 5376,
                                              .heads = 32,
                                              .kv_heads = 16,
                                              .head_dim = 128,
                                              .ffn = 21504,
                                              .vocab = 262208,
                                              .max_context = 131072,
                                              .tied_embeddings = true,
                                              .sliding_window = 1024,
                                              .sliding_layers = 52}),
          published("google/gemma-3-12b-it", {.name = "Gemma-3-12B",
                                              .layers = 48,
                                              .hidden = 3840,
                                              .heads = 16,
                                              .kv_heads = 8,
                                              .head_dim = 256,
                                              .ffn = 15360,
                                              .vocab = 262208,
                                              .max_context = 131072,
                                              .tied_embeddings = true,
                                              .sliding_window = 1024,
                                              .sliding_layers = 40})};
}

}  // namespace

std::vector<ModelSpec> dense_models() {
  std::vector<ModelSpec> all;
  for (const auto& family : {qwen3_models(), qwen2_5_models(), llama_models(), llama_2_models(),
                             mistral_models(), other_models()})
    all.insert(all.end(), family.begin(), family.end());
  return all;
}

std::vector<ModelSpec> builtin_models() {
  std::vector<ModelSpec> all = dense_models();
  for (ModelSpec& m : expert_models()) all.push_back(std::move(m));
  return all;
}

}  // namespace routesim::models
