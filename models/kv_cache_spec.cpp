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
  plan.weights = weight_bytes_per_gpu(in.model, in.parallelism);
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

}  // namespace

std::int64_t kv_bytes_per_token_per_gpu(const ModelSpec& m, KvDtype dtype, const Parallelism& p,
                                        bool hybrid) {
  const std::int64_t counted = hybrid ? m.kv_capacity_layers() : m.layers;
  const std::int64_t layers = (counted + p.pp - 1) / p.pp;
  const std::int64_t elements = m.is_mla()
                                    ? m.kv_lora_rank + m.rope_dim
                                    : 2 * std::max<std::int64_t>(1, m.kv_heads / p.tp) * m.head_dim;
  return layers * elements * bytes_per_kv_element(dtype);
}

std::int64_t window_groups(const ModelSpec& m) {
  if (m.sliding_layers == 0 || m.full_layers() == 0) return 0;
  return (m.sliding_layers + m.full_layers() - 1) / m.full_layers();
}

double activation_bytes(const ModelSpec& m, const Parallelism& p, std::int64_t batched_tokens,
                        std::int64_t sequences) {
  const double tp = as_real(p.tp);
  // MLA expands the latent of every prompt token to full keys and values, twice with the output.
  const double attention =
      m.is_mla() ? as_real(m.heads) * 2 * as_real(m.head_dim + m.rope_dim + m.v_head_dim)
                 : as_real(2 * m.heads + 2 * m.kv_heads) * as_real(m.head_dim);
  // Gate, up and product live together. A MoE layer runs experts_per_token narrow MLPs per token.
  const double dense = 3 * as_real(m.ffn);
  const double moe = m.is_moe() ? 3 * as_real(m.expert_ffn) * as_real(m.experts_per_token) : 0;
  const double widest = std::max({attention, dense, moe}) / tp;
  const double tensors = as_real(batched_tokens) * 2 * (3 * as_real(m.hidden) + widest);
  // Logits in bf16, their fp32 copy and one fp32 scratch of the sampler: 10 bytes per entry.
  const double logits = as_real(std::min(sequences, batched_tokens)) * as_real(m.vocab) * 10;
  return tensors + logits;
}

std::optional<KvCachePlan> plan_kv_cache(const KvCacheInput& in, Diagnostics& diagnostics) {
  if (!check_input(in, diagnostics)) return std::nullopt;
  KvCachePlan plan;
  plan.block_size = in.block_size;
  plan.bytes_per_block =
      in.block_size *
      kv_bytes_per_token_per_gpu(in.model, in.kv_dtype, in.parallelism, in.hybrid_manager);
  account_memory(in, plan);
  const std::int64_t blocks_for_one =
      in.max_model_len > 0 ? (in.max_model_len + in.block_size - 1) / in.block_size : 0;
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
