// Settings of an autoscaler, in Kubernetes' and KEDA's own words.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/describe.h"
#include "sim/scaling/hpa.h"
#include "sim/scaling/keda.h"
#include "sim/scaling/prometheus_query.h"

namespace routesim::sim {

enum class AutoscalerKind : std::uint8_t { kHpa, kKeda };

struct ScalingPolicyConfig {
  HpaPolicyType type = HpaPolicyType::kPods;
  std::int32_t value = 1;
  std::int32_t period_seconds = 15;
};
void describe(Describer& d, ScalingPolicyConfig& c);

struct ScalingRulesConfig {
  std::optional<std::int32_t> stabilization_window_seconds;
  HpaSelect select_policy = HpaSelect::kMax;
  std::vector<ScalingPolicyConfig> policies;
  std::optional<double> tolerance;
};
void describe(Describer& d, ScalingRulesConfig& c);

struct ScalingBehaviorConfig {
  std::optional<ScalingRulesConfig> scale_up, scale_down;
};
void describe(Describer& d, ScalingBehaviorConfig& c);

/// Metrics that a simulation has. Resources (CPU, memory) of model servers are not simulated.
enum class ScalingMetricType : std::uint8_t { kPods, kObject, kExternal };
enum class ScalingTargetType : std::uint8_t { kAverageValue, kValue };

struct ScalingMetricConfig {
  ScalingMetricType type = ScalingMetricType::kExternal;
  std::string query;
  ScalingTargetType target_type = ScalingTargetType::kAverageValue;
  double target = 1;
};
void describe(Describer& d, ScalingMetricConfig& c);

struct KedaTriggerConfig {
  std::string name;
  std::string query;
  double threshold = 1;
  double activation_threshold = 0;
  ScalingTargetType metric_type = ScalingTargetType::kAverageValue;
  bool ignore_null_values = true;
  bool use_cached_metrics = false;
};
void describe(Describer& d, KedaTriggerConfig& c);

struct KedaFallbackConfig {
  std::int32_t failure_threshold = 0;
  std::int32_t replicas = 0;
  KedaFallbackBehavior behavior = KedaFallbackBehavior::kStatic;
};
void describe(Describer& d, KedaFallbackConfig& c);

struct ScalingModifiersConfig {
  std::string formula;
  double target = 1;
  double activation_target = 0;
  ScalingTargetType metric_type = ScalingTargetType::kAverageValue;
};
void describe(Describer& d, ScalingModifiersConfig& c);

struct KedaAnnotationsConfig {
  bool paused = false;
  std::optional<std::int32_t> paused_replicas;
  bool paused_scale_in = false;
  bool paused_scale_out = false;
  bool force_activation = false;
};
void describe(Describer& d, KedaAnnotationsConfig& c);

struct RecordingRuleConfig {
  std::string record;
  std::string expr;
};
void describe(Describer& d, RecordingRuleConfig& c);

/// Prometheus' own defaults are 60 s; its operator's chart, which the guides install, has 30 s, and
/// their monitors ask for 15 s and less.
struct PrometheusConfig {
  Duration scrape_interval = Duration::seconds(15);
  Duration evaluation_interval = Duration::seconds(15);
  std::vector<RecordingRuleConfig> recording_rules;
};
void describe(Describer& d, PrometheusConfig& c);

/// Flags of kube-controller-manager.
struct HpaControllerConfig {
  Duration sync_period = Duration::seconds(15);
  Duration downscale_stabilization = Duration::seconds(300);
  double tolerance = 0.1;
  bool scale_to_zero = false;
};
void describe(Describer& d, HpaControllerConfig& c);

struct AutoscalerConfig {
  AutoscalerKind kind = AutoscalerKind::kHpa;
  // Of kind hpa.
  std::optional<std::int32_t> min_replicas, max_replicas;
  std::vector<ScalingMetricConfig> metrics;
  // Of kind keda.
  std::optional<std::int32_t> min_replica_count, max_replica_count, idle_replica_count;
  std::optional<Duration> polling_interval, cooldown_period, initial_cooldown_period;
  std::vector<KedaTriggerConfig> triggers;
  std::optional<KedaFallbackConfig> fallback;
  std::optional<ScalingModifiersConfig> scaling_modifiers;
  std::optional<KedaAnnotationsConfig> annotations;
  // Of both.
  std::optional<ScalingBehaviorConfig> behavior;
  PrometheusConfig prometheus;
  HpaControllerConfig controller;
  /// No key: who exports metrics in its cluster.
  FleetExporters exporters = kAllExporters;
};
void describe(Describer& d, AutoscalerConfig& c);

/// What is wrong with one key below `autoscaler`.
struct AutoscalerFault {
  std::string path;  ///< E.g. `triggers[1].query`.
  std::string message;
  std::string hint = {};
  std::size_t position = 0;  ///< In the text of a query or a formula, from 0 on.
};
/// Nothing where the autoscaler can run.
std::vector<AutoscalerFault> autoscaler_faults(const AutoscalerConfig& config);

/// Labels in its queries that select nothing: all series are taken as the pool's own.
std::vector<std::string> unused_matchers(const AutoscalerConfig& config);

/// Names in its queries that nobody exports.
std::vector<std::string> missing_series(const AutoscalerConfig& config);

/// The specifications and queries of a configuration without faults. With KEDA, the HPA is that of
/// the operator's making, and the queries are those of the triggers.
struct AutoscalerPlan {
  HpaSpec hpa;
  std::optional<KedaSpec> keda;
  std::vector<PromQuery> queries;
  std::vector<PromQuery> rules;
};
AutoscalerPlan autoscaler_plan(const AutoscalerConfig& config);

/// The bounds of the replicas; KEDA's lower one may be 0.
std::int32_t least_replicas(const AutoscalerConfig& config);
std::int32_t most_replicas(const AutoscalerConfig& config);

}  // namespace routesim::sim

template <>
struct routesim::EnumNames<routesim::sim::AutoscalerKind> {
  static constexpr std::array<std::string_view, 2> value = {"hpa", "keda"};
};
template <>
struct routesim::EnumNames<routesim::sim::HpaPolicyType> {
  static constexpr std::array<std::string_view, 2> value = {"pods", "percent"};
};
template <>
struct routesim::EnumNames<routesim::sim::HpaSelect> {
  static constexpr std::array<std::string_view, 3> value = {"max", "min", "disabled"};
};
template <>
struct routesim::EnumNames<routesim::sim::ScalingMetricType> {
  static constexpr std::array<std::string_view, 3> value = {"pods", "object", "external"};
};
template <>
struct routesim::EnumNames<routesim::sim::ScalingTargetType> {
  static constexpr std::array<std::string_view, 2> value = {"average_value", "value"};
};
template <>
struct routesim::EnumNames<routesim::sim::KedaFallbackBehavior> {
  static constexpr std::array<std::string_view, 5> value = {
      "static", "current_replicas", "current_replicas_if_higher", "current_replicas_if_lower",
      "scaling_modifiers"};
};
