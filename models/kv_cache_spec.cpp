#include "models/kv_cache_spec.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

namespace routesim::models {
namespace {

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
/// The most that engine.num_gpu_blocks may say and a cache can count.
constexpr double kMostBlocks = 1e8;

std::string gib(double bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", bytes / kGib);
  return text;
}

/// Ranges of the request itself; the YAML reader checks them too, library callers may not have.
bool check_input(const KvCacheInput& in, Diagnostics& out) {
  const std::size_t before = out.items().size();
  if (in.block_size < 1)
    out.error({}, "block_size", "must be at least 1 (got " + std::to_string(in.block_size) + ")");
  if (!(in.gpu_memory_utilization > 0 && in.gpu_memory_utilization <= 1))
    out.error({}, "gpu_memory_utilization",
              "must be in (0, 1] (got " + std::to_string(in.gpu_memory_utilization) + ")");
  if (in.num_gpu_blocks && *in.num_gpu_blocks < 2)
    out.error({}, "num_gpu_blocks",
              "must be at least 2: one block is vLLM's null block (got " +
                  std::to_string(*in.num_gpu_blocks) + ")");
  check_parallelism(in.model, in.parallelism, out);
  return out.items().size() == before;
}

void account_memory(const KvCacheInput& in, KvCachePlan& plan) {
  plan.memory = (in.gpu_memory_utilization - in.graph_share) * in.accelerator.memory_bytes;
  plan.weights = weight_bytes_per_gpu(in.model, in.parallelism) + in.drafter_bytes;
  plan.activations =
      activation_bytes(in.model, in.parallelism, in.max_num_batched_tokens, in.max_num_seqs);
  plan.overhead = in.accelerator.overhead_bytes + in.model.workspace_bytes;
  if (in.overhead_bytes) {
    plan.activations = 0;
    plan.overhead = *in.overhead_bytes;
  }
  plan.overhead += in.adapter_bytes;
  plan.available = plan.memory - plan.weights - plan.activations - plan.overhead;
}

void report_no_fit(const KvCacheInput& in, const KvCachePlan& plan, double needed,
                   Diagnostics& out) {
  const double missing = needed - plan.available;
  std::string message = in.model.name + " does not fit on " + in.accelerator.name + " with tp " +
                        std::to_string(in.parallelism.tp) + ": short by " + gib(missing) +
                        " GiB per GPU (got " + gib(plan.memory) + " GiB usable, " +
                        gib(plan.weights) + " GiB weights, " +
                        gib(plan.activations + plan.overhead) + " GiB activations and overhead, " +
                        gib(needed) + " GiB needed for KV)";
  std::string hint = plan.weights > plan.memory
                         ? "raise tp, or take a GPU with more memory or smaller weights"
                         : "raise tp or gpu_memory_utilization, or lower max_num_batched_tokens, "
                           "max_num_seqs or max_model_len";
  out.error({}, "gpu_memory_utilization", std::move(message), std::move(hint));
}

/// A size far from what the memory holds is often another number: of one of several KV groups, of
/// tokens, or of another server.
void warn_of_size(const KvCachePlan& plan, Diagnostics& out) {
  const double fitting = std::floor(plan.available / as_real(plan.bytes_per_block));
  const double share = as_real(plan.num_gpu_blocks) / fitting;
  if (fitting < 1 || (share >= 1.0 / 3 && share <= 1.5)) return;
  char text[96];
  std::snprintf(text, sizeof text, "is %.2g times the %.0f blocks that fit into the memory (got ",
                share, fitting);
  out.warning({}, "num_gpu_blocks", text + std::to_string(plan.num_gpu_blocks) + ")",
              "the tokens that vLLM logs as \"GPU KV cache size\" go to kv_cache_tokens, of models "
              "with several KV groups above all; without either the size is estimated");
}

std::int64_t shares_of(std::int64_t n, std::int64_t parts) { return (n + parts - 1) / parts; }

/// Elements that key and value heads keep of a token, on one of tp GPUs.
std::int64_t head_width(std::int64_t heads, std::int64_t key, std::int64_t value, std::int64_t tp) {
  return std::max<std::int64_t>(1, heads / tp) * (key + (value > 0 ? value : key));
}

/// Layers of each group where the kinds of layers have `few` and `many`: as many as the rarer kind
/// has, but those of the commoner one where it has less than half as many more
/// (_get_kv_cache_groups_uniform_page_size).
std::int64_t group_layers(std::int64_t few, std::int64_t many) {
  if (few > many) std::swap(few, many);
  return 2 * many < 3 * few ? many : few;
}

/// DeepSeek V4: blocks of 256 tokens hold 64 entries of ratio 4 with their indexer's keys, and two
/// of ratio 128. The windows and what the compressors have not finished take blocks of the same
/// size (_get_kv_cache_groups_uniform_groups): 3 of 64 tokens for a window of 128, here two of 256,
/// and one each for the compressors of a ratio.
KvLayout compressed_layout(const ModelSpec& m, KvDtype dtype, const Parallelism& p,
                           std::int64_t block_size) {
  constexpr std::int64_t kTokens = 256;
  KvLayout out;
  out.block_size = std::max(kTokens, shares_of(block_size, kTokens) * kTokens);
  const std::int64_t entry = kv_entry_bytes(m, dtype, p.tp);
  std::int64_t most = 1;
  std::int64_t entry_bytes = m.sparse.index_key_bytes;
  for (const CompressedLayers& c : m.compressed) {
    const std::int64_t entries = out.block_size / c.ratio;
    out.bytes_per_block += shares_of(c.layers, p.pp) * entries * (entry + entry_bytes);
    entry_bytes = 0;  // Only the first kind has an indexer.
    most = std::max(most, c.layers);
  }
  out.fixed_groups = shares_of(m.attention_layers(), most) + std::ssize(m.compressed);
  return out;
}

/// A page of attention holds the state, in steps of what attention kernels take.
KvLayout state_layout(const ModelSpec& m, KvDtype dtype, const Parallelism& p,
                      std::int64_t block_size) {
  const std::int64_t entry = kv_entry_bytes(m, dtype, p.tp);
  const std::int64_t step = std::max<std::int64_t>(m.is_mla() ? 64 : 16, block_size);
  KvLayout out;
  out.block_size = step * shares_of(state_bytes(m.state, p.tp), step * entry);
  const std::int64_t layers = group_layers(m.full_layers(), m.state.layers);
  out.fixed_groups = shares_of(m.state.layers, layers);
  out.bytes_per_block = out.block_size * entry * shares_of(layers, p.pp);
  out.states = true;
  return out;
}

}  // namespace

std::int64_t kv_entry_bytes(const ModelSpec& m, KvDtype dtype, std::int64_t tp) {
  const std::int64_t bytes = bytes_per_kv_element(dtype);
  if (!m.is_mla()) return head_width(m.kv_heads, m.head_dim, m.v_head_dim, tp) * bytes;
  if (m.sparse.layers == 0 || dtype == KvDtype::kBf16) return (m.kv_lora_rank + m.rope_dim) * bytes;
  const std::int64_t scales = m.compressed.empty() ? m.kv_lora_rank / 32 : 8;
  return m.kv_lora_rank + scales + 2 * m.rope_dim;
}

std::int64_t window_entry_bytes(const ModelSpec& m, KvDtype dtype, std::int64_t tp) {
  if (m.is_mla()) return kv_entry_bytes(m, dtype, tp);
  const std::int64_t heads = m.sliding_kv_heads > 0 ? m.sliding_kv_heads : m.kv_heads;
  const std::int64_t key = m.sliding_head_dim > 0 ? m.sliding_head_dim : m.head_dim;
  return head_width(heads, key, m.v_head_dim, tp) * bytes_per_kv_element(dtype);
}

std::int64_t state_bytes(const StateLayers& s, std::int64_t tp) {
  // Groups that are fewer than GPUs are copied.
  const std::int64_t groups = std::max(s.groups, s.groups > 0 ? tp : 0);
  const std::int64_t channels = (s.values() + 2 * groups * s.key_dim) / tp;
  const std::int64_t matrix = s.heads / tp * s.value_dim * s.key_dim;
  return 2 * (s.conv - 1) * channels + matrix * (s.bf16_state ? 2 : 4);
}

KvLayout kv_layout(const ModelSpec& m, KvDtype dtype, const Parallelism& p, std::int64_t block_size,
                   bool hybrid) {
  if (!m.compressed.empty()) return compressed_layout(m, dtype, p, block_size);
  if (m.state.layers > 0) return state_layout(m, dtype, p, block_size);
  const std::int64_t full = m.full_layers();
  const std::int64_t entry = kv_entry_bytes(m, dtype, p.tp);
  const std::int64_t windowed = window_entry_bytes(m, dtype, p.tp);
  KvLayout out{.block_size = block_size};
  if (!hybrid || full == 0 || m.sliding_layers == 0) {
    const std::int64_t bytes = entry == windowed ? shares_of(m.attention_layers(), p.pp) * entry
                                                 : shares_of(full, p.pp) * entry +
                                                       shares_of(m.sliding_layers, p.pp) * windowed;
    out.bytes_per_block =
        block_size * (bytes + shares_of(m.sparse.index_layers, p.pp) * m.sparse.index_key_bytes);
    out.block_size *= p.dcp;
    return out;
  }
  out.fixed_groups = shares_of(m.sliding_layers, full);
  out.bytes_per_block = block_size * std::max(entry, windowed) * shares_of(full, p.pp);
  if (windowed > entry && windowed % entry == 0) {
    out.block_size *= windowed / entry;
    out.fixed_groups *= windowed / entry;
  }
  return out;
}

std::int64_t kv_bytes_per_token_per_gpu(const ModelSpec& m, KvDtype dtype, const Parallelism& p,
                                        bool hybrid) {
  const KvLayout layout = kv_layout(m, dtype, p, 1, hybrid);
  return shares_of(layout.bytes_per_block, layout.block_size);
}

double activation_bytes(const ModelSpec& m, const Parallelism& p, std::int64_t batched_tokens,
                        std::int64_t sequences) {
  const double tp = as_real(p.tp);
  // MLA expands the latent of every prompt token to full keys and values, twice with the output.
  const double attention =
      m.is_mla() ? as_real(m.heads) * 2 * as_real(m.head_dim + m.rope_dim + m.v_head_dim)
                 : as_real(2 * m.heads + 2 * m.kv_heads) * as_real(m.head_dim);
  // A layer with a state projects its values, their gate, keys and queries at once.
  const double state = as_real(2 * m.state.values() + m.state.channels());
  // Gate, up and product live together. A MoE layer runs experts_per_token narrow MLPs per token.
  const double dense = 3 * as_real(m.ffn);
  const double moe = m.is_moe() ? 3 * as_real(m.expert_ffn) * as_real(m.experts_per_token) : 0;
  const double widest = std::max({attention, dense, moe, state}) / tp;
  const double tensors = as_real(batched_tokens) * 2 * (3 * as_real(m.hidden) + widest);
  // Logits in bf16, their fp32 copy and one fp32 scratch of the sampler: 10 bytes per entry.
  const double logits = as_real(std::min(sequences, batched_tokens)) * as_real(m.vocab) * 10;
  return tensors + logits;
}

std::optional<KvCachePlan> plan_kv_cache(const KvCacheInput& in, Diagnostics& diagnostics) {
  if (!check_input(in, diagnostics)) return std::nullopt;
  KvCachePlan plan;
  const KvLayout layout =
      kv_layout(in.model, in.kv_dtype, in.parallelism, in.block_size, in.hybrid_manager);
  plan.block_size = layout.block_size;
  plan.bytes_per_block = layout.bytes_per_block + in.drafter_block_bytes;
  account_memory(in, plan);
  const std::int64_t blocks_for_one =
      in.max_model_len > 0 ? shares_of(in.max_model_len, plan.block_size) : 0;
  if (in.num_gpu_blocks) {
    plan.num_gpu_blocks = *in.num_gpu_blocks;
    plan.explicit_blocks = true;
    if (plan.num_gpu_blocks < blocks_for_one) {
      diagnostics.error({}, "num_gpu_blocks",
                        "must hold one sequence of max_model_len, " +
                            std::to_string(blocks_for_one) + " blocks (got " +
                            std::to_string(plan.num_gpu_blocks) + ")",
                        "lower max_model_len");
      return std::nullopt;
    }
    warn_of_size(plan, diagnostics);
    return plan;
  }
  const double block = as_real(plan.bytes_per_block);
  const double needed = block * as_real(std::max<std::int64_t>(2, blocks_for_one));
  if (plan.available < needed) {
    report_no_fit(in, plan, needed, diagnostics);
    return std::nullopt;
  }
  const double blocks = std::floor(plan.available / block);
  if (blocks > kMostBlocks) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g", blocks);
    diagnostics.error({}, "num_gpu_blocks",
                      "the memory of " + in.accelerator.name + " holds more than the 100000000 " +
                          "blocks that a KV cache may have (got " + text + ")",
                      "look at its memory_bytes, or set num_gpu_blocks");
    return std::nullopt;
  }
  plan.num_gpu_blocks = static_cast<std::int64_t>(blocks);
  return plan;
}

}  // namespace routesim::models
