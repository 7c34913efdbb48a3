// queue-scorer and running-requests-size-scorer: fewer requests in the last scrape score higher.
// llm-d-router pkg/epp/framework/plugins/scheduling/scorer/{queuedepth,runningrequests}.
#pragma once

#include "policies/build_context.h"
#include "policies/plugins/min_max.h"

namespace routesim::policies {

/// One request of difference costs the full weight when it is the whole range.
class QueueScorer final : public Scorer {
 public:
  QueueScorer(const NoParameters&, const PluginSpec&, BuildContext& context) {
    context.needs().metrics = true;
  }
  void score(Cycle& cycle, std::span<const EndpointRow> candidates,
             std::span<double> scores) const override {
    inverse_min_max(cycle, cycle.dense(cycle.endpoints().waiting(), candidates), scores);
  }
};

class RunningRequestsScorer final : public Scorer {
 public:
  RunningRequestsScorer(const NoParameters&, const PluginSpec&, BuildContext& context) {
    context.needs().metrics = true;
  }
  void score(Cycle& cycle, std::span<const EndpointRow> candidates,
             std::span<double> scores) const override {
    inverse_min_max(cycle, cycle.dense(cycle.endpoints().running(), candidates), scores);
  }
};

}  // namespace routesim::policies
