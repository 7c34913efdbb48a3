// Catalogue files and config.json, from the scenario's key to the plan: one's own, those of every
// model that ships, and those of deployed models.
#include "tools/ingest/servers/catalogue_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "models/catalogue.h"
#include "models/kv_cache_spec.h"
#include "sim/plan/resolve.h"
#include "tests/base/messages.h"
#include "tests/tools/command_fixture.h"
#include "tools/ingest/scenario/prepare.h"

namespace routesim::tools {
namespace {

// Catalogue files and config.json, from the scenario's key to the plan.

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

// Every model of the catalogue against the config.json that its maker published. model_configs.json
// has the architecture's keys of those that could be read, and rows with an `entry` of
// deployed_models.jsonl have those of others; the rest are listed by name below.

using models::ModelSpec;
using Member = std::variant<std::int64_t ModelSpec::*, bool ModelSpec::*>;

/// Every number of an architecture. `workspace_bytes` is measured and stands in no config.json.
const std::vector<std::pair<const char*, Member>>& members() {
  static const std::vector<std::pair<const char*, Member>> all = {
      {"layers", &ModelSpec::layers},
      {"hidden", &ModelSpec::hidden},
      {"heads", &ModelSpec::heads},
      {"kv_heads", &ModelSpec::kv_heads},
      {"head_dim", &ModelSpec::head_dim},
      {"ffn", &ModelSpec::ffn},
      {"vocab", &ModelSpec::vocab},
      {"max_context", &ModelSpec::max_context},
      {"tied_embeddings", &ModelSpec::tied_embeddings},
      {"experts", &ModelSpec::experts},
      {"experts_per_token", &ModelSpec::experts_per_token},
      {"shared_experts", &ModelSpec::shared_experts},
      {"expert_ffn", &ModelSpec::expert_ffn},
      {"dense_layers", &ModelSpec::dense_layers},
      {"kv_lora_rank", &ModelSpec::kv_lora_rank},
      {"q_lora_rank", &ModelSpec::q_lora_rank},
      {"rope_dim", &ModelSpec::rope_dim},
      {"v_head_dim", &ModelSpec::v_head_dim},
      {"sliding_window", &ModelSpec::sliding_window},
      {"sliding_layers", &ModelSpec::sliding_layers},
      {"chunked_windows", &ModelSpec::chunked_windows},
      {"o_lora_rank", &ModelSpec::o_lora_rank},
      {"o_groups", &ModelSpec::o_groups},
      {"shared_values", &ModelSpec::shared_values},
      {"gated_attention", &ModelSpec::gated_attention},
      {"sliding_kv_heads", &ModelSpec::sliding_kv_heads},
      {"sliding_head_dim", &ModelSpec::sliding_head_dim},
      {"attention_free_layers", &ModelSpec::attention_free_layers},
      {"mlp_free_layers", &ModelSpec::mlp_free_layers},
      {"plain_mlp", &ModelSpec::plain_mlp},
      {"expert_hidden", &ModelSpec::expert_hidden},
      {"mtp_layers", &ModelSpec::mtp_layers},
      {"scaled_blocks", &ModelSpec::scaled_blocks},
      {"bf16_attention", &ModelSpec::bf16_attention},
  };
  return all;
}

/// The layers that keep a state, select or compress, in one line.
std::string other_layers(const ModelSpec& m) {
  std::string out;
  const auto add = [&out](std::initializer_list<std::int64_t> numbers) {
    for (const std::int64_t n : numbers) out += std::to_string(n) + " ";
  };
  const models::StateLayers& t = m.state;
  add({t.layers, t.heads, t.value_dim, t.groups, t.key_dim, t.conv, t.gates, t.bf16_state});
  const models::SparseLayers& s = m.sparse;
  add({s.layers, s.top_k, s.index_layers, s.index_heads, s.index_dim, s.index_key_bytes});
  for (const models::CompressedLayers& c : m.compressed) add({c.ratio, c.layers});
  return out;
}

/// What differs between two models, but for the members in `but`.
std::string differences(const ModelSpec& a, const ModelSpec& b,
                        const std::set<std::string>& but = {}) {
  std::string out;
  if (other_layers(a) != other_layers(b)) out = other_layers(a) + "is not " + other_layers(b);
  for (const auto& [name, member] : members())
    std::visit(
        [&, name = name](auto of) {
          if (a.*of != b.*of && !but.contains(name))
            out += std::string(name) + " " + std::to_string(a.*of) + " is not " +
                   std::to_string(b.*of) + "; ";
        },
        member);
  return out;
}

/// Entries whose config.json no public source was found for, or only that of a format. Their
/// numbers are only tested by their sum (Catalogue.ParametersAddUpToWhatTheMakersState).
const std::set<std::string>& unread() {
  static const std::set<std::string> names = {"Gemma-4-31B",
                                              "Nemotron-3-Super-120B-A12B",
                                              "GLM-4.5",
                                              "GLM-4.5-Air",
                                              "Gemma-3-12B",
                                              "Llama-2-70B",
                                              "Llama-3-70B",
                                              "Llama-3-8B",
                                              "Mistral-Large-123B",
                                              "Mistral-Small-24B",
                                              "Mixtral-8x22B",
                                              "Qwen2.5-0.5B",
                                              "Qwen2.5-1.5B",
                                              "Qwen2.5-14B",
                                              "Qwen2.5-32B",
                                              "Qwen2.5-72B",
                                              "Qwen3-4B",
                                              "Qwen3-Coder-30B-A3B"};
  return names;
}

/// "Qwen3-32B" of "Qwen3-32B-AWQ": the entry that the catalogue made another format of.
std::string base_of(const std::string& name) {
  for (const std::string suffix : {"-FP8", "-AWQ", "-NVFP4"})
    if (name.ends_with(suffix)) return name.substr(0, name.size() - suffix.size());
  return {};
}

class PublishedModels : public testing::FolderTest {
 protected:
  PublishedModels() {
    const std::filesystem::path folder = std::filesystem::path(ROUTESIM_SOURCE_DIR) / "tests/tools";
    std::ifstream file(folder / "model_configs.json");
    for (const auto& row : nlohmann::json::parse(file)) read(row);
    std::ifstream deployed(folder / "deployed_models.jsonl");
    for (std::string line; std::getline(deployed, line);)
      if (const auto row = nlohmann::json::parse(line); row.contains("entry")) read(row);
  }

  void read(const nlohmann::json& row) {
    Diagnostics d;
    const std::string name = row.at("entry");
    const std::string path = write(name + "/config.json", row.at("config").dump());
    if (row.contains("hf_quant_config"))
      write(name + "/hf_quant_config.json", row.at("hf_quant_config").dump());
    auto model = read_hf_config(path, d);
    EXPECT_TRUE(model) << name << ": " << messages_of(d);
    if (model) read_.emplace(name, std::move(*model));
  }

  std::map<std::string, ModelSpec> read_;  ///< By the name of the catalogue's entry.
};

TEST_F(PublishedModels, EveryEntryIsWhatItsOwnConfigJsonGives) {
  const models::Catalogue catalogue = builtin_catalogue();
  std::set<std::string> left = unread();
  for (const ModelSpec& entry : catalogue.models()) {
    if (const auto published = read_.find(entry.name); published != read_.end()) {
      EXPECT_EQ(differences(entry, published->second), "") << entry.name;
      EXPECT_EQ(entry.weights, published->second.weights) << entry.name;
      EXPECT_EQ(entry.dense_weights, published->second.dense_weights) << entry.name;
      EXPECT_FALSE(unread().contains(entry.name)) << entry.name << " has a config.json";
    } else if (base_of(entry.name).empty()) {
      EXPECT_EQ(left.erase(entry.name), 1U)
          << entry.name << " has no config.json and is not listed";
    }
  }
  EXPECT_TRUE(left.empty()) << *left.begin() << " is listed, but no entry";
  for (const auto& [name, model] : read_) EXPECT_EQ(catalogue.find_model(name)->name, name);
}

TEST_F(PublishedModels, AFormatChangesTheWeightsOnly) {
  const models::Catalogue catalogue = builtin_catalogue();
  for (const ModelSpec& entry : catalogue.models()) {
    const std::string base = base_of(entry.name);
    if (base.empty()) continue;
    EXPECT_EQ(differences(entry, *catalogue.find_model(base), {"scaled_blocks", "bf16_attention"}),
              "")
        << entry.name;
  }
}

TEST_F(PublishedModels, Llama4LooksAtChunksAndKeepsAttentionInBf16) {
  for (const char* name : {"Llama-4-Scout", "Llama-4-Maverick"}) {
    const ModelSpec& m = read_.at(name);
    EXPECT_TRUE(m.chunked_windows) << name;
    EXPECT_EQ(m.sliding_window, 8192) << name;
    EXPECT_EQ(m.full_layers(), 12) << name;
  }
  const models::Catalogue catalogue = builtin_catalogue();
  EXPECT_TRUE(catalogue.find_model("Llama-4-Scout-FP8")->bf16_attention);
  EXPECT_TRUE(catalogue.find_model("Llama-4-Maverick-FP8")->bf16_attention);
}

// The config.json of 89 deployed models, those of 2026 included. deployed_models.jsonl has the keys
// that describe an architecture and a weight format; names of layers that differ in a number only
// are one name with a range ("layers.[0-60].self_attn*"), and of the experts' formats one stands
// for all. Source: model_configs of aiconfigurator-core 0.12.0, which has them from Hugging Face.

using models::KvDtype;
using models::ModelSpec;
using Json = nlohmann::json;

/// "layers.[0-2].attn" stands for three names.
void expand(Json& node) {
  if (node.is_object())
    for (auto& [key, value] : node.items()) expand(value);
  if (!node.is_array()) return;
  Json all = Json::array();
  for (Json& item : node) {
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
      Json row = Json::parse(line);
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
