// Step time from first principles: no fit, any accelerator, model and parallelism.
//
//   linear  = kernels·launch + max(FLOP / (peak·MFU), weight bytes / (bandwidth·MBU))   per GPU
//   layers  = norms, rotary embedding, attention launch; routing and sorting of experts
//   experts = the same over the expected distinct experts the step touches, each computing whole
//             tiles of rows, at the rate of grouped products; with expert parallelism on the GPU
//             that got most of them
//   attention = causal pairs at the attention rate, KV bytes of decode at the KV rate
//   comm    = two all-reduces per layer (TP), dispatch and combine per MoE layer (EP), queries and
//             outputs of attention over shared KV (DCP)
//   step    = inputs, sampler and launch on the GPU; per step and per sequence on the host
//
// The structure follows the BLIS roofline and the operator tables of aiconfigurator; the
// efficiencies are those of the accelerator's catalogue entry.
#pragma once

#include <cstdint>
#include <string>

#include "models/cost_curve.h"
#include "models/latency_model.h"
#include "models/launches.h"
#include "models/roofline_parts.h"
#include "models/specs.h"

namespace routesim::models {

/// The properties of the engine that the roofline must know.
struct RooflineOptions {
  KvDtype kv_dtype = KvDtype::kBf16;
  bool cuda_graphs = true;  ///< Pad small batches to vLLM's capture sizes (up to 512).
  /// A decode step is one graph; until vLLM v0.10 graphs end before each layer's attention.
  bool full_graphs = true;
  bool async_scheduling = false;  ///< Host cost hides behind the GPU.
  /// Kernels of 2025: experts in a widened 4-bit format by Marlin, an fp8 cache no faster than
  /// bf16.
  bool older_experts = false;
  bool older_fp8_cache = true;
  /// A pass of a drafter inside a step: without the host's part, and without logits of drafts.
  bool draft_pass = false;
  ServingEngine engine = ServingEngine::kVllm;
  std::int64_t largest_graph = 512;  ///< SGLang: decode steps of more sequences have no graph.

  GraphRules graphs() const { return {cuda_graphs, full_graphs, engine, largest_graph}; }
};

class Roofline final : public LatencyModel {
 public:
  /// `p` must have passed check_parallelism for `m`.
  Roofline(const AcceleratorSpec& a, const ModelSpec& m, const Parallelism& p,
           const RooflineOptions& options = {});

  std::int64_t step_ticks(const BatchShape& shape) const override;
  DecodeRun decode_run(const BatchShape& shape) const override;
  std::int64_t last_stage_ticks(const BatchShape& shape) const override;
  /// The same for every batch: kRoofline, or kDataSheet of an accelerator without measured
  /// efficiencies.
  Trust trust(const BatchShape&) const override { return trust_; }
  std::string provenance() const override { return provenance_; }

  /// The cost curve closest to this roofline, read off at small batches: the prior of a fit.
  CostCurveParameters as_cost_curve() const;

 private:
  std::int64_t fixed_ticks(const BatchShape& shape) const;
  std::int64_t host_ticks(const BatchShape& shape) const;

  RooflineOptions options_;
  DenseCost dense_;
  ExpertCost experts_;
  AttentionCost attention_;
  CommunicationCost communication_;
  ContextExchange context_exchange_;
  LaunchCost launches_;
  std::int64_t host_step_ = 0, host_sequence_ = 0;  ///< Ticks.
  Trust trust_ = Trust::kRoofline;
  std::string provenance_;
};

}  // namespace routesim::models
