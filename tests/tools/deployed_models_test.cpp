// The config.json of 89 deployed models, those of 2026 included. deployed_models.jsonl has the keys
// that describe an architecture and a weight format; names of layers that differ in a number only
// are one name with a range ("layers.[0-60].self_attn*"), and of the experts' formats one stands
// for all. Source: model_configs of aiconfigurator-core 0.12.0, which has them from Hugging Face.
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "models/kv_cache_spec.h"
#include "sim/plan/resolve.h"
#include "tests/base/messages.h"
#include "tests/tools/command_fixture.h"
#include "tools/ingest/servers/catalogue_file.h"

namespace routesim::tools {
namespace {

using models::KvDtype;
using models::ModelSpec;
using nlohmann::json;

/// "layers.[0-2].attn" stands for three names.
void expand(json& node) {
  if (node.is_object())
    for (auto& [key, value] : node.items()) expand(value);
  if (!node.is_array()) return;
  json all = json::array();
  for (json& item : node) {
    const std::string text = item.is_string() ? item.get<std::string>() : "";
    const std::size_t open = text.find("layers.[");
    if (open == std::string::npos) {
      expand(item);
      all.push_back(item);
      continue;
    }
    const std::size_t dash = text.find('-', open), close = text.find(']', open);
    const int last = std::stoi(text.substr(dash + 1, close - dash - 1));
    for (int i = std::stoi(text.substr(open + 8, dash - open - 8)); i <= last; ++i)
      all.push_back(text.substr(0, open + 7) + std::to_string(i) + text.substr(close + 1));
  }
  node = all;
}

/// Reads all of them, each from a folder of its own as a checkpoint lies there.
class DeployedModels : public testing::FolderTest {
 protected:
  DeployedModels() {
    std::ifstream file(std::filesystem::path(ROUTESIM_SOURCE_DIR) /
                       "tests/tools/deployed_models.jsonl");
    for (std::string line; std::getline(file, line);) {
      json row = json::parse(line);
      const auto name = row.at("model").get<std::string>();
      expand(row);
      const std::string path = write(name + "/config.json", row.at("config").dump());
      if (row.contains("hf_quant_config"))
        write(name + "/hf_quant_config.json", row.at("hf_quant_config").dump());
      Diagnostics d;
      auto model = read_hf_config(path, d);
      EXPECT_TRUE(model) << name << ": " << messages_of(d);
      EXPECT_TRUE(d.items().empty()) << name << ": " << messages_of(d);
      if (model) read_.emplace(name, std::move(*model));
      paths_.emplace(name, path);
    }
  }

  const ModelSpec& model(const std::string& name) const { return read_.at(name); }

  std::map<std::string, ModelSpec> read_;
  std::map<std::string, std::string> paths_;
};

/// Billions of parameters that the makers publish, without the layers that guess further tokens and
/// without the towers that read pictures. 0: not published.
struct Published {
  const char* name;
  double total, active = 0;
};
constexpr Published kPublished[] = {
    {"Qwen/Qwen3-0.6B", 0.6},
    {"Qwen/Qwen3-1.7B", 1.7},
    {"Qwen/Qwen3-8B", 8.2},
    {"Qwen/Qwen3-32B", 32.8},
    {"Qwen/Qwen3-32B-FP8", 32.8},
    {"Qwen/Qwen3-30B-A3B", 30.5, 3.05},
    {"Qwen/Qwen3-235B-A22B", 235, 22},
    {"Qwen/Qwen3-Coder-480B-A35B-Instruct", 480, 35},
    {"Qwen/Qwen3.5-27B", 27},
    {"Qwen/Qwen3.5-35B-A3B", 35, 3},
    {"Qwen/Qwen3.5-122B-A10B", 122},
    {"Qwen/Qwen3.5-397B-A17B", 397},
    {"meta-llama/Meta-Llama-3.1-8B", 8.03},
    {"meta-llama/Meta-Llama-3.1-70B", 70.6},
    {"meta-llama/Meta-Llama-3.1-405B", 405.9},
    {"meta-llama/Llama-4-Scout-17B-16E-Instruct", 108, 0},
    {"meta-llama/Llama-4-Maverick-17B-128E-Instruct", 400, 0},
    {"mistralai/Mixtral-8x7B-v0.1", 46.7, 12.9},
    {"mistralai/Mixtral-8x22B-v0.1", 141, 39},
    {"openai/gpt-oss-120b", 116.8, 5.1},
    {"openai/gpt-oss-20b", 20.9, 3.6},
    {"deepseek-ai/DeepSeek-R1", 671, 37},
    {"deepseek-ai/DeepSeek-V3", 671, 37},
    {"deepseek-ai/DeepSeek-V4-Flash", 284, 13},
    {"deepseek-ai/DeepSeek-V4-Pro", 1600, 49},
    {"zai-org/GLM-5", 744, 40},
    {"moonshotai/Kimi-K2-Instruct", 1026, 32},
    {"moonshotai/Kimi-K3", 2800},
    {"MiniMaxAI/MiniMax-M2.5", 230, 0},
    {"XiaomiMiMo/MiMo-V2-Flash", 309, 15},
    {"google/gemma-4-26B-A4B", 25.2, 3.8},
    {"nvidia/Gemma-4-31B-IT-NVFP4", 30.7},
    {"nvidia/Llama-3_3-Nemotron-Super-49B-v1", 49.9},
    {"nvidia/Nemotron-H-56B-Base-8K", 56},
    {"nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 31.6, 3.2},
    {"nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8", 120, 12},
    {"nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16", 550, 55},
};

TEST_F(DeployedModels, AllAreReadWithoutAWord) { EXPECT_EQ(read_.size(), 89U); }

TEST_F(DeployedModels, ParametersAddUpToWhatTheMakersPublish) {
  for (const Published& p : kPublished) {
    const ModelSpec& m = model(p.name);
    EXPECT_NEAR(total_parameters(m) / 1e9, p.total, p.total * 0.02) << p.name;
    if (p.active > 0) {
      EXPECT_NEAR(active_parameters(m) / 1e9, p.active, p.active * 0.025) << p.name;
    }
  }
  EXPECT_NEAR(count_parameters(model("deepseek-ai/DeepSeek-V3")).mtp / 1e9, 11.6, 0.1)
      << "14 with the embedding and the output projection that it shares";
}

// Bytes of a token and of a sequence's state, all layers of one GPU.
TEST_F(DeployedModels, CachesKeepWhatEachKindOfLayerKeeps) {
  const auto token = [this](const char* name, KvDtype dtype) {
    return kv_bytes_per_token_per_gpu(model(name), dtype, {});
  };
  // 61 latents of 576 numbers and as many keys of 132 bytes; in fp8 656 bytes with scales.
  EXPECT_EQ(token("deepseek-ai/DeepSeek-V3.2", KvDtype::kBf16), 61 * (2 * 576 + 132));
  EXPECT_EQ(token("deepseek-ai/DeepSeek-V3.2", KvDtype::kFp8), 61 * (656 + 132));
  // 57 of GLM-5.2's 78 layers take over the choice of another one's indexer.
  EXPECT_EQ(token("zai-org/GLM-5.2", KvDtype::kBf16), 78 * 2 * 576 + 21 * 132);
  // Blocks of 256: 64 entries of 584 bytes with keys of 132 in 21 layers, two entries in 20.
  const models::KvLayout v4 =
      kv_layout(model("deepseek-ai/DeepSeek-V4-Flash"), KvDtype::kFp8, {}, 16);
  EXPECT_EQ(v4.block_size, 256);
  EXPECT_EQ(v4.bytes_per_block, 21 * 64 * (584 + 132) + 20 * 2 * 584);
  EXPECT_EQ(v4.fixed_groups, 3 + 2) << "43 windows and two kinds of compressors in groups of 21";
  // Keys and values of 4 heads of 128, and a key of 128 in the 57 layers that select.
  EXPECT_EQ(token("MiniMaxAI/MiniMax-M3", KvDtype::kBf16), 60 * 2 * 4 * 128 * 2 + 57 * 256);
}

TEST_F(DeployedModels, AttentionBlocksAreAsLongAsAStateNeeds) {
  const ModelSpec& qwen = model("Qwen/Qwen3.5-122B-A10B");
  // 64 matrices of 128 x 128 in fp32, and three inputs of 12,288 channels.
  EXPECT_EQ(state_bytes(qwen.state, 1), 64 * 128 * 128 * 4 + 3 * 12'288 * 2);
  models::KvLayout layout = kv_layout(qwen, KvDtype::kBf16, {}, 16);
  // 4,268,032 bytes at 2,048 a token are 2,084 tokens, in steps of 16.
  EXPECT_EQ(layout.block_size, 2'096);
  EXPECT_EQ(layout.bytes_per_block, 12 * 2'096 * 2'048) << "a page for each layer of a group";
  EXPECT_EQ(layout.fixed_groups, 3) << "36 layers with a state in groups of 12";
  EXPECT_TRUE(layout.states);
  layout = kv_layout(qwen, KvDtype::kFp8, {.tp = 2}, 16);
  EXPECT_EQ(layout.block_size, 4'176) << "half the state, a quarter of the bytes of a token";
  const ModelSpec& nano = model("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16");
  EXPECT_EQ(state_bytes(nano.state, 1), 64 * 64 * 128 * 4 + 3 * (4'096 + 2 * 8 * 128) * 2);
  EXPECT_EQ(nano.attention_layers(), 6);
  EXPECT_EQ(nano.moe_layers(), 23);
  EXPECT_EQ(nano.shared_experts, 2);
  const ModelSpec& k3 = model("moonshotai/Kimi-K3");
  // With MLA blocks grow in steps of 64: 6,512,640 bytes at 1,152 a token are 5,653.3.
  EXPECT_EQ(state_bytes(k3.state, 1), 96 * 128 * 128 * 4 + 3 * 3 * 12'288 * 2);
  EXPECT_EQ(kv_layout(k3, KvDtype::kBf16, {}, 16).block_size, 5'696);
}

TEST_F(DeployedModels, WindowedLayersWithMoreHeadsMakeLongerBlocks) {
  const ModelSpec& gemma = model("google/gemma-4-26B-A4B");
  EXPECT_EQ(kv_entry_bytes(gemma, KvDtype::kBf16, 1), 2 * 2 * 512 * 2);
  EXPECT_EQ(window_entry_bytes(gemma, KvDtype::kBf16, 1), 2 * 8 * 256 * 2);
  const models::KvLayout layout = kv_layout(gemma, KvDtype::kBf16, {}, 16);
  EXPECT_EQ(layout.block_size, 32);
  EXPECT_EQ(layout.bytes_per_block, 5 * 16 * 8'192);
  EXPECT_EQ(layout.fixed_groups, 10) << "five groups, two blocks of theirs for one";
  const ModelSpec& mimo = model("XiaomiMiMo/MiMo-V2-Flash");
  EXPECT_EQ(kv_entry_bytes(mimo, KvDtype::kBf16, 1), 4 * (192 + 128) * 2);
  EXPECT_EQ(window_entry_bytes(mimo, KvDtype::kBf16, 1), 8 * (192 + 128) * 2);
}

TEST_F(DeployedModels, FormatsComeFromEitherFileAndByModule) {
  using enum models::WeightDtype;
  const auto format = [this](const char* name) {
    const ModelSpec& m = model(name);
    return std::pair(m.weights, m.dense_weights.value_or(m.weights));
  };
  EXPECT_EQ(format("nvidia/Qwen3-235B-A22B-NVFP4"), std::pair(kNvfp4, kNvfp4)) << "beside it";
  EXPECT_EQ(format("Qwen/Qwen3-32B-FP8-Static-PerTensor"), std::pair(kFp8, kFp8));
  EXPECT_EQ(format("deepseek-ai/DeepSeek-V4-Pro"), std::pair(kMxfp4, kFp8));
  EXPECT_EQ(format("nvidia/DeepSeek-V4-Pro-NVFP4"), std::pair(kNvfp4, kFp8));
  EXPECT_EQ(format("nvidia/MiniMax-M3-NVFP4"), std::pair(kNvfp4, kFp8));
  EXPECT_EQ(format("moonshotai/Kimi-K2.5"), std::pair(kInt4, kBf16));
  EXPECT_EQ(format("moonshotai/Kimi-K3"), std::pair(kMxfp4, kBf16));
  EXPECT_EQ(format("nvidia/Kimi-K2.6-NVFP4"), std::pair(kNvfp4, kBf16));
  EXPECT_EQ(format("nvidia/Qwen3.6-27B-NVFP4"), std::pair(kNvfp4, kNvfp4)) << "most of it";
  EXPECT_FALSE(model("zai-org/GLM-5-FP8").bf16_attention) << "norms and indexers only";
}

TEST_F(DeployedModels, AllRunOnEightB300) {
  for (const auto& [name, model] : read_) {
    sim::Scenario s;
    sim::PoolConfig& pool = s.cluster.pools.emplace_back();
    pool.accelerator = "B300";
    pool.model = model.name;
    pool.tensor_parallel = 8;
    pool.engine.preset = sim::EnginePreset::k2026H1;
    pool.engine.max_model_len = 8192;
    s.routing.balancer = sim::BalancerKind::kRoundRobin;
    s.workload.load.emplace<workloads::GroupLoadConfig>();
    sim::ScenarioInputs inputs{.catalogue = builtin_catalogue()};
    inputs.catalogue.add(model);
    Diagnostics d;
    const std::optional<sim::RunPlan> plan = sim::resolve(s, inputs, d);
    ASSERT_TRUE(plan) << name << ": " << messages_of(d);
    const sim::ResolvedPool& p = plan->pools.front();
    EXPECT_GT(p.kv_cache_tokens, 8192) << name;
    const std::int64_t one = p.latency->step_ticks({.decode_requests = 1, .decode_context = 1000});
    const std::int64_t longer =
        p.latency->step_ticks({.decode_requests = 1, .decode_context = 8000});
    EXPECT_GE(longer, one) << name;
    EXPECT_LT(longer, 2 * one) << name << ": a step of one sequence is bound by weights";
  }
}

TEST_F(DeployedModels, TheFormatAloneIsNoModel) {
  const std::string path = write("hf_quant_config.json", R"({"quantization": {}})");
  Diagnostics d;
  EXPECT_FALSE(read_hf_config(path, d));
  EXPECT_NE(messages_of(d).find("format of a model's weights"), std::string::npos);
}

}  // namespace
}  // namespace routesim::tools
