// Saturation detectors, which are filters too, and the admitters of sheddable requests.
// llm-d-router pkg/epp/framework/plugins/flowcontrol/saturationdetector.
#pragma once

#include <cmath>

#include "policies/build_context.h"
#include "policies/plugins/inflight_load.h"

namespace routesim::policies {

enum class ConcurrencyMode { kRequests, kTokens, kHybrid };

}  // namespace routesim::policies

template <>
struct routesim::EnumNames<routesim::policies::ConcurrencyMode> {
  static constexpr std::array<std::string_view, 3> value = {"requests", "tokens", "hybrid"};
};

namespace routesim::policies {

/// The load that makes an endpoint full.
struct FullEndpoint {
  std::int64_t queue_depth_threshold = 5;
  double kv_cache_util_threshold = 0.8;

  /// The more binding of queue and KV cache, as a share of its threshold.
  double utilization(const EndpointTable& t, EndpointRow r) const {
    return std::max(t.waiting()[r] / static_cast<double>(queue_depth_threshold),
                    t.kv_usage()[r] / kv_cache_util_threshold);
  }
};
inline void describe(Describer& d, FullEndpoint& p) {
  field(d, {"queueDepthThreshold", "Waiting requests that make an endpoint full."},
        p.queue_depth_threshold, IntRange{1});
  field(d, {"kvCacheUtilThreshold", "KV usage that makes an endpoint full."},
        p.kv_cache_util_threshold, RealRange{.min = 0, .max = 1, .min_open = true});
}

struct UtilizationDetectorParameters : FullEndpoint {
  Duration metrics_staleness_threshold = Duration::milliseconds(200);
  double headroom = 0;
};
inline void describe(Describer& d, UtilizationDetectorParameters& p) {
  describe(d, static_cast<FullEndpoint&>(p));
  field(d, {"metricsStalenessThreshold", "Age from which metrics count as missing."},
        p.metrics_staleness_threshold, DurationRange{Duration::nanoseconds(1)});
  field(d, {"headroom", "Filter only: share beyond the thresholds that still passes."}, p.headroom,
        RealRange{0});
}

struct ConcurrencyDetectorParameters {
  std::int64_t max_concurrency = 100;
  std::int64_t max_token_concurrency = 1'000'000;
  double headroom = 0;
  ConcurrencyMode mode = ConcurrencyMode::kRequests;
  std::string in_flight_producer;
};
inline void describe(Describer& d, ConcurrencyDetectorParameters& p) {
  field(d, {"maxConcurrency", "Requests in flight that make an endpoint full."}, p.max_concurrency,
        IntRange{1});
  field(d, {"maxTokenConcurrency", "Tokens in flight that make an endpoint full."},
        p.max_token_concurrency, IntRange{1});
  field(d, {"headroom", "Filter only: share beyond the limit that still passes."}, p.headroom,
        RealRange{0});
  field(d, {"concurrencyMode", "requests, tokens or hybrid."}, p.mode);
  field(d, {"inFlightLoadProducerName", "Instance that counts."}, p.in_flight_producer);
}

struct ProbabilisticAdmitterParameters : FullEndpoint {
  double power = 5, k = 300;
};
inline void describe(Describer& d, ProbabilisticAdmitterParameters& p) {
  describe(d, static_cast<FullEndpoint&>(p));
  field(d, {"power", "Refusal probability min(saturation^power * k, 1)."}, p.power, RealRange{0});
  field(d, {"k", "Refusal probability min(saturation^power * k, 1)."}, p.k, RealRange{0});
}

/// utilization-detector: mean of max(queue/Q, kv/K); missing or stale metrics count as 1. In old
/// eras 1 when no endpoint with fresh metrics is within both thresholds, otherwise 0. Used as a
/// filter it fails open.
class UtilizationDetector final : public SaturationDetector, public Filter {
 public:
  UtilizationDetector(const UtilizationDetectorParameters& p, const PluginSpec&,
                      BuildContext& context)
      : parameters_(p), closes_without_room_(context.traits().saturated_without_room) {
    context.needs().metrics = true;
  }
  double saturation(const EndpointTable& endpoints, std::span<const EndpointRow> candidates,
                    SimTime now) const override {
    if (candidates.empty()) return 1.0;
    if (closes_without_room_)
      return std::any_of(candidates.begin(), candidates.end(),
                         [&](EndpointRow r) { return has_room(endpoints, r, now); })
                 ? 0.0
                 : 1.0;
    double sum = 0;
    for (const EndpointRow r : candidates)
      sum += fresh(endpoints, r, now) ? parameters_.utilization(endpoints, r) : 1.0;
    return sum / static_cast<double>(candidates.size());
  }
  void filter(Cycle& cycle, std::vector<EndpointRow>& candidates) const override {
    const EndpointTable& t = cycle.endpoints();
    const double room = 1 + parameters_.headroom;
    const double queue = static_cast<double>(parameters_.queue_depth_threshold) * room;
    const double kv = parameters_.kv_cache_util_threshold * room;
    cycle.keep_where(candidates, true, [&](EndpointRow r) {
      return fresh(t, r, cycle.now()) && t.waiting()[r] < queue && t.kv_usage()[r] < kv;
    });
  }

 private:
  bool has_room(const EndpointTable& endpoints, EndpointRow row, SimTime now) const {
    return fresh(endpoints, row, now) &&
           endpoints.waiting()[row] <= static_cast<double>(parameters_.queue_depth_threshold) &&
           endpoints.kv_usage()[row] <= parameters_.kv_cache_util_threshold;
  }
  bool fresh(const EndpointTable& endpoints, EndpointRow row, SimTime now) const {
    return endpoints.has_metrics(row) &&
           now - endpoints.updated()[row] <= parameters_.metrics_staleness_threshold;
  }

  UtilizationDetectorParameters parameters_;
  bool closes_without_room_;
};

/// concurrency-detector: in-flight requests or tokens against a limit per endpoint. Used as a
/// filter it may leave nothing.
class ConcurrencyDetector final : public SaturationDetector, public Filter {
 public:
  ConcurrencyDetector(const ConcurrencyDetectorParameters& p, const PluginSpec& spec,
                      BuildContext& context)
      : parameters_(p), load_(in_flight_load(context, p.in_flight_producer, spec)) {}
  double saturation(const EndpointTable&, std::span<const EndpointRow> candidates,
                    SimTime) const override {
    if (candidates.empty()) return 1.0;
    const auto n = static_cast<double>(candidates.size());
    const auto requests_cap = static_cast<double>(parameters_.max_concurrency);
    const auto tokens_cap = static_cast<double>(parameters_.max_token_concurrency);
    double requests = 0, tokens = 0, worst = 0;
    for (const EndpointRow r : candidates) {
      const auto here = static_cast<double>(load_->requests(r));
      const auto tokens_here = static_cast<double>(load_->tokens(r));
      requests += here;
      tokens += tokens_here;
      worst += std::max(here / requests_cap, tokens_here / tokens_cap);
    }
    switch (parameters_.mode) {
      case ConcurrencyMode::kRequests:
        return requests / (n * requests_cap);
      case ConcurrencyMode::kTokens:
        return tokens / (n * tokens_cap);
      case ConcurrencyMode::kHybrid:
        return worst / n;
    }
    return 0;
  }
  void filter(Cycle&, std::vector<EndpointRow>& candidates) const override {
    const double room = 1 + parameters_.headroom;
    const auto limit = [room](std::int64_t cap) {
      return static_cast<std::int64_t>(static_cast<double>(cap) * room);
    };
    const std::int64_t requests = limit(parameters_.max_concurrency);
    const std::int64_t tokens = limit(parameters_.max_token_concurrency);
    std::erase_if(candidates, [&](EndpointRow r) {
      const bool by_requests = parameters_.mode != ConcurrencyMode::kTokens;
      const bool by_tokens = parameters_.mode != ConcurrencyMode::kRequests;
      return (by_requests && load_->requests(r) >= requests) ||
             (by_tokens && load_->tokens(r) >= tokens);
    });
  }

 private:
  ConcurrencyDetectorParameters parameters_;
  const InFlightLoad* load_;
};

/// min(saturation^power * k, 1).
inline double refusal_probability(double saturation, double power, double k) {
  return std::fmin(std::pow(saturation, power) * k, 1.0);
}

/// probabilistic-admitter: sheds sheddable requests more and more as the pool fills.
class ProbabilisticAdmitter final : public Admitter {
 public:
  ProbabilisticAdmitter(const ProbabilisticAdmitterParameters& p, const PluginSpec&,
                        BuildContext& context)
      : parameters_(p) {
    context.needs().metrics = true;
  }
  const char* refuse(Cycle& cycle) const override {
    const double p = refusal_probability(saturation(cycle.endpoints(), cycle.candidates()),
                                         parameters_.power, parameters_.k);
    return cycle.exploration_random().uniform() < p ? "saturated" : nullptr;
  }
  double saturation(const EndpointTable& endpoints, std::span<const EndpointRow> candidates) const {
    if (candidates.empty()) return 1.0;
    double sum = 0;
    for (const EndpointRow r : candidates) sum += parameters_.utilization(endpoints, r);
    return sum / static_cast<double>(candidates.size());
  }

 private:
  ProbabilisticAdmitterParameters parameters_;
};

/// latency-slo-admitter: refuses where none is predicted to meet the SLOs and none is idle or cold.
class LatencySloAdmitter final : public Admitter {
 public:
  LatencySloAdmitter(const NoParameters&, const PluginSpec& spec, BuildContext& context) {
    context.needs().metrics = context.needs().predictions = true;
    context.producer("", Facts::kLatencyEstimates, spec, "");
  }
  const char* refuse(Cycle& cycle) const override {
    constexpr double kColdUsage = 0.02;
    const RequestView& request = cycle.request();
    if (request.slo_ttft_ms <= 0 && request.slo_tpot_ms <= 0) return nullptr;
    bool predicted = false;
    for (const EndpointRow r : cycle.candidates()) {
      const EndpointTable& t = cycle.endpoints();
      if (t.running()[r] == 0 || t.kv_usage()[r] < kColdUsage) return nullptr;
      const LatencyEstimate* estimate = cycle.latency_at(r);
      predicted = predicted || estimate != nullptr;
      if (estimate != nullptr && estimate->valid) return nullptr;
    }
    return predicted ? "no endpoint can meet the latency objectives" : nullptr;
  }
};

}  // namespace routesim::policies
