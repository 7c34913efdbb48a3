// latency-scorer: by headroom to the latency SLOs, given predictions; without them a composite of
// KV usage, queue and prefix. llm-d-router pkg/epp/framework/plugins/scheduling/scorer/latency.
#pragma once

#include <span>
#include <vector>

#include "policies/config/factory.h"

namespace routesim::policies {

/// What the formula reads about one endpoint.
struct LatencyScoreInput {
  double kv_usage = 0, queue = 0, prefix_ratio = 0;
  bool predicted = false;
  double ttft_headroom_ms = 0, tpot_headroom_ms = 0;
  std::int64_t dispatched = 0;
};

struct LatencyScoreWeights {
  double ttft = 0.8, tpot = 0.2;
  bool most_headroom = false;
  double kv = 1, queue = 1, prefix = 1;
};

/// Raw scores, up to 1.01.
void latency_scores(std::span<const LatencyScoreInput> inputs, const LatencyScoreWeights& weights,
                    std::span<double> scores);

class LatencyScorer final : public Scorer {
 public:
  LatencyScorer(const LatencyParameters& p, const PluginSpec& spec, BuildContext& context);
  void score(Cycle& cycle, std::span<const EndpointRow> candidates,
             std::span<double> scores) const override;

 private:
  LatencyScoreWeights weights_;
  std::size_t prefix_slot_;
};

}  // namespace routesim::policies
