// Every model of the catalogue against the config.json that its maker published. model_configs.json
// has the architecture's keys of those that could be read, and rows with an `entry` of
// deployed_models.jsonl have those of others; the rest are listed by name below.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "models/catalogue.h"
#include "tests/base/messages.h"
#include "tests/tools/command_fixture.h"
#include "tools/ingest/servers/catalogue_file.h"

namespace routesim::tools {
namespace {

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

}  // namespace
}  // namespace routesim::tools
