// latency-observation-scorer: by the time to first token that each endpoint's observed points make
// one expect at its present load. llm-d-router pull request 2371, head f60405d8 (August 2026, not
// merged), pkg/epp/framework/plugins/scheduling/scorer/latencyobservation.
#pragma once

#include <cmath>
#include <limits>

#include "policies/build_context.h"
#include "policies/plugins/inflight_load.h"
#include "policies/plugins/ttft_observer.h"

namespace routesim::policies {

struct LatencyObservationParameters {
  double exploration_rate = 0.1, min_in_flight_gap = 2, round_step_s = 0;
  std::string observer, in_flight_producer;
};
inline void describe(Describer& d, LatencyObservationParameters& p) {
  field(d, {"explorationRate", "Probability to probe an endpoint of which too little is known."},
        p.exploration_rate, RealRange{0, 1});
  field(d, {"minInflightGap", "Requests in flight that must lie between the two load points."},
        p.min_in_flight_gap, RealRange{.min = 0, .min_open = true});
  field(d, {"roundTTFTStep", "Seconds to which predictions are rounded; 0 = not at all."},
        p.round_step_s, RealRange{0});
  field(d, {"ttftPercentilesProducerName", "Observer to read."}, p.observer);
  field(d, {"inFlightLoadProducerName", "Counter of the requests in flight."},
        p.in_flight_producer);
}

/// The facts known about one endpoint, and the TTFT expected there in seconds.
struct ExpectedTtft {
  bool has_floor = false;   ///< Otherwise cold.
  bool has_points = false;  ///< The points under load are trusted, too.
  double seconds = 0;
};

/// The line through (0, floor), the low-load point if it makes sense, and the typical-load point.
inline double ttft_on_curve(const TtftSnapshot& s, double in_flight, double min_gap) {
  const double floor = s.service_floor();
  const bool bends = s.in_flight_at_typical - s.in_flight_at_low >= min_gap && s.typical > s.low &&
                     s.low > floor && s.in_flight_at_low > 0;
  double ttft = 0;
  if (bends && in_flight < s.in_flight_at_low)
    ttft = floor + in_flight * (s.low - floor) / s.in_flight_at_low;
  else if (bends)
    ttft = s.low + (in_flight - s.in_flight_at_low) * (s.typical - s.low) /
                       (s.in_flight_at_typical - s.in_flight_at_low);
  else
    ttft = floor + in_flight * (s.typical - floor) / s.in_flight_at_typical;
  return std::max(ttft, floor);
}

inline ExpectedTtft expected_ttft(const TtftSnapshot& s, double in_flight, double min_gap) {
  const double floor = s.service_floor();
  ExpectedTtft e{.has_floor = floor != 0, .seconds = floor};
  e.has_points =
      e.has_floor && s.recent >= s.threshold && s.in_flight_at_typical > 0 && s.typical > floor;
  if (e.has_points) e.seconds = ttft_on_curve(s, in_flight, min_gap);
  return e;
}

/// Min-max over the endpoints that are not cold: the fastest scores 1, and cold ones with it. Each
/// endpoint without trusted points draws, in their order, whether it is probed (1) or, where
/// another one is trusted, kept out (0). With only cold endpoints all score 1, and nobody draws.
template <class Draw>
void latency_observation_scores(std::vector<ExpectedTtft> expected,
                                const LatencyObservationParameters& p, Draw draw,
                                std::span<double> scores) {
  double fastest = std::numeric_limits<double>::max(), slowest = 0;
  bool any_points = false;
  for (ExpectedTtft& e : expected) {
    if (p.round_step_s > 0) e.seconds = std::round(e.seconds / p.round_step_s) * p.round_step_s;
    if (!e.has_floor) continue;
    fastest = std::min(fastest, e.seconds);
    slowest = std::max(slowest, e.seconds);
    any_points = any_points || e.has_points;
  }
  if (fastest > slowest) return std::fill(scores.begin(), scores.end(), 1.0);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double seconds = expected[i].has_floor ? expected[i].seconds : fastest;
    scores[i] = slowest == fastest ? 1 : (slowest - seconds) / (slowest - fastest);
    if (p.exploration_rate <= 0 || expected[i].has_points) continue;
    if (draw() < p.exploration_rate)
      scores[i] = 1;
    else if (any_points)
      scores[i] = 0;
  }
}

class LatencyObservationScorer final : public Scorer {
 public:
  LatencyObservationScorer(const LatencyObservationParameters& p, const PluginSpec& spec,
                           BuildContext& context)
      : parameters_(p),
        observer_(dynamic_cast<const TtftObserver*>(
            context.producer(p.observer.empty() ? default_observer(spec, context) : p.observer,
                             Facts::kTtftPercentiles, spec, "ttftPercentilesProducerName"))),
        load_(in_flight_load(context, p.in_flight_producer, spec)) {
    context.needs().in_flight = true;
  }
  void score(Cycle& cycle, std::span<const EndpointRow> candidates,
             std::span<double> scores) const override {
    std::vector<ExpectedTtft> expected;
    for (const EndpointRow r : candidates)
      expected.push_back(expected_ttft(observer_->snapshot(r),
                                       static_cast<double>(load_->requests(r)),
                                       parameters_.min_in_flight_gap));
    latency_observation_scores(
        std::move(expected), parameters_, [&] { return cycle.exploration_random().uniform(); },
        scores);
  }

 private:
  // Under its older name the scorer reads the observer's older name, if the document has that.
  static std::string default_observer(const PluginSpec& spec, const BuildContext& context) {
    const std::string older = "latency-observer-producer";
    const bool reads_older =
        !spec.type.ends_with("-hub") && context.config().find(older) != nullptr;
    return reads_older ? older : std::string();
  }

  LatencyObservationParameters parameters_;
  const TtftObserver* observer_;
  const InFlightLoad* load_;
};

}  // namespace routesim::policies
