// lora-affinity-scorer: endpoints with the adapter loaded first, then those with a free slot.
// llm-d-router pkg/epp/framework/plugins/scheduling/scorer/loraaffinity.
#pragma once

#include "policies/build_context.h"

namespace routesim::policies {

/// Capacity is tested before "waiting": a free slot beats a queued load of the adapter.
inline double lora_affinity_score(const LoraState& state, std::string_view model) {
  const auto holds = [model](const std::vector<std::string>& v) {
    return std::find(v.begin(), v.end(), model) != v.end();
  };
  if (holds(state.active)) return 1.0;
  const auto used = static_cast<std::int64_t>(state.active.size() + state.waiting.size());
  if (used < state.max_active) return 0.8;
  return holds(state.waiting) ? 0.6 : 0.0;
}

class LoraAffinityScorer final : public Scorer {
 public:
  explicit LoraAffinityScorer(BuildContext& context) { context.needs().lora = true; }
  void score(Cycle& cycle, std::span<const EndpointRow> candidates,
             std::span<double> scores) const override {
    for (std::size_t i = 0; i < candidates.size(); ++i)
      scores[i] = lora_affinity_score(cycle.endpoints().lora(candidates[i]), cycle.request().model);
  }
};

}  // namespace routesim::policies
