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

  /// How many elements of the list `key` are `value`.
  std::int64_t count(const std::string& key, std::string_view value) const {
    const std::vector<std::string> all = list(key);
    return std::count(all.begin(), all.end(), value);
  }

  /// Paths and values of the strings whose path holds `part`.
  std::vector<std::pair<std::string, std::string>> strings_with(std::string_view part) const {
    std::vector<std::pair<std::string, std::string>> found;
    for (const auto& [path, value] : config_.strings)
      if (path.find(part) != std::string::npos) found.emplace_back(path, value);
    return found;
  }

  /// Names of the numbers, other than zero, at the level that describes the text model, and of maps
  /// there, with a dot behind.
  std::set<std::string> own_keys() const {
    constexpr std::string_view kText = "text_config.";
    std::set<std::string> keys;
    for (const auto& [path, value] : config_.numbers) {
      const std::string key = path.starts_with(kText) ? path.substr(kText.size()) : path;
      const std::size_t dot = key.find('.');
      if (value != 0) keys.insert(dot == key.npos ? key : key.substr(0, dot + 1));
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

/// Layers with a dense MLP in a model with experts: the leading ones, and those that a list or a
/// stride names.
std::int64_t dense_layers(Reader& in, const ModelSpec& m) {
  if (const auto zeros = in.count("moe_layer_freq", "0"); !in.list("moe_layer_freq").empty())
    return zeros;
  if (!in.list("mlp_layer_types").empty()) return in.count("mlp_layer_types", "dense");
  const std::int64_t first = in.integer({"first_k_dense_replace"}, 0);
  const std::int64_t stride = std::max<std::int64_t>(1, in.integer({"moe_layer_freq"}, 1));
  const std::int64_t experts = (m.layers + stride - 1) / stride - (first + stride - 1) / stride;
  return m.layers - experts + std::ssize(in.list("mlp_only_layers"));
}

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
  m.expert_hidden = in.integer({"moe_latent_size", "routed_expert_hidden_size"}, 0);
  m.dense_layers = dense_layers(in, m);
  m.shared_experts = in.integer({"n_shared_experts", "num_shared_experts"}, 0);
  // Some give the width of their shared experts instead of a count, or besides. Gemma 4 has a dense
  // MLP beside the experts of every layer.
  std::int64_t width = in.integer({"shared_expert_intermediate_size",
                                   "moe_shared_expert_intermediate_size", "share_expert_dim"},
                                  0);
  if (in.integer({"enable_moe_block"}, 0) != 0) width = m.ffn;
  if (width > 0 && m.expert_ffn > 0) m.shared_experts = width / m.expert_ffn;
  m.ffn = m.dense_layers > 0 ? in.integer({"dense_intermediate_size"}, m.ffn) : 0;
}

/// DeepSeek V4: one key serves all heads and is the value, too. Each layer keeps a window of whole
/// tokens and, but for those of ratio 0, an entry for `ratio` tokens; those of 4 are selected from.
void read_compressed(Reader& in, ModelSpec& m) {
  m.rope_dim = in.required("qk_rope_head_dim");
  m.v_head_dim = in.required("head_dim");
  m.head_dim = m.kv_lora_rank = m.v_head_dim - m.rope_dim;
  m.o_lora_rank = in.required("o_lora_rank");
  m.o_groups = in.required("o_groups");
  m.sliding_layers = m.layers;
  std::vector<std::string> ratios = in.list("compress_ratios");
  ratios.resize(std::min(ratios.size(), static_cast<std::size_t>(m.layers)));  // Then MTP layers.
  const auto of = [&](const char* ratio) {
    return std::count(ratios.begin(), ratios.end(), ratio);
  };
  if (of("0") + of("4") + of("128") != m.layers)
    in.out().error({}, "compress_ratios", "must be 0, 4 or 128 for each layer",
                   "layers that compress otherwise are not simulated");
  if (of("4") > 0) m.compressed.push_back({.ratio = 4, .layers = of("4")});
  if (of("128") > 0) m.compressed.push_back({.ratio = 128, .layers = of("128")});
  m.sparse.layers = m.sparse.index_layers = of("4");
}

void read_attention(Reader& in, ModelSpec& m) {
  m.heads = in.required("num_attention_heads");
  m.kv_lora_rank = in.integer({"kv_lora_rank"}, 0);
  m.q_lora_rank = in.integer({"q_lora_rank"}, 0);
  m.gated_attention =
      in.integer({"attn_output_gate", "attention_output_gate", "mla_use_output_gate"}, 0) != 0 ||
      in.text("model_type") == "qwen3_next";
  m.mtp_layers =
      in.integer({"num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules"}, 0);
  if (in.number("o_lora_rank")) return read_compressed(in, m);
  if (m.is_mla()) {
    m.rope_dim = in.required("qk_rope_head_dim");
    m.head_dim = in.required("qk_nope_head_dim");
    m.v_head_dim = in.required("v_head_dim");
    return;
  }
  m.q_lora_rank = 0;
  m.kv_heads = in.integer({"num_key_value_heads"}, m.heads);
  m.head_dim = in.integer({"head_dim", "attention_head_dim"}, m.heads > 0 ? m.hidden / m.heads : 0);
  m.v_head_dim = in.integer({"v_head_dim"}, 0);
  if (m.v_head_dim == m.head_dim) m.v_head_dim = 0;
}

/// Layers that read selected tokens only. DeepSeek's indexer keeps keys of 128 bytes in fp8 with a
/// scale of 4 (DeepseekV32IndexerCache in vllm/model_executor/models/deepseek_v2.py of v0.24.0);
/// MiniMax's, which selects whole blocks, keeps them in bf16 (minimax_m3/common/indexer.py of
/// v0.27.1).
void read_sparse(Reader& in, ModelSpec& m) {
  const std::string msa = "sparse_attention_config.";
  SparseLayers& s = m.sparse;
  if (const std::int64_t top_k = in.integer({"index_topk"}, 0); top_k > 0 && m.is_mla()) {
    s.top_k = top_k;
    s.index_heads = in.required("index_n_heads");
    s.index_dim = in.required("index_head_dim");
    s.index_key_bytes = s.index_dim + s.index_dim / 128 * 4;
    if (!m.compressed.empty()) return;
    s.layers = m.layers;
    s.index_layers =
        in.list("indexer_types").empty() ? m.layers : in.count("indexer_types", "full");
  } else if (in.number("sparse_attention_config.sparse_topk_blocks")) {
    s.top_k = in.required("sparse_attention_config.sparse_topk_blocks") *
              in.required("sparse_attention_config.sparse_block_size");
    s.index_heads = in.required("sparse_attention_config.sparse_num_index_heads");
    s.index_dim = in.required("sparse_attention_config.sparse_index_dim");
    s.index_key_bytes = 2 * s.index_dim;
    s.layers = s.index_layers = in.count(msa + "sparse_attention_freq", "1");
  }
}

/// Gated delta nets: Qwen3-Next, Qwen3.5 and their successors. In vLLM their state is in fp32 where
/// the file says so, else in the format of the model (mamba_ssm_cache_dtype).
void read_delta_nets(Reader& in, ModelSpec& m) {
  StateLayers& s = m.state;
  s.layers = in.count("layer_types", "linear_attention");
  if (const std::int64_t every = in.integer({"full_attention_interval"}, 0);
      in.list("layer_types").empty() && every > 0)
    s.layers = m.layers - m.layers / every;
  s.heads = in.required("linear_num_value_heads");
  s.value_dim = in.required("linear_value_head_dim");
  s.groups = in.required("linear_num_key_heads");
  s.key_dim = in.required("linear_key_head_dim");
  s.conv = in.integer({"linear_conv_kernel_dim"}, 4);
  s.gates = 2 * s.heads;
  s.bf16_state = in.text("mamba_ssm_dtype") != "float32";
}

/// Kimi's delta attention: Kimi Linear and Kimi K3. Its decay comes from a factored projection.
void read_kda(Reader& in, ModelSpec& m) {
  const std::string kda = "linear_attn_config.";
  StateLayers& s = m.state;
  s.layers = std::ssize(in.list(kda + "kda_layers"));
  s.heads = s.groups = in.required("linear_attn_config.num_heads");
  s.value_dim = s.key_dim = in.required("linear_attn_config.head_dim");
  s.conv = in.integer({"linear_attn_config.short_conv_kernel_size"}, 4);
  s.gates = s.heads + s.key_dim;
}

/// Nemotron-H: every layer is a Mamba 2, an attention, experts or a dense MLP alone, by a letter or
/// a word each.
void read_nemotron_h(Reader& in, ModelSpec& m) {
  const std::string letters = in.text("hybrid_override_pattern");
  const auto of = [&](char letter, const char* word) {
    return std::count(letters.begin(), letters.end(), letter) + in.count("layers_block_type", word);
  };
  const std::int64_t experts = of('E', "moe"), dense = of('-', "mlp");
  StateLayers& s = m.state;
  s.layers = of('M', "mamba");
  m.mlp_free_layers = s.layers + of('*', "attention");
  m.attention_free_layers = experts + dense;
  m.layers = m.mlp_free_layers + m.attention_free_layers;
  m.plain_mlp = in.text("mlp_hidden_act") == "relu2";
  s.heads = in.required("mamba_num_heads");
  s.value_dim = in.required("mamba_head_dim");
  s.groups = in.required("n_groups");
  s.key_dim = in.required("ssm_state_size");
  s.conv = in.integer({"conv_kernel"}, 4);
  s.gates = s.heads;
  const std::string format = in.text("mamba_ssm_cache_dtype");
  s.bf16_state = format == "bfloat16" || format == "float16";
  read_experts(in, m);
  m.dense_layers = m.is_moe() ? dense : 0;
  if (m.is_moe() && dense == 0) m.ffn = 0;
}

/// Nemotron's searched architectures: layers without attention, and MLPs of many widths, which are
/// simulated as ones of the mean width.
void read_block_configs(Reader& in, ModelSpec& m) {
  const double unit = 2.0 / 3.0 * as_real(m.hidden);
  double width = 0;
  for (std::int64_t i = 0; i < m.layers; ++i) {
    const std::string block = "block_configs." + std::to_string(i) + ".";
    for (const char* part : {"attention.replace_with_linear", "ffn.replace_with_linear"})
      if (in.number(block + part).value_or(0) != 0)
        in.out().error({}, block + part,
                       "stands for layers that are one product, which are not "
                       "simulated");
    if (in.number(block + "attention.no_op").value_or(0) != 0)
      ++m.attention_free_layers;
    else if (const auto group = in.number(block + "attention.n_heads_in_group"); group > 0)
      m.kv_heads = static_cast<std::int64_t>(as_real(m.heads) / *group);
    if (in.number(block + "ffn.no_op").value_or(0) != 0)
      ++m.mlp_free_layers;
    else
      width += std::ceil(in.number(block + "ffn.ffn_mult").value_or(0) * unit / 256) * 256;
  }
  if (m.mlp_layers() > 0) m.ffn = std::llround(width / as_real(m.mlp_layers()) / 256) * 256;
}

/// Windowed layers with heads of their own, or layers that see everything with such: Gemma 4 and
/// MiMo-V2.
void read_other_heads(Reader& in, ModelSpec& m) {
  const std::int64_t dim = in.integer({"global_head_dim"}, 0);
  if (dim > 0 && in.count("layer_types", "sliding_attention") > 0) {
    m.sliding_kv_heads = m.kv_heads;
    m.sliding_head_dim = m.head_dim;
    m.head_dim = dim;
    m.kv_heads = in.integer({"num_global_key_value_heads"}, m.kv_heads);
  }
  m.shared_values = in.integer({"attention_k_eq_v"}, 0) != 0;
  if (std::ssize(in.list("hybrid_layer_pattern")) != m.layers) return;
  m.sliding_layers = in.count("hybrid_layer_pattern", "1");
  m.sliding_kv_heads = in.integer({"swa_num_key_value_heads"}, m.kv_heads);
  m.sliding_head_dim = in.integer({"swa_head_dim"}, m.head_dim);
  for (const auto& [key, own] :
       {std::pair{"swa_num_attention_heads", m.heads}, std::pair{"swa_v_head_dim", m.v_head_dim}})
    if (const std::int64_t other = in.integer({key}, own); other != own)
      in.out().error({}, key,
                     "must be as in the other layers, " + std::to_string(own) + " (got " +
                         std::to_string(other) + ")");
}

/// Kinds of layers that keep something else than the keys and values of each token, or not for all
/// heads or layers alike, by the keys they bring along.
enum class LayerKind { kNone, kState, kSparse, kCompressed, kHeads, kBlocks };
struct OtherLayers {
  const char* prefix;
  const char* what;
  LayerKind kind;  ///< What the reader makes of such keys where it knows the others, too.
};
constexpr std::array<OtherLayers, 15> kOtherLayers = {{
    {"linear_", "linear attention", LayerKind::kState},
    {"mamba_", "state-space layers", LayerKind::kState},
    {"ssm_", "state-space layers", LayerKind::kState},
    {"index_topk", "sparse attention", LayerKind::kSparse},
    {"sparse_attention_config.use_sparse_attention", "sparse attention", LayerKind::kSparse},
    {"use_sparse_attention", "sparse attention", LayerKind::kSparse},
    {"compress_ratios", "compressed keys and values", LayerKind::kCompressed},
    {"swa_", "windowed layers with heads of their own", LayerKind::kHeads},
    {"hybrid_layer_pattern", "layers of several kinds", LayerKind::kHeads},
    {"global_head_dim", "layers with heads of another size", LayerKind::kHeads},
    {"num_global_key_value_heads", "layers with heads of their own", LayerKind::kHeads},
    {"num_kv_shared_layers", "layers that share their keys and values", LayerKind::kNone},
    {"cla_share_factor", "layers that share their keys and values", LayerKind::kNone},
    {"hidden_size_per_layer_input", "embeddings of their own in every layer", LayerKind::kNone},
    {"block_configs", "layers that differ from one another", LayerKind::kBlocks},
}};

/// The model has layers of this kind, read from keys that are known.
bool was_read(const ModelSpec& m, LayerKind kind) {
  switch (kind) {
    case LayerKind::kState:
      return m.state.layers > 0;
    case LayerKind::kSparse:
      return m.sparse.layers > 0;
    case LayerKind::kCompressed:
      return !m.compressed.empty();
    case LayerKind::kHeads:
      return m.sliding_head_dim > 0;
    case LayerKind::kBlocks:
      return m.attention_free_layers + m.mlp_free_layers > 0;
    case LayerKind::kNone:
      break;
  }
  return false;
}

/// Keys about attention or the cache that change neither bytes nor operations as they are
/// simulated.
constexpr std::array<const char*, 27> kHarmlessKeys = {"decoder_sparse_step",
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
                                                       "full_attention_interval",
                                                       "attention_k_eq_v",
                                                       "attn_res_block_size",
                                                       "swa_",
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
void refuse_other_layers(Reader& in, const ModelSpec& m) {
  constexpr const char* kHint = "write the model as a catalogue entry of what comes closest";
  for (const OtherLayers& other : kOtherLayers)
    if (const std::string key = in.first_with(other.prefix);
        !key.empty() && !was_read(m, other.kind))
      in.out().error({}, key, "stands for " + std::string(other.what) + ", which is not simulated",
                     kHint);
  // 0 are MiniMax's lightning layers.
  if (in.count("attn_type_list", "0") > 0)
    in.out().error({}, "attn_type_list", "has lightning attention layers, which are not simulated",
                   kHint);
  const bool others = in.out().has_errors();
  for (const std::string& key : in.own_keys()) {
    if (others || !is_unknown_attention(key)) continue;
    const LayerKind kind = key.starts_with("sparse") ? LayerKind::kSparse : LayerKind::kState;
    if (!key.ends_with('.'))
      in.out().warning({}, key,
                       "is not known here and changes nothing: it may be about another attention");
    else if (!was_read(m, kind))
      in.out().error({}, key.substr(0, key.size() - 1), "is about an unknown attention", kHint);
  }
  for (const std::string& kind : in.list("layer_types"))
    if (kind != "full_attention" && kind != "sliding_attention" && kind != "chunked_attention" &&
        !(kind == "linear_attention" && m.state.layers > 0) &&
        !(kind == "deepseek_sparse_attention" && m.sparse.layers > 0)) {
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
  if (m.sliding_layers > 0) return;  // Known already.
  m.sliding_layers = m.layers;       // Mistral: every layer, unless something says otherwise.
  const std::vector<std::string> types = in.list("layer_types");
  const std::int64_t pattern = in.integer({"sliding_window_pattern"}, 0);
  if (!types.empty())
    m.sliding_layers = std::count(types.begin(), types.end(), "sliding_attention");
  else if (pattern > 0)
    m.sliding_layers = m.layers - m.layers / pattern;
  if (m.sliding_layers == 0) m.sliding_window = 0;
}

/// Modules with one of `names` in their path are among what a quantised checkpoint leaves as it
/// was: all by one pattern, or those of most layers by their numbers.
bool leaves(Reader& in, std::initializer_list<std::string_view> names, std::int64_t layers) {
  std::set<std::string> numbered;
  for (const char* key : {"quantization_config.ignore", "quantization_config.exclude_modules",
                          "quantization_config.modules_to_not_convert"})
    for (const std::string& module : in.list(key)) {
      const auto holds = [&](std::string_view part) { return module.find(part) != module.npos; };
      if (std::none_of(names.begin(), names.end(), holds) || module.starts_with("vision_") ||
          holds("norm") || holds("indexer") || holds("_gate") || holds("mtp"))
        continue;
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

/// The format that NVIDIA's Model Optimizer calls so, with a scale per block or one.
std::optional<WeightDtype> optimizer_format(std::string_view name) {
  if (name.find("NVFP4") != name.npos) return WeightDtype::kNvfp4;
  if (name.find("FP8") != name.npos) return WeightDtype::kFp8;
  return std::nullopt;
}

/// A format for each module: the experts, or the MLPs of a dense model, have one, and most of the
/// others another.
void read_mixed_weights(Reader& in, ModelSpec& m) {
  std::map<WeightDtype, std::int64_t> experts, others;
  for (const auto& [path, name] : in.strings_with("quantized_layers.")) {
    const std::optional<WeightDtype> format = optimizer_format(name);
    if (!format || path.find("lm_head") != path.npos) continue;
    const bool routed = m.is_moe()
                            ? path.find("experts") != path.npos && path.find("shared") == path.npos
                            : path.find(".mlp.") != path.npos;
    const bool attention = path.find("attn") != path.npos || path.find("_proj") != path.npos;
    if (routed || attention) ++(routed ? experts : others)[*format];
    if (name == "MXFP8") m.scaled_blocks = true;
  }
  const auto most = [](const std::map<WeightDtype, std::int64_t>& counts) {
    return std::max_element(counts.begin(), counts.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; })
        ->first;
  };
  if (others.empty() && experts.empty()) {
    in.out().error({}, "quantization_config.quantized_layers", "names no format that is known");
    return;
  }
  m.weights = most(experts.empty() ? others : experts);
  if (m.is_moe() && !others.empty() && most(others) != m.weights) m.dense_weights = most(others);
}

/// Parts that the checkpoint keeps in bf16, or in fp8 beside experts in four bits.
void read_dense_weights(Reader& in, ModelSpec& m) {
  m.bf16_attention =
      leaves(in, {"self_attn", "linear_attn", ".attn."}, m.layers - m.attention_free_layers);
  if (m.weights == WeightDtype::kBf16 || !m.is_moe()) return;
  if (m.bf16_attention && m.shared_experts > 0 &&
      leaves(in, {"shared_expert", ".mlp*"}, m.moe_layers())) {
    m.dense_weights = WeightDtype::kBf16;
    m.bf16_attention = false;
  }
}

void read_weights(Reader& in, ModelSpec& m) {
  const std::string method = in.text("quantization_config.quant_method");
  const std::string algorithm = in.text("quantization_config.quant_algo");
  if (method.empty() && algorithm.empty()) return;
  const std::string path = "quantization_config.config_groups.group_0.weights.";
  const double group_bits = in.number(path + "num_bits").value_or(0);
  const bool eight_bit_float = group_bits == 8 && in.text(path + "type") == "float";
  const bool four_bit_integer = (group_bits == 4 && in.text(path + "type") == "int") ||
                                ((method == "awq" || method == "gptq") &&
                                 in.number("quantization_config.bits").value_or(4) == 4);
  const bool eight_bit_products =
      group_bits == 8 && in.text(path + "type") == "int" &&
      in.number("quantization_config.config_groups.group_0.input_activations.num_bits") == 8;
  const bool four_bit_float = group_bits == 4 && in.text(path + "type") == "float" &&
                              in.number(path + "group_size").value_or(16) == 16;
  const bool shared_scales =
      group_bits == 4 && in.text("quantization_config.format").starts_with("mxfp4");
  const std::string of_experts = in.text("quantization_config.moe_quant_algo");
  if (algorithm == "MIXED_PRECISION" && of_experts.empty()) return read_mixed_weights(in, m);
  if (method == "fp8" || method == "fbgemm_fp8" || eight_bit_float || algorithm == "FP8") {
    m.weights = WeightDtype::kFp8;
    m.scaled_blocks = !in.list("quantization_config.weight_block_size").empty() ||
                      in.text(path + "strategy") == "block";
    if (in.text("expert_dtype") == "fp4") {
      m.dense_weights = m.weights;
      m.weights = optimizer_format(of_experts).value_or(WeightDtype::kMxfp4);
      return;
    }
  } else if (method == "mxfp4" || shared_scales) {
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
  read_dense_weights(in, m);
}

}  // namespace

std::optional<ModelSpec> model_from_hf_config(const std::string& name, const HfConfig& config,
                                              Diagnostics& diagnostics) {
  Diagnostics found;
  Reader in(config, found);
  ModelSpec m;
  m.name = name;
  m.source = "config.json of " + name;
  const bool nemotron_h = in.text("model_type") == "nemotron_h";
  m.layers = nemotron_h ? 0 : in.required("num_hidden_layers");
  m.hidden = in.required("hidden_size");
  m.vocab = in.required("vocab_size");
  m.ffn = in.integer({"intermediate_size"}, 0);
  m.max_context = in.integer({"max_position_embeddings"}, 0);
  m.tied_embeddings = in.integer({"tie_word_embeddings"}, 0) != 0;
  read_attention(in, m);
  read_sparse(in, m);
  if (nemotron_h)
    read_nemotron_h(in, m);
  else
    read_experts(in, m);
  if (in.number("linear_num_value_heads")) read_delta_nets(in, m);
  if (!in.list("linear_attn_config.kda_layers").empty()) read_kda(in, m);
  if (in.number("block_configs.0.ffn.no_op")) read_block_configs(in, m);
  read_other_heads(in, m);
  read_windows(in, m);
  if (in.text("model_type").rfind("llama4", 0) == 0) read_llama_4(in, m);
  refuse_other_layers(in, m);
  read_weights(in, m);
  if (!found.has_errors()) check_model(m, found);
  for (const Diagnostic& d : found.items()) diagnostics.add(d);
  if (found.has_errors()) return std::nullopt;
  return m;
}

}  // namespace routesim::models
