// Saturation detectors, which are filters too, and the admitters of sheddable requests.
// llm-d-router pkg/epp/framework/plugins/flowcontrol/saturationdetector.
#pragma once

#include <cmath>

#include "policies/config/factory.h"
#include "policies/plugins/inflight_load.h"

namespace routesim::policies {

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
      : parameters_(p), load_(context.in_flight(p.in_flight_producer, spec)) {}
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
