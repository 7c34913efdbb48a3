// kv-cache-utilization-scorer: 1 - KV cache usage of the last scrape, a fraction. May be negative
// when an engine reports more than 1; the profile clamps.
// llm-d-router pkg/epp/framework/plugins/scheduling/scorer/kvcacheutilization.
#pragma once

#include "policies/build_context.h"
#include "policies/row_math.h"

namespace routesim::policies {

class KvCacheUtilizationScorer final : public Scorer {
 public:
  explicit KvCacheUtilizationScorer(BuildContext& context) { context.needs().metrics = true; }
  void score(Cycle& cycle, std::span<const EndpointRow> candidates,
             std::span<double> scores) const override {
    scale_down_from(1, 1, cycle.dense(cycle.endpoints().kv_usage(), candidates), scores);
  }
};

}  // namespace routesim::policies
