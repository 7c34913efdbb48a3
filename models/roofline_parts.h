// The parts of the roofline. Each is made once from the accelerator, the model and the parallelism,
// and prices its share of a step on one GPU. Pipeline stages run one after another, so all values
// are sums over the whole model. Immutable after construction.
#pragma once

#include <cstdint>
#include <vector>

#include "models/latency_model.h"
#include "models/specs.h"

namespace routesim::models {

/// Rows of one tile of a grouped product when an expert gets `rows` in the mean: the next power of
/// two, at least 16 and at most 128 (triton_kernels, opt_flags.py; vLLM's fused_moe and Marlin
/// choose alike, the latter up to 64).
std::int64_t expert_tile(double rows);

/// Expected maximum of `n` independent standard normal variables, for n >= 1: how much more than
/// the mean the busiest of `n` GPUs gets, in standard deviations. Linear in log2(n) between the
/// known values at powers of two, which is off by 0.05 at most.
double expected_maximum(std::int64_t n);

/// Matrix products whose weights every token visits, and the fixed time of a step.
class DenseCost {
 public:
  DenseCost(const AcceleratorSpec& a, const ModelSpec& m, const Parallelism& p);
  /// For `tokens` through the layers, `sampled` of them through the output projection.
  double ns(double tokens, double sampled) const;
  /// The part of it that is the output projection's.
  double output_ns(double sampled) const;

 private:
  double weights_ns_ = 0, token_ns_ = 0;                ///< Stream all weights; per token.
  double output_weights_ns_ = 0, output_token_ns_ = 0;  ///< The same for the output projection.
  double fixed_ns_ = 0;                                 ///< Kernels, layers, inputs and sampler.
};

/// Grouped products of routed experts; nothing for a dense model.
class ExpertCost {
 public:
  ExpertCost(const AcceleratorSpec& a, const ModelSpec& m, const Parallelism& p, bool older);
  double ns(const BatchShape& shape) const;

 private:
  double weights_ns_ = 0, row_ns_ = 0;  ///< Stream all experts; per row of one expert.
  double tile_ns_ = 0;                  ///< Per tile of one expert: widen its weights.
  double experts_ = 0, experts_per_token_ = 0;
  std::int64_t ranks_ = 1;         ///< DP ranks whose tokens meet in the experts.
  double peers_ = 0;               ///< Expert parallelism: the other GPUs that hold experts.
  double deviations_ = 0;          ///< Standard deviations by which the busiest exceeds the mean.
  std::vector<double> untouched_;  ///< Probability that n tokens all miss one given expert.
};

/// Attention: causal pairs of prompts, and the KV that decoding reads.
class AttentionCost {
 public:
  AttentionCost(const AcceleratorSpec& a, const ModelSpec& m, const Parallelism& p, KvDtype kv,
                bool older_fp8_cache);
  double prefill_ns(const BatchShape& shape) const;
  /// The time to read the decode context.
  std::int64_t decode_ticks(const BatchShape& shape) const;

  /// How decode_ticks grows per decoding sequence and step, and for how many steps.
  struct Growth {
    std::int64_t ticks = 0;
    std::int64_t steps = 0;
  };
  Growth growth(const BatchShape& shape) const;

  double pair_ns() const { return pair_ns_; }
  std::int64_t context_ticks() const { return context_; }
  std::int64_t shared_context_ticks() const { return shared_context_; }

 private:
  /// Layers that read no more than `window` tokens of a context: those with a window, and those
  /// that select.
  struct Bounded {
    std::int64_t window = 0;
    std::int64_t ticks = 0;        ///< Per token of decode context inside the window.
    std::int64_t mixed_ticks = 0;  ///< The same beside a prompt chunk; 0: as without.
    double pair_ns = 0;
    double tiles = 0;  ///< Tokens by which prompts compute more than the window.
  };
  void add_selecting(const AcceleratorSpec& a, const ModelSpec& m, const Parallelism& p, KvDtype kv,
                     double kv_rate);

  double pair_ns_ = 0, prefill_context_ns_ = 0;
  // Ticks per token of decode context of layers that see everything.
  std::int64_t context_ = 0, shared_context_ = 0;
  std::vector<Bounded> bounded_;
  std::int64_t state_ = 0;     ///< Ticks per decoding sequence: its states are read and written.
  double state_token_ns_ = 0;  ///< Per prompt token.
  /// The same beside a prompt chunk where the kernel computes whole tiles; 0: as without.
  std::int64_t mixed_context_ = 0;
};

/// How long GPUs take to add up what lies on each of them. The default is that of a single one.
class AllReduce {
 public:
  AllReduce() = default;
  AllReduce(const AcceleratorSpec& a, std::int64_t gpus);
  /// For `bytes` on each of them.
  double ns(double bytes) const;

 private:
  double latency_ns_ = 0, step_ns_ = 0, others_ = 0, gpus_ = 1;
  double rate_ = 1;  ///< Bytes per nanosecond.
};

/// Decode context parallelism: what the GPUs that share the KV of a sequence tell each other.
class ContextExchange {
 public:
  ContextExchange(const AcceleratorSpec& a, const ModelSpec& m, const Parallelism& p, KvDtype kv);
  double ns(const BatchShape& shape) const;

 private:
  double latency_ns_ = 0;                      ///< Per step.
  double token_ns_ = 0, prompt_token_ns_ = 0;  ///< Per token that decodes, and of a prompt.
  double context_ns_ = 0;                      ///< Per earlier token that a prompt's chunk sees.
};

/// All-reduces of tensor parallelism, the hand-over between pipeline stages, dispatch and combine
/// of experts.
class CommunicationCost {
 public:
  CommunicationCost(const AcceleratorSpec& a, const ModelSpec& m, const Parallelism& p);
  /// `ns` and what a step with `tokens` communicates. The terms are added one by one, because the
  /// order of the sum decides its last bit.
  double add_to(double ns, double tokens) const;

 private:
  double latency_ns_ = 0, token_ns_ = 0;  ///< Per step, per own token.
  double all_reduces_ = 0;                ///< Per step, after attention and after the MLP.
  double row_bytes_ = 0;                  ///< One token's activations in bf16.
  AllReduce all_reduce_;
};

}  // namespace routesim::models
