// The hardware and the models: the numbers a capacity or step-time formula needs, as data with a
// source each. Prices are inputs of a scenario and never stand here.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/describe.h"
#include "base/diagnostic.h"

namespace routesim::models {

constexpr double as_real(std::int64_t n) { return static_cast<double>(n); }

/// How the weights are stored. Embeddings, norms and routers stay in bf16 in every format.
/// Int4 is the four-bit integer of AWQ and GPTQ, widened to bf16 on the way to the product. NVFP4
/// is multiplied as it is by GPUs with fp4 products, by activations quantised to match, and widened
/// by the others; MXFP4 is always widened.
enum class WeightDtype { kBf16, kFp8, kMxfp4, kInt4, kNvfp4 };

/// How KV-cache entries are stored.
enum class KvDtype { kBf16, kFp8 };

/// Whose kernels and whose host a step has.
enum class ServingEngine { kVllm, kSglang };

}  // namespace routesim::models

namespace routesim {
template <>
struct EnumNames<models::WeightDtype> {
  static constexpr std::array<std::string_view, 5> value = {"bf16", "fp8", "mxfp4", "int4",
                                                            "nvfp4"};
};
template <>
struct EnumNames<models::KvDtype> {
  static constexpr std::array<std::string_view, 2> value = {"bf16", "fp8"};
};
}  // namespace routesim

namespace routesim::models {

/// Bytes per stored weight: 2, 1, 17/32 (4-bit values with one shared 8-bit scale per 32), 0.5 +
/// 2.5/128 (4-bit integers with a 16-bit scale and a 4-bit zero per 128), and 9/16 (4-bit values
/// with an 8-bit scale per 16).
double bytes_per_weight(WeightDtype dtype);

struct ModelSpec;

/// Bytes of all that every token visits, the gates of experts and the vocabulary apart: attention,
/// dense MLPs and shared experts.
double trunk_bytes(const ModelSpec& model);

/// Bytes per KV element: 2 or 1.
std::int64_t bytes_per_kv_element(KvDtype dtype);

/// One GPU in its usual server. Rates are per GPU; TFLOP/s are dense.
struct AcceleratorSpec {
  std::string name;
  std::string source;  ///< Where the numbers come from.
  std::vector<std::string> aliases =
      {};                      ///< Other spellings, matched without case and punctuation.
  double bf16_tflops = 0;      ///< Peak dense bf16.
  double fp8_tflops = 0;       ///< Peak dense fp8; 0 when the GPU has none (computes in bf16).
  double fp4_tflops = 0;       ///< Peak dense fp4; 0 when it has none, or nobody uses it.
  double memory_bytes = 0;     ///< Device memory as the driver reports it.
  double memory_tb_per_s = 0;  ///< Peak memory bandwidth, 10^12 bytes/s.
  double link_gb_per_s = 0;    ///< Scale-up link (NVLink, IF, PCIe) per direction, 10^9 bytes/s.
  double nic_gb_per_s = 0;     ///< Share of the node's network per GPU, 10^9 bytes/s.
  double host_link_gb_per_s = 25;  ///< Between GPU and host memory, per direction, 10^9 bytes/s.
  double overhead_bytes = 0;       ///< Contexts, communication buffers, allocator slack.
  double prefill_mfu = 0.6;        ///< Share of bf16 peak that large matrix products reach.
  double prefill_mfu_fp8 = 0.5;    ///< The same for fp8.
  double prefill_mfu_fp4 = 0.34;   ///< The same for fp4, quantising the activations included.
  double attention_mfu = 0.6;      ///< Share of bf16 peak of causal prefill attention.
  double weight_mbu = 0.8;         ///< Share of memory bandwidth when weights are streamed.
  double mxfp4_mbu = 0.45;         ///< The same for experts in MXFP4 or NVFP4.
  double fp8_expert_mbu = 0.65;    ///< The same for fp8 experts with a scale per block.
  double widening_tb_per_s = 0;  ///< At which a tile of an MXFP4 product widens; 0: no such kernel.
  double kv_mbu = 0.85;          ///< Share of memory bandwidth when KV blocks are read.
  double kv_mbu_fp8 = 0.85;      ///< The same for blocks in fp8, until vLLM's releases of 2026-H2.
  /// Rows of a tile of the attention kernel that a decode beside a prompt chunk computes for each
  /// of its heads, one of them needed (FlashAttention 2); 0: the kernel has a path for decodes.
  std::int64_t mixed_decode_rows = 0;
  double shared_context_weight = 1;  ///< Cost of a block that many sequences read (θ).
  double kernel_us = 3.0;            ///< Fixed time of one matrix product, besides the above.
  double layer_us = 15;              ///< Fixed time of a layer: norms, rotary, attention launch.
  double expert_layer_us = 20;       ///< Fixed time of a layer's routing, sorting, reducing.
  double scaled_product_us = 10;     ///< More where a product quantises its activations by block.
  double fp8_product_us = 0;         ///< The same where it quantises them as a whole, to fp8.
  double chunk_layer_us = 0;         ///< Per layer of a step with a prompt in it: no full graph.
  double gpu_step_ms = 0.8;          ///< Per step, outside the layers: inputs, sampler, launch.
  double host_step_ms = 0.7;         ///< Per step: scheduling, copies; asynchronously hidden.
  double host_sequence_ms = 0.06;    ///< Per sequence and step; 5 to 8 times more on 4 vCPUs.
  double one_gpu_sequence_ms = 0;    ///< The same without other GPUs to tell; 0: no less.
  double collective_us = 5.0;        ///< Latency of one all-reduce or all-to-all.
  double collective_efficiency = 0.65;  ///< Share of link_gb_per_s that collectives reach.
  bool switched_link = false;           ///< A switch joins the GPUs of a node (NVSwitch).
  bool measured = false;                ///< Its efficiencies come from measurements of it.
};

/// Another weight format that a model is published in, with what such checkpoints do differently.
struct WeightFormat {
  WeightDtype weights = WeightDtype::kFp8;
  bool scaled_blocks = false;   ///< As in ModelSpec.
  bool bf16_attention = false;  ///< As in ModelSpec.
};

/// Layers that keep a recurrent state of fixed size per sequence instead of keys and values: gated
/// delta nets, Kimi's delta attention, Mamba 2. All have a matrix of key_dim x value_dim per head
/// and the last inputs of a short convolution.
struct StateLayers {
  std::int64_t layers = 0;     ///< 0: the model has none.
  std::int64_t heads = 0;      ///< Heads with a state each.
  std::int64_t value_dim = 0;  ///< Width of a head's values.
  std::int64_t groups = 0;     ///< Heads of keys and queries; several value heads share one.
  std::int64_t key_dim = 0;    ///< Width of a head's keys; Mamba calls it the size of the state.
  std::int64_t conv = 0;       ///< Taps of the convolution.
  std::int64_t gates = 0;      ///< Columns of the small projections: decay, step, mixing.
  bool bf16_state = false;     ///< The state is kept in bf16, not in fp32.

  std::int64_t values() const { return heads * value_dim; }
  std::int64_t channels() const { return values() + 2 * groups * key_dim; }
};

/// Layers in which a token reads the `top_k` tokens that an indexer selects: DeepSeek's DSA,
/// MiniMax's MSA. Every token leaves one key of `index_dim` in each layer with an indexer.
struct SparseLayers {
  std::int64_t layers = 0;           ///< Layers that select, of those that see everything.
  std::int64_t top_k = 0;            ///< Entries that a token reads at most.
  std::int64_t index_layers = 0;     ///< Layers with an indexer; the others take over its choice.
  std::int64_t index_heads = 0;      ///< Query heads of the indexer.
  std::int64_t index_dim = 0;        ///< Width of its heads and of its key.
  std::int64_t index_key_bytes = 0;  ///< What the cache keeps of a key, with its scale.
};

/// Layers whose cache has one entry for `ratio` tokens, besides a window of whole ones (DeepSeek
/// V4). The first kind is the one that SparseLayers selects from.
struct CompressedLayers {
  std::int64_t ratio = 1;
  std::int64_t layers = 0;
};

/// A decoder-only transformer, by its architecture. Zero in a group of fields means "has none".
struct ModelSpec {
  std::string name = {};
  std::string source = {};
  std::vector<std::string> aliases = {};
  WeightDtype weights = WeightDtype::kBf16;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;     ///< Query heads.
  std::int64_t kv_heads = 0;  ///< Key/value heads (GQA); ignored with MLA.
  std::int64_t head_dim = 0;  ///< With MLA: the part of a query head without position (nope).
  std::int64_t ffn = 0;       ///< Width of a dense gated MLP.
  std::int64_t vocab = 0;
  std::int64_t max_context = 0;        ///< max_position_embeddings; the default of max_model_len.
  bool tied_embeddings = false;        ///< The output projection shares the embedding's weights.
  std::int64_t experts = 0;            ///< Routed experts per MoE layer; 0 for a dense model.
  std::int64_t experts_per_token = 0;  ///< Routed experts each token visits.
  std::int64_t shared_experts = 0;     ///< Experts every token visits.
  std::int64_t expert_ffn = 0;         ///< Width of one expert.
  std::int64_t dense_layers = 0;       ///< Leading layers with a dense MLP in a MoE model.
  std::int64_t kv_lora_rank = 0;       ///< MLA: width of the cached latent; 0 for MHA/GQA.
  std::int64_t q_lora_rank = 0;        ///< MLA: width of the query latent; 0 when not factored.
  std::int64_t rope_dim = 0;           ///< MLA: width of the cached positional key.
  std::int64_t v_head_dim = 0;         ///< Width of a value head; 0 without MLA: as head_dim.
  std::int64_t o_lora_rank = 0;        ///< MLA without an up-projection: width of a group's output.
  std::int64_t o_groups = 0;           ///< The groups of heads that have one each.
  bool shared_values = false;         ///< Layers that see everything project no values: keys serve.
  bool gated_attention = false;       ///< A projection of its own gates the output of attention.
  std::int64_t sliding_kv_heads = 0;  ///< Of windowed layers, if others; 0: as kv_heads.
  std::int64_t sliding_head_dim = 0;  ///< Of windowed layers, if another; 0: as head_dim.
  std::int64_t sliding_window = 0;    ///< Tokens a windowed layer looks back; 0 for none.
  std::int64_t sliding_layers = 0;    ///< How many of `layers` are windowed.
  bool chunked_windows = false;       ///< Windows are fixed chunks of the sequence (Llama 4).
  StateLayers state = {};
  SparseLayers sparse = {};
  std::vector<CompressedLayers> compressed = {};
  std::int64_t attention_free_layers = 0;  ///< Layers that are an MLP alone.
  std::int64_t mlp_free_layers = 0;        ///< Layers that are attention or a state alone.
  bool plain_mlp = false;                  ///< MLPs and experts have no gate: two projections.
  std::int64_t expert_hidden = 0;  ///< Width that routed experts read and write; 0: `hidden`.
  std::int64_t mtp_layers = 0;     ///< Layers that guess further tokens; loaded for that only.
  /// Format of all but the routed experts, if another than `weights`.
  std::optional<WeightDtype> dense_weights = {};
  /// fp8 weights with a scale per block of 128 x 128, and activations quantised to match before
  /// each product (DeepSeek, Qwen3, MiniMax); else one per tensor or channel.
  bool scaled_blocks = false;
  /// The projections of attention are in bf16 whatever the weights (DeepSeek in NVFP4).
  bool bf16_attention = false;
  double workspace_bytes = 0;  ///< Extra device memory its kernels are known to take.
  /// Other formats it is published in; the catalogue makes an entry of each.
  std::vector<WeightFormat> formats = {};

  bool is_moe() const { return experts > 0; }
  bool is_mla() const { return kv_lora_rank > 0; }
  std::int64_t mlp_layers() const { return layers - mlp_free_layers; }
  std::int64_t moe_layers() const { return is_moe() ? mlp_layers() - dense_layers : 0; }
  std::int64_t attention_layers() const { return layers - state.layers - attention_free_layers; }
  /// Layers whose KV grows with the sequence by an entry per token.
  std::int64_t full_layers() const { return attention_layers() - sliding_layers; }
  /// Layers as most models have them: one mixer of tokens and one MLP each.
  double whole_layers() const {
    return as_real(attention_layers() + state.layers + mlp_layers()) / 2;
  }
  /// Layers that decide how many tokens the KV cache holds: the growing ones, or all of them in a
  /// model whose every layer is windowed.
  std::int64_t kv_capacity_layers() const { return full_layers() > 0 ? full_layers() : layers; }
};

/// How one replica is spread over GPUs. tp·pp·dp GPUs in all.
struct Parallelism {
  std::int64_t tp = 1;  ///< Tensor parallel GPUs per rank.
  std::int64_t pp = 1;  ///< Pipeline stages.
  std::int64_t dp = 1;  ///< Data-parallel ranks, each with its own scheduler and KV cache.
  std::int64_t ep = 1;  ///< Expert-parallel group: 1 (experts sliced by tp) or tp·dp.
  /// Decode context parallel: so many of the tp GPUs share the KV of a sequence token by token.
  std::int64_t dcp = 1;

  std::int64_t gpus() const { return tp * pp * dp; }
  bool operator==(const Parallelism&) const = default;
};

/// Parameters by where they sit, whole model. Sum: total_parameters().
struct ParameterCount {
  double attention = 0;   ///< All layers' attention projections.
  double dense_mlp = 0;   ///< Dense layers' MLPs.
  double shared_mlp = 0;  ///< Shared experts.
  double routed_mlp = 0;  ///< All routed experts.
  double router = 0;      ///< Expert gates (bf16).
  double embedding = 0;   ///< Input embedding (bf16).
  double output = 0;      ///< Output projection (bf16); 0 when tied.
  double mtp = 0;         ///< Layers that guess further tokens; in no sum.
};

ParameterCount count_parameters(const ModelSpec& m);

/// All parameters of the model.
double total_parameters(const ModelSpec& m);

/// Parameters one token is multiplied with (matrix products, the output projection included).
double active_parameters(const ModelSpec& m);

/// Bytes of the whole model's weights.
double weight_bytes(const ModelSpec& m);

/// Bytes of the weights on the fullest GPU under `p`: everything but routed experts divides by
/// tp and pp; routed experts divide by tp·dp and pp, as slices or (ep) as whole experts, which is
/// vLLM's rule for MoE layers under data parallelism. DP ranks hold copies of the rest.
double weight_bytes_per_gpu(const ModelSpec& m, const Parallelism& p);

/// KV bytes one token adds, whole model, all layers that keep keys and values, windowed ones
/// included. GQA: 2·layers·kv_heads·head_dim·b. MLA: layers·(kv_lora_rank + rope_dim)·b.
std::int64_t kv_bytes_per_token(const ModelSpec& m, KvDtype dtype);

/// Reports each way `p` cannot serve `m`: degrees that do not divide, pipeline deeper than the
/// model, ep on a dense model. Paths are relative: "tp", "ep". True when nothing was reported.
bool check_parallelism(const ModelSpec& m, const Parallelism& p, Diagnostics& diagnostics);

/// Reports missing or contradictory architecture fields of a user's entry.
bool check_model(const ModelSpec& m, Diagnostics& diagnostics);

/// Reports a user's accelerator entry without compute, memory or bandwidth.
bool check_accelerator(const AcceleratorSpec& a, Diagnostics& diagnostics);

void describe(Describer& d, AcceleratorSpec& a);
void describe(Describer& d, WeightFormat& f);
void describe(Describer& d, StateLayers& s);
void describe(Describer& d, SparseLayers& s);
void describe(Describer& d, CompressedLayers& c);
void describe(Describer& d, ModelSpec& m);
void describe(Describer& d, Parallelism& p);

}  // namespace routesim::models
