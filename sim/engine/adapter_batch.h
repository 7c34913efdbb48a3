// The LoRA adapters of one pass.
#pragma once

#include <bit>
#include <cstdint>

#include "sim/engine/adapter_slots.h"
#include "sim/engine/step_plan.h"
#include "sim/rules/engine_config.h"

namespace routesim::sim {

/// Owns the adapter slots of an engine core and knows which adapters the pass under way has. A pass
/// admits a request only if its adapter is in the batch already or a slot is left; vLLM then looks
/// past it, and so do we. Before the step its worker loads what is missing, and the step waits for
/// that. Without adapters (max_loras = 0) all calls do nothing.
class AdapterBatch {
 public:
  explicit AdapterBatch(const EngineRules& rules)
      : max_loras_(rules.max_loras), slots_(rules.max_loras, rules.max_cpu_loras, rules.adapters) {}

  bool in_use() const { return max_loras_ > 0; }
  std::int64_t max_loras() const { return max_loras_; }
  /// The batch has place for `adapter` besides `reserved`: adapters of prompts that this pass left
  /// out, which will be in the next batch.
  bool has_slot(std::uint32_t adapter, AdapterSet reserved) const {
    const AdapterSet own = adapter_bit(adapter);
    if (own == 0) return true;
    const AdapterSet others = batch_ | reserved;
    return (own & ~others) == 0 || std::popcount(others) < max_loras_;
  }
  void begin_pass() { batch_ = 0; }
  /// Counts a sequence that was given `tokens` tokens in this pass.
  void add(std::uint32_t adapter, std::int64_t tokens, StepPlan& plan) {
    if (adapter == 0 || tokens == 0) return;
    batch_ |= adapter_bit(adapter);
    plan.shape.adapter_tokens += tokens;
  }
  /// Loads what the step lacks and writes the loads into its plan.
  void place(StepPlan& plan) {
    if (batch_ == 0 || plan.empty()) return;
    const AdapterSlots::Moves moves = slots_.use(batch_);
    plan.shape.adapter_loads = moves.loads;
    plan.shape.adapter_reads = moves.reads;
  }

 private:
  std::int64_t max_loras_;
  AdapterSlots slots_;
  AdapterSet batch_ = 0;
};

}  // namespace routesim::sim
