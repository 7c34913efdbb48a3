#include "models/kernels/surface.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "models/ticks.h"

namespace routesim::models::kernels {
namespace {

/// What a kernel between products takes besides its bytes, in a CUDA graph.
constexpr double kSmallKernelNs = 2'000;
/// Norm, rotary embedding, the write of the cache, norm, activation; with experts their gate's
/// softmax and choice beside them.
constexpr double kLayerKernels = 5, kExpertLayerKernels = 2;
/// Logits in 32 bits, masks, softmax or argmax, the copy of the tokens.
constexpr double kSamplerKernels = 12;
/// Share of the memory bandwidth that kernels between products reach.
constexpr double kStreamMbu = 0.8;

/// The name of a weight format in tables.
std::string_view format_of(const ModelSpec& m, WeightDtype weights) {
  switch (weights) {
    case WeightDtype::kFp8:
      return m.scaled_blocks ? "fp8_block" : "fp8";
    case WeightDtype::kNvfp4:
      return "nvfp4";
    case WeightDtype::kInt4:
      return "int4";
    default:
      return "bfloat16";
  }
}

/// What the products of attention and of dense MLPs hold. Checkpoints in MXFP4, and those of
/// mixtures of experts in four-bit integers, narrow only the experts (gpt-oss, Kimi-K2.5).
WeightDtype trunk_of(const ModelSpec& m) {
  const bool experts_only =
      m.weights == WeightDtype::kMxfp4 || (m.is_moe() && m.weights == WeightDtype::kInt4);
  return m.dense_weights.value_or(experts_only ? WeightDtype::kBf16 : m.weights);
}

ExpertShape expert_shape(const AcceleratorSpec& gpu, const ModelSpec& m, const Parallelism& p,
                         bool older) {
  ExpertShape s{.hidden = m.hidden,
                .inter = m.expert_ffn,
                .topk = m.experts_per_token,
                .experts = m.experts,
                .tp = p.ep > 1 ? 1 : p.tp * p.dp,
                .ep = p.ep};
  switch (m.weights) {
    case WeightDtype::kFp8:
      s.dtype = m.scaled_blocks ? "fp8_block" : "fp8";
      s.kernels = {"triton", "trtllm", "flashinfer_cutlass"};
      if (gpu.fp4_tflops > 0) std::swap(s.kernels[0], s.kernels[1]);
      break;
    case WeightDtype::kInt4:
      s.dtype = "int4_wo";
      s.kernels = {"marlin"};
      break;
    case WeightDtype::kMxfp4:
      s.dtype = "w4a16_mxfp4";
      // FlashInfer's on Blackwell, else Triton's (v0.12.0, quantization/mxfp4.py).
      s.kernels = {gpu.fp4_tflops > 0 ? "trtllm" : "triton", "trtllm", "marlin", "triton"};
      if (older) s.kernels.insert(s.kernels.begin(), "marlin");
      break;
    case WeightDtype::kNvfp4:
      s.dtype = "nvfp4";
      s.kernels = {"trtllm", "flashinfer_cutlass", "cutlass"};
      break;
    default:
      s.kernels = {"trtllm", "triton", "flashinfer_cutlass"};
  }
  return s;
}

/// SGLang computes the shared expert of DeepSeek V3 and R1 as one more routed one
/// (determine_num_fused_shared_experts in models/deepseek_v2.py of 0.5.9).
bool fuses_shared_expert(const ModelSpec& m, const Parallelism& p, const RooflineOptions& o) {
  return o.engine == ServingEngine::kSglang && m.is_mla() && m.experts == 256 &&
         m.shared_experts == 1 && p.ep == 1 && m.weights != WeightDtype::kInt4;
}

/// A gated delta net of the measured widths (Qwen3-Next, Qwen3.5), not Kimi's delta attention,
/// whose every head has keys and gates of its own, nor Mamba.
bool is_delta_net(const StateLayers& s) {
  return s.key_dim == 128 && s.value_dim == 128 && s.conv == 4 && s.gates == 2 * s.heads;
}

bool has_column(const KernelTable& t, std::size_t column, std::int64_t value) {
  for (std::size_t e = 0; e < t.entries(); ++e)
    if (t.key(e, column) == value) return true;
  return false;
}

/// Sums what the layers of a model take.
class Builder {
 public:
  Builder(const KernelLibrary& library, const AcceleratorSpec& gpu, const ModelSpec& m,
          const Parallelism& p, const RooflineOptions& options)
      : library_(library), ops_(library, gpu), gpu_(gpu), m_(m), p_(p), options_(options) {}

  StepSurface build() {
    if (m_.is_mla())
      latent_attention();
    else
      grouped_attention();
    delta_nets();
    mlps();
    experts();
    between_products();
    if (p_.tp > 1)
      add("all-reduce", "all_reduce/graph", ops_.collective("all_reduce/graph", p_.tp, m_.hidden),
          2 * m_.layers);
    sample();
    sum();
    return std::move(out_);
  }

 private:
  void add(std::string name, std::string kernel, Curve curve, std::int64_t times) {
    for (double& ns : curve.ns) ns *= as_real(times);
    const auto used = ops_.used().find(kernel);
    const Origin origin = used != ops_.used().end() ? used->second : Origin::kPrinciples;
    out_.operations.push_back({std::move(name), std::move(kernel), origin, std::move(curve)});
  }

  void product(std::string name, WeightDtype weights, std::int64_t n, std::int64_t k,
               std::int64_t times) {
    if (times == 0 || n == 0 || k == 0) return;
    const std::string format(format_of(m_, weights));
    Curve curve = ops_.product(format, n, k);
    // The row of a product with one scale a tensor holds finding the scale and quantising; where
    // scales are static both go into the norm or the activation before it.
    if (format == "fp8") {
      const Curve scale = ops_.find_scale(k), quantise = ops_.quantise(k);
      for (std::size_t i = 0; i < curve.x.size(); ++i) {
        const double rows = as_real(curve.x[i]);
        curve.ns[i] = std::max(curve.ns[i] / 2, curve.ns[i] - scale.at(rows) - quantise.at(rows));
      }
    }
    add(name, "gemm/" + format, std::move(curve), times);
    // Scales of blocks are found by a kernel of their own.
    if (format == "fp8_block")
      add(name + " (scales)", "quantize/scale_matrix", ops_.quantise(k), times);
  }

  void grouped_attention() {
    const std::int64_t heads = m_.heads / p_.tp;
    const std::int64_t kv_heads = std::max<std::int64_t>(1, m_.kv_heads / p_.tp);
    const WeightDtype weights = m_.bf16_attention ? WeightDtype::kBf16 : trunk_of(m_);
    const std::int64_t gates = m_.gated_attention ? heads : 0;
    product("qkv", weights, (heads + gates + 2 * kv_heads) * m_.head_dim, m_.hidden,
            m_.attention_layers());
    product("attention output", weights, m_.hidden, heads * m_.head_dim, m_.attention_layers());
    AttentionShape shape{.heads = heads,
                         .kv_heads = kv_heads,
                         .head_dim = m_.head_dim,
                         .window = 0,
                         .kv = options_.older_fp8_cache ? KvDtype::kBf16 : options_.kv_dtype};
    attend(ops_.decode(shape), ops_.context(shape), m_.full_layers());
    shape.window = m_.sliding_window;
    if (m_.sliding_head_dim > 0) shape.head_dim = m_.sliding_head_dim;
    if (m_.sliding_kv_heads > 0)
      shape.kv_heads = std::max<std::int64_t>(1, m_.sliding_kv_heads / p_.tp);
    if (m_.sliding_layers > 0) attend(ops_.decode(shape), ops_.context(shape), m_.sliding_layers);
  }

  // The modules hold their projections, so they grow with the batch beside the context.
  void latent_attention() {
    const WeightDtype weights = m_.bf16_attention ? WeightDtype::kBf16 : trunk_of(m_);
    const std::string_view format = format_of(m_, weights);
    const std::string_view kind = m_.sparse.layers > 0 ? "dsa" : "mla";
    const auto sheet = [&](std::string_view phase) {
      return ops_.mla(kind, phase, m_.heads / p_.tp, m_.hidden, options_.kv_dtype, format);
    };
    attend(sheet("decode"), sheet("context"), m_.layers);
  }

  void attend(const Sheet& decode, const Sheet& context, std::int64_t layers) {
    if (layers == 0) return;
    const double each = as_real(layers);
    if (out_.context.x.empty()) {
      out_.context = {.x = context.x, .y = context.y, .ns = std::vector<double>(context.ns.size())};
      decode_ = {.x = decode.x, .y = decode.y, .ns = std::vector<double>(decode.ns.size())};
    }
    for (std::size_t i = 0; i < decode_.ns.size(); ++i) {
      const auto x = as_real(decode_.x[i / decode_.y.size()]),
                 y = as_real(decode_.y[i % decode_.y.size()]);
      decode_.ns[i] += each * decode.at(x, y);
    }
    for (std::size_t i = 0; i < out_.context.ns.size(); ++i) {
      const std::size_t width = out_.context.y.size();
      out_.context.ns[i] +=
          each * context.at(as_real(out_.context.x[i / width]), as_real(out_.context.y[i % width]));
    }
  }

  // One projection makes queries, keys, values and gates, a small one decay and step (vLLM v0.24,
  // models/qwen3_next.py). The states of decodes are read and written beside attention's caches.
  void delta_nets() {
    const StateLayers& n = m_.state;
    if (n.layers == 0) return;
    const std::int64_t heads = n.heads / p_.tp, values = n.values() / p_.tp;
    const std::int64_t key_heads = std::max<std::int64_t>(1, n.groups / p_.tp);
    product("delta net in", trunk_of(m_), 2 * values + 2 * key_heads * n.key_dim, m_.hidden,
            n.layers);
    product("delta net gates", WeightDtype::kBf16, n.gates / p_.tp, m_.hidden, n.layers);
    product("delta net out", trunk_of(m_), m_.hidden, values, n.layers);
    out_.states = ops_.delta_net("context", key_heads, heads);
    for (double& ns : out_.states.ns) ns *= as_real(n.layers);
    const Sheet decode = ops_.delta_net("decode", key_heads, heads);
    for (std::size_t i = 0; i < decode_.ns.size(); ++i)
      decode_.ns[i] += as_real(n.layers) * decode.at(as_real(decode_.x[i / decode_.y.size()]), 1);
  }

  void mlps() {
    const std::int64_t dense = m_.layers - m_.moe_layers();
    const std::int64_t ups = m_.plain_mlp ? 1 : 2;
    product("gate and up", trunk_of(m_), ups * m_.ffn / p_.tp, m_.hidden, dense);
    product("down", trunk_of(m_), m_.hidden, m_.ffn / p_.tp, dense);
    if (fuses_shared_expert(m_, p_, options_)) return;
    const std::int64_t shared = m_.shared_experts * m_.expert_ffn / p_.tp;
    product("shared gate and up", trunk_of(m_), ups * shared, m_.hidden, m_.moe_layers());
    product("shared down", trunk_of(m_), m_.hidden, shared, m_.moe_layers());
  }

  void experts() {
    if (!m_.is_moe()) return;
    product("expert gate", WeightDtype::kBf16, m_.experts, m_.hidden, m_.moe_layers());
    ExpertShape shape = expert_shape(gpu_, m_, p_, options_.older_experts);
    if (fuses_shared_expert(m_, p_, options_)) {
      ++shape.topk;
      ++shape.experts;
    }
    add("experts", expert_section(library_, shape), ops_.experts(shape), m_.moe_layers());
    if (p_.dp == 1) return;
    // Every rank gets the activations and the gate's logits of all, and gives back its part of the
    // sums: allgather_reducescatter, vLLM's --all2all-backend unless told otherwise (v0.12.0,
    // device_communicators/all2all.py).
    out_.operations.back().of_all_ranks = true;
    add("experts' dispatch", "nccl/all_gather",
        ops_.collective("nccl/all_gather", p_.dp, m_.hidden + m_.experts), m_.moe_layers());
    out_.operations.back().of_all_ranks = true;
    add("experts' combine", "nccl/reduce_scatter",
        ops_.collective("nccl/reduce_scatter", p_.dp, m_.hidden), m_.moe_layers());
    out_.operations.back().of_all_ranks = true;
  }

  // Norms read and write the residual, the activation reads two halves and writes one, the rotary
  // embedding reads and writes queries and keys.
  void between_products() {
    const double mlp =
        m_.is_moe() ? as_real(m_.experts_per_token * m_.expert_ffn) : as_real(m_.ffn);
    const double heads = as_real(m_.heads) * as_real(m_.head_dim) / as_real(p_.tp);
    const double bytes =
        2 * (2 * 4 * as_real(m_.hidden) + (m_.is_moe() ? 0 : 3 * mlp / as_real(p_.tp)) + 4 * heads);
    const double token_ns = bytes / (gpu_.memory_tb_per_s * 1e3 * kStreamMbu) * as_real(m_.layers);
    const double fixed = kSmallKernelNs * (kLayerKernels * as_real(m_.layers) +
                                           kExpertLayerKernels * as_real(m_.moe_layers()));
    Curve curve;
    for (const std::int64_t x : {1, 16'384}) {
      curve.x.push_back(x);
      curve.ns.push_back(fixed + token_ns * as_real(x));
    }
    add("norms, rotary, activations", "", std::move(curve), 1);
  }

  void sample() {
    const std::int64_t vocabulary = m_.vocab / p_.tp;
    out_.sampled = ops_.product("bfloat16", vocabulary, m_.hidden);
    // Logits leave in 16 bits, are gathered, widened to 32, read for the softmax and for the draw.
    const double row = as_real(m_.vocab) * 14 / (gpu_.memory_tb_per_s * 1e3 * kStreamMbu);
    for (std::size_t i = 0; i < out_.sampled.x.size(); ++i)
      out_.sampled.ns[i] += kSamplerKernels * kSmallKernelNs + row * as_real(out_.sampled.x[i]);
  }

  Curve sum_of(bool all_ranks) const {
    Curve all;
    for (const OperationTime& o : out_.operations)
      if (o.of_all_ranks == all_ranks)
        all.x.insert(all.x.end(), o.by_tokens.x.begin(), o.by_tokens.x.end());
    std::sort(all.x.begin(), all.x.end());
    all.x.erase(std::unique(all.x.begin(), all.x.end()), all.x.end());
    for (const std::int64_t x : all.x) {
      double ns = 0;
      for (const OperationTime& o : out_.operations)
        if (o.of_all_ranks == all_ranks) ns += o.by_tokens.at(as_real(x));
      all.ns.push_back(ns);
    }
    return all;
  }

  void sum() {
    out_.tokens = sum_of(false);
    out_.group = sum_of(true);
    out_.decode = {.x = decode_.x, .y = decode_.y, .ticks = {}};
    // A longer context takes no less time, though rows say so by up to 1 %: that is their noise.
    std::int64_t longest = 1;
    for (std::size_t i = 0; i < decode_.ns.size(); ++i) {
      const bool first = i % decode_.y.size() == 0;
      longest = std::max(first ? 1 : longest, ns_to_ticks(decode_.ns[i]));
      out_.decode.ticks.push_back(longest);
    }
    for (const auto& [section, origin] : ops_.used())
      if (section.rfind("decode", 0) == 0 || section.rfind("context", 0) == 0 ||
          section.rfind("mla_", 0) == 0 || section.rfind("dsa_", 0) == 0 ||
          section.rfind("gdn_", 0) == 0)
        out_.attention = std::max(out_.attention, origin);
  }

  const KernelLibrary& library_;
  Operations ops_;
  const AcceleratorSpec& gpu_;
  const ModelSpec& m_;
  const Parallelism& p_;
  const RooflineOptions& options_;
  Sheet decode_;
  StepSurface out_;
};

}  // namespace

std::string not_covered(const AcceleratorSpec& gpu, const ModelSpec& m, const Parallelism& p,
                        ServingEngine engine) {
  const KernelLibrary* library = KernelLibrary::of(gpu.name, engine);
  if (library == nullptr) return "there are no measured kernels of " + gpu.name;
  if (p.dp > 1 && m.is_moe())
    for (const char* section : {"nccl/all_gather", "nccl/reduce_scatter"})
      if (const auto t = library->table(section); !t || !t->find({p.dp}))
        return "the exchange between " + std::to_string(p.dp) +
               " data-parallel ranks has no measured kernels";
  if (p.pp > 1) return "pipeline stages have no measured kernels";
  if (p.dcp > 1) return "attention over KV that GPUs share has no measured kernels";
  if (m.chunked_windows) return "windows of fixed chunks have no measured kernels";
  if (m.state.layers > 0 && !(is_delta_net(m.state) && library->has("gdn_context")))
    return "layers with a recurrent state have no measured kernels here";
  const bool every_layer_selects = m.is_mla() && m.sparse.layers == m.layers &&
                                   m.sparse.index_layers == m.layers && m.compressed.empty();
  if ((m.sparse.layers > 0 || !m.compressed.empty()) && !every_layer_selects)
    return "sparse attention has no measured kernels here";
  if (m.attention_free_layers > 0 || m.mlp_free_layers > 0 || m.o_groups > 0 || m.expert_hidden > 0)
    return "the layers of " + m.name + " have no measured kernels here";
  const auto missing = [&](const std::string& section) { return !library->has(section); };
  const WeightDtype attention = m.bf16_attention ? WeightDtype::kBf16 : trunk_of(m);
  for (const WeightDtype weights : {attention, trunk_of(m)}) {
    const std::string section = "gemm/" + std::string(format_of(m, weights));
    if (missing(section)) return library->name() + " has no " + section;
  }
  if (every_layer_selects) {
    const auto t = library->table("dsa_decode/bf16/" + std::string(format_of(m, attention)));
    if (!t || !has_column(*t, 1, m.hidden))
      return library->name() + " has no layers with an indexer of " + m.name;
  } else if (m.is_mla() && missing("mla_decode/bf16/" + std::string(format_of(m, attention))))
    return library->name() + " has no MLA layers in " + std::string(format_of(m, attention));
  if (!m.is_moe()) return {};
  const ExpertShape shape = expert_shape(gpu, m, p, false);
  if (!expert_section(*library, shape).empty()) return {};
  return library->name() + " has no experts in " + shape.dtype;
}

std::optional<StepSurface> make_surface(const AcceleratorSpec& gpu, const ModelSpec& m,
                                        const Parallelism& p, const RooflineOptions& options) {
  if (!not_covered(gpu, m, p, options.engine).empty()) return std::nullopt;
  return Builder(*KernelLibrary::of(gpu.name, options.engine), gpu, m, p, options).build();
}

}  // namespace routesim::models::kernels
