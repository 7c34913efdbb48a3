#include "models/hf_config.h"

#include <gtest/gtest.h>

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

#include "models/catalogue.h"
#include "models/kv_cache_spec.h"
#include "tools/ingest/servers/catalogue_file.h"

namespace routesim::models {
namespace {

HfConfig qwen3_32b() {
  HfConfig c;
  c.numbers = {{"hidden_size", 5120},       {"num_hidden_layers", 64},
               {"num_attention_heads", 64}, {"num_key_value_heads", 8},
               {"head_dim", 128},           {"intermediate_size", 25600},
               {"vocab_size", 151936},      {"tie_word_embeddings", 0},
               {"use_sliding_window", 0},   {"max_position_embeddings", 40960}};
  c.strings = {{"model_type", "qwen3"}, {"torch_dtype", "bfloat16"}};
  return c;
}

HfConfig deepseek_r1() {
  HfConfig c;
  c.numbers = {{"hidden_size", 7168},
               {"num_hidden_layers", 61},
               {"num_attention_heads", 128},
               {"num_key_value_heads", 128},
               {"intermediate_size", 18432},
               {"vocab_size", 129280},
               {"kv_lora_rank", 512},
               {"q_lora_rank", 1536},
               {"qk_rope_head_dim", 64},
               {"qk_nope_head_dim", 128},
               {"v_head_dim", 128},
               {"n_routed_experts", 256},
               {"num_experts_per_tok", 8},
               {"n_shared_experts", 1},
               {"moe_intermediate_size", 2048},
               {"first_k_dense_replace", 3},
               {"max_position_embeddings", 163840},
               {"tie_word_embeddings", 0}};
  c.strings = {{"quantization_config.quant_method", "fp8"}};
  return c;
}

HfConfig gpt_oss_120b() {
  HfConfig c;
  c.numbers = {{"hidden_size", 2880},      {"num_hidden_layers", 36},  {"num_attention_heads", 64},
               {"num_key_value_heads", 8}, {"head_dim", 64},           {"intermediate_size", 2880},
               {"vocab_size", 201088},     {"num_local_experts", 128}, {"num_experts_per_tok", 4},
               {"sliding_window", 128},    {"tie_word_embeddings", 0}};
  c.strings = {{"quantization_config.quant_method", "mxfp4"}};
  for (int i = 0; i < 36; ++i)
    c.lists["layer_types"].push_back(i % 2 == 0 ? "sliding_attention" : "full_attention");
  return c;
}

void expect_same_physics(const HfConfig& config, const char* catalogue_name) {
  Diagnostics d;
  const auto m = model_from_hf_config("mine", config, d);
  ASSERT_TRUE(m) << to_string(d.items().front());
  const Catalogue c = tools::builtin_catalogue();
  const ModelSpec& reference = *c.find_model(catalogue_name);
  EXPECT_DOUBLE_EQ(total_parameters(*m), total_parameters(reference));
  EXPECT_DOUBLE_EQ(active_parameters(*m), active_parameters(reference));
  EXPECT_DOUBLE_EQ(weight_bytes(*m), weight_bytes(reference));
  EXPECT_EQ(kv_bytes_per_token_per_gpu(*m, KvDtype::kBf16, {}),
            kv_bytes_per_token_per_gpu(reference, KvDtype::kBf16, {}));
}

TEST(HfConfig, ReadsDenseMlaAndHybridMoeFamilies) {
  expect_same_physics(qwen3_32b(), "Qwen3-32B");
  expect_same_physics(deepseek_r1(), "DeepSeek-R1");
  expect_same_physics(gpt_oss_120b(), "gpt-oss-120b");
}

HfConfig llama_4(double experts, double step) {
  HfConfig c;
  for (const auto& [key, value] :
       std::initializer_list<std::pair<const char*, double>>{{"hidden_size", 5120},
                                                             {"num_hidden_layers", 48},
                                                             {"num_attention_heads", 40},
                                                             {"num_key_value_heads", 8},
                                                             {"head_dim", 128},
                                                             {"intermediate_size", 8192},
                                                             {"intermediate_size_mlp", 16384},
                                                             {"vocab_size", 202048},
                                                             {"num_local_experts", experts},
                                                             {"num_experts_per_tok", 1},
                                                             {"interleave_moe_layer_step", step},
                                                             {"attention_chunk_size", 8192},
                                                             {"max_position_embeddings", 1048576}})
    c.numbers["text_config." + std::string(key)] = value;
  c.strings = {{"model_type", "llama4"}, {"text_config.model_type", "llama4_text"}};
  return c;
}

TEST(HfConfig, Llama4SaysLessThanItHas) {
  expect_same_physics(llama_4(16, 1), "Llama-4-Scout");
  expect_same_physics(llama_4(128, 2), "Llama-4-Maverick");
}

TEST(HfConfig, EverySixthLayerOfGemma3SeesAll) {
  HfConfig c = qwen3_32b();
  c.numbers["num_hidden_layers"] = 62;
  c.numbers["use_sliding_window"] = 1;
  c.numbers["sliding_window"] = 1024;
  c.numbers["sliding_window_pattern"] = 6;
  Diagnostics d;
  const auto m = model_from_hf_config("gemma", c, d);
  ASSERT_TRUE(m);
  EXPECT_EQ(m->sliding_layers, 52);
}

TEST(HfConfig, GemmaLeavesTheDefaultsOfItsFamilyOut) {
  HfConfig third;
  third.strings = {{"model_type", "gemma3"}, {"text_config.model_type", "gemma3_text"}};
  third.numbers = {{"text_config.hidden_size", 2560},
                   {"text_config.intermediate_size", 10240},
                   {"text_config.num_hidden_layers", 34},
                   {"text_config.sliding_window", 1024},
                   {"vision_config.num_hidden_layers", 27}};
  Diagnostics d;
  auto m = model_from_hf_config("gemma-3-4b", third, d);
  ASSERT_TRUE(m) << to_string(d.items().front());
  EXPECT_EQ(m->heads, 8);
  EXPECT_EQ(m->kv_heads, 4);
  EXPECT_EQ(m->head_dim, 256);
  EXPECT_EQ(m->vocab, 262208);
  EXPECT_EQ(m->max_context, 131072);
  EXPECT_TRUE(m->tied_embeddings);
  EXPECT_EQ(m->sliding_window, 1024);
  EXPECT_EQ(m->sliding_layers, 34 - 5);
  HfConfig second = qwen3_32b();
  second.strings["model_type"] = "gemma2";
  second.numbers["num_hidden_layers"] = 42;
  second.numbers["sliding_window"] = 4096;
  second.numbers.erase("use_sliding_window");
  m = model_from_hf_config("gemma-2-9b", second, d);
  ASSERT_TRUE(m);
  EXPECT_EQ(m->sliding_layers, 21);
}

TEST(HfConfig, EightBitProductsAreTakenForFp8WithAWord) {
  HfConfig c = qwen3_32b();
  const std::string group = "quantization_config.config_groups.group_0.";
  c.strings["quantization_config.quant_method"] = "compressed-tensors";
  c.strings[group + "weights.type"] = "int";
  c.numbers[group + "weights.num_bits"] = 8;
  Diagnostics weights_only;
  EXPECT_FALSE(model_from_hf_config("w8a16", c, weights_only));
  c.numbers[group + "input_activations.num_bits"] = 8;
  Diagnostics d;
  const auto m = model_from_hf_config("w8a8", c, d);
  ASSERT_TRUE(m);
  EXPECT_EQ(m->weights, WeightDtype::kFp8);
  ASSERT_EQ(d.items().size(), 1U);
  EXPECT_NE(d.items()[0].message.find("int8 is taken for fp8"), std::string::npos);
}

TEST(HfConfig, LayersThatAreNotSimulatedAreRefused) {
  const auto said = [](const std::function<void(HfConfig&)>& change) {
    HfConfig c = qwen3_32b();
    change(c);
    Diagnostics d;
    EXPECT_FALSE(model_from_hf_config("other", c, d));
    return d.items().size() == 1 ? to_string(d.items().front()) : "not one error";
  };
  EXPECT_NE(said([](HfConfig& c) {
              c.numbers["text_config.linear_num_key_heads"] = 16;
            }).find("linear attention"),
            std::string::npos);
  EXPECT_NE(said([](HfConfig& c) { c.numbers["mamba_d_state"] = 128; }).find("state-space"),
            std::string::npos);
  EXPECT_NE(said([](HfConfig& c) { c.numbers["index_topk"] = 2048; }).find("sparse attention"),
            std::string::npos);
  EXPECT_NE(said([](HfConfig& c) { c.numbers["decoder_sparse_step"] = 2; }).find("every layer"),
            std::string::npos);
  EXPECT_NE(said([](HfConfig& c) {
              c.lists["layer_types"] = {"full_attention", "recurrent"};
            }).find("(got \"recurrent\")"),
            std::string::npos);
}

// Keys of MiniMax-M3, MiMo-V2-Flash, Gemma 4, Gemma 3n, DeepSeek V4 and pruned models.
TEST(HfConfig, LayersWithOtherKeysAndValuesAreRefused) {
  const auto said = [](const std::string& key, bool is_list) {
    HfConfig c = qwen3_32b();
    if (is_list)
      c.lists[key] = {"1", "2"};
    else
      c.numbers[key] = 1;
    Diagnostics d;
    EXPECT_FALSE(model_from_hf_config("other", c, d)) << key;
    return d.items().empty() ? std::string() : d.items().front().message;
  };
  EXPECT_NE(said("sparse_attention_config.use_sparse_attention", false).find("sparse attention"),
            std::string::npos);
  for (const char* key : {"swa_num_key_value_heads", "global_head_dim",
                          "num_global_key_value_heads", "num_kv_shared_layers"})
    EXPECT_NE(said(key, false).find("which is not simulated"), std::string::npos) << key;
  for (const char* key : {"compress_ratios", "hybrid_layer_pattern", "block_configs"})
    EXPECT_NE(said(key, true).find("which is not simulated"), std::string::npos) << key;
}

TEST(HfConfig, UnknownKeysAboutAttentionAreAWarning) {
  HfConfig c = qwen3_32b();
  c.numbers["attention_bias"] = 1;  // Changes no bytes.
  c.numbers["text_config.attn_novelty"] = 3;
  c.numbers["kv_novelty"] = 0;  // Is off.
  c.numbers["vision_config.attn_novelty"] = 2;
  Diagnostics d;
  EXPECT_TRUE(model_from_hf_config("new", c, d));
  ASSERT_EQ(d.items().size(), 1U);
  EXPECT_EQ(d.items()[0].path, "attn_novelty");
  EXPECT_EQ(d.items()[0].severity, Severity::kWarning);
}

TEST(HfConfig, ExpertsPerTokenHaveManyNames) {
  for (const char* key : {"num_experts_per_tok", "num_experts_per_token", "top_k_experts"}) {
    HfConfig c = qwen3_32b();
    c.numbers["num_experts"] = 16;
    c.numbers["moe_intermediate_size"] = 64;
    c.numbers[key] = 4;
    Diagnostics d;
    const auto m = model_from_hf_config("experts", c, d);
    ASSERT_TRUE(m) << key;
    EXPECT_EQ(m->experts_per_token, 4) << key;
  }
}

TEST(HfConfig, HeadDimDefaultsToHiddenOverHeadsAndTextConfigIsFound) {
  HfConfig c;
  for (const auto& [key, value] : qwen3_32b().numbers)
    if (key != "head_dim") c.numbers["text_config." + key] = value;
  Diagnostics d;
  const auto m = model_from_hf_config("vision", c, d);
  ASSERT_TRUE(m);
  EXPECT_EQ(m->head_dim, 80);
}

TEST(HfConfig, EveryMissingKeyIsNamed) {
  HfConfig c;
  c.numbers = {{"hidden_size", 512}, {"vocab_size", 1.5}};
  Diagnostics d;
  EXPECT_FALSE(model_from_hf_config("broken", c, d));
  std::string paths;
  for (const Diagnostic& item : d.items()) paths += item.path + " ";
  EXPECT_EQ(paths, "num_hidden_layers vocab_size num_attention_heads ");
}

TEST(HfConfig, FourBitIntegers) {
  const auto weights = [](const HfConfig& c) {
    Diagnostics d;
    const auto m = model_from_hf_config("quantised", c, d);
    return m ? std::optional(m->weights) : std::nullopt;
  };
  HfConfig c = qwen3_32b();
  c.strings["quantization_config.quant_method"] = "awq";
  EXPECT_EQ(weights(c), WeightDtype::kInt4);
  c.strings["quantization_config.quant_method"] = "gptq";
  c.numbers["quantization_config.bits"] = 4;
  EXPECT_EQ(weights(c), WeightDtype::kInt4);
  c.numbers["quantization_config.bits"] = 8;
  EXPECT_EQ(weights(c), std::nullopt);
  c = qwen3_32b();
  c.strings["quantization_config.quant_method"] = "compressed-tensors";
  c.numbers["quantization_config.config_groups.group_0.weights.num_bits"] = 4;
  c.strings["quantization_config.config_groups.group_0.weights.type"] = "int";
  EXPECT_EQ(weights(c), WeightDtype::kInt4);
}

TEST(HfConfig, FourBitFloats) {
  const auto read = [](const HfConfig& c) {
    Diagnostics d;
    return model_from_hf_config("quantised", c, d);
  };
  HfConfig c = qwen3_32b();
  c.strings["quantization_config.quant_method"] = "modelopt";
  c.strings["quantization_config.quant_algo"] = "NVFP4";
  ASSERT_TRUE(read(c));
  EXPECT_EQ(read(c)->weights, WeightDtype::kNvfp4);
  EXPECT_FALSE(read(c)->bf16_attention);
  c = qwen3_32b();
  c.strings["quantization_config.quant_method"] = "compressed-tensors";
  const std::string weights = "quantization_config.config_groups.group_0.weights.";
  c.numbers[weights + "num_bits"] = 4;
  c.numbers[weights + "group_size"] = 16;
  c.strings[weights + "type"] = "float";
  c.lists["quantization_config.ignore"] = {"lm_head", "re:.*self_attn.*"};
  ASSERT_TRUE(read(c));
  EXPECT_EQ(read(c)->weights, WeightDtype::kNvfp4);
  EXPECT_TRUE(read(c)->bf16_attention);
  c.lists["quantization_config.ignore"] = {"lm_head", "model.layers.0.self_attn.q_proj",
                                           "model.layers.0.self_attn.k_proj"};
  EXPECT_FALSE(read(c)->bf16_attention) << "one layer of 64";
  for (int layer = 1; layer < 40; ++layer)
    c.lists["quantization_config.ignore"].push_back("model.layers." + std::to_string(layer) +
                                                    ".self_attn*");
  EXPECT_TRUE(read(c)->bf16_attention) << "40 layers of 64";
  c.numbers[weights + "group_size"] = 32;
  EXPECT_FALSE(read(c)) << "another format";
}

TEST(HfConfig, TheTowerThatReadsPicturesDoesNotCount) {
  HfConfig c = qwen3_32b();
  c.strings["quantization_config.quant_method"] = "fp8";
  for (int layer = 0; layer < 64; ++layer)
    c.lists["quantization_config.ignore"].push_back("vision_model.model.layers." +
                                                    std::to_string(layer) + ".self_attn.q_proj");
  Diagnostics d;
  const auto m = model_from_hf_config("seeing", c, d);
  ASSERT_TRUE(m);
  EXPECT_FALSE(m->bf16_attention);
}

TEST(HfConfig, UnknownWeightFormatIsAnError) {
  HfConfig c = qwen3_32b();
  c.strings["quantization_config.quant_method"] = "bitsandbytes";
  Diagnostics d;
  EXPECT_FALSE(model_from_hf_config("nf4", c, d));
  EXPECT_NE(d.items().at(0).message.find("\"bitsandbytes\""), std::string::npos);
}

}  // namespace
}  // namespace routesim::models
