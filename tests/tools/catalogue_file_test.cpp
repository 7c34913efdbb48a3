// Catalogue files and config.json, from the scenario's key to the plan.
#include "tools/ingest/servers/catalogue_file.h"

#include <gtest/gtest.h>

#include "tests/base/messages.h"
#include "tests/tools/command_fixture.h"
#include "tools/ingest/scenario/prepare.h"

namespace routesim::tools {
namespace {

constexpr const char* kQwen3 = R"({
  "architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "head_dim": 128,
  "hidden_size": 5120, "intermediate_size": 25600, "max_position_embeddings": 40960,
  "model_type": "qwen3", "num_attention_heads": 64, "num_hidden_layers": 64,
  "num_key_value_heads": 8, "rms_norm_eps": 1e-06, "rope_scaling": null, "sliding_window": null,
  "tie_word_embeddings": false, "torch_dtype": "bfloat16", "use_sliding_window": false,
  "vocab_size": 151936
})";

constexpr const char* kScenario = R"(name: s
workload:
  groups: {requests: 10, rate: 5}
)";

class CatalogueFileTest : public testing::FolderTest {
 protected:
  std::optional<sim::RunPlan> plan(const std::string& scenario) {
    said_.clear();
    Diagnostics d;
    const std::string path = write("s.yaml", kScenario + scenario);
    const LoadedScenario loaded =
        load_scenario({.path = path, .sets = {}, .variants = {}, .seed = {}}, d);
    std::optional<sim::RunPlan> out;
    if (!d.has_errors()) out = prepare(loaded.variants.front(), d);
    said_ = messages_of(d);
    for (std::size_t p = said_.find(folder_.string()); p != std::string::npos;
         p = said_.find(folder_.string()))
      said_.erase(p, folder_.string().size() + 1);
    return out;
  }

  std::string said_;
};

TEST_F(CatalogueFileTest, AConfigJsonIsTheModelOfItsFolder) {
  write("models/My-Qwen/config.json", kQwen3);
  const auto mine = plan(
      "cluster: {pools: [{accelerator: H100-SXM, tensor_parallel: 2, "
      "model: models/My-Qwen/config.json}]}\n");
  ASSERT_TRUE(mine) << said_;
  EXPECT_EQ(said_, "");
  const auto builtin =
      plan("cluster: {pools: [{accelerator: H100-SXM, tensor_parallel: 2, model: Qwen3-32B}]}\n");
  ASSERT_TRUE(builtin) << said_;
  EXPECT_EQ(mine->pools[0].config.model, "My-Qwen");
  EXPECT_EQ(mine->pools[0].kv_plan.num_gpu_blocks, builtin->pools[0].kv_plan.num_gpu_blocks);
  // Nobody has fitted a curve for a model of that name.
  EXPECT_NE(mine->pools[0].latency->provenance().find("measured kernels"), std::string::npos);
  EXPECT_NE(builtin->pools[0].latency->provenance().find("cost curve"), std::string::npos);
}

TEST_F(CatalogueFileTest, AKnownNameWithAnotherArchitectureIsWarnedAbout) {
  std::string smaller = kQwen3;
  smaller.replace(smaller.find("\"num_hidden_layers\": 64"), 23, "\"num_hidden_layers\": 32");
  write("Qwen3-32B/config.json", smaller);
  ASSERT_TRUE(
      plan("cluster: {pools: [{accelerator: H100-SXM, tensor_parallel: 2, "
           "model: Qwen3-32B/config.json}]}\n"));
  EXPECT_EQ(said_,
            "s.yaml:4:70: warning: cluster.pools[0].model: replaces the catalogue's Qwen3-32B, "
            "whose fitted curves it will use although it differs from it\n"
            "  hint: give the folder of the config.json another name\n");
}

TEST_F(CatalogueFileTest, WhatAConfigJsonLacksIsReportedInIt) {
  write("m/config.json", "{\n\"hidden_size\": 5120.5,\n\"vocab_size\": 1000}");
  EXPECT_FALSE(plan("cluster: {pools: [{accelerator: L4, model: m/config.json}]}\n"));
  EXPECT_NE(said_.find("m/config.json:1:1: error: num_hidden_layers: is missing from the model's "
                       "config.json\n"),
            std::string::npos)
      << said_;
  EXPECT_NE(said_.find("m/config.json:2:16: error: hidden_size: must be a whole number"),
            std::string::npos)
      << said_;
  EXPECT_FALSE(plan("cluster: {pools: [{accelerator: L4, model: gone/config.json}]}\n"));
  EXPECT_NE(said_.find("gone/config.json"), std::string::npos) << said_;
}

TEST_F(CatalogueFileTest, EntriesWinOverBuiltInOnes) {
  write("mine.yaml", R"(accelerators:
- {name: Slow, source: made up, bf16_tflops: 100, memory_bytes: 80e9, memory_tb_per_s: 1,
   link_gb_per_s: 50, nic_gb_per_s: 10}
curves:
- accelerator: Slow
  model: Qwen3-0.6B
  provenance: made up
  parameters: {step_ms: 7, prefill_us_per_token: 3}
)");
  const auto p = plan(
      "catalogue: [mine.yaml]\n"
      "cluster: {pools: [{accelerator: Slow, model: Qwen3-0.6B}]}\n");
  ASSERT_TRUE(p) << said_;
  EXPECT_EQ(p->pools[0].latency->step_ticks({.decode_requests = 1, .decode_context = 100}),
            7 * models::kTicksPerMillisecond);
}

TEST_F(CatalogueFileTest, StepTimesThatAUserMeasuredAreTheStepTimes) {
  const char* entry = R"(step_times:
- accelerator: L4
  model: Qwen3-0.6B
  decode:
  - {sequences: 1, context: 100, ms: 3}
  - {sequences: 1, context: 300, ms: 5}
  - {sequences: 9, context: 100, ms: 11}
  - {sequences: 9, context: 300, ms: 21}
  prefill:
  - {tokens: 100, visible: 50, ms: 20}
  - {tokens: 300, visible: 50, ms: 40}
)";
  write("mine.yaml", entry);
  for (const char* name : {"auto", "measured"}) {
    const auto p = plan(
        "catalogue: [mine.yaml]\n"
        "cluster: {pools: [{accelerator: L4, model: Qwen3-0.6B, latency_model: " +
        std::string(name) + "}]}\n");
    ASSERT_TRUE(p) << said_;
    const models::LatencyModel& steps = *p->pools[0].latency;
    EXPECT_EQ(steps.step_ticks({.decode_requests = 5, .decode_context = 5 * 200}),
              10 * models::kTicksPerMillisecond)
        << "half way between 3, 5, 11 and 21";
    EXPECT_EQ(steps.provenance(), "measured table: no source given");
  }
  const std::string measured =
      "cluster: {pools: [{accelerator: L4, model: Qwen3-0.6B, latency_model: measured}]}\n";
  EXPECT_FALSE(plan(measured));
  EXPECT_NE(said_.find("s.yaml:4:71: error: cluster.pools[0].latency_model: cannot be measured: no "
                       "catalogue has step_times of Qwen3-0.6B on L4 tp1"),
            std::string::npos)
      << said_;
  write("mine.yaml", std::string(entry) + "  - {tokens: 300, visible: 60, ms: 40}\n");
  EXPECT_FALSE(plan("catalogue: [mine.yaml]\n" + measured));
  EXPECT_NE(said_.find("step_times[0].prefill: must hold every combination of its 2 and 2 axis "
                       "values once (got 3 points)"),
            std::string::npos)
      << said_;
}

TEST_F(CatalogueFileTest, MistakesInACatalogueAreFoundAtTheirLines) {
  write("wrong.yaml", R"(models:
- {name: tiny, source: made up, layers: 2, hidden: 64, heads: 3, kv_heads: 2, head_dim: 16,
   ffn: 128, vocab: 100, max_context: 1000}
curves:
- {accelerator: H10O-SXM, model: tiny, parameters: {step_ms: 1}}
)");
  write("unread.yaml", R"(accelerators:
- {name: Slow, source: made up, memory_bytes: 80e9, memory_tb_per_s: 1}
curves:
- {accelerator: H100-SXM, model: Qwen3-32B, parameters: {stepms: 1}}
)");
  write("list.yaml", "- 1\n");
  EXPECT_FALSE(
      plan("catalogue: [wrong.yaml, unread.yaml, list.yaml, gone.yaml]\n"
           "cluster: {pools: [{accelerator: L4, model: Qwen3-0.6B}]}\n"));
  for (const char* expected :
       {"wrong.yaml:2:76: error: models[0].kv_heads: must divide the number of query heads 3",
        "wrong.yaml:5:17: error: curves[0].accelerator: unknown accelerator (got H10O-SXM)\n"
        "  hint: did you mean H100-SXM?",
        "unread.yaml:2:3: error: accelerators[0].bf16_tflops: is missing",
        "unread.yaml:4:58: error: curves[0].parameters.stepms: unknown key",
        "list.yaml:1:1: error: must be a map with accelerators, models, curves or step_times",
        "s.yaml:4:49: error: catalogue[3]: cannot open gone.yaml"})
    EXPECT_NE(said_.find(expected), std::string::npos) << expected << "\nin\n" << said_;
}

TEST_F(CatalogueFileTest, SizesBeyondAllMachinesAreRefusedWhereTheyStand) {
  write("c.yaml",
        "accelerators:\n"
        "- {name: G, bf16_tflops: 1000, memory_bytes: 1.0e16, memory_tb_per_s: 1.0e300,\n"
        "   link_gb_per_s: 450, nic_gb_per_s: 50}\n"
        "models:\n"
        "- {name: M, layers: 1000000000, hidden: 64, heads: 8, kv_heads: 8, head_dim: 8, ffn: 64,\n"
        "   vocab: 1000}\n");
  EXPECT_FALSE(
      plan("catalogue: [c.yaml]\n"
           "cluster: {pools: [{accelerator: G, model: M}]}\n"));
  for (const char* line :
       {"c.yaml:2:46: error: accelerators[0].memory_bytes: must be at most 1000000000000000 (got "
        "1.0e16)",
        "c.yaml:2:71: error: accelerators[0].memory_tb_per_s: must be at most 1000000000 (got "
        "1.0e300)",
        "c.yaml:5:21: error: models[0].layers: must be at most 10000 (got 1000000000)"})
    EXPECT_NE(said_.find(line), std::string::npos) << said_;
}

TEST_F(CatalogueFileTest, ACacheOfMoreBlocksThanCanBeCountedIsRefused) {
  write("c.yaml",
        "accelerators:\n"
        "- {name: G, bf16_tflops: 1000, memory_bytes: 1.0e15, memory_tb_per_s: 3, "
        "link_gb_per_s: 450,\n"
        "   nic_gb_per_s: 50}\n"
        "models:\n"
        "- {name: M, layers: 1, hidden: 64, heads: 8, kv_heads: 8, head_dim: 8, ffn: 64,\n"
        "   vocab: 1000, max_context: 4096}\n");
  EXPECT_FALSE(
      plan("catalogue: [c.yaml]\n"
           "cluster: {pools: [{accelerator: G, model: M}]}\n"));
  EXPECT_NE(said_.find("s.yaml:5:19: error: cluster.pools[0].engine.num_gpu_blocks: the memory of "
                       "G holds more than the 100000000 blocks that a KV cache may have (got "),
            std::string::npos)
      << said_;
}

}  // namespace
}  // namespace routesim::tools
