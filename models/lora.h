// The costs of LoRA adapters for a server: memory for their slots, two small products beside every
// projection, and the way of an adapter from disk to host to GPU.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "models/latency_model.h"
#include "models/specs.h"

namespace routesim::models {

/// Bytes that one adapter of this rank takes on one GPU, in bf16: both factors of the projections
/// of attention and of dense or shared MLPs (adapters of routed experts are rare). As in vLLM only
/// the factor on the split side is divided by tp.
double lora_bytes_per_gpu(const ModelSpec& m, const Parallelism& p, std::int64_t rank);

/// Bytes on one GPU of one slot's place for adapters of routed experts, which vLLM reserves from
/// its releases of 2026 on whether there are such or not (vllm-project/vllm pull request 21229).
double lora_expert_slot_bytes(const ModelSpec& m, const Parallelism& p, std::int64_t rank);

/// Nanoseconds on one engine core.
struct LoraCosts {
  double step = 0;   ///< Of a step with adapters in it: the kernels themselves.
  double token = 0;  ///< Per token of a request with an adapter: activations read and written.
  double load = 0;   ///< Of an adapter from host memory to the GPU; the step waits.
  double read = 0;   ///< Of an adapter from disk to host memory; the step waits.
};

/// Shrink and expand are two more kernels for each of four merged projections of a layer, and read
/// and write activations. Estimated, not fitted: decoding of an 8B model comes out 10 to 20 %
/// slower, where others measured 8 to 24 % (another accelerator, vllm-project/vllm pull request
/// 15655) and, with the kernels of 2024, 34 % (A100, pull request 11267).
LoraCosts lora_costs(const AcceleratorSpec& a, const ModelSpec& m, const Parallelism& p,
                     std::int64_t rank);

/// A latency model whose steps also carry adapters (BatchShape::adapter_tokens and the like).
class LoraLatency final : public LatencyModel {
 public:
  LoraLatency(std::shared_ptr<const LatencyModel> base, const LoraCosts& costs);

  std::int64_t step_ticks(const BatchShape& shape) const override;
  DecodeRun decode_run(const BatchShape& shape) const override;
  std::int64_t last_stage_ticks(const BatchShape& shape) const override {
    return base_->last_stage_ticks(shape);
  }
  Trust trust(const BatchShape& shape) const override { return base_->trust(shape); }
  std::string provenance() const override {
    return base_->provenance() + "; LoRA adapters: estimated, unfitted";
  }

 private:
  std::int64_t extra_ticks(const BatchShape& shape) const;

  std::shared_ptr<const LatencyModel> base_;
  std::int64_t step_ = 0, token_ = 0, load_ = 0, read_ = 0;  ///< Ticks.
};

}  // namespace routesim::models
