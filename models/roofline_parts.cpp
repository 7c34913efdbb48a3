#include "models/roofline_parts.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "models/kv_cache_spec.h"
#include "models/ticks.h"

namespace routesim::models {
namespace {

/// The GPU multiplies weights in this narrow format as they are; others are widened to bf16 first.
bool multiplies_narrow(const AcceleratorSpec& a, WeightDtype weights) {
  return (weights == WeightDtype::kFp8 && a.fp8_tflops > 0) ||
         (weights == WeightDtype::kNvfp4 && a.fp4_tflops > 0);
}

/// FLOP per nanosecond that matrix products in this weight format reach.
double matrix_rate(const AcceleratorSpec& a, WeightDtype weights) {
  if (!multiplies_narrow(a, weights)) return a.bf16_tflops * 1e3 * a.prefill_mfu;
  return weights == WeightDtype::kFp8 ? a.fp8_tflops * 1e3 * a.prefill_mfu_fp8
                                      : a.fp4_tflops * 1e3 * a.prefill_mfu_fp4;
}

/// Products whose activations are quantised first, block by block.
bool quantises_activations(const AcceleratorSpec& a, const ModelSpec& m) {
  return m.scaled_blocks || (m.weights == WeightDtype::kNvfp4 && multiplies_narrow(a, m.weights));
}

/// Bytes per nanosecond when weights are streamed.
double weight_rate(const AcceleratorSpec& a) { return a.memory_tb_per_s * 1e3 * a.weight_mbu; }

/// Bytes per nanosecond of collectives among `gpus` GPUs; a node has eight. A switch that reduces
/// gives more to more of them: 320, 350 and 446 GB/s of volume for 2, 4 and 8 H100
/// (aiconfigurator's table of vLLM 0.19 at 512 MB).
double collective_rate(const AcceleratorSpec& a, std::int64_t gpus) {
  if (gpus > 8) return a.nic_gb_per_s * a.collective_efficiency;
  const double gain = a.switched_link ? 1 + 0.05 * as_real(gpus - 2) : 1;
  return a.link_gb_per_s * a.collective_efficiency * gain;
}

/// The share of the rate of plain bf16 products that grouped products of 4-bit weights reach where
/// no kernel is known better; the weights are widened on the way. 0.57 on the A100.
constexpr double kGroupedRateWidened = 0.52;
/// The same with Triton's MXFP4 kernel on Hopper (vLLM from 0.14), which widens the weights anew
/// for every tile and multiplies at the rate of plain products between
/// (`widening_tb_per_s`): 561 TFLOP/s in full tiles of 128 rows, 392 in tiles of 64
/// (aiconfigurator's table of vLLM 0.24, H200 and H100 alike).
constexpr double kGroupedRateTiles = 1;
/// The same with Marlin on a GPU of the Hopper generation, whose matrix units it does not use:
/// 23,700 prompt tokens/s and GPU of gpt-oss-120b with vLLM 0.11
/// (anyscale/ray-serve-llm-perf-examples), InferenceX's TTFT on H100 and H200.
constexpr double kGroupedRateMarlin = 0.29;

/// The rate of grouped products over that of plain ones: vLLM's own benchmark of Mixtral's experts
/// in bf16 on an H100 (vllm-project/vllm#24700) takes 289 us for each 512 tokens more, 623 TFLOP/s,
/// where plain products reach 742. An older kernel on the MI300X (ROCm/triton#685): 368 of 549.
constexpr double kGroupedRate = 0.84;

/// Share of the bandwidth of plain products that experts with one scale per tensor reach: 0.82
/// (vllm-project/vllm#24700) to 0.85 of an H100's bandwidth, where products reach 0.88; block
/// scales are slower (`fp8_expert_mbu`).
constexpr double kExpertMbu = 0.95;

/// The same in fp8, and assumed for fp4: 0.18 for Qwen3-30B-A3B (the same page, 208 TFLOP/s), 0.37
/// for DeepSeek-V3 in DeepGEMM (vllm-project/vllm#13932, 423 TFLOP/s), of 1,148 for plain products
/// on an H100.
constexpr double kGroupedRateNarrow = 0.4;

/// Share of a score's time that does not depend on the width of a head, of 128: its exponential.
/// FlashAttention 3 on an H200 reaches 506, 650 and 771 TFLOP/s for heads of 64, 128 and 256
/// (aiconfigurator's table of vLLM 0.24, 16,384 tokens).
constexpr double kScoreShare = 0.27;

/// A windowed layer computes whole tiles and masks most of them: as if its window had this many
/// tokens more. From the same table: 560 to 700 for heads of 64 to 256 and windows of 128 and
/// 1,024.
constexpr double kWindowTiles = 600;

/// Tokens that a chunked scan over a state multiplies with each other: 64 in the kernels of
/// flash-linear-attention that vLLM took over (model_executor/layers/fla of v0.24.0).
constexpr std::int64_t kScanChunk = 64;

/// Products that quantise their activations as a whole: fp8 weights with one scale each.
bool quantises_whole(const AcceleratorSpec& a, const ModelSpec& m) {
  return m.weights == WeightDtype::kFp8 && multiplies_narrow(a, m.weights) && !m.scaled_blocks;
}

/// The kernel widens the experts of `weights` tile by tile.
bool widens_tiles(const AcceleratorSpec& a, WeightDtype weights, bool marlin) {
  return weights == WeightDtype::kMxfp4 && a.widening_tb_per_s > 0 && !marlin;
}

double grouped_rate(const AcceleratorSpec& a, WeightDtype weights, bool marlin) {
  if (multiplies_narrow(a, weights)) return kGroupedRateNarrow;
  if (widens_tiles(a, weights, marlin)) return kGroupedRateTiles;
  if (weights != WeightDtype::kMxfp4 && weights != WeightDtype::kNvfp4) return kGroupedRate;
  return marlin && a.fp8_tflops > 0 ? kGroupedRateMarlin : kGroupedRateWidened;
}

}  // namespace

std::int64_t expert_tile(double rows) {
  std::int64_t tile = 16;
  while (tile < 128 && as_real(tile) < rows) tile *= 2;
  return tile;
}

double expected_maximum(std::int64_t n) {
  constexpr std::array<double, 11> kAtPowerOfTwo = {0,     0.564, 1.029, 1.424, 1.766, 2.070,
                                                    2.344, 2.594, 2.825, 3.041, 3.245};
  const auto count = static_cast<std::uint64_t>(std::max<std::int64_t>(1, n));
  const auto log2 = static_cast<std::size_t>(std::bit_width(count) - 1);
  if (log2 + 1 >= kAtPowerOfTwo.size()) return kAtPowerOfTwo.back();
  const double above =
      as_real(n) / as_real(std::int64_t{1} << log2) - 1;  // Near enough to the logarithm.
  return kAtPowerOfTwo[log2] + above * (kAtPowerOfTwo[log2 + 1] - kAtPowerOfTwo[log2]);
}

DenseCost::DenseCost(const AcceleratorSpec& a, const ModelSpec& whole, const Parallelism& p) {
  ModelSpec m = whole;
  m.weights = whole.dense_weights.value_or(whole.weights);
  const ParameterCount c = count_parameters(m);
  const double tp = as_real(p.tp);
  const double trunk = c.attention + c.dense_mlp;
  weights_ns_ = (trunk_bytes(m) / tp + 2.0 * c.router) / weight_rate(a);
  const double rate = matrix_rate(a, m.weights);
  token_ns_ = 2.0 * ((trunk + c.shared_mlp) / tp + c.router) / rate;
  if (m.bf16_attention)
    token_ns_ += 2.0 * c.attention / tp * (1 / matrix_rate(a, WeightDtype::kBf16) - 1 / rate);
  // Query-key-value, attention output, gate-up and down; two grouped products more with experts.
  // An indexer has two products and its scores.
  const double layers = m.whole_layers();
  fixed_ns_ =
      ((4.0 * layers + 2.0 * as_real(m.moe_layers()) + 3.0 * as_real(m.sparse.index_layers)) *
           a.kernel_us +
       layers * a.layer_us + as_real(m.moe_layers()) * a.expert_layer_us) *
          1e3 +
      a.gpu_step_ms * 1e6;
  if (quantises_activations(a, m)) {
    const std::int64_t mlps =
        m.shared_experts > 0 ? m.mlp_layers() : m.mlp_layers() - m.moe_layers();
    const std::int64_t attentions =
        m.bf16_attention ? 0 : (m.is_mla() ? 3 : 2) * m.attention_layers() + 2 * m.state.layers;
    fixed_ns_ += as_real(attentions + 2 * mlps) * a.scaled_product_us * 1e3;
  }
  if (quantises_whole(a, m)) {
    const std::int64_t mlps =
        m.shared_experts > 0 ? m.mlp_layers() : m.mlp_layers() - m.moe_layers();
    fixed_ns_ +=
        2.0 * as_real(m.attention_layers() + m.state.layers + mlps) * a.fp8_product_us * 1e3;
  }
  const double output = as_real(m.vocab) * as_real(m.hidden) / tp;
  output_weights_ns_ = 2.0 * output / weight_rate(a);
  output_token_ns_ = 2.0 * output / matrix_rate(a, WeightDtype::kBf16);
}

double DenseCost::ns(double tokens, double sampled) const {
  return fixed_ns_ + std::max(weights_ns_, tokens * token_ns_) + output_ns(sampled);
}

double DenseCost::output_ns(double sampled) const {
  return std::max(output_weights_ns_, sampled * output_token_ns_);
}

ExpertCost::ExpertCost(const AcceleratorSpec& a, const ModelSpec& m, const Parallelism& p,
                       bool older) {
  if (!m.is_moe()) return;
  const double shards = as_real(p.tp * p.dp);
  const double routed = count_parameters(m).routed_mlp / shards;
  const double visited = as_real(m.experts_per_token) / as_real(m.experts);
  const bool fp8 = m.weights == WeightDtype::kFp8;
  const bool fp4 = m.weights == WeightDtype::kNvfp4;
  const double mbu = fp8 && !m.scaled_blocks                   ? kExpertMbu * a.weight_mbu
                     : fp8                                     ? a.fp8_expert_mbu
                     : fp4 || m.weights == WeightDtype::kMxfp4 ? a.mxfp4_mbu
                                                               : a.weight_mbu;
  weights_ns_ = routed * bytes_per_weight(m.weights) / (a.memory_tb_per_s * 1e3 * mbu);
  experts_ = as_real(m.experts);
  experts_per_token_ = as_real(m.experts_per_token);
  row_ns_ =
      2.0 * routed / experts_ / (matrix_rate(a, m.weights) * grouped_rate(a, m.weights, older));
  if (widens_tiles(a, m.weights, older))
    tile_ns_ = routed / experts_ * bytes_per_weight(m.weights) / (a.widening_tb_per_s * 1e3);
  ranks_ = p.dp;
  if (p.ep > 1) {
    peers_ = shards - 1;
    deviations_ = expected_maximum(p.tp * p.dp);
  }
  // Repeated products instead of pow(): the same bits on every platform.
  double miss = 1.0;
  while (miss > 1e-6) {
    untouched_.push_back(miss);
    miss *= 1.0 - visited;
  }
}

double ExpertCost::ns(const BatchShape& s) const {
  if (untouched_.empty()) return 0;
  const std::int64_t all = s.group_total_tokens > 0 ? s.group_total_tokens : s.tokens() * ranks_;
  const auto n = static_cast<std::size_t>(std::max<std::int64_t>(1, all));
  const double touched = n < untouched_.size() ? 1.0 - untouched_[n] : 1.0;
  // The last tile of an expert is half empty in the mean.
  const double visits = as_real(all) * experts_per_token_;
  const double rows = visits / experts_;
  const double tile = as_real(expert_tile(rows));
  const double padded = std::max(tile, rows / touched + (tile - 1) / 2);
  // Standard deviation over mean of what falls to one GPU: of the experts touched, drawn without
  // replacement, and of the rows. All wait for the busiest.
  const double uneven_experts = std::sqrt(peers_ * (1 - touched) / (experts_ * touched));
  const double uneven_rows = std::sqrt(peers_ / visits);
  return std::max(
      weights_ns_ * touched * (1 + deviations_ * uneven_experts),
      (row_ns_ + tile_ns_ / tile) * experts_ * touched * padded * (1 + deviations_ * uneven_rows));
}

AttentionCost::AttentionCost(const AcceleratorSpec& a, const ModelSpec& m, const Parallelism& p,
                             KvDtype kv, bool older_fp8_cache) {
  const double tp = as_real(p.tp);
  const double attention_rate = a.bf16_tflops * 1e3 * a.attention_mfu;
  const bool slow_cache = kv == KvDtype::kFp8 && older_fp8_cache;
  const double kv_rate = a.memory_tb_per_s * 1e3 * (slow_cache ? a.kv_mbu_fp8 : a.kv_mbu);
  // Scores and weighted values of one causal pair: 2·(d_k + d_v) FLOP per head. S counts pairs
  // twice.
  const auto pair_of = [&](std::int64_t key, std::int64_t value) {
    const double width = value > 0 ? as_real(key + value) : 2.0 * as_real(key);
    // `attention_mfu` is that of heads of 128; narrower ones have more scores to the FLOP.
    const double narrow = m.is_mla() ? 0 : std::max(0.0, 128 / as_real(key) - 1);
    return as_real(m.heads) / tp * width / attention_rate * (1 + kScoreShare * narrow);
  };
  // All whole tokens in the cache of DeepSeek V4 lie in windows.
  const std::int64_t seeing = m.compressed.empty() ? m.full_layers() - m.sparse.layers : 0;
  const double pair = m.is_mla() ? pair_of(m.head_dim + m.rope_dim, m.v_head_dim)
                                 : pair_of(m.head_dim, m.v_head_dim);
  pair_ns_ = pair * as_real(seeing);
  const double layer = as_real(kv_entry_bytes(m, kv, p.tp)) / as_real(p.dcp) / kv_rate;
  const double full = layer * as_real(seeing);
  prefill_context_ns_ = full;
  // Absorbed MLA decode multiplies every head with the latent, twice: compute can bind there.
  const double latent = m.is_mla() ? 2.0 * as_real(m.heads) / tp * as_real(seeing) *
                                         as_real(2 * m.kv_lora_rank + m.rope_dim) / attention_rate
                                   : 0.0;
  context_ = ns_to_ticks(std::max(full, latent));
  shared_context_ = ns_to_ticks(std::max(full * a.shared_context_weight, latent));
  if (m.sliding_layers > 0) {
    const double bytes = as_real(window_entry_bytes(m, kv, p.tp));
    const double windowed_pair =
        m.sliding_head_dim > 0 ? pair_of(m.sliding_head_dim, m.v_head_dim) : pair;
    bounded_.push_back({.window = m.sliding_window,
                        .ticks = ns_to_ticks(bytes / kv_rate * as_real(m.sliding_layers)),
                        .pair_ns = windowed_pair * as_real(m.sliding_layers),
                        .tiles = kWindowTiles});
  }
  add_selecting(a, m, p, kv, kv_rate);
  const StateLayers& states = m.state;
  state_ = ns_to_ticks(2.0 * as_real(state_bytes(states, p.tp) * states.layers) / kv_rate);
  state_token_ns_ = 2.0 * as_real(states.layers * states.values()) / tp *
                    as_real(2 * states.key_dim + kScanChunk) / attention_rate;
  // FlashAttention 2 gives a mixed batch to one call, which neither packs the heads of a group nor
  // splits the context: each head of a decode computes a tile of rows (vllm-project/vllm#58013).
  if (m.is_mla() || a.mixed_decode_rows == 0) return;
  const double rows = 2 * as_real(a.mixed_decode_rows);  // A row is a pair, which S counts twice.
  mixed_context_ = std::max(context_, ns_to_ticks(rows * pair_ns_));
  for (Bounded& b : bounded_) b.mixed_ticks = std::max(b.ticks, ns_to_ticks(rows * b.pair_ns));
}

// The layers that select read the entries they chose. Before, the indexer reads a key for each
// entry, which heads of other GPUs do again with MLA. The other compressed layers read all of
// theirs. Prompts are computed like decodes: every head with the latent.
void AttentionCost::add_selecting(const AcceleratorSpec& a, const ModelSpec& m,
                                  const Parallelism& p, KvDtype kv, double kv_rate) {
  const SparseLayers& s = m.sparse;
  if (s.layers == 0) return;
  const double attention_rate = a.bf16_tflops * 1e3 * a.attention_mfu;
  const double index_rate = std::max(a.bf16_tflops, a.fp8_tflops) * 1e3 * a.attention_mfu;
  const double tp = as_real(p.tp);
  const double entry_ns = as_real(kv_entry_bytes(m, kv, p.tp)) / kv_rate;
  const double width = as_real(m.is_mla() ? 2 * m.kv_lora_rank + m.rope_dim : 2 * m.head_dim);
  const double pair = as_real(m.heads) / tp * width / attention_rate;
  const double read = m.is_mla() ? std::max(entry_ns, 2 * pair) : entry_ns;
  const std::int64_t ratio = m.compressed.empty() ? 1 : m.compressed.front().ratio;
  bounded_.push_back({.window = s.top_k * ratio,
                      .ticks = ns_to_ticks(read * as_real(s.layers) / as_real(ratio)),
                      .pair_ns = pair * as_real(s.layers) / as_real(ratio)});
  const double key_ns = as_real(s.index_key_bytes) / kv_rate;
  const double score = as_real(s.index_heads * s.index_dim) / (m.is_mla() ? 1 : tp) / index_rate;
  const double indexers = as_real(s.index_layers) / as_real(ratio);
  double seen = std::max(key_ns, 2 * score) * indexers;
  pair_ns_ += score * indexers;
  for (std::size_t i = 1; i < m.compressed.size(); ++i) {
    const double entries = as_real(m.compressed[i].layers) / as_real(m.compressed[i].ratio);
    seen += read * entries;
    pair_ns_ += pair * entries;
  }
  context_ += ns_to_ticks(seen);
  shared_context_ += ns_to_ticks(seen);
  prefill_context_ns_ += seen;
}

double AttentionCost::prefill_ns(const BatchShape& s) const {
  const double pairs = as_real(s.prefill_pairs);
  double ns = pairs * pair_ns_;
  for (const Bounded& b : bounded_)
    ns += std::min(pairs, 2.0 * as_real(s.prefill_tokens) * (as_real(b.window) + b.tiles)) *
          b.pair_ns;
  return std::max(ns, as_real(s.prefill_context) * prefill_context_ns_) +
         as_real(s.prefill_tokens) * state_token_ns_;
}

std::int64_t AttentionCost::decode_ticks(const BatchShape& s) const {
  const auto times = [](std::int64_t ticks, std::int64_t count) {
    return static_cast<WideTicks>(ticks) * count;
  };
  const bool mixed = mixed_context_ > 0 && s.prefill_tokens > s.prefill_requests;
  WideTicks sum = times(state_, s.decode_requests);
  for (const Bounded& b : bounded_)
    sum += times(mixed ? b.mixed_ticks : b.ticks,
                 std::min(s.decode_context, s.decode_requests * b.window));
  if (mixed) return bounded_ticks(sum + times(mixed_context_, s.decode_context));
  const std::int64_t shared = widely_shared(s);
  return bounded_ticks(sum + times(context_, s.decode_context - shared) +
                       times(shared_context_, shared));
}

// The windows still fill, until the last token of the shortest that is not full.
AttentionCost::Growth AttentionCost::growth(const BatchShape& s) const {
  Growth growth{.ticks = context_, .steps = kUnboundedSteps};
  for (const Bounded& b : bounded_) {
    const std::int64_t inside = s.decode_requests * b.window - s.decode_context;
    if (inside <= 0) continue;
    growth.ticks += b.ticks;
    if (b.ticks > 0) growth.steps = std::min(growth.steps, inside / s.decode_requests + 1);
  }
  return growth;
}

AllReduce::AllReduce(const AcceleratorSpec& a, std::int64_t gpus)
    : latency_ns_(a.collective_us * 1e3),
      others_(as_real(gpus - 1)),
      gpus_(as_real(gpus)),
      rate_(collective_rate(a, gpus)) {
  if (a.switched_link && gpus <= 8) step_ns_ = 6'500 * (1 - 2.0 / gpus_);
}

// Beyond some 64 KB the GPUs no longer read everything from everybody, but wait for each other
// twice: fitted to aiconfigurator's table for 2, 4 and 8 H100 (vLLM 0.19).
double AllReduce::ns(double bytes) const {
  constexpr double kStepBytes = 65'536;
  return latency_ns_ + step_ns_ * bytes / (bytes + kStepBytes) +
         bytes * 2.0 * others_ / gpus_ / rate_;
}

CommunicationCost::CommunicationCost(const AcceleratorSpec& a, const ModelSpec& m,
                                     const Parallelism& p)
    : all_reduce_(a, p.tp) {
  const double latency = a.collective_us * 1e3;
  const double row = 2.0 * as_real(m.hidden);  // One token's activations in bf16.
  row_bytes_ = row;
  if (p.tp > 1) all_reduces_ = 2.0 * m.whole_layers();
  if (p.pp > 1) {
    latency_ns_ += as_real(p.pp - 1) * latency;
    token_ns_ += as_real(p.pp - 1) * row / (a.nic_gb_per_s * a.collective_efficiency);
  }
  const std::int64_t group = p.tp * p.dp;
  if (!m.is_moe() || (p.ep == 1 && p.dp == 1)) return;
  latency_ns_ += 2.0 * as_real(m.moe_layers()) * latency;
  // Dispatch sends a token once to every other GPU that holds one of its experts (fp8 when the
  // experts are fp8), combine returns bf16. Without ep every rank needs every token.
  double peers = as_real(group - 1);
  if (p.ep > 1) {
    double miss = 1.0;
    for (std::int64_t i = 0; i < m.experts_per_token; ++i) miss *= 1.0 - 1.0 / as_real(p.ep);
    peers *= 1.0 - miss;
  }
  const double dispatch = m.weights == WeightDtype::kFp8 ? row / 2 : row;
  token_ns_ += as_real(m.moe_layers()) * peers * (dispatch + row) / as_real(p.tp) /
               collective_rate(a, group);
}

// The queries of all heads go to all GPUs of the group, and their outputs come back weighted by the
// LSE, which is gathered in fp32 (cp_lse_ag_out_rs in vllm/v1/attention/ops/common.py, v0.12). With
// MLA a head's query and output are as wide as the latent, and a prompt's tokens gather the latent
// of the context before them instead (_context_parallel_compute_prefill_context).
ContextExchange::ContextExchange(const AcceleratorSpec& a, const ModelSpec& m, const Parallelism& p,
                                 KvDtype kv) {
  if (p.dcp == 1) return;
  const double layers = as_real(m.attention_layers());
  const double others = as_real(p.dcp - 1);
  const double heads = as_real(m.heads) / as_real(p.tp);
  const double query = as_real(m.is_mla() ? m.kv_lora_rank + m.rope_dim : m.head_dim);
  const double output = as_real(m.is_mla()         ? m.kv_lora_rank
                                : m.v_head_dim > 0 ? m.v_head_dim
                                                   : m.head_dim);
  const double rate = collective_rate(a, p.dcp);
  latency_ns_ = 3 * layers * a.collective_us * 1e3;
  token_ns_ = layers * others * heads * (2 * (query + output) + 4 * as_real(p.dcp)) / rate;
  prompt_token_ns_ = m.is_mla() ? 0 : token_ns_;
  if (m.is_mla())
    context_ns_ = layers * others / as_real(p.dcp) * as_real(kv_entry_bytes(m, kv, p.tp)) / rate;
}

double ContextExchange::ns(const BatchShape& s) const {
  return latency_ns_ + as_real(s.decode_requests + s.draft_tokens) * token_ns_ +
         as_real(s.prefill_tokens) * prompt_token_ns_ +
         as_real(std::max<std::int64_t>(0, s.prefill_context - s.prefill_tokens)) * context_ns_;
}

double CommunicationCost::add_to(double ns, double tokens) const {
  ns = ns + latency_ns_ + tokens * token_ns_;
  if (all_reduces_ > 0) ns += all_reduces_ * all_reduce_.ns(tokens * row_bytes_);
  return ns;
}

}  // namespace routesim::models
