// Step time from first principles: no fit, any accelerator, model and parallelism.
//
//   linear  = kernels·launch + max(FLOP / (peak·MFU), weight bytes / (bandwidth·MBU))   per GPU
//   layers  = norms, rotary embedding, attention launch; routing and sorting of experts
//   experts = the same over the expected distinct experts the step touches, each computing whole
//             tiles of rows, at the rate of grouped products; with expert parallelism on the GPU
//             that got most of them
//   attention = causal pairs at the attention rate, KV bytes of decode at the KV rate
//   comm    = two all-reduces per layer (TP), dispatch and combine per MoE layer (EP)
//   step    = inputs, sampler and launch on the GPU; per step and per sequence on the host
//
// The structure follows the BLIS roofline and the operator tables of aiconfigurator; the
// efficiencies are those of the accelerator's catalogue entry.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/cost_curve.h"
#include "models/latency_model.h"
#include "models/specs.h"

namespace routesim::models {

/// What the engine does that the roofline must know.
struct RooflineOptions {
  KvDtype kv_dtype = KvDtype::kBf16;
  bool cuda_graphs = true;        ///< Pad small batches to vLLM's capture sizes (up to 512).
  bool async_scheduling = false;  ///< Host cost hides behind the GPU.
  /// Kernels of 2025: experts in a widened 4-bit format by Marlin, an fp8 cache no faster than
  /// bf16.
  bool older_experts = false;
  bool older_fp8_cache = true;
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

/// vLLM's default capture size a batch of `tokens` runs with; `tokens` itself above 512.
std::int64_t padded_to_graph(std::int64_t tokens);

/// Rows of one tile of a grouped product when an expert gets `rows` in the mean: the next power of
/// two, at least 16 and at most 128 (triton_kernels, opt_flags.py; vLLM's fused_moe and Marlin
/// choose alike, the latter up to 64).
std::int64_t expert_tile(double rows);

/// Expected maximum of `n` independent standard normal variables, for n >= 1: how much more than
/// the mean the busiest of `n` GPUs gets, in standard deviations. Linear in log2(n) between the
/// known values at powers of two, which is off by 0.05 at most.
double expected_maximum(std::int64_t n);

class Roofline final : public LatencyModel {
 public:
  /// `p` must have passed check_parallelism for `m`.
  Roofline(const AcceleratorSpec& a, const ModelSpec& m, const Parallelism& p,
           const RooflineOptions& options = {});

  std::int64_t step_ticks(const BatchShape& shape) const override;
  DecodeRun decode_run(const BatchShape& shape) const override;
  /// The same for every batch: kRoofline, or kDataSheet of an accelerator without measured
  /// efficiencies.
  Trust trust(const BatchShape&) const override { return trust_; }
  std::string provenance() const override { return provenance_; }

  /// The cost curve closest to this roofline, read off at small batches: the prior of a fit.
  CostCurveParameters as_cost_curve() const;

 private:
  double linear_ns(double tokens, double sampled) const;
  double expert_ns(const BatchShape& shape) const;
  double prefill_attention_ns(const BatchShape& shape) const;
  std::int64_t fixed_ticks(const BatchShape& shape) const;
  std::int64_t host_ticks(const BatchShape& shape) const;
  std::int64_t context_ticks(const BatchShape& shape) const;
  void set_dense_costs(const AcceleratorSpec& a, const ModelSpec& m, const Parallelism& p);
  void set_expert_costs(const AcceleratorSpec& a, const ModelSpec& m, const Parallelism& p);
  void set_attention_costs(const AcceleratorSpec& a, const ModelSpec& m, const Parallelism& p);
  void set_communication_costs(const AcceleratorSpec& a, const ModelSpec& m, const Parallelism& p);

  RooflineOptions options_;
  // Nanoseconds on one GPU: to stream all weights of a kind, and per token passing through them.
  // Pipeline stages run one after another, so these are whole-model sums.
  double dense_bytes_ns_ = 0, dense_token_ns_ = 0, output_bytes_ns_ = 0, output_token_ns_ = 0;
  double expert_bytes_ns_ = 0, expert_row_ns_ = 0;
  double fixed_ns_ = 0;  ///< Of every step: kernels, layers, inputs and sampler.
  double experts_ = 0, experts_per_token_ = 0;
  std::int64_t ranks_ = 1;  ///< DP ranks whose tokens meet in the experts.
  double peers_ = 0;        ///< Expert parallelism: the other GPUs that hold experts.
  double unlucky_ = 0;      ///< How many standard deviations more than the mean one of them gets.
  std::vector<double> untouched_;  ///< Probability that n tokens all miss one given expert.
  double pair_ns_ = 0, windowed_pair_ns_ = 0, prefill_context_ns_ = 0;
  double latency_ns_ = 0, token_ns_ = 0;  ///< Collectives: per step, per own token.
  double all_reduces_ = 0;                ///< Per step, after attention and after the MLP.
  double row_bytes_ = 0;                  ///< One token's activations in bf16.
  AllReduce all_reduce_;
  double chunk_ns_ = 0;   ///< Of a step with a prompt in it.
  double launch_ns_ = 0;  ///< Eager mode: least time to launch all kernels.
  // Ticks per token of decode context: layers that see everything, layers with a window.
  std::int64_t context_ = 0, shared_context_ = 0, windowed_context_ = 0, window_ = 0;
  std::int64_t host_step_ = 0, host_sequence_ = 0;
  Trust trust_ = Trust::kRoofline;
  std::string provenance_;
};

}  // namespace routesim::models
