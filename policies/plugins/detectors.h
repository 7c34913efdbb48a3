// Saturation detectors, which are filters too, and the admitters of sheddable requests.
// llm-d-router pkg/epp/framework/plugins/flowcontrol/saturationdetector.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/describe.h"
#include "base/units.h"
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

struct UtilizationDetectorParameters {
  std::int64_t queue_depth_threshold = 5;
  double kv_cache_util_threshold = 0.8;
  Duration metrics_staleness_threshold = Duration::milliseconds(200);
  double headroom = 0;
};
inline void describe(Describer& d, UtilizationDetectorParameters& p) {
  field(d, {"queueDepthThreshold", "Waiting requests that make an endpoint full."},
        p.queue_depth_threshold, IntRange{1});
  field(d, {"kvCacheUtilThreshold", "KV usage that makes an endpoint full."},
        p.kv_cache_util_threshold, RealRange{.min = 0, .max = 1, .min_open = true});
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

struct ProbabilisticAdmitterParameters {
  std::int64_t queue_depth_threshold = 5;
  double kv_cache_util_threshold = 0.8;
  double power = 5, k = 300;
};
inline void describe(Describer& d, ProbabilisticAdmitterParameters& p) {
  field(d, {"queueDepthThreshold", "Waiting requests that make an endpoint full."},
        p.queue_depth_threshold, IntRange{1});
  field(d, {"kvCacheUtilThreshold", "KV usage that makes an endpoint full."},
        p.kv_cache_util_threshold, RealRange{.min = 0, .max = 1, .min_open = true});
  field(d, {"power", "Refusal probability min(saturation^power * k, 1)."}, p.power, RealRange{0});
  field(d, {"k", "Refusal probability min(saturation^power * k, 1)."}, p.k, RealRange{0});
}

/// utilization-detector: mean of max(queue/Q, kv/K); missing or stale metrics count as 1. In old
/// eras 1 when no endpoint with fresh metrics is within both thresholds, otherwise 0. As a filter
/// it fails open.
class UtilizationDetector final : public SaturationDetector, public Filter {
 public:
  UtilizationDetector(const UtilizationDetectorParameters& p, const PluginSpec&,
                      BuildContext& context)
      : parameters_(p), closes_without_room_(context.traits().saturated_without_room) {
    context.needs().metrics = true;
  }
  double saturation(const EndpointTable& endpoints, std::span<const EndpointRow> candidates,
                    SimTime now) const override;
  void filter(Cycle& cycle, std::vector<EndpointRow>& candidates) const override;

 private:
  bool has_room(const EndpointTable& endpoints, EndpointRow row, SimTime now) const;
  bool fresh(const EndpointTable& endpoints, EndpointRow row, SimTime now) const;

  UtilizationDetectorParameters parameters_;
  bool closes_without_room_;
};

/// concurrency-detector: in-flight requests or tokens against a limit per endpoint. As a filter it
/// may leave nothing.
class ConcurrencyDetector final : public SaturationDetector, public Filter {
 public:
  ConcurrencyDetector(const ConcurrencyDetectorParameters& p, const PluginSpec& spec,
                      BuildContext& context)
      : parameters_(p), load_(in_flight_load(context, p.in_flight_producer, spec)) {}
  double saturation(const EndpointTable& endpoints, std::span<const EndpointRow> candidates,
                    SimTime now) const override;
  void filter(Cycle& cycle, std::vector<EndpointRow>& candidates) const override;

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
  const char* refuse(Cycle& cycle) const override;
  double saturation(const EndpointTable& endpoints, std::span<const EndpointRow> candidates) const;

 private:
  ProbabilisticAdmitterParameters parameters_;
};

/// latency-slo-admitter: refuses when predictions say that no endpoint can meet the SLOs and none
/// is idle or cold.
class LatencySloAdmitter final : public Admitter {
 public:
  LatencySloAdmitter(const NoParameters&, const PluginSpec& spec, BuildContext& context);
  const char* refuse(Cycle& cycle) const override;
};

}  // namespace routesim::policies
