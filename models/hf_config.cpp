#include "models/hf_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

namespace routesim::models {
namespace {

/// The values that a family's configuration class fills in for numbers that its files leave out.
std::map<std::string, double> family_defaults(const std::string& type) {
  std::map<std::string, double> numbers;
  if (type.rfind("gemma", 0) == 0) numbers["tie_word_embeddings"] = 1;
  if (type != "gemma2" && type != "gemma3" && type != "gemma3_text") return numbers;
  const bool third = type != "gemma2";
  numbers["vocab_size"] = third ? 262208 : 256000;
  numbers["num_attention_heads"] = 8;
  numbers["num_key_value_heads"] = 4;
  numbers["head_dim"] = 256;
  numbers["max_position_embeddings"] = third ? 131072 : 8192;
  numbers["sliding_window"] = 4096;
  numbers["sliding_window_pattern"] = third ? 6 : 2;
  return numbers;
}

/// Looks keys up at the top level, then inside the text part of a multimodal config, then among the
/// defaults of its family.
class Reader {
 public:
  Reader(const HfConfig& config, Diagnostics& out) : config_(config), out_(out) {
    const std::string inner = text("text_config.model_type");
    defaults_ = family_defaults(inner.empty() ? text("model_type") : inner);
  }

  std::optional<double> number(const std::string& key) const {
    const double* found = find(config_.numbers, key);
    if (found == nullptr) found = find(defaults_, key);
    return found != nullptr ? std::optional(*found) : std::nullopt;
  }

  std::string text(const std::string& key) const {
    const std::string* const found = find(config_.strings, key);
    return found != nullptr ? *found : std::string();
  }

  std::vector<std::string> list(const std::string& key) const {
    const std::vector<std::string>* const found = find(config_.lists, key);
    return found != nullptr ? *found : std::vector<std::string>();
  }

  /// The first number that is not zero, or list, under a key that begins with `prefix`, or "".
  std::string first_with(const std::string& prefix) const {
    for (const std::string& start : {prefix, "text_config." + prefix}) {
      for (auto it = config_.numbers.lower_bound(start);
           it != config_.numbers.end() && it->first.rfind(start, 0) == 0; ++it)
        if (it->second != 0) return it->first;
      const auto it = config_.lists.lower_bound(start);
      if (it != config_.lists.end() && it->first.rfind(start, 0) == 0) return it->first;
    }
    return {};
  }

  /// Names of the numbers, other than zero, at the level that describes the text model.
  std::vector<std::string> own_numbers() const {
    constexpr std::string_view kText = "text_config.";
    std::vector<std::string> keys;
    for (const auto& [path, value] : config_.numbers) {
      const std::string key = path.starts_with(kText) ? path.substr(kText.size()) : path;
      if (value != 0 && key.find('.') == std::string::npos) keys.push_back(key);
    }
    return keys;
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

  Diagnostics& out() { return out_; }

 private:
  /// At the top level, or else in the text part; null when it is in neither.
  template <class Value>
  static const Value* find(const std::map<std::string, Value>& values, const std::string& key) {
    for (const std::string& path : {key, "text_config." + key})
      if (const auto it = values.find(path); it != values.end()) return &it->second;
    return nullptr;
  }

  const HfConfig& config_;
  Diagnostics& out_;
  std::map<std::string, double> defaults_;
};

void read_experts(Reader& in, ModelSpec& m) {
  m.experts =
      in.integer({"n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts"}, 0);
  if (m.experts == 0) return;
  m.experts_per_token = in.integer({"num_experts_per_tok", "num_experts_per_token",
                                    "experts_per_token", "top_k_experts", "moe_topk", "moe_top_k"},
                                   0);
  if (m.experts_per_token == 0)
    in.out().error({}, "num_experts_per_tok", "is missing from the model's config.json");
  m.expert_ffn = in.integer({"moe_intermediate_size"}, m.ffn);
  m.dense_layers = in.integer({"first_k_dense_replace"}, 0);
  m.shared_experts = in.integer({"n_shared_experts", "num_shared_experts"}, 0);
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

/// Kinds of layers that keep something else than the keys and values of each token, or not for all
/// heads or layers alike, by the keys they bring along.
struct OtherLayers {
  const char* prefix;
  const char* what;
};
constexpr std::array<OtherLayers, 14> kOtherLayers = {{
    {"linear_", "linear attention"},
    {"mamba_", "state-space layers"},
    {"ssm_", "state-space layers"},
    {"index_topk", "sparse attention"},
    {"sparse_", "sparse attention"},
    {"use_sparse_attention", "sparse attention"},
    {"compress_ratios", "compressed keys and values"},
    {"swa_", "windowed layers with heads of their own"},
    {"hybrid_layer_pattern", "layers of several kinds"},
    {"global_head_dim", "layers with heads of another size"},
    {"num_global_key_value_heads", "layers with heads of their own"},
    {"num_kv_shared_layers", "layers that share their keys and values"},
    {"cla_share_factor", "layers that share their keys and values"},
    {"block_configs", "layers that differ from one another"},
}};

/// Keys about attention or the cache that change neither bytes nor operations as they are
/// simulated.
constexpr std::array<const char*, 23> kHarmlessKeys = {"decoder_sparse_step",
                                                       "num_attention_heads",
                                                       "attention_bias",
                                                       "attention_dropout",
                                                       "attention_out_bias",
                                                       "attention_head_dim",
                                                       "attention_probs",
                                                       "attention_multiplier",
                                                       "attention_value_scale",
                                                       "attention_output_gate",
                                                       "attention_chunk_size",
                                                       "attn_output_gate",
                                                       "attn_logit_softcapping",
                                                       "attn_scale",
                                                       "attn_temperature",
                                                       "attn_pdrop",
                                                       "add_",
                                                       "cross_attention_",
                                                       "output_attentions",
                                                       "sliding_window",
                                                       "use_",
                                                       "max_window_layers",
                                                       "kv_lora_rank"};

/// A key that may be about another kind of attention or of cache, and that nobody here knows.
bool is_unknown_attention(std::string_view key) {
  constexpr std::array<std::string_view, 6> kParts = {"attn", "attention", "window",
                                                      "kv_",  "cache",     "sparse"};
  return std::any_of(kParts.begin(), kParts.end(),
                     [key](std::string_view p) { return key.find(p) != std::string_view::npos; }) &&
         std::none_of(kHarmlessKeys.begin(), kHarmlessKeys.end(),
                      [key](std::string_view k) { return key.starts_with(k); });
}

/// Routing that differs from layer to layer is refused, too.
void refuse_other_layers(Reader& in) {
  constexpr const char* kHint = "write the model as a catalogue entry of what comes closest";
  for (const OtherLayers& other : kOtherLayers)
    if (const std::string key = in.first_with(other.prefix); !key.empty())
      in.out().error({}, key, "stands for " + std::string(other.what) + ", which is not simulated",
                     kHint);
  if (!in.out().has_errors())
    for (const std::string& key : in.own_numbers())
      if (is_unknown_attention(key))
        in.out().warning(
            {}, key, "is not known here and changes nothing: it may be about another attention");
  for (const std::string& kind : in.list("layer_types"))
    if (kind != "full_attention" && kind != "sliding_attention" && kind != "chunked_attention") {
      in.out().error({}, "layer_types", "has layers that are not simulated (got \"" + kind + "\")",
                     kHint);
      break;
    }
  if (in.integer({"decoder_sparse_step"}, 1) > 1)
    in.out().error({}, "decoder_sparse_step", "must be 1: experts in every layer", kHint);
}

/// Llama 4 states neither its shared expert nor which layers look at chunks only.
void read_llama_4(Reader& in, ModelSpec& m) {
  m.shared_experts = 1;
  const std::int64_t step = std::max<std::int64_t>(1, in.integer({"interleave_moe_layer_step"}, 1));
  m.dense_layers = m.layers - m.layers / step;
  m.ffn = m.dense_layers > 0 ? in.integer({"intermediate_size_mlp"}, 0) : 0;
  m.sliding_window = in.integer({"attention_chunk_size"}, 8192);
  const std::int64_t interval =
      std::max<std::int64_t>(1, in.integer({"no_rope_layer_interval"}, 4));
  m.sliding_layers = m.layers - m.layers / interval;
  m.chunked_windows = true;
}

void read_windows(Reader& in, ModelSpec& m) {
  const std::int64_t window = in.integer({"sliding_window"}, 0);
  if (window == 0 || in.integer({"use_sliding_window"}, 1) == 0) return;
  m.sliding_window = window;
  m.sliding_layers = m.layers;  // Mistral: every layer, unless something says otherwise.
  const std::vector<std::string> types = in.list("layer_types");
  const std::int64_t pattern = in.integer({"sliding_window_pattern"}, 0);
  if (!types.empty())
    m.sliding_layers = std::count(types.begin(), types.end(), "sliding_attention");
  else if (pattern > 0)
    m.sliding_layers = m.layers - m.layers / pattern;
  if (m.sliding_layers == 0) m.sliding_window = 0;
}

/// The projections of attention are among what a quantised checkpoint leaves as it was: all by one
/// pattern, or those of most layers by their numbers.
bool leaves_attention(Reader& in, std::int64_t layers) {
  std::set<std::string> numbered;
  for (const char* key : {"quantization_config.ignore", "quantization_config.exclude_modules",
                          "quantization_config.modules_to_not_convert"})
    for (const std::string& module : in.list(key)) {
      if (module.find("self_attn") == std::string::npos || module.starts_with("vision_")) continue;
      const std::size_t at = module.find("layers.");
      const std::string number =
          at == std::string::npos
              ? ""
              : module.substr(at + 7, module.find_first_not_of("0123456789", at + 7) - at - 7);
      if (number.empty()) return true;
      numbered.insert(number);
    }
  return 2 * std::ssize(numbered) > layers;
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
  const bool eight_bit_products =
      group_bits == 8 && in.text(path + "type") == "int" &&
      in.number("quantization_config.config_groups.group_0.input_activations.num_bits") == 8;
  const std::string algorithm = in.text("quantization_config.quant_algo");
  const bool four_bit_float = group_bits == 4 && in.text(path + "type") == "float" &&
                              in.number(path + "group_size").value_or(16) == 16;
  m.bf16_attention = leaves_attention(in, m.layers);
  if (method == "fp8" || method == "fbgemm_fp8" || eight_bit_float || algorithm == "FP8") {
    m.weights = WeightDtype::kFp8;
    m.scaled_blocks = !in.list("quantization_config.weight_block_size").empty() ||
                      in.text(path + "strategy") == "block";
  } else if (method == "mxfp4") {
    m.weights = WeightDtype::kMxfp4;
  } else if (four_bit_float || algorithm == "NVFP4") {
    m.weights = WeightDtype::kNvfp4;
  } else if (four_bit_integer) {
    m.weights = WeightDtype::kInt4;
  } else if (eight_bit_products) {
    m.weights = WeightDtype::kFp8;
    in.out().warning({}, path + "type",
                     "int8 is taken for fp8: as large, and as fast on a GPU that has both");
  } else {
    in.out().error(
        {}, "quantization_config.quant_method",
        "is a weight format without a size here (got \"" + method + "\")",
        "use bf16, fp8, mxfp4, nvfp4 or int4 weights, or write the model as a catalogue entry");
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
  if (in.text("model_type").rfind("llama4", 0) == 0) read_llama_4(in, m);
  refuse_other_layers(in);
  read_weights(in, m);
  if (!found.has_errors()) check_model(m, found);
  for (const Diagnostic& d : found.items()) diagnostics.add(d);
  if (found.has_errors()) return std::nullopt;
  return m;
}

}  // namespace routesim::models
