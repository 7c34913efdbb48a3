// latency-scorer: by headroom to the latency SLOs, given predictions; without them a composite of
// KV usage, queue and prefix. llm-d-router pkg/epp/framework/plugins/scheduling/scorer/latency.
#pragma once

#include <cmath>

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

/// The inputs of the formula for one endpoint.
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

using Indices = std::vector<std::size_t>;

inline void composite_scores(std::span<const LatencyScoreInput> inputs,
                             const LatencyScoreWeights& w, std::span<double> scores) {
  const double sum = w.kv + w.queue + w.prefix;
  const double wk = sum > 0 ? w.kv / sum : 1;
  const double wq = sum > 0 ? w.queue / sum : 0;
  const double wp = sum > 0 ? w.prefix / sum : 0;
  double longest = 0;
  for (const LatencyScoreInput& e : inputs) longest = std::max(longest, e.queue);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const LatencyScoreInput& e = inputs[i];
    const double room = longest == 0 ? 1 : (longest - e.queue) / longest;
    const double x = wk * (1 - e.kv_usage) + wq * room + wp * e.prefix_ratio;
    scores[i] = std::round(100 * x) / 100;
  }
}

struct Range {
  double min = 0, max = 0;
  bool degenerate() const { return max - min <= 1e-9; }
  double normalise(double v) const { return degenerate() ? 0.5 : (v - min) / (max - min); }
};

template <class F>
Range range_of(const Indices& bucket, F value) {
  Range r{value(bucket.front()), value(bucket.front())};
  for (const std::size_t i : bucket) {
    r.min = std::min(r.min, value(i));
    r.max = std::max(r.max, value(i));
  }
  return r;
}

// Scores one bucket by normalised distance to the SLO; the others stay 0.
inline void bucket_scores(std::span<const LatencyScoreInput> inputs, const Indices& bucket,
                          const LatencyScoreWeights& w, bool most, std::span<double> scores) {
  const auto x = [&](std::size_t i) { return std::fabs(inputs[i].ttft_headroom_ms); };
  const auto y = [&](std::size_t i) { return std::fabs(inputs[i].tpot_headroom_ms); };
  const Range xs = range_of(bucket, x);
  const Range ys = range_of(bucket, y);
  const double sum = w.ttft + w.tpot;
  double a = sum > 0 ? w.ttft / sum : 1;
  double b = sum > 0 ? w.tpot / sum : 0;
  if (xs.degenerate() != ys.degenerate()) {
    a = xs.degenerate() ? 0 : 1;
    b = 1 - a;
  }
  for (const std::size_t i : bucket) {
    const double c = a * xs.normalise(x(i)) + b * ys.normalise(y(i));
    scores[i] = (std::trunc((most ? c : 1 - c) * 100) + 1) / 100;
  }
}

/// Raw scores, up to 1.01.
inline void latency_scores(std::span<const LatencyScoreInput> inputs,
                           const LatencyScoreWeights& weights, std::span<double> scores) {
  if (inputs.empty()) return;
  if (std::none_of(inputs.begin(), inputs.end(),
                   [](const LatencyScoreInput& e) { return e.predicted; }))
    return composite_scores(inputs, weights, scores);
  std::fill(scores.begin(), scores.end(), 0.0);
  Indices positive, idle, tpot_only, ttft_only, both;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const LatencyScoreInput& e = inputs[i];
    const bool ttft = e.predicted && e.ttft_headroom_ms < 0;
    const bool tpot = e.predicted && e.tpot_headroom_ms < 0;
    if (!ttft && !tpot) {
      positive.push_back(i);
      continue;
    }
    if (e.dispatched == 0) idle.push_back(i);
    (ttft && tpot ? both : tpot ? tpot_only : ttft_only).push_back(i);
  }
  if (!positive.empty())
    return bucket_scores(inputs, positive, weights, weights.most_headroom, scores);
  // Everything misses an SLO: the smallest miss wins, idle endpoints before all others.
  for (const Indices* bucket : {&idle, &tpot_only, &ttft_only, &both})
    if (!bucket->empty()) return bucket_scores(inputs, *bucket, weights, false, scores);
}

class LatencyScorer final : public Scorer {
 public:
  LatencyScorer(const LatencyParameters& p, const PluginSpec& spec, BuildContext& context)
      : weights_{.ttft = p.ttft_weight,
                 .tpot = p.tpot_weight,
                 .most_headroom = p.strategy == "most",
                 .kv = p.composite_kv_weight,
                 .queue = p.composite_queue_weight,
                 .prefix = p.composite_prefix_weight},
        prefix_slot_(context.prefix_slot_of(p.prefix_producer, spec)) {
    context.needs().metrics = context.needs().predictions = true;
    if (p.strategy != "least" && p.strategy != "most")
      context.error(spec, "headroomSelectionStrategy",
                    "must be least or most (got '" + p.strategy + "')");
    context.producer(p.prediction_producer, Facts::kLatencyEstimates, spec,
                     "latencyPredictionInfoProducerName");
  }
  void score(Cycle& cycle, std::span<const EndpointRow> candidates,
             std::span<double> scores) const override {
    std::vector<LatencyScoreInput> inputs(candidates.size());
    const PrefixMatches& m = cycle.prefix(prefix_slot_);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const EndpointRow r = candidates[i];
      LatencyScoreInput& e = inputs[i];
      e.kv_usage = cycle.endpoints().kv_usage()[r];
      e.queue = cycle.endpoints().waiting()[r];
      e.prefix_ratio = m.share(r);
      const LatencyEstimate* estimate = cycle.latency_at(r);
      if (estimate == nullptr) continue;
      e.predicted = true;
      e.ttft_headroom_ms = estimate->ttft_headroom_ms;
      e.tpot_headroom_ms = estimate->tpot_headroom_ms;
      e.dispatched = estimate->dispatched;
    }
    latency_scores(inputs, weights_, scores);
  }

 private:
  LatencyScoreWeights weights_;
  std::size_t prefix_slot_;
};

}  // namespace routesim::policies
