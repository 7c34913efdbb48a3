// latency-scorer: by headroom to the latency SLOs, given predictions; without them a composite of
// KV usage, queue and prefix. llm-d-router pkg/epp/framework/plugins/scheduling/scorer/latency.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/describe.h"
#include "policies/build_context.h"

namespace routesim::policies {

struct LatencyParameters {
  double ttft_weight = 0.8, tpot_weight = 0.2;
  std::string strategy = "least";
  double composite_kv_weight = 1, composite_queue_weight = 1, composite_prefix_weight = 1;
  std::string prefix_producer, prediction_producer;
};
inline void describe(Describer& d, LatencyParameters& p) {
  field(d, {"ttftWeight", "Weight of the TTFT headroom."}, p.ttft_weight, RealRange{0});
  field(d, {"tpotWeight", "Weight of the TPOT headroom."}, p.tpot_weight, RealRange{0});
  field(d, {"headroomSelectionStrategy", "least or most."}, p.strategy);
  field(d, {"compositeKVWeight", "Without predictions: weight of free KV cache."},
        p.composite_kv_weight, RealRange{0});
  field(d, {"compositeQueueWeight", "Without predictions: weight of the queue."},
        p.composite_queue_weight, RealRange{0});
  field(d, {"compositePrefixWeight", "Without predictions: weight of the prefix ratio."},
        p.composite_prefix_weight, RealRange{0});
  field(d, {"prefixMatchInfoProducerName", "Producer of the prefix ratio."}, p.prefix_producer);
  field(d, {"latencyPredictionInfoProducerName", "Producer of the predictions."},
        p.prediction_producer);
}

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
