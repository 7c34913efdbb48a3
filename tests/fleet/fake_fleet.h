// A fleet whose metrics a test sets by hand.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "sim/scaling/fleet_metrics.h"

namespace routesim::sim {

class FakeFleet final : public FleetMetrics {
 public:
  std::int32_t spec_replicas() const override { return spec; }
  void pods(std::vector<FleetPod>& out) const override { out = all; }
  std::optional<double> value(FleetMetric metric, std::int64_t pod) const override {
    const auto found = values.find({metric, pod});
    if (found == values.end()) return std::nullopt;
    return found->second;
  }
  const BucketCounts* histogram(FleetMetric metric, std::int64_t pod) const override {
    const auto found = histograms.find({metric, pod});
    return found == histograms.end() ? nullptr : &found->second;
  }

  BucketCounts& histogram_of(FleetMetric metric, std::int64_t pod = kPool) {
    return histograms.try_emplace({metric, pod}, metric).first->second;
  }
  /// As many pods as `spec`, all ready, from id 0 on.
  void follow() {
    all.clear();
    for (std::int32_t i = 0; i < spec; ++i) {
      FleetPod pod;
      pod.id = i;
      pod.state.started = pod.state.ready_changed = SimTime::zero();
      all.push_back(pod);
    }
  }

  std::int32_t spec = 0;
  std::vector<FleetPod> all;
  std::map<std::pair<FleetMetric, std::int64_t>, double> values;
  std::map<std::pair<FleetMetric, std::int64_t>, BucketCounts> histograms;
};

}  // namespace routesim::sim
