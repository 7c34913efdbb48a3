// The metrics that autoscalers read: their names in Prometheus, and what a simulation must answer.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.h"
#include "sim/scaling/hpa.h"

namespace routesim::sim {

/// One quantity, whatever a product calls it.
enum class FleetMetric : std::uint8_t {
  // Of one model server.
  kWaiting,
  kRunning,
  kKvUsage,
  kInflightTokens,
  kPromptTokens,
  kGenerationTokens,
  kFinished,
  kPreemptions,
  kPrefixQueries,
  kPrefixHits,
  kServerTtft,
  kServerTpot,
  kServerItl,
  kServerQueueTime,
  kServerLatency,
  // Of the endpoint picker, for its pool.
  kPoolKvUsage,
  kPoolQueue,
  kPoolRunning,
  kPoolReady,
  kFlowQueue,
  kFlowQueueBytes,
  kFlowSaturation,
  kRouterRunning,
  kRouterActive,
  kRouterRequests,
  kRouterIncoming,
  kRouterErrors,
  kRouterTtft,
  kRouterPredictedTtft,
  kRouterTpot,
  kRouterPredictedTpot,
  kRouterLatency,
  // Of the Deployment, from kube-state-metrics.
  kReplicas,
  kReplicasReady,
  kReplicasUnavailable
};
inline constexpr std::size_t kFleetMetrics = 35;

enum class FleetMetricKind : std::uint8_t { kGauge, kCounter, kHistogram };

/// The product that exports a series, by its name. Those of kube-state-metrics are always there.
enum class FleetExporter : std::uint8_t {
  kVllm = 1,
  kSglang = 2,
  kEndpointPicker = 4,
  kKubeAi = 8,
  kProductionStack = 16,
  kKubernetes = 32
};
/// A set of them.
using FleetExporters = std::uint8_t;
inline constexpr FleetExporters kAllExporters = 63;
constexpr bool has_exporter(FleetExporters all, FleetExporter one) {
  return (all & static_cast<FleetExporters>(one)) != 0;
}
FleetExporter exporter_of(std::string_view name);

/// Upper bounds of a histogram's buckets in seconds, without the last one, which has none.
std::span<const double> bucket_bounds(FleetMetric metric);
FleetMetricKind kind_of(FleetMetric metric);
/// Each model server has its own.
bool is_per_pod(FleetMetric metric);

/// The observations of one histogram since its process started.
class BucketCounts {
 public:
  explicit BucketCounts(FleetMetric metric)
      : bounds_(bucket_bounds(metric)), counts_(bounds_.size() + 1) {}
  void add(double seconds);
  /// Replaces all: one count for each bound and the last.
  void set(std::vector<std::int64_t> counts, double sum) {
    counts_ = std::move(counts);
    sum_ = sum;
  }
  /// One count per bound and the last: not cumulative.
  const std::vector<std::int64_t>& counts() const { return counts_; }
  double sum() const { return sum_; }

 private:
  std::span<const double> bounds_;
  std::vector<std::int64_t> counts_;
  double sum_ = 0;
};

/// The series of a histogram.
enum class HistogramPart : std::uint8_t { kNone, kBucket, kSum, kCount };
struct SeriesName {
  FleetMetric metric = FleetMetric::kWaiting;
  HistogramPart part = HistogramPart::kNone;
  bool operator==(const SeriesName&) const = default;
};

/// The series of this name, such as `vllm:time_to_first_token_seconds_bucket`.
std::optional<SeriesName> series_of(std::string_view name);
/// Every known name, histograms without their suffix.
std::vector<std::string> fleet_metric_names();

/// A pod of the scaled workload, from its creation until it is gone.
struct FleetPod {
  std::int64_t id = 0;  ///< Unique over the run; not negative.
  HpaPod state;
};

/// The pod id of series that belong to the pool.
inline constexpr std::int64_t kPool = -1;

/// What an autoscaler may see of a fleet, at the present instant. The loop implements it.
class FleetMetrics {
 public:
  virtual ~FleetMetrics() = default;
  /// scale.spec.replicas: what was last asked for.
  virtual std::int32_t spec_replicas() const = 0;
  virtual void pods(std::vector<FleetPod>& out) const = 0;
  /// A gauge or a counter. Nothing where nobody answers: a server that still loads, a product that
  /// has no such metric.
  virtual std::optional<double> value(FleetMetric metric, std::int64_t pod) const = 0;
  /// Null where nobody answers.
  virtual const BucketCounts* histogram(FleetMetric metric, std::int64_t pod) const = 0;
};

}  // namespace routesim::sim
