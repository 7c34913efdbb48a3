// What a router knows of LoRA adapters.
#include "sim/router/router.h"

namespace routesim::sim {

std::string_view Router::adapter_name(const workloads::Request& request) const {
  const std::uint32_t adapter = request.prompt->adapter;
  return adapter == 0 ? std::string_view() : std::string_view(plan_.adapters[adapter - 1]);
}

// Since its stats are kept by adapter, vLLM names each that has any request among the running and
// among the waiting ones (llm-d/llm-d-router#2605). A server without a step has said nothing yet.
void Router::tell_adapters(std::uint32_t row, const AdapterGauges& gauges,
                           policies::EndpointTable& table) const {
  if (gauges.slots == 0) return;
  const ResolvedPool& pool = plan_.pools[endpoints_[rows_[row]].pool];
  AdapterSet active = gauges.running, waiting = gauges.waiting;
  if (pool.config.engine.preset != EnginePreset::k2025H2) active = waiting = active | waiting;
  policies::LoraState state;
  for (std::uint32_t a = 1; a <= plan_.adapters.size(); ++a) {
    if ((active & adapter_bit(a)) != 0) state.active.push_back(plan_.adapters[a - 1]);
    if ((waiting & adapter_bit(a)) != 0) state.waiting.push_back(plan_.adapters[a - 1]);
  }
  state.max_active = gauges.slots;
  table.set_lora(EndpointId(row), std::move(state));
}

}  // namespace routesim::sim
