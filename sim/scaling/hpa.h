// Kubernetes' HorizontalPodAutoscaler: what its controller decides at one sync. It has no clock and
// knows no simulator. Rules and names are those of k8s.io/kubernetes v1.36.1,
// pkg/controller/podautoscaler (horizontal.go, replica_calculator.go); defaults are those of
// pkg/apis/autoscaling/v2/defaults.go and of kube-controller-manager's flags.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace routesim::sim {

enum class HpaMetricType { kResource, kContainerResource, kPods, kObject, kExternal };
enum class HpaTargetType { kUtilization, kValue, kAverageValue };

struct HpaMetricSpec {
  HpaMetricType type = HpaMetricType::kResource;
  HpaTargetType target_type = HpaTargetType::kUtilization;
  std::int64_t target = 80;  ///< Percent of the request, else thousandths; above 0.
  bool is_cpu = true;        ///< Of resources: CPU samples of young pods do not count.
};

enum class HpaPolicyType { kPods, kPercent };
struct HpaPolicy {
  HpaPolicyType type = HpaPolicyType::kPods;
  std::int32_t value = 1;
  std::int32_t period_seconds = 15;
};

enum class HpaSelect { kMax, kMin, kDisabled };
/// `behavior.scaleUp` or `behavior.scaleDown`, with the API server's defaults filled in.
struct HpaRules {
  std::optional<std::int32_t> stabilization_window_seconds;  ///< Absent: the controller's flag.
  HpaSelect select = HpaSelect::kMax;
  std::vector<HpaPolicy> policies;
  std::optional<double> tolerance;  ///< Absent: the controller's flag. Since Kubernetes 1.33.
};
/// At most double, or four pods more, in 15 s; no stabilisation.
HpaRules default_scale_up_rules();
/// All pods in 15 s; stabilised over the window of the controller's flag.
HpaRules default_scale_down_rules();

struct HpaBehavior {
  HpaRules scale_up = default_scale_up_rules();
  HpaRules scale_down = default_scale_down_rules();
};

struct HpaSpec {
  std::int32_t min_replicas = 1;
  std::int32_t max_replicas = 1;
  std::vector<HpaMetricSpec> metrics;
  std::optional<HpaBehavior> behavior;  ///< Absent is not the same as its defaults.
};

/// Flags and feature gates of kube-controller-manager.
struct HpaFlags {
  Duration downscale_stabilization = Duration::seconds(300);
  double tolerance = 0.1;
  Duration cpu_initialization_period = Duration::seconds(300);
  Duration initial_readiness_delay = Duration::seconds(30);
  bool scale_to_zero = false;          ///< Gate HPAScaleToZero.
  bool configurable_tolerance = true;  ///< Gate HPAConfigurableTolerance; true since 1.35.
};

enum class HpaPodPhase { kPending, kRunning, kFailed };
struct HpaPod {
  HpaPodPhase phase = HpaPodPhase::kRunning;
  bool terminating = false;  ///< It has a deletion timestamp.
  bool ready = true;
  std::optional<SimTime> started;        ///< status.startTime.
  std::optional<SimTime> ready_changed;  ///< The last change of its Ready condition.
  std::int64_t request = 0;              ///< Of the resource, in thousandths; 0: none is written.
};

/// A sample of one pod.
struct HpaSample {
  std::int64_t value = 0;  ///< Thousandths.
  SimTime taken;
  Duration window = Duration::zero();
};

/// What the metrics API answers for one metric.
struct HpaReading {
  bool failed = false;
  std::int64_t total = 0;                         ///< Object and External, in thousandths.
  std::vector<std::optional<HpaSample>> per_pod;  ///< The others: one for each pod, or nothing.
};

/// What one sync sees. One reading for each metric of the specification.
struct HpaInput {
  SimTime now;
  std::int32_t spec_replicas = 0;    ///< scale.spec.replicas.
  std::int32_t status_replicas = 0;  ///< scale.status.replicas: pods that exist.
  std::vector<HpaPod> pods;
  std::vector<HpaReading> readings;
};

/// A condition of the status. An empty reason: it was never set.
struct HpaCondition {
  bool status = false;
  std::string_view reason = {};
};

struct HpaDecision {
  std::int32_t desired = 0;  ///< The new spec.replicas; as before where nothing changes.
  bool rescaled = false;
  bool failed = false;                ///< No metric decided, and the scale stays.
  std::optional<std::size_t> metric;  ///< The metric that asked for the most.
  std::int32_t proposed = 0;          ///< Before stabilisation and limits.
  HpaCondition able_to_scale, scaling_active, scaling_limited;
};

/// One HorizontalPodAutoscaler. A sync costs the number of metrics times pods, and the syncs and
/// scale events of the longest window.
class HpaController {
 public:
  /// `spec` has at least one metric.
  HpaController(HpaSpec spec, const HpaFlags& flags) : spec_(std::move(spec)), flags_(flags) {}

  HpaDecision sync(const HpaInput& input);

  const HpaSpec& spec() const { return spec_; }

 private:
  struct Event {
    std::int32_t replicas = 0;  ///< A recommendation, or the size of a change.
    SimTime at;
  };
  struct Limits {
    std::int32_t up = 0, down = 0;
  };

  /// The largest proposal of the metrics; nothing where the scale must stay.
  std::optional<std::int32_t> propose(const HpaInput& input, HpaDecision& decision);
  std::optional<std::int32_t> propose_one(std::size_t metric, const HpaInput& input) const;
  std::optional<std::int32_t> by_pods(std::size_t metric, const HpaInput& input) const;
  std::optional<std::int32_t> by_total(std::size_t metric, const HpaInput& input) const;
  bool is_within(double ratio) const;
  std::int32_t normalize(const HpaInput& input, std::int32_t desired);
  std::int32_t normalize_by_rules(const HpaInput& input, std::int32_t desired);
  std::int32_t stabilize_by_rules(const HpaInput& input, std::int32_t desired);
  std::int32_t limit(const HpaInput& input, std::int32_t desired);
  std::int32_t policy_limit(const HpaRules& rules, bool is_up, const HpaInput& input) const;
  void remember_scale(const HpaInput& input, std::int32_t desired);

  HpaSpec spec_;
  HpaFlags flags_;
  std::vector<Event> recommendations_;
  std::vector<Event> ups_, downs_;
  HpaCondition able_, active_, limited_;
  bool scaled_to_zero_ = false;  ///< Condition ScaledToZero.
};

}  // namespace routesim::sim
