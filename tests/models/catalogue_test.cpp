// The catalogue of models and accelerators.
#include "models/catalogue.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <tuple>

#include "models/kernels/make_latency_model.h"
#include "tools/ingest/servers/catalogue_file.h"

namespace routesim::models {
namespace {

TEST(Catalogue, FindsByNameAliasAndHuggingFacePath) {
  const Catalogue c = tools::builtin_catalogue();
  for (const char* name : {"H100-SXM", "H100", "H100 SXM", "h100_sxm", "NVIDIA H100 80GB HBM3"}) {
    ASSERT_NE(c.find_accelerator(name), nullptr) << name;
    EXPECT_EQ(c.find_accelerator(name)->name, "H100-SXM");
  }
  EXPECT_EQ(c.find_model("Qwen/Qwen3-32B")->name, "Qwen3-32B");
  EXPECT_EQ(c.find_model("meta-llama/Llama-3.1-8B-Instruct")->name, "Llama-3.1-8B");
  EXPECT_EQ(c.find_model("neuralmagic/Meta-Llama-3.1-70B-Instruct-FP8")->name, "Llama-3.1-70B-FP8");
  EXPECT_EQ(c.find_model("deepseek-ai/DeepSeek-R1")->name, "DeepSeek-R1");
  for (const char* other : {"H10", "H100 SXM 5X", "", "/", "H100-SXM/"})
    EXPECT_EQ(c.find_accelerator(other), nullptr) << other;
}

TEST(Catalogue, SuggestsTheNearestName) {
  const Catalogue c = tools::builtin_catalogue();
  EXPECT_EQ(c.suggest_accelerator("H10O"), "H100-SXM");
  EXPECT_EQ(c.suggest_accelerator("MI-300"), "MI300X");
  EXPECT_EQ(c.suggest_model("Qwen/Qwen3-23B"), "Qwen3-32B");
  EXPECT_EQ(c.suggest_model("completely else"), "");
}

TEST(Catalogue, SuggestsNoOtherGeneration) {
  const Catalogue c = tools::builtin_catalogue();
  for (const char* other : {"deepseek-ai/DeepSeek-V5", "Kimi-K4", "Qwen4.5-4B", "GLM-6",
                            "Qwen/Qwen3-Next-80B-A3B-Instruct"})
    EXPECT_EQ(c.suggest_model(other), "") << other;
  EXPECT_EQ(c.suggest_model("Quen3-32B"), "Qwen3-32B");
  EXPECT_EQ(c.suggest_model("Qwen3-33B"), "Qwen3-32B") << "another size of the family";
  EXPECT_EQ(c.suggest_accelerator("H1000"), "");
}

TEST(Catalogue, NamesWhatIsNotSimulated) {
  EXPECT_EQ(unsimulated_part("MiniMaxAI/MiniMax-M1-80k"), "lightning attention");
  EXPECT_EQ(unsimulated_part("google/gemma-3n-E4B-it"), "layers that share their keys");
  EXPECT_EQ(unsimulated_part("ibm-granite/granite-4.0-h-small"),
            "state-space layers of another kind");
  for (const char* dense :
       {"Qwen3-32B", "nemotron-3-8b-base-4k", "DeepSeek-V3.2", "gemma-3-27b-it", "Kimi-K3"})
    EXPECT_EQ(unsimulated_part(dense), "") << dense;
}

TEST(Catalogue, AFineTuneIsTheEntryThatItsPathHolds) {
  const Catalogue c = tools::builtin_catalogue();
  const auto base = [&c](const std::string& path) {
    const ModelSpec* const found = c.find_model(path);
    return found != nullptr && c.is_fine_tune(path) ? found->name : std::string();
  };
  EXPECT_EQ(base("NousResearch/Hermes-3-Llama-3.1-8B"), "Llama-3.1-8B");
  EXPECT_EQ(base("someone/Qwen3-8B-my-tune-v2"), "Qwen3-8B");
  EXPECT_EQ(base("RedHatAI/Llama-3.1-8B-Instruct-FP8-KV"), "Llama-3.1-8B-FP8")
      << "the longest name, with its format";
  EXPECT_EQ(base("Qwen/Qwen3-8B"), "") << "an entry is no fine-tune";
  EXPECT_EQ(base("Hermes-3-Llama-3.1-8B"), "") << "a name without a path may be misspelled";
  for (const char* other :
       {"deepseek-ai/DeepSeek-R1-Distill-Llama-8B", "x/Qwen3-8B-W8A8", "x/Qwen3-8B-quantized.w8a8",
        "x/Qwen3-8B-INT8", "x/Qwen3-8B-W4A16-G128", "x/Qwen3-8B-4bit", "x/Qwen3-8B-eagle3",
        "x/Qwen2.5-VL-7B-Instruct", "x/Llama-3.1-8B-pruned-to-4B", "x/Phi-4-mini"})
    EXPECT_EQ(c.find_model(other), nullptr) << other;
}

TEST(Catalogue, EveryEntryIsSoundSourcedAndUnambiguous) {
  const Catalogue c = tools::builtin_catalogue();
  Diagnostics d;
  for (const AcceleratorSpec& a : c.accelerators()) {
    EXPECT_TRUE(check_accelerator(a, d)) << a.name;
    EXPECT_FALSE(a.source.empty()) << a.name;
    EXPECT_EQ(c.find_accelerator(a.name)->name, a.name);
    for (const std::string& alias : a.aliases) EXPECT_EQ(c.find_accelerator(alias)->name, a.name);
  }
  for (const ModelSpec& m : c.models()) {
    EXPECT_TRUE(check_model(m, d)) << m.name;
    EXPECT_FALSE(m.source.empty()) << m.name;
    EXPECT_EQ(c.find_model(m.name)->name, m.name);
    for (const std::string& alias : m.aliases) EXPECT_EQ(c.find_model(alias)->name, m.name);
  }
  for (const FittedCurve& f : c.curves()) {
    EXPECT_NE(c.find_accelerator(f.accelerator), nullptr);
    ASSERT_NE(c.find_model(f.model), nullptr) << f.model;
    EXPECT_TRUE(check_parallelism(*c.find_model(f.model), f.parallelism, d));
    EXPECT_FALSE(f.provenance.empty());
  }
}

// A wrong dimension shows in the sum: what the makers say their models weigh, in billions of
// parameters, all and per token (with the output projection, without the input embedding).
TEST(Catalogue, ParametersAddUpToWhatTheMakersState) {
  struct Size {
    const char* name;
    double total, active;
  };
  const Catalogue c = tools::builtin_catalogue();
  for (const Size& size : std::initializer_list<Size>{{"Qwen3-32B", 32.8, 0},
                                                      {"Qwen3-14B", 14.8, 0},
                                                      {"Qwen3-8B", 8.2, 0},
                                                      {"Qwen3-4B", 4.0, 0},
                                                      {"Qwen3-1.7B", 1.7, 0},
                                                      {"Qwen3-0.6B", 0.6, 0},
                                                      {"Qwen2.5-72B", 72.7, 0},
                                                      {"Qwen2.5-32B", 32.5, 0},
                                                      {"Qwen2.5-14B", 14.7, 0},
                                                      {"Qwen2.5-7B", 7.61, 0},
                                                      {"Qwen2.5-3B", 3.09, 0},
                                                      {"Qwen2.5-1.5B", 1.54, 0},
                                                      {"Qwen2.5-0.5B", 0.49, 0},
                                                      {"Llama-3.1-405B", 405.9, 0},
                                                      {"Llama-3.1-70B", 70.6, 0},
                                                      {"Llama-3.1-8B", 8.03, 0},
                                                      {"Llama-3.2-3B", 3.21, 0},
                                                      {"Llama-3.2-1B", 1.24, 0},
                                                      {"Llama-2-7B", 6.74, 0},
                                                      {"Llama-2-70B", 69.0, 0},
                                                      {"Mistral-7B", 7.25, 0},
                                                      {"Mistral-Small-24B", 23.6, 0},
                                                      {"Mistral-Large-123B", 122.6, 0},
                                                      {"Phi-4", 14.7, 0},
                                                      {"Gemma-3-27B", 27.0, 0},
                                                      {"Gemma-3-12B", 11.8, 0},
                                                      {"DeepSeek-R1", 671, 37},
                                                      {"DeepSeek-V2-Lite", 15.7, 2.4},
                                                      {"Kimi-K2", 1026, 32},
                                                      {"Qwen3-30B-A3B", 30.5, 3.3},
                                                      {"Qwen3-235B-A22B", 235, 22},
                                                      {"Qwen3-Coder-480B-A35B", 480, 35},
                                                      {"gpt-oss-120b", 117, 5.1},
                                                      {"gpt-oss-20b", 20.9, 3.6},
                                                      {"GLM-4.5", 355, 32},
                                                      {"GLM-4.5-Air", 106, 12},
                                                      {"Mixtral-8x7B", 46.7, 12.9},
                                                      {"Mixtral-8x22B", 140.6, 39.1},
                                                      {"Llama-4-Scout", 109, 17},
                                                      {"Llama-4-Maverick", 402, 17},
                                                      {"MiniMax-M2", 229, 10}}) {
    ASSERT_NE(c.find_model(size.name), nullptr) << size.name;
    const ModelSpec& m = *c.find_model(size.name);
    EXPECT_NEAR(total_parameters(m) / 1e9 / size.total, 1, 0.025) << size.name;
    if (size.active == 0) {
      EXPECT_EQ(m.experts, 0) << size.name;
    } else {
      EXPECT_NEAR(active_parameters(m) / 1e9 / size.active, 1, 0.1) << size.name;
    }
  }
}

TEST(Catalogue, QuantisedModelsAnswerToThePublishedNames) {
  const Catalogue c = tools::builtin_catalogue();
  for (const auto& [path, name, weights] :
       std::initializer_list<std::tuple<const char*, const char*, WeightDtype>>{
           {"Qwen/Qwen3-32B-FP8", "Qwen3-32B-FP8", WeightDtype::kFp8},
           {"RedHatAI/Qwen3-8B-FP8-dynamic", "Qwen3-8B-FP8", WeightDtype::kFp8},
           {"RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", "Llama-3.3-70B-FP8", WeightDtype::kFp8},
           {"Qwen/Qwen2.5-7B-Instruct-AWQ", "Qwen2.5-7B-AWQ", WeightDtype::kInt4},
           {"Qwen/Qwen2.5-14B-Instruct-GPTQ-Int4", "Qwen2.5-14B-AWQ", WeightDtype::kInt4},
           {"hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4", "Llama-3.1-70B-AWQ",
            WeightDtype::kInt4},
           {"nvidia/Qwen3-32B-FP4", "Qwen3-32B-NVFP4", WeightDtype::kNvfp4},
           {"RedHatAI/Llama-3.1-8B-Instruct-NVFP4", "Llama-3.1-8B-NVFP4", WeightDtype::kNvfp4},
           {"nvidia/DeepSeek-R1-0528-NVFP4", "DeepSeek-R1-NVFP4", WeightDtype::kNvfp4},
           {"Qwen/Qwen3-235B-A22B-Instruct-2507-FP8", "Qwen3-235B-A22B-FP8", WeightDtype::kFp8}}) {
    ASSERT_NE(c.find_model(path), nullptr) << path;
    EXPECT_EQ(c.find_model(path)->name, name);
    EXPECT_EQ(c.find_model(path)->weights, weights);
  }
  // 32.8 B parameters, 1.6 B of them bf16 vocabulary: Qwen3-32B-AWQ's files hold 19.3 GB.
  EXPECT_NEAR(weight_bytes(*c.find_model("Qwen/Qwen3-32B-AWQ")) / 1e9, 19.3, 0.2);
}

TEST(Catalogue, UserEntriesWinAndExtend) {
  Catalogue c = tools::builtin_catalogue();
  AcceleratorSpec mine = *c.find_accelerator("H100");
  mine.memory_bytes = 94e9;
  c.add(mine);
  EXPECT_EQ(c.find_accelerator("H100")->memory_bytes, 94e9);
  ModelSpec small = *c.find_model("Qwen3-0.6B");
  small.name = "My-Model";
  c.add(small);
  EXPECT_NE(c.find_model("my model"), nullptr);
}

TEST(Catalogue, CurveByPresetThenAnyThenRoofline) {
  const Catalogue c = tools::builtin_catalogue();
  const Parallelism tp2{.tp = 2};
  ASSERT_NE(c.find_cost_curve("H100", "Qwen/Qwen3-32B", tp2, "2025-H2"), nullptr);
  EXPECT_NEAR(c.find_cost_curve("H100", "Qwen/Qwen3-32B", tp2, "2025-H2")->parameters.step_ms,
              14.30, 0.01);
  EXPECT_EQ(c.find_cost_curve("H100", "Qwen/Qwen3-32B", tp2, "2026-H1")->preset, "2026-H1");
  EXPECT_NE(c.find_cost_curve("H100", "Qwen3-32B", {.tp = 4}, "2026-H2"), nullptr);
  EXPECT_EQ(c.find_cost_curve("H100", "Qwen3-32B", {.tp = 4}, "2026-H2", false), nullptr);
  EXPECT_EQ(c.find_cost_curve("H100", "Qwen3-32B", {.tp = 1}, "2026-H1"), nullptr);
  // A curve of bf16 KV says nothing of fp8 KV: the roofline knows that it is half as long.
  EXPECT_NE(c.find_cost_curve("L4", "Llama-3.1-8B-FP8", {}, "", true, KvDtype::kBf16), nullptr);
  EXPECT_EQ(c.find_cost_curve("L4", "Llama-3.1-8B-FP8", {}, "", true, KvDtype::kFp8), nullptr);
  const auto fp8 =
      make_latency_model(c, *c.find_accelerator("L4"), *c.find_model("Llama-3.1-8B-FP8"), {},
                         "2026-H1", {.kv_dtype = KvDtype::kFp8});
  EXPECT_EQ(fp8->provenance().rfind("roofline", 0), 0u) << fp8->provenance();
  EXPECT_EQ(c.find_cost_curve("H100", "Llama-3.1-70B", {}, ""), nullptr)
      << "the fp8 curve must not answer for bf16 weights";
}

TEST(Catalogue, ModelSaysWhereItComesFrom) {
  const Catalogue c = tools::builtin_catalogue();
  const auto fitted = make_latency_model(c, *c.find_accelerator("H100"), *c.find_model("Qwen3-32B"),
                                         {.tp = 4}, "2026-H1");
  EXPECT_NE(fitted->provenance().find("NNLS fit"), std::string::npos);
  EXPECT_NE(fitted->provenance().find("another engine preset"), std::string::npos);
  // The H100's kernels were measured, the MI300X's efficiencies, and nothing of the H100-PCIe.
  for (const auto& [accelerator, trust] :
       {std::pair{"H100", Trust::kKernels}, std::pair{"MI300X", Trust::kRoofline},
        std::pair{"H100-PCIe", Trust::kDataSheet}}) {
    const auto guessed = make_latency_model(c, *c.find_accelerator(accelerator),
                                            *c.find_model("Qwen3-0.6B"), {}, "2026-H1");
    EXPECT_EQ(guessed->trust({.decode_requests = 1, .decode_context = 10}), trust) << accelerator;
  }
  EXPECT_EQ(fitted->trust({.decode_requests = 1, .decode_context = 10}), Trust::kFitted);
  EXPECT_EQ(fitted->trust({.decode_requests = 129, .decode_context = 10}), Trust::kExtrapolated);
}

// The built-in accelerators by value: peaks and bandwidths from the makers' data sheets, and the
// efficiencies that models/README.md derives from operator measurements.

// Dense TFLOP/s without sparsity, TB/s of memory, GB/s of the link in one direction.
TEST(Accelerators, PeaksOfTheDataSheets) {
  struct Sheet {
    const char* name;
    double bf16, fp8, fp4, memory, link;
  };
  const Sheet sheets[] = {{"H100-SXM", 989, 1979, 0, 3.35, 450},
                          {"H200", 989, 1979, 0, 4.8, 450},
                          {"A100-80", 312, 0, 0, 2.039, 300},
                          {"A10G", 70, 0, 0, 0.600, 32},
                          {"L4", 121, 242, 0, 0.300, 32},
                          {"L40S", 362, 733, 0, 0.864, 32},
                          {"B200", 2250, 4500, 9000, 7.7, 900},
                          {"MI300X", 1307, 2615, 0, 5.3, 448},
                          {"H100-PCIe", 756, 1513, 0, 2.0, 64},
                          {"H100-NVL", 835, 1671, 0, 3.9, 300},
                          {"H20", 148, 296, 0, 4.0, 450},
                          {"GH200", 989, 1979, 0, 4.0, 450},
                          {"A100-40", 312, 0, 0, 1.555, 300},
                          {"A100-PCIe", 312, 0, 0, 1.935, 32},
                          {"GB200", 2500, 5000, 10'000, 8.0, 900},
                          {"B300", 2250, 4500, 13'500, 8.0, 900},
                          {"MI325X", 1307, 2615, 0, 6.0, 448},
                          {"MI350X", 2300, 4600, 0, 8.0, 538},
                          {"MI355X", 2500, 5000, 0, 8.0, 538},
                          {"L40", 181, 362, 0, 0.864, 32},
                          {"A10", 125, 0, 0, 0.6, 32},
                          {"A40", 149.7, 0, 0, 0.696, 32},
                          {"RTX-A6000", 154.8, 0, 0, 0.768, 32},
                          {"RTX-6000-Ada", 364, 728, 0, 0.96, 32},
                          {"RTX-PRO-6000", 500, 1000, 2000, 1.6, 64},
                          {"RTX-3090", 71, 0, 0, 0.936, 32},
                          {"RTX-4090", 165, 330, 0, 1.008, 32},
                          {"RTX-5090", 209, 419, 1676, 1.792, 64},
                          {"T4", 65, 0, 0, 0.32, 16},
                          {"V100-32", 112, 0, 0, 0.9, 16}};
  const Catalogue c = tools::builtin_catalogue();
  for (const Sheet& sheet : sheets) {
    const AcceleratorSpec* a = c.find_accelerator(sheet.name);
    ASSERT_NE(a, nullptr) << sheet.name;
    EXPECT_EQ(a->name, sheet.name);
    EXPECT_EQ(a->bf16_tflops, sheet.bf16) << sheet.name;
    EXPECT_EQ(a->fp8_tflops, sheet.fp8) << sheet.name;
    EXPECT_EQ(a->fp4_tflops, sheet.fp4) << sheet.name;
    EXPECT_EQ(a->memory_tb_per_s, sheet.memory) << sheet.name;
    EXPECT_EQ(a->link_gb_per_s, sheet.link) << sheet.name;
  }
  EXPECT_EQ(std::size(sheets), c.accelerators().size()) << "a new accelerator needs a row";
}

// Shares of the peaks that kernels were measured to reach.
TEST(Accelerators, EfficienciesOfTheMeasuredOnes) {
  struct Reached {
    const char* name;
    double bf16, fp8, attention, weights, mxfp4, kv, kv_fp8, shared, widening = 0;
  };
  const Catalogue c = tools::builtin_catalogue();
  for (const Reached& r : {Reached{"H100-SXM", 0.75, 0.50, 0.65, 0.88, 0.75, 0.85, 0.43, 0.53, 3.8},
                           {"H200", 0.72, 0.50, 0.65, 0.89, 0.65, 0.85, 0.43, 0.74, 3.8},
                           {"A100-80", 0.82, 0.5, 0.6, 0.68, 0.45, 0.85, 0.85, 0.7},
                           {"B200", 0.67, 0.31, 0.6, 0.72, 0.88, 0.85, 0.85, 0.74},
                           {"MI300X", 0.42, 0.42, 0.6, 0.7, 0.45, 0.85, 0.85, 0.5},
                           {"L4", 0.6, 0.5, 0.6, 0.8, 0.45, 0.85, 0.85, 0.7}}) {
    const AcceleratorSpec& a = *c.find_accelerator(r.name);
    EXPECT_EQ(a.prefill_mfu, r.bf16) << r.name;
    EXPECT_EQ(a.prefill_mfu_fp8, r.fp8) << r.name;
    EXPECT_EQ(a.prefill_mfu_fp4, 0.34) << r.name;
    EXPECT_EQ(a.attention_mfu, r.attention) << r.name;
    EXPECT_EQ(a.weight_mbu, r.weights) << r.name;
    EXPECT_EQ(a.mxfp4_mbu, r.mxfp4) << r.name;
    EXPECT_EQ(a.widening_tb_per_s, r.widening) << r.name;
    EXPECT_EQ(a.fp8_expert_mbu, 0.65) << r.name;
    EXPECT_EQ(a.kv_mbu, r.kv) << r.name;
    EXPECT_EQ(a.kv_mbu_fp8, r.kv_fp8) << r.name;
    EXPECT_EQ(a.shared_context_weight, r.shared) << r.name;
  }
}

// FlashAttention 2 runs where 3 and 4 do not; cards without peer access meet in the host's memory.
TEST(Accelerators, GenerationsDecideAttentionAndCollectives) {
  const Catalogue c = tools::builtin_catalogue();
  const auto rows = [&](const char* name) { return c.find_accelerator(name)->mixed_decode_rows; };
  const auto staged = [&](const char* name) {
    return c.find_accelerator(name)->collective_efficiency == 0.33;
  };
  for (const char* name : {"A10G", "L4", "L40S", "L40", "A10", "A40", "RTX-A6000", "RTX-6000-Ada",
                           "RTX-PRO-6000", "RTX-3090", "RTX-4090", "RTX-5090"}) {
    EXPECT_EQ(rows(name), 64) << name;
    EXPECT_TRUE(staged(name)) << name;
  }
  for (const char* name : {"A100-80", "A100-40", "A100-PCIe"}) {
    EXPECT_EQ(rows(name), 64) << name;
    EXPECT_FALSE(staged(name)) << name;
  }
  for (const char* name : {"H100-SXM", "H100-PCIe", "H200", "B200", "GB200", "MI300X"}) {
    EXPECT_EQ(rows(name), 0) << name;
    EXPECT_FALSE(staged(name)) << name;
  }
  for (const char* name : {"T4", "V100-32"}) EXPECT_EQ(rows(name), 0) << name;
}

// Fixed times that models/README.md states, us (a product, a layer, a layer of experts, a product
// with block scales, an fp8 product, a layer with a prompt) and ms (GPU and host of a step).
TEST(Accelerators, FixedTimesOfTheMeasuredOnes) {
  struct Times {
    const char* name;
    double kernel, layer, experts, scaled, fp8, chunk, gpu_step, host_step;
  };
  const Catalogue c = tools::builtin_catalogue();
  for (const Times& t : {Times{"H100-SXM", 3.0, 15, 20, 10, 3.5, 90, 0.8, 0.7},
                         {"H200", 4.0, 15, 20, 10, 3.5, 90, 0.8, 0.7},
                         {"A100-80", 2.0, 15, 45, 10, 0, 90, 0.8, 0.7},
                         {"B200", 4.0, 15, 5, 8, 3.5, 45, 0.4, 0.7},
                         {"MI300X", 3.0, 40, 20, 10, 0, 0, 0.5, 0.5}}) {
    const AcceleratorSpec& a = *c.find_accelerator(t.name);
    EXPECT_EQ(a.kernel_us, t.kernel) << t.name;
    EXPECT_EQ(a.layer_us, t.layer) << t.name;
    EXPECT_EQ(a.expert_layer_us, t.experts) << t.name;
    EXPECT_EQ(a.scaled_product_us, t.scaled) << t.name;
    EXPECT_EQ(a.fp8_product_us, t.fp8) << t.name;
    EXPECT_EQ(a.chunk_layer_us, t.chunk) << t.name;
    EXPECT_EQ(a.gpu_step_ms, t.gpu_step) << t.name;
    EXPECT_EQ(a.host_step_ms, t.host_step) << t.name;
  }
}

}  // namespace
}  // namespace routesim::models
