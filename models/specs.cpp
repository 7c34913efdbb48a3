#include "models/specs.h"

#include <algorithm>
#include <tuple>

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

double attention_parameters_per_layer(const ModelSpec& m) {
  const double d = as_real(m.hidden);
  const double h = as_real(m.heads);
  if (!m.is_mla()) {
    const double width = as_real(m.head_dim);
    return 2 * d * h * width + 2 * d * as_real(m.kv_heads) * width;
  }
  const double query = as_real(m.head_dim + m.rope_dim);
  const double q = m.q_lora_rank > 0 ? as_real(m.q_lora_rank) * (d + h * query) : d * h * query;
  const double kv = d * as_real(m.kv_lora_rank + m.rope_dim) +
                    as_real(m.kv_lora_rank) * h * as_real(m.head_dim + m.v_head_dim);
  return q + kv + h * as_real(m.v_head_dim) * d;
}

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
  const double dense_layers = as_real(m.is_moe() ? m.dense_layers : m.layers);
  const double moe_layers = as_real(m.moe_layers());
  const double expert = 3 * d * as_real(m.expert_ffn);  // Gate, up and down projections.
  return {.attention = as_real(m.layers) * attention_parameters_per_layer(m),
          .dense_mlp = dense_layers * 3 * d * as_real(m.ffn),
          .shared_mlp = moe_layers * as_real(m.shared_experts) * expert,
          .routed_mlp = moe_layers * as_real(m.experts) * expert,
          .router = moe_layers * d * as_real(m.experts),
          .embedding = as_real(m.vocab) * d,
          .output = m.tied_embeddings ? 0.0 : as_real(m.vocab) * d};
}

double trunk_bytes(const ModelSpec& m) {
  const ParameterCount c = count_parameters(m);
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
  const std::int64_t elements =
      m.is_mla() ? m.kv_lora_rank + m.rope_dim : 2 * m.kv_heads * m.head_dim;
  return m.layers * elements * bytes_per_kv_element(dtype);
}

bool check_parallelism(const ModelSpec& m, const Parallelism& p, Diagnostics& out) {
  const std::size_t before = out.items().size();
  for (const auto& [name, degree] :
       {std::pair{"tp", p.tp}, std::pair{"pp", p.pp}, std::pair{"dp", p.dp}, std::pair{"ep", p.ep}})
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
  return out.items().size() == before;
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
  field(d, {"shared_context_weight", "Cost of re-reading a shared block, 1 is full price."},
        a.shared_context_weight, RealRange{.min = 0, .max = 1});
  field(d,
        {"l2_bytes",
         "L2 cache, bytes. A shared prefix is re-read at shared_context_weight while a layer of it "
         "takes at most half of it; 0 is no limit."},
        a.l2_bytes, RealRange{.min = 0, .max = kMostOfAnything});
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
  field(d, {"v_head_dim", "MLA value head width."}, m.v_head_dim, some);
  field(d, {"sliding_window", "Window of windowed layers, tokens."}, m.sliding_window, tokens);
  field(d, {"sliding_layers", "How many layers are windowed."}, m.sliding_layers, some_layers);
  field(d, {"chunked_windows", "Windows are fixed chunks of the sequence, as in Llama 4."},
        m.chunked_windows);
  field(d, {"scaled_blocks", "The fp8 weights have a scale per block of 128 x 128."},
        m.scaled_blocks);
  field(d, {"bf16_attention", "The projections of attention are in bf16 in any format."},
        m.bf16_attention);
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
}

}  // namespace routesim::models
