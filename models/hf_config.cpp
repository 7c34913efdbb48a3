#include "models/hf_config.h"

#include <algorithm>
#include <cmath>

namespace routesim::models {
namespace {

/// Looks keys up at the top level, then inside the text part of a multimodal config.
class Reader {
 public:
  Reader(const HfConfig& config, Diagnostics& out) : config_(config), out_(out) {}

  std::optional<double> number(const std::string& key) const {
    for (const std::string& path : {key, "text_config." + key})
      if (const auto it = config_.numbers.find(path); it != config_.numbers.end())
        return it->second;
    return std::nullopt;
  }

  std::string text(const std::string& key) const {
    for (const std::string& path : {key, "text_config." + key})
      if (const auto it = config_.strings.find(path); it != config_.strings.end())
        return it->second;
    return {};
  }

  /// A whole number >= 0 under the first of `keys` present; an error when it is none; `fallback`
  /// when absent.
  std::int64_t integer(std::initializer_list<const char*> keys, std::int64_t fallback) {
    for (const char* key : keys) {
      const auto value = number(key);
      if (!value) continue;
      if (*value >= 0 && *value <= 1e12 && std::floor(*value) == *value)
        return static_cast<std::int64_t>(*value);
      out_.error({}, key, "must be a whole number (got " + std::to_string(*value) + ")");
      return fallback;
    }
    return fallback;
  }

  std::int64_t required(const char* key) {
    if (!number(key)) {
      out_.error({}, key, "is missing from the model's config.json",
                 "point at the config.json of the base model");
      return 0;
    }
    return integer({key}, 0);
  }

  const HfConfig& config() const { return config_; }
  Diagnostics& out() { return out_; }

 private:
  const HfConfig& config_;
  Diagnostics& out_;
};

void read_experts(Reader& in, ModelSpec& m) {
  m.experts = in.integer({"n_routed_experts", "num_local_experts", "num_experts"}, 0);
  if (m.experts == 0) return;
  m.experts_per_token = in.integer({"num_experts_per_tok", "experts_per_token"}, 0);
  if (m.experts_per_token == 0)
    in.out().error({}, "num_experts_per_tok", "is missing from the model's config.json");
  m.expert_ffn = in.integer({"moe_intermediate_size"}, m.ffn);
  m.dense_layers = in.integer({"first_k_dense_replace"}, 0);
  m.shared_experts = in.integer({"n_shared_experts"}, 0);
  // Qwen2-MoE gives the width of its shared expert instead of a count.
  const std::int64_t shared_width = in.integer({"shared_expert_intermediate_size"}, 0);
  if (m.shared_experts == 0 && m.expert_ffn > 0) m.shared_experts = shared_width / m.expert_ffn;
  if (m.dense_layers == 0) m.ffn = 0;
}

void read_attention(Reader& in, ModelSpec& m) {
  m.heads = in.required("num_attention_heads");
  m.kv_lora_rank = in.integer({"kv_lora_rank"}, 0);
  if (m.is_mla()) {
    m.q_lora_rank = in.integer({"q_lora_rank"}, 0);
    m.rope_dim = in.required("qk_rope_head_dim");
    m.head_dim = in.required("qk_nope_head_dim");
    m.v_head_dim = in.required("v_head_dim");
    return;
  }
  m.kv_heads = in.integer({"num_key_value_heads"}, m.heads);
  m.head_dim = in.integer({"head_dim"}, m.heads > 0 ? m.hidden / m.heads : 0);
}

void read_windows(Reader& in, ModelSpec& m) {
  const std::int64_t window = in.integer({"sliding_window"}, 0);
  if (window == 0 || in.integer({"use_sliding_window"}, 1) == 0) return;
  m.sliding_window = window;
  m.sliding_layers = m.layers;  // Mistral: every layer, unless the layers are typed one by one.
  for (const char* key : {"layer_types", "text_config.layer_types"})
    if (const auto it = in.config().lists.find(key); it != in.config().lists.end())
      m.sliding_layers = std::count(it->second.begin(), it->second.end(), "sliding_attention");
  if (m.sliding_layers == 0) m.sliding_window = 0;
}

void read_weights(Reader& in, ModelSpec& m) {
  const std::string method = in.text("quantization_config.quant_method");
  if (method.empty()) return;
  const std::string path = "quantization_config.config_groups.group_0.weights.";
  const double group_bits = in.number(path + "num_bits").value_or(0);
  const bool eight_bit_float = group_bits == 8 && in.text(path + "type") == "float";
  const bool four_bit_integer = (group_bits == 4 && in.text(path + "type") == "int") ||
                                ((method == "awq" || method == "gptq") &&
                                 in.number("quantization_config.bits").value_or(4) == 4);
  const std::string algorithm = in.text("quantization_config.quant_algo");
  if (method == "fp8" || method == "fbgemm_fp8" || eight_bit_float || algorithm == "FP8") {
    m.weights = WeightDtype::kFp8;
  } else if (method == "mxfp4") {
    m.weights = WeightDtype::kMxfp4;
  } else if (four_bit_integer) {
    m.weights = WeightDtype::kInt4;
  } else {
    in.out().error({}, "quantization_config.quant_method",
                   "is a weight format without a size here (got \"" + method + "\")",
                   "use bf16, fp8, mxfp4 or int4 weights, or write the model as a catalogue entry");
  }
}

}  // namespace

std::optional<ModelSpec> model_from_hf_config(const std::string& name, const HfConfig& config,
                                              Diagnostics& diagnostics) {
  Diagnostics found;
  Reader in(config, found);
  ModelSpec m;
  m.name = name;
  m.source = "config.json of " + name;
  m.layers = in.required("num_hidden_layers");
  m.hidden = in.required("hidden_size");
  m.vocab = in.required("vocab_size");
  m.ffn = in.integer({"intermediate_size"}, 0);
  m.max_context = in.integer({"max_position_embeddings"}, 0);
  m.tied_embeddings = in.integer({"tie_word_embeddings"}, 0) != 0;
  read_attention(in, m);
  read_experts(in, m);
  read_windows(in, m);
  read_weights(in, m);
  if (!found.has_errors()) check_model(m, found);
  for (const Diagnostic& d : found.items()) diagnostics.add(d);
  if (found.has_errors()) return std::nullopt;
  return m;
}

}  // namespace routesim::models
