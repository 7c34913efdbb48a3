#include "models/speculation.h"

#include <algorithm>
#include <utility>

#include "models/ticks.h"

namespace routesim::models {
namespace {

/// Tokens that an EAGLE-3 head can guess: `draft_vocab_size` of RedHatAI's, lmsys' and NVIDIA's
/// speculators for Llama, Qwen3 and gpt-oss is 32,000.
constexpr std::int64_t kDraftVocabulary = 32'000;

/// One layer with the attention of `target`, which sees everything.
ModelSpec one_layer(const ModelSpec& target) {
  ModelSpec m = target;
  m.name += " drafter";
  m.layers = 1;
  m.dense_layers = 0;
  m.sliding_layers = m.sliding_window = 0;
  m.chunked_windows = false;
  m.state = {};
  m.sparse = {};
  m.compressed.clear();
  m.attention_free_layers = m.mlp_free_layers = m.mtp_layers = 0;
  m.workspace_bytes = 0;
  m.formats.clear();
  return m;
}

ModelSpec dense_layer(const ModelSpec& target) {
  ModelSpec m = one_layer(target);
  if (m.is_moe()) m.ffn = m.expert_ffn * (m.experts_per_token + m.shared_experts);
  m.experts = m.experts_per_token = m.shared_experts = m.expert_ffn = 0;
  m.weights = WeightDtype::kBf16;
  m.dense_weights.reset();
  m.scaled_blocks = m.bf16_attention = false;
  return m;
}

}  // namespace

Drafter make_drafter(DraftMethod method, std::int64_t tokens, const ModelSpec& target,
                     const ModelSpec* model, const Parallelism& p) {
  Drafter d{.method = method, .tokens = tokens, .model = {}};
  const double hidden = as_real(target.hidden);
  switch (method) {
    case DraftMethod::kEagle3: {
      d.model = dense_layer(target);
      d.model.vocab = std::min(kDraftVocabulary, target.vocab);
      d.owns_output = true;
      d.first_parameters = 3 * hidden * hidden;
      const double qkv = as_real(target.heads + 2 * target.kv_heads) * as_real(target.head_dim);
      d.pass_parameters = target.is_mla() ? 0 : hidden * qkv / as_real(p.tp);
      break;
    }
    case DraftMethod::kEagle:
      d.model = dense_layer(target);
      d.pass_parameters = 2 * hidden * hidden;
      break;
    case DraftMethod::kMtp:
      d.model = one_layer(target);
      d.pass_parameters = 2 * hidden * hidden;
      break;
    case DraftMethod::kDraftModel:
      d.model = *model;
      d.owns_output = !model->tied_embeddings;
      d.owns_embedding = true;
      break;
    case DraftMethod::kNgram:
      break;
  }
  return d;
}

double drafter_bytes_per_gpu(const Drafter& d, const Parallelism& p) {
  if (d.model.layers == 0) return 0;
  const ParameterCount c = count_parameters(d.model);
  const double vocabulary = (d.owns_output ? c.output : 0) + (d.owns_embedding ? c.embedding : 0);
  return weight_bytes_per_gpu(d.model, p) -
         2.0 * (c.embedding + c.output - vocabulary) / as_real(p.tp) +
         2.0 * (d.first_parameters + d.pass_parameters);
}

std::int64_t drafter_block_bytes(const Drafter& d, KvDtype dtype, const Parallelism& p,
                                 std::int64_t block_size) {
  return d.model.layers * kv_entry_bytes(d.model, dtype, p.tp) * block_size;
}

SpeculativeLatency::SpeculativeLatency(std::shared_ptr<const LatencyModel> target,
                                       std::shared_ptr<const LatencyModel> pass,
                                       const Drafter& drafter, const AcceleratorSpec& gpu)
    : target_(std::move(target)),
      pass_(std::move(pass)),
      tokens_(drafter.tokens),
      first_parameters_(drafter.first_parameters),
      pass_parameters_(drafter.pass_parameters),
      kernel_ns_(gpu.kernel_us * 1e3),
      byte_ns_(1 / (gpu.memory_tb_per_s * 1e3 * gpu.weight_mbu)),
      flop_ns_(1 / (gpu.bf16_tflops * 1e3 * gpu.prefill_mfu)),
      drafter_(enum_name(drafter.method)) {}

double SpeculativeLatency::projections_ns(double parameters, double rows) const {
  if (parameters == 0) return 0;
  return kernel_ns_ + std::max(2 * parameters * byte_ns_, 2 * parameters * rows * flop_ns_);
}

std::int64_t SpeculativeLatency::draft_ticks(const BatchShape& s) const {
  if (pass_ == nullptr || s.tokens() == 0) return 0;
  BatchShape each;
  each.decode_requests = s.decode_requests + s.prefill_requests;
  each.decode_context = s.decode_context + s.prefill_context;
  const double rows = as_real(each.decode_requests);
  const std::int64_t first = bounded_ticks(
      pass_->step_ticks(s) +
      ns_to_ticks(projections_ns(first_parameters_ + pass_parameters_, as_real(s.tokens()))));
  if (tokens_ == 1) return first;
  const std::int64_t next =
      bounded_ticks(pass_->step_ticks(each) + ns_to_ticks(projections_ns(pass_parameters_, rows)));
  return bounded_ticks(first + static_cast<WideTicks>(next) * (tokens_ - 1));
}

std::int64_t SpeculativeLatency::step_ticks(const BatchShape& shape) const {
  return bounded_ticks(static_cast<WideTicks>(target_->step_ticks(shape)) + draft_ticks(shape));
}

std::string SpeculativeLatency::drafting() const {
  return drafter_ + ", " + std::to_string(tokens_) + " tokens, " +
         (pass_ == nullptr ? "no passes of a drafter" : pass_->provenance());
}

std::string SpeculativeLatency::provenance() const {
  return target_->provenance() + "; speculation: " + drafting();
}

}  // namespace routesim::models
