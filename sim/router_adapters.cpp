// What a router knows of LoRA adapters.
#include "sim/router.h"

namespace routesim::sim {

std::string_view Router::adapter_name(const workloads::Request& request) const {
  const std::uint32_t adapter = request.prompt->adapter;
  return adapter == 0 ? std::string_view() : std::string_view(plan_.adapters[adapter - 1]);
}

void Router::add_adapters(const Gauges& rank, Gauges& row) {
  row.running_adapters |= rank.running_adapters;
  row.waiting_adapters |= rank.waiting_adapters;
  row.adapter_slots = std::max(row.adapter_slots, rank.adapter_slots);
}

// Since its stats are kept by adapter, vLLM names each that has any request among the running and
// among the waiting ones (llm-d/llm-d-router#2605). A server without a step has said nothing yet.
void Router::tell_adapters(std::uint32_t row, const Gauges& gauges,
                           policies::EndpointTable& table) const {
  if (gauges.adapter_slots == 0) return;
  const ResolvedPool& pool = plan_.pools[endpoints_[rows_[row]].pool];
  AdapterSet active = gauges.running_adapters, waiting = gauges.waiting_adapters;
  if (pool.config.engine.preset != EnginePreset::k2025H2) active = waiting = active | waiting;
  policies::LoraState state;
  for (std::uint32_t a = 1; a <= plan_.adapters.size(); ++a) {
    if ((active & adapter_bit(a)) != 0) state.active.push_back(plan_.adapters[a - 1]);
    if ((waiting & adapter_bit(a)) != 0) state.waiting.push_back(plan_.adapters[a - 1]);
  }
  state.max_active = gauges.adapter_slots;
  table.set_lora(EndpointId(row), std::move(state));
}

}  // namespace routesim::sim
