// LoRA adapters in a batch. A pass admits a request only if its adapter is in the batch already or
// a slot is left; vLLM then looks past it, and so do we. Before the step its worker loads what is
// missing, and the step waits for that.
#include <bit>

#include "sim/engine/batch_scheduler.h"

namespace routesim::sim {

// Prompts that this pass left out will be in the next batch.
bool BatchScheduler::has_adapter_slot(Slot s) const {
  const AdapterSet own = adapter_bit(seq(s).request.adapter);
  if (own == 0) return true;
  const AdapterSet others = batch_adapters_ | (deferred_ ? adapters_of(prefilling_) : 0);
  return (own & ~others) == 0 || std::popcount(others) < rules_.max_loras;
}

// Of the running sequences that were given tokens in this pass.
void BatchScheduler::count_adapters(StepPlan& plan) {
  if (rules_.max_loras == 0) return;
  batch_adapters_ = 0;
  for (const Slot s : running_) count_adapter(seq(s), seq(s).scheduled, plan);
}

void BatchScheduler::count_adapter(const Sequence& q, std::int64_t tokens, StepPlan& plan) {
  if (q.request.adapter == 0 || tokens == 0) return;
  batch_adapters_ |= adapter_bit(q.request.adapter);
  plan.shape.adapter_tokens += tokens;
}

void BatchScheduler::place_adapters(StepPlan& plan) {
  if (batch_adapters_ == 0 || plan.empty()) return;
  const AdapterSlots::Moves moves = adapter_slots_.use(batch_adapters_);
  plan.shape.adapter_loads = moves.loads;
  plan.shape.adapter_reads = moves.reads;
}

}  // namespace routesim::sim
