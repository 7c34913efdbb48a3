#include "models/specs.h"

#include <algorithm>
#include <tuple>

#include "models/kv_cache_spec.h"

namespace routesim::models {

double bytes_per_weight(WeightDtype dtype) {
  switch (dtype) {
    case WeightDtype::kBf16:
      return 2.0;
    case WeightDtype::kFp8:
      return 1.0;
    case WeightDtype::kMxfp4:
      return 17.0 / 32.0;
    case WeightDtype::kInt4:
      return 0.5 + 2.5 / 128.0;
    case WeightDtype::kNvfp4:
      return 9.0 / 16.0;
  }
  return 2.0;
}

std::int64_t bytes_per_kv_element(KvDtype dtype) { return dtype == KvDtype::kFp8 ? 1 : 2; }

namespace {

double attention_parameters_per_layer(const ModelSpec& m, bool windowed) {
  const double d = as_real(m.hidden);
  const double h = as_real(m.heads);
  if (!m.is_mla()) {
    const bool other = windowed && m.sliding_head_dim > 0;
    const double key = as_real(other ? m.sliding_head_dim : m.head_dim);
    const double value = m.v_head_dim > 0 ? as_real(m.v_head_dim) : key;
    const double kv = as_real(windowed && m.sliding_kv_heads > 0 ? m.sliding_kv_heads : m.kv_heads);
    const double values = m.shared_values && !windowed ? 0 : kv * value;
    return d * h * (key + value) + d * (kv * key + values) +
           (m.gated_attention ? d * h * value : 0);
  }
  const double query = as_real(m.head_dim + m.rope_dim);
  const double q = m.q_lora_rank > 0 ? as_real(m.q_lora_rank) * (d + h * query) : d * h * query;
  const double latent = d * as_real(m.kv_lora_rank + m.rope_dim);
  const double value = h * as_real(m.v_head_dim);
  if (m.o_lora_rank > 0)
    return q + latent + as_real(m.o_lora_rank) * (value + as_real(m.o_groups) * d);
  const double up = as_real(m.kv_lora_rank) * h * as_real(m.head_dim + m.v_head_dim);
  return q + latent + up + value * d * (m.gated_attention ? 2 : 1);
}

/// Projections of queries (from the latent query where there is one), of the key, and of the
/// weights that MLA gives to the heads.
double indexer_parameters(const ModelSpec& m) {
  const double d = as_real(m.hidden);
  const double from = m.q_lora_rank > 0 ? as_real(m.q_lora_rank) : d;
  return as_real(m.sparse.index_layers) *
         (from * as_real(m.sparse.index_heads * m.sparse.index_dim) +
          d * as_real(m.sparse.index_dim + (m.is_mla() ? m.sparse.index_heads : 0)));
}

/// What makes one entry of several tokens: a projection and its gate, each of the width of an
/// entry, of two where entries overlap (ratio 4), and the same for the keys of the indexer.
double compressor_parameters(const ModelSpec& m) {
  const double d = as_real(m.hidden);
  const double entry = as_real(m.kv_lora_rank + m.rope_dim);
  double sum = 0;
  for (const CompressedLayers& c : m.compressed)
    sum += as_real(c.layers) * 2 * d * entry * (c.ratio == 4 ? 2 : 1);
  return sum +
         (m.compressed.empty() ? 0 : as_real(m.sparse.index_layers * m.sparse.index_dim) * 3 * d);
}

/// In: values, their gate, keys, queries and the small ones. Out: values.
double state_parameters(const ModelSpec& m) {
  const StateLayers& s = m.state;
  return as_real(s.layers) * (as_real(m.hidden) * as_real(s.channels() + 2 * s.values() + s.gates) +
                              as_real(s.conv * s.channels()));
}

double mlp_projections(const ModelSpec& m) { return m.plain_mlp ? 2 : 3; }

void error(Diagnostics& d, const char* path, std::string message, std::string hint = {}) {
  d.error({}, path, std::move(message), std::move(hint));
}

std::string got(std::int64_t n) { return " (got " + std::to_string(n) + ")"; }

// The bytes of a KV block are a product of layers, heads, the width of a head, at most 4096 tokens
// and 4: it must fit 64 bits.
constexpr std::int64_t kMostLayers = 10'000;
constexpr std::int64_t kMostHeads = 100'000;  ///< Also of experts, and of a head's width.
constexpr std::int64_t kMostWidth = 100'000'000;

}  // namespace

ParameterCount count_parameters(const ModelSpec& m) {
  const double d = as_real(m.hidden);
  const double dense_layers = as_real(m.is_moe() ? m.dense_layers : m.mlp_layers());
  const double moe_layers = as_real(m.moe_layers());
  const double parts = mlp_projections(m);  // Gate, up and down projections.
  const double shared = parts * d * as_real(m.expert_ffn);
  const double inner = m.expert_hidden > 0 ? as_real(m.expert_hidden) : d;
  const double routed = parts * inner * as_real(m.expert_ffn);
  const double full = attention_parameters_per_layer(m, false);
  const double windowed = attention_parameters_per_layer(m, true);
  const double into_experts = m.expert_hidden > 0 ? 2 * d * inner : 0;
  const double last = m.is_moe() ? as_real(m.experts) * routed + as_real(m.shared_experts) * shared
                                 : parts * d * as_real(m.ffn);
  return {
      .attention = as_real(m.full_layers()) * full + as_real(m.sliding_layers) * windowed +
                   indexer_parameters(m) + compressor_parameters(m) + state_parameters(m),
      .dense_mlp = dense_layers * parts * d * as_real(m.ffn),
      .shared_mlp = moe_layers * (as_real(m.shared_experts) * shared + into_experts),
      .routed_mlp = moe_layers * as_real(m.experts) * routed,
      .router = moe_layers * d * as_real(m.experts),
      .embedding = as_real(m.vocab) * d,
      .output = m.tied_embeddings ? 0.0 : as_real(m.vocab) * d,
      .mtp = as_real(m.mtp_layers) * (2 * d * d + (m.full_layers() > 0 ? full : windowed) + last)};
}

double trunk_bytes(const ModelSpec& m) {
  const ParameterCount c = count_parameters(m);
  if (m.dense_weights)
    return (c.attention + c.dense_mlp + c.shared_mlp) * bytes_per_weight(*m.dense_weights);
  const double weight = bytes_per_weight(m.weights);
  const bool experts_only = m.weights == WeightDtype::kMxfp4;  // As its checkpoints are.
  return c.attention * (experts_only || m.bf16_attention ? 2.0 : weight) +
         c.dense_mlp * (experts_only ? 2.0 : weight) + c.shared_mlp * weight;
}

double total_parameters(const ModelSpec& m) {
  const ParameterCount c = count_parameters(m);
  return c.attention + c.dense_mlp + c.shared_mlp + c.routed_mlp + c.router + c.embedding +
         c.output;
}

double active_parameters(const ModelSpec& m) {
  const ParameterCount c = count_parameters(m);
  const double visited = m.is_moe() ? as_real(m.experts_per_token) / as_real(m.experts) : 0.0;
  return c.attention + c.dense_mlp + c.shared_mlp + c.routed_mlp * visited + c.router +
         as_real(m.vocab) * as_real(m.hidden);
}

double weight_bytes(const ModelSpec& m) { return weight_bytes_per_gpu(m, Parallelism{}); }

double weight_bytes_per_gpu(const ModelSpec& m, const Parallelism& p) {
  const ParameterCount c = count_parameters(m);
  // The first stage holds the embedding and the last one the output projection, so with a pipeline
  // the fuller of the two counts; without one, both.
  const double vocabulary =
      2.0 * (p.pp > 1 ? std::max(c.embedding, c.output) : c.embedding + c.output);
  const double routed = c.routed_mlp * bytes_per_weight(m.weights);
  const double expert_shards = as_real(p.tp * p.dp);
  const double stage = as_real((m.layers + p.pp - 1) / p.pp) / as_real(m.layers);
  // Expert gates are small and replicated on every GPU of a stage.
  return stage * (trunk_bytes(m) / as_real(p.tp) + routed / expert_shards + 2.0 * c.router) +
         vocabulary / as_real(p.tp);
}

std::int64_t kv_bytes_per_token(const ModelSpec& m, KvDtype dtype) {
  return kv_bytes_per_token_per_gpu(m, dtype, {}, false);
}

/// vLLM's conditions for decode context parallelism (ParallelConfig and
/// ModelConfig.verify_with_parallel_config of v0.12 to v0.24), and what is not simulated: of layers
/// that do not keep every token, vLLM takes those with a state, from v0.20 on.
static void check_context_parallel(const ModelSpec& m, const Parallelism& p, Diagnostics& out) {
  if (p.dcp == 1) return;
  if (p.tp % p.dcp != 0)
    error(out, "dcp",
          "must divide the " + std::to_string(p.tp) + " tensor-parallel GPUs" + got(p.dcp));
  if (m.full_layers() < m.layers || m.sparse.layers > 0 || !m.compressed.empty())
    error(out, "dcp",
          "is simulated where every layer keeps and reads the whole context, which those of " +
              m.name + " do not" + got(p.dcp));
  if (m.is_mla()) return;
  if (p.dcp > p.tp / m.kv_heads)
    error(out, "dcp",
          "cannot exceed tp / KV heads = " + std::to_string(p.tp / m.kv_heads) + " of " + m.name +
              got(p.dcp),
          "only copies of KV heads can be spread");
  else if (m.heads / m.kv_heads % p.dcp != 0)
    error(out, "dcp",
          "must divide the " + std::to_string(m.heads / m.kv_heads) +
              " attention heads for each KV head of " + m.name + got(p.dcp));
}

bool check_parallelism(const ModelSpec& m, const Parallelism& p, Diagnostics& out) {
  const std::size_t before = out.items().size();
  for (const auto& [name, degree] :
       {std::pair{"tp", p.tp}, std::pair{"pp", p.pp}, std::pair{"dp", p.dp}, std::pair{"ep", p.ep},
        std::pair{"dcp", p.dcp}})
    if (degree < 1) error(out, name, "must be at least 1" + got(degree));
  if (out.items().size() > before) return false;
  if (m.heads % p.tp != 0)
    error(
        out, "tp",
        "must divide the " + std::to_string(m.heads) + " attention heads of " + m.name + got(p.tp));
  if (!m.is_mla() && m.kv_heads % p.tp != 0 && p.tp % m.kv_heads != 0)
    error(out, "tp",
          "must divide, or be a multiple of, the " + std::to_string(m.kv_heads) + " KV heads of " +
              m.name + got(p.tp));
  if (m.state.heads % p.tp != 0)
    error(out, "tp",
          "must divide the " + std::to_string(m.state.heads) + " heads of the layers of " + m.name +
              " that keep a state" + got(p.tp));
  if (m.ffn % p.tp != 0)
    error(out, "tp",
          "must divide the MLP width " + std::to_string(m.ffn) + " of " + m.name + got(p.tp));
  if (m.is_moe() && p.ep == 1 && m.expert_ffn % (p.tp * p.dp) != 0)
    error(out, "tp",
          "tp * dp must divide the expert width " + std::to_string(m.expert_ffn) + " of " + m.name +
              got(p.tp * p.dp),
          "expert parallelism (ep = tp * dp) keeps experts whole");
  if (p.pp > m.layers)
    error(out, "pp",
          "cannot exceed the " + std::to_string(m.layers) + " layers of " + m.name + got(p.pp));
  if (p.ep > 1 && !m.is_moe())
    error(out, "ep", "needs a mixture-of-experts model; " + m.name + " is dense" + got(p.ep),
          "use ep: 1");
  if (p.ep > 1 && p.ep != p.tp * p.dp)
    error(out, "ep", "must be 1 or tp * dp = " + std::to_string(p.tp * p.dp) + got(p.ep));
  if (p.ep > 1 && m.is_moe() && p.ep > m.experts)
    error(out, "ep",
          "cannot exceed the " + std::to_string(m.experts) + " experts of " + m.name + got(p.ep));
  check_context_parallel(m, p, out);
  return out.items().size() == before;
}

/// Layers that keep something else than the keys and values of every token.
static void check_other_layers(const ModelSpec& m, Diagnostics& out) {
  if (m.attention_layers() < 1 || m.mlp_layers() < 1 || m.moe_layers() < 0)
    error(out, "layers", "must leave some for attention and for MLPs" + got(m.layers));
  const auto need = [&out](const char* path, std::int64_t value) {
    if (value < 1) error(out, path, "must be at least 1" + got(value));
  };
  if (m.state.layers > 0) {
    need("state.heads", m.state.heads);
    need("state.value_dim", m.state.value_dim);
    need("state.key_dim", m.state.key_dim);
    need("state.groups", m.state.groups);
    need("state.conv", m.state.conv);
    if (m.sliding_layers > 0)
      error(out, "sliding_layers", "must be 0 beside layers with a state" + got(m.sliding_layers));
  }
  if (m.sparse.layers > 0) need("sparse.top_k", m.sparse.top_k);
  if (m.compressed.empty() && m.sparse.layers > m.full_layers())
    error(out, "sparse.layers",
          "cannot exceed the layers that see everything, " + std::to_string(m.full_layers()) +
              got(m.sparse.layers));
  if (!m.compressed.empty() && m.sparse.layers != m.compressed.front().layers)
    error(out, "sparse.layers",
          "must be those of the first kind of compressed layers, " +
              std::to_string(m.compressed.front().layers) + got(m.sparse.layers));
}

bool check_model(const ModelSpec& m, Diagnostics& out) {
  const std::size_t before = out.items().size();
  const auto need = [&out](const char* path, std::int64_t value) {
    if (value < 1) error(out, path, "must be at least 1" + got(value));
  };
  need("layers", m.layers);
  need("hidden", m.hidden);
  need("heads", m.heads);
  need("head_dim", m.head_dim);
  need("vocab", m.vocab);
  for (const auto& [path, value, most] :
       {std::tuple{"layers", m.layers, kMostLayers}, std::tuple{"hidden", m.hidden, kMostWidth},
        std::tuple{"heads", m.heads, kMostHeads}, std::tuple{"kv_heads", m.kv_heads, kMostHeads},
        std::tuple{"head_dim", m.head_dim, kMostHeads},
        std::tuple{"kv_lora_rank", m.kv_lora_rank, kMostHeads},
        std::tuple{"rope_dim", m.rope_dim, kMostHeads}, std::tuple{"ffn", m.ffn, kMostWidth},
        std::tuple{"expert_ffn", m.expert_ffn, kMostWidth},
        std::tuple{"experts", m.experts, kMostHeads}})
    if (value > most) error(out, path, "must be at most " + std::to_string(most) + got(value));
  if (!m.is_mla()) {
    need("kv_heads", m.kv_heads);
    if (m.kv_heads > 0 && m.heads % m.kv_heads != 0)
      error(out, "kv_heads",
            "must divide the number of query heads " + std::to_string(m.heads) + got(m.kv_heads));
  } else {
    need("v_head_dim", m.v_head_dim);
  }
  if (!m.is_moe() || m.dense_layers > 0) need("ffn", m.ffn);
  if (m.is_moe()) {
    need("expert_ffn", m.expert_ffn);
    need("experts_per_token", m.experts_per_token);
    if (m.experts_per_token > m.experts)
      error(out, "experts_per_token",
            "cannot exceed experts = " + std::to_string(m.experts) + got(m.experts_per_token));
    if (m.dense_layers > m.layers)
      error(out, "dense_layers",
            "cannot exceed layers = " + std::to_string(m.layers) + got(m.dense_layers));
  }
  check_other_layers(m, out);
  if (m.sliding_layers > m.layers)
    error(out, "sliding_layers",
          "cannot exceed layers = " + std::to_string(m.layers) + got(m.sliding_layers));
  if (m.sliding_layers > 0 && m.sliding_window < 1)
    error(out, "sliding_window",
          "must be at least 1 when sliding_layers is set" + got(m.sliding_window));
  return out.items().size() == before;
}

bool check_accelerator(const AcceleratorSpec& a, Diagnostics& out) {
  const std::size_t before = out.items().size();
  for (const auto& [name, value] :
       {std::pair{"bf16_tflops", a.bf16_tflops}, std::pair{"memory_bytes", a.memory_bytes},
        std::pair{"memory_tb_per_s", a.memory_tb_per_s},
        std::pair{"link_gb_per_s", a.link_gb_per_s}, std::pair{"nic_gb_per_s", a.nic_gb_per_s}})
    if (!(value > 0)) error(out, name, "must be positive (got " + std::to_string(value) + ")");
  return out.items().size() == before;
}

/// Far above what exists, and small enough that no sum of products leaves a double or 64 bits.
constexpr double kMostOfAnything = 1e9;
constexpr double kMostBytes = 1e15;  // A petabyte.

static void describe_times(Describer& d, AcceleratorSpec& a) {
  const RealRange amount{.min = 0, .max = kMostOfAnything};
  field(d, {"kernel_us", "Fixed time of one matrix product, us."}, a.kernel_us, amount);
  field(d, {"layer_us", "Fixed time of one layer besides its products, us."}, a.layer_us, amount);
  field(d, {"expert_layer_us", "Fixed time of a MoE layer's routing and sorting, us."},
        a.expert_layer_us, amount);
  field(d,
        {"scaled_product_us",
         "What a product takes more that quantises its activations block by block, us."},
        a.scaled_product_us, amount);
  field(d,
        {"fp8_product_us",
         "What a product takes more that quantises its activations to fp8 as a whole, us."},
        a.fp8_product_us, amount);
  field(d,
        {"chunk_layer_us",
         "What a layer takes more in a step that computes prompts, which no full CUDA graph fits, "
         "us."},
        a.chunk_layer_us, amount);
  field(d, {"gpu_step_ms", "GPU time of a step outside its layers, ms."}, a.gpu_step_ms, amount);
  field(d, {"host_step_ms", "Host cost per step, ms; asynchronous scheduling hides it."},
        a.host_step_ms, amount);
  field(d, {"host_sequence_ms", "Host cost per sequence and step, ms."}, a.host_sequence_ms,
        amount);
  field(d,
        {"one_gpu_sequence_ms",
         "The same of a server with one GPU, whose engine has no other process to tell, ms; 0: no "
         "less."},
        a.one_gpu_sequence_ms, amount);
  field(d, {"collective_us", "Latency of one collective operation, us."}, a.collective_us, amount);
  field(d, {"switched_link", "The GPUs of a node meet in a switch (NVSwitch)."}, a.switched_link);
  field(d, {"collective_efficiency", "Share of link_gb_per_s collectives reach."},
        a.collective_efficiency, RealRange{.min = 0, .max = 1, .min_open = true});
}

static void describe_attention(Describer& d, AcceleratorSpec& a) {
  const RealRange share{.min = 0, .max = 1, .min_open = true};
  field(d, {"kv_mbu", "Share of memory bandwidth when KV blocks are read."}, a.kv_mbu, share);
  field(
      d,
      {"kv_mbu_fp8",
       "The same for blocks in fp8, with engine presets before 2026-H2; from then on as in bf16."},
      a.kv_mbu_fp8, share);
  field(
      d,
      {"mixed_decode_rows",
       "Query rows that the attention kernel computes for each head of a decode beside a prompt "
       "chunk: 64 with FlashAttention 2 (vllm-project/vllm#58013), 0 where decodes keep a path of "
       "their own."},
      a.mixed_decode_rows, IntRange{0, 1024});
  field(d,
        {"shared_context_weight",
         "Cost of context in blocks that eight or more sequences read, 1 is full price; fewer "
         "readers "
         "save less."},
        a.shared_context_weight, RealRange{.min = 0, .max = 1});
}

void describe(Describer& d, AcceleratorSpec& a) {
  const RealRange positive{.min = 0, .max = kMostOfAnything, .min_open = true};
  const RealRange amount{.min = 0, .max = kMostOfAnything};
  const RealRange share{.min = 0, .max = 1, .min_open = true};
  field(d, {"name", "Name scenarios refer to.", true}, a.name);
  field(d, {"source", "Where the numbers come from."}, a.source);
  field(d, {"aliases", "Other spellings of the name."}, a.aliases);
  field(d, {"measured", "Its efficiencies come from measurements of it."}, a.measured);
  field(d, {"bf16_tflops", "Peak dense bf16, 10^12 FLOP/s.", true}, a.bf16_tflops, positive);
  field(d, {"fp8_tflops", "Peak dense fp8, 10^12 FLOP/s; 0 when it has none."}, a.fp8_tflops,
        amount);
  field(d, {"fp4_tflops", "Peak dense fp4, 10^12 FLOP/s; 0 when it has none."}, a.fp4_tflops,
        amount);
  field(d, {"memory_bytes", "Device memory the driver reports, bytes.", true}, a.memory_bytes,
        RealRange{.min = 0, .max = kMostBytes, .min_open = true});
  field(d, {"memory_tb_per_s", "Peak memory bandwidth, 10^12 bytes/s.", true}, a.memory_tb_per_s,
        positive);
  field(d, {"link_gb_per_s", "Scale-up link per direction, 10^9 bytes/s.", true}, a.link_gb_per_s,
        positive);
  field(d, {"nic_gb_per_s", "Network share of one GPU, 10^9 bytes/s.", true}, a.nic_gb_per_s,
        positive);
  field(d, {"host_link_gb_per_s", "Between GPU and host memory, per direction, 10^9 bytes/s."},
        a.host_link_gb_per_s, positive);
  field(d, {"overhead_bytes", "Contexts and communication buffers, bytes."}, a.overhead_bytes,
        RealRange{.min = 0, .max = kMostBytes});
  field(d, {"prefill_mfu", "Share of bf16 peak large matrix products reach."}, a.prefill_mfu,
        share);
  field(d, {"prefill_mfu_fp8", "Share of fp8 peak large matrix products reach."}, a.prefill_mfu_fp8,
        share);
  field(d, {"prefill_mfu_fp4", "Share of fp4 peak large matrix products reach."}, a.prefill_mfu_fp4,
        share);
  field(d, {"attention_mfu", "Share of bf16 peak prefill attention reaches."}, a.attention_mfu,
        share);
  field(d, {"weight_mbu", "Share of memory bandwidth when weights are streamed."}, a.weight_mbu,
        share);
  field(d, {"mxfp4_mbu", "Share of memory bandwidth when 4-bit float experts are streamed."},
        a.mxfp4_mbu, share);
  field(d,
        {"fp8_expert_mbu",
         "Share of memory bandwidth when fp8 experts with a scale per block are streamed."},
        a.fp8_expert_mbu, share);
  field(d,
        {"widening_tb_per_s",
         "Rate at which every tile of a product widens its expert's MXFP4 weights, 10^12 bytes/s, "
         "with engine presets from 2026-H1; 0 where no kernel is known."},
        a.widening_tb_per_s, amount);
  describe_attention(d, a);
  describe_times(d, a);
}

void describe(Describer& d, WeightFormat& f) {
  field(d, {"weights", "Storage format of the weights.", true}, f.weights);
  field(d, {"scaled_blocks", "The weights have a scale per block of 128 x 128."}, f.scaled_blocks);
  field(d, {"bf16_attention", "The projections of attention stay in bf16."}, f.bf16_attention);
}

void describe(Describer& d, StateLayers& s) {
  const IntRange some{.min = 0, .max = kMostHeads};
  field(d, {"layers", "Layers that keep a state.", true}, s.layers, IntRange{0, kMostLayers});
  field(d, {"heads", "Heads with a state each.", true}, s.heads, some);
  field(d, {"value_dim", "Width of a head's values.", true}, s.value_dim, some);
  field(d, {"groups", "Heads of keys; several heads share one.", true}, s.groups, some);
  field(d, {"key_dim", "Width of a head's keys.", true}, s.key_dim, some);
  field(d, {"conv", "Taps of the convolution before.", true}, s.conv, IntRange{0, 1024});
  field(d, {"gates", "Columns of the small projections: decay, step, mixing."}, s.gates, some);
  field(d, {"bf16_state", "The state is in bf16, not in fp32."}, s.bf16_state);
}

void describe(Describer& d, SparseLayers& s) {
  const IntRange some{.min = 0, .max = kMostHeads};
  const IntRange some_layers{.min = 0, .max = kMostLayers};
  field(d, {"layers", "Layers in which a token reads selected ones only.", true}, s.layers,
        some_layers);
  field(d, {"top_k", "Entries that a token reads at most.", true}, s.top_k,
        IntRange{0, 1'000'000'000});
  field(d, {"index_layers", "Layers with an indexer of their own.", true}, s.index_layers,
        some_layers);
  field(d, {"index_heads", "Query heads of the indexer.", true}, s.index_heads, some);
  field(d, {"index_dim", "Width of the indexer's heads and key.", true}, s.index_dim, some);
  field(d, {"index_key_bytes", "Bytes of a token's key in the cache.", true}, s.index_key_bytes,
        some);
}

void describe(Describer& d, CompressedLayers& c) {
  field(d, {"ratio", "Tokens of an entry.", true}, c.ratio, IntRange{1, 256});
  field(d, {"layers", "Layers that compress so.", true}, c.layers, IntRange{0, kMostLayers});
}

static void describe_layers(Describer& d, ModelSpec& m) {
  const IntRange some_layers{.min = 0, .max = kMostLayers};
  const IntRange some{.min = 0, .max = kMostHeads};
  field(d, {"o_lora_rank", "Width of a group's output where MLA has no up-projection."},
        m.o_lora_rank, some);
  field(d, {"o_groups", "Groups of heads with an output each."}, m.o_groups, some);
  field(d, {"shared_values", "Layers that see everything use their keys as values."},
        m.shared_values);
  field(d, {"gated_attention", "A projection of its own gates the output of attention."},
        m.gated_attention);
  field(d, {"sliding_kv_heads", "Key/value heads of windowed layers; 0: as kv_heads."},
        m.sliding_kv_heads, some);
  field(d, {"sliding_head_dim", "Width of a head of windowed layers; 0: as head_dim."},
        m.sliding_head_dim, some);
  field(d, {"state", "Layers that keep a recurrent state instead of keys and values."}, m.state);
  field(d, {"sparse", "Layers in which a token reads what an indexer selects."}, m.sparse);
  field(d,
        {"compressed",
         "Layers with one entry for several tokens besides their window; `sparse` selects from "
         "the first kind."},
        m.compressed);
  field(d, {"attention_free_layers", "Layers that are an MLP alone."}, m.attention_free_layers,
        some_layers);
  field(d, {"mlp_free_layers", "Layers that are attention or a state alone."}, m.mlp_free_layers,
        some_layers);
  field(d, {"plain_mlp", "MLPs and experts have two projections, none of them a gate."},
        m.plain_mlp);
  field(d, {"expert_hidden", "Width that routed experts read and write; 0: as hidden."},
        m.expert_hidden, IntRange{0, kMostWidth});
  field(d,
        {"mtp_layers",
         "Layers that guess further tokens. They count in no size: servers load them for "
         "speculative decoding only."},
        m.mtp_layers, some_layers);
  field(d, {"dense_weights", "Format of all but the routed experts, if another."}, m.dense_weights);
}

void describe(Describer& d, ModelSpec& m) {
  const IntRange tokens{.min = 0, .max = 1'000'000'000};
  const IntRange some_layers{.min = 0, .max = kMostLayers};
  const IntRange some{.min = 0, .max = kMostHeads};
  const IntRange width{.min = 0, .max = kMostWidth};
  field(d, {"name", "Name scenarios refer to.", true}, m.name);
  field(d, {"source", "Where the numbers come from."}, m.source);
  field(d, {"aliases", "Other spellings of the name."}, m.aliases);
  field(d, {"weights", "Storage format of the weights."}, m.weights);
  field(d, {"layers", "Transformer layers.", true}, m.layers, IntRange{1, kMostLayers});
  field(d, {"hidden", "Residual width.", true}, m.hidden, IntRange{1, kMostWidth});
  field(d, {"heads", "Query heads.", true}, m.heads, IntRange{1, kMostHeads});
  field(d, {"kv_heads", "Key/value heads; 0 with MLA."}, m.kv_heads, some);
  field(d, {"head_dim", "Width of a head; with MLA the non-positional part.", true}, m.head_dim,
        IntRange{1, kMostHeads});
  field(d, {"ffn", "Width of a dense gated MLP."}, m.ffn, width);
  field(d, {"vocab", "Vocabulary size.", true}, m.vocab, IntRange{1, 1'000'000'000});
  field(d, {"max_context", "Longest sequence, tokens."}, m.max_context, tokens);
  field(d, {"tied_embeddings", "Output projection shares the embedding."}, m.tied_embeddings);
  field(d, {"experts", "Routed experts per MoE layer; 0 for a dense model."}, m.experts, some);
  field(d, {"experts_per_token", "Routed experts a token visits."}, m.experts_per_token, some);
  field(d, {"shared_experts", "Experts every token visits."}, m.shared_experts, some);
  field(d, {"expert_ffn", "Width of one expert."}, m.expert_ffn, width);
  field(d, {"dense_layers", "Leading dense layers of a MoE model."}, m.dense_layers, some_layers);
  field(d, {"kv_lora_rank", "MLA latent width; 0 for GQA."}, m.kv_lora_rank, some);
  field(d, {"q_lora_rank", "MLA query latent width."}, m.q_lora_rank, some);
  field(d, {"rope_dim", "MLA positional key width."}, m.rope_dim, some);
  field(d, {"v_head_dim", "Width of a value head; 0 without MLA: as head_dim."}, m.v_head_dim,
        some);
  field(d, {"sliding_window", "Window of windowed layers, tokens."}, m.sliding_window, tokens);
  field(d, {"sliding_layers", "How many layers are windowed."}, m.sliding_layers, some_layers);
  field(d, {"chunked_windows", "Windows are fixed chunks of the sequence, as in Llama 4."},
        m.chunked_windows);
  field(d, {"scaled_blocks", "The fp8 weights have a scale per block of 128 x 128."},
        m.scaled_blocks);
  field(d, {"bf16_attention", "The projections of attention are in bf16 in any format."},
        m.bf16_attention);
  describe_layers(d, m);
  field(d, {"workspace_bytes", "Extra device memory of its kernels, bytes per GPU."},
        m.workspace_bytes, RealRange{.min = 0, .max = kMostBytes});
  field(d,
        {"formats", "Other weight formats it is published in; each becomes an entry of its own."},
        m.formats);
}

void describe(Describer& d, Parallelism& p) {
  const IntRange degree{.min = 1, .max = 4096};
  field(d, {"tp", "Tensor-parallel GPUs per rank."}, p.tp, degree);
  field(d, {"pp", "Pipeline stages."}, p.pp, degree);
  field(d, {"dp", "Data-parallel ranks, each with its own KV cache."}, p.dp, degree);
  field(d, {"ep", "Expert-parallel group: 1, or tp * dp."}, p.ep, degree);
  field(d, {"dcp", "Decode context parallel: GPUs that share the KV of a sequence."}, p.dcp,
        degree);
}

}  // namespace routesim::models
