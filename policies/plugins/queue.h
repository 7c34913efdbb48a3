// queue-scorer and running-requests-size-scorer: fewer requests in the last scrape score higher.
// llm-d-router pkg/epp/framework/plugins/scheduling/scorer/{queuedepth,runningrequests}.
#pragma once

#include "policies/build_context.h"
#include "policies/row_math.h"

namespace routesim::policies {

/// Inverse min-max: scores[i] = (max - values[i])/(max - min); equal values score 1.
inline void inverse_min_max(std::span<const double> values, std::span<double> scores) {
  if (values.empty()) return;
  const auto [lowest, highest] = extremes(values);
  if (highest == lowest)
    std::fill(scores.begin(), scores.end(), 1.0);
  else
    scale_down_from(highest, highest - lowest, values, scores);
}

/// One request of difference costs the full weight when it is the whole range.
class QueueScorer final : public Scorer {
 public:
  explicit QueueScorer(BuildContext& context) { context.needs().metrics = true; }
  void score(Cycle& cycle, std::span<const EndpointRow> candidates,
             std::span<double> scores) const override {
    inverse_min_max(cycle.dense(cycle.endpoints().waiting(), candidates), scores);
  }
};

class RunningRequestsScorer final : public Scorer {
 public:
  explicit RunningRequestsScorer(BuildContext& context) { context.needs().metrics = true; }
  void score(Cycle& cycle, std::span<const EndpointRow> candidates,
             std::span<double> scores) const override {
    inverse_min_max(cycle.dense(cycle.endpoints().running(), candidates), scores);
  }
};

}  // namespace routesim::policies
