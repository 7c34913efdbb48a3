// KEDA's ScaledObject: what its operator does between zero and the minimum, and the
// HorizontalPodAutoscaler that it makes for the rest. Rules are those of kedacore/keda v2.21.0:
// pkg/scaling (executor/scale_scaledobjects.go, scale_handler.go, modifiers), pkg/fallback and
// controllers/keda/hpa.go.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.h"
#include "sim/scaling/hpa.h"
#include "sim/scaling/keda_formula.h"

namespace routesim::sim {

struct KedaTrigger {
  HpaTargetType target_type = HpaTargetType::kAverageValue;  ///< Or kValue.
  double threshold = 1;
  double activation_threshold = 0;
};

enum class KedaFallbackBehavior : std::uint8_t {
  kStatic,
  kCurrentReplicas,
  kCurrentReplicasIfHigher,
  kCurrentReplicasIfLower,
  kScalingModifiers
};
struct KedaFallback {
  std::int32_t failure_threshold = 0;
  std::int32_t replicas = 0;
  KedaFallbackBehavior behavior = KedaFallbackBehavior::kStatic;
};

/// One formula in place of the triggers.
struct KedaModifiers {
  Formula formula;
  double target = 1;
  double activation_target = 0;
  HpaTargetType target_type = HpaTargetType::kAverageValue;
};

/// Annotations of the ScaledObject, autoscaling.keda.sh/….
struct KedaAnnotations {
  bool is_paused = false;
  std::optional<std::int32_t> paused_replicas;
  bool pauses_scale_in = false;
  bool pauses_scale_out = false;
  bool forces_activation = false;
};

struct KedaSpec {
  std::int32_t initial_cooldown_seconds = 0;
  std::int32_t cooldown_seconds = 300;
  std::optional<std::int32_t> idle_replicas;
  std::int32_t min_replicas = 0;
  std::int32_t max_replicas = 100;
  std::vector<KedaTrigger> triggers;
  std::optional<KedaFallback> fallback;
  std::optional<KedaModifiers> modifiers;
  std::optional<HpaBehavior> behavior;
  KedaAnnotations annotations;
};

/// The HorizontalPodAutoscaler of the operator's making.
HpaSpec hpa_of(const KedaSpec& spec);

/// A metric as the metrics API carries it: rounded to thousandths, and never negative.
std::int64_t keda_quantity(double value);

/// What a look sees of the fleet.
struct KedaScale {
  std::int32_t replicas = 0;  ///< scale.spec.replicas.
  std::int32_t ready = 0;     ///< Pods that run and are ready.
};

/// The operator. It counts failed queries over polls and over the HPA's questions alike.
class KedaOperator {
 public:
  /// `created` is the ScaledObject's.
  KedaOperator(KedaSpec spec, SimTime created)
      : spec_(std::move(spec)), created_(created), failures_(spec_.triggers.size()) {}

  /// One round of the scale loop. `values` are those of the triggers, nothing where a query failed.
  /// The new replicas; nothing where they stay.
  std::optional<std::int32_t> poll(SimTime now, const KedaScale& scale,
                                   const std::vector<std::optional<double>>& values);

  /// What the HPA reads: one for each of its metrics.
  std::vector<HpaReading> readings(const KedaScale& scale,
                                   const std::vector<std::optional<double>>& values);

  const KedaSpec& spec() const { return spec_; }
  /// A paused ScaledObject has no HPA.
  bool is_paused() const {
    return spec_.annotations.is_paused || spec_.annotations.paused_replicas.has_value();
  }
  std::optional<SimTime> last_active() const { return last_active_; }

 private:
  /// A trigger's metric after the fallback.
  struct Metric {
    bool failed = false;
    bool is_fallback = false;
    std::int64_t value = 0;  ///< Thousandths.
  };

  Metric metric_of(std::size_t trigger, std::optional<double> value, const KedaScale& scale);
  std::vector<Metric> metrics_of(const std::vector<std::optional<double>>& values,
                                 const KedaScale& scale);
  std::optional<std::int64_t> fallback_value(std::size_t trigger, const KedaScale& scale) const;
  /// The composite metric; nothing where the formula fails.
  std::optional<std::int64_t> composite(const std::vector<Metric>& metrics) const;
  std::optional<std::int32_t> request_scale(SimTime now, std::int32_t replicas, bool is_active,
                                            bool is_error);
  std::optional<std::int32_t> to_idle(SimTime now) const;

  KedaSpec spec_;
  SimTime created_;
  std::optional<SimTime> last_active_;
  std::vector<std::int32_t> failures_;  ///< In a row, of each trigger.
};

}  // namespace routesim::sim
