#include "models/catalogue.h"

#include <gtest/gtest.h>

namespace routesim::models {
namespace {

TEST(Catalogue, FindsByNameAliasAndHuggingFacePath) {
  const Catalogue c = Catalogue::builtin();
  for (const char* name : {"H100-SXM", "H100", "H100 SXM", "h100_sxm", "NVIDIA H100 80GB HBM3"}) {
    ASSERT_NE(c.find_accelerator(name), nullptr) << name;
    EXPECT_EQ(c.find_accelerator(name)->name, "H100-SXM");
  }
  EXPECT_EQ(c.find_model("Qwen/Qwen3-32B")->name, "Qwen3-32B");
  EXPECT_EQ(c.find_model("meta-llama/Llama-3.1-8B-Instruct")->name, "Llama-3.1-8B");
  EXPECT_EQ(c.find_model("neuralmagic/Meta-Llama-3.1-70B-Instruct-FP8")->name, "Llama-3.1-70B-FP8");
  EXPECT_EQ(c.find_model("deepseek-ai/DeepSeek-R1")->name, "DeepSeek-R1");
  EXPECT_EQ(c.find_accelerator("H10"), nullptr);
}

TEST(Catalogue, SuggestsTheNearestName) {
  const Catalogue c = Catalogue::builtin();
  EXPECT_EQ(c.suggest_accelerator("H10O"), "H100-SXM");
  EXPECT_EQ(c.suggest_accelerator("MI-300"), "MI300X");
  EXPECT_EQ(c.suggest_model("Qwen/Qwen3-23B"), "Qwen3-32B");
  EXPECT_EQ(c.suggest_model("completely else"), "");
}

TEST(Catalogue, EveryEntryIsSoundSourcedAndUnambiguous) {
  const Catalogue c = Catalogue::builtin();
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

TEST(Catalogue, UserEntriesWinAndExtend) {
  Catalogue c = Catalogue::builtin();
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
  const Catalogue c = Catalogue::builtin();
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
  const Catalogue c = Catalogue::builtin();
  const auto fitted = make_latency_model(c, *c.find_accelerator("H100"), *c.find_model("Qwen3-32B"),
                                         {.tp = 4}, "2026-H1");
  EXPECT_NE(fitted->provenance().find("NNLS fit"), std::string::npos);
  EXPECT_NE(fitted->provenance().find("another engine preset"), std::string::npos);
  const auto guessed = make_latency_model(c, *c.find_accelerator("L40S"),
                                          *c.find_model("Qwen3-0.6B"), {}, "2026-H1");
  EXPECT_EQ(guessed->trust({.decode_requests = 1, .decode_context = 10}), Trust::kRoofline);
  EXPECT_EQ(fitted->trust({.decode_requests = 1, .decode_context = 10}), Trust::kFitted);
  EXPECT_EQ(fitted->trust({.decode_requests = 129, .decode_context = 10}), Trust::kExtrapolated);
}

}  // namespace
}  // namespace routesim::models
