// load-aware-scorer: 0.5 for an empty queue, falling linearly to 0 at `threshold` waiting requests.
// llm-d-router pkg/epp/framework/plugins/scheduling/scorer/loadaware.
#pragma once

#include "policies/build_context.h"

namespace routesim::policies {

struct LoadAwareParameters {
  std::int64_t threshold = 128;
};
inline void describe(Describer& d, LoadAwareParameters& p) {
  field(d, {"threshold", "Waiting requests at which the score reaches 0; not positive = 128."},
        p.threshold);
}

/// In [0, 0.5]; `threshold` > 0.
inline double load_aware_score(double waiting, double threshold) {
  if (waiting == 0) return 0.5;
  return 0.5 * (1 - std::min(waiting, threshold) / threshold);
}

class LoadAwareScorer final : public Scorer {
 public:
  LoadAwareScorer(const LoadAwareParameters& p, const PluginSpec&, BuildContext& context)
      : threshold_(p.threshold > 0 ? static_cast<double>(p.threshold) : 128) {
    context.needs().metrics = true;
  }
  void score(Cycle& cycle, std::span<const EndpointRow> candidates,
             std::span<double> scores) const override {
    const std::span<const double> waiting = cycle.endpoints().waiting();
    for (std::size_t i = 0; i < candidates.size(); ++i)
      scores[i] = load_aware_score(waiting[candidates[i]], threshold_);
  }

 private:
  double threshold_;
};

}  // namespace routesim::policies
