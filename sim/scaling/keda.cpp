#include "sim/scaling/keda.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace routesim::sim {

namespace {

/// Go's Quantity.AsApproximateFloat64 of thousandths.
double approximate(std::int64_t thousandths) { return static_cast<double>(thousandths) * 1e-3; }

/// Go's int64(x); infinities stay out of reach of the HPA's arithmetic.
std::int64_t truncated(double x) {
  if (std::isnan(x)) return 0;
  return static_cast<std::int64_t>(std::clamp(x, -9e15, 9e15));
}

/// status.lastActiveTime is a metav1.Time, which the API server keeps in whole seconds.
SimTime whole_second(SimTime at) { return at - Duration::nanoseconds(at.ns() % 1'000'000'000); }

}  // namespace

std::int64_t keda_quantity(double value) {
  if (!std::isfinite(value) || value < 0) return 0;
  // Sprintf("%.3f"), as GenerateMetricInMili has it; 9e12 keep the HPA's products in range.
  std::array<char, 64> text = {};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), std::min(value, 9e12),
                                 std::chars_format::fixed, 3)
                       .ptr;
  const auto point = std::find(text.data(), end, '.');
  std::int64_t whole = 0, thousandths = 0;
  std::from_chars(text.data(), point, whole);
  std::from_chars(point + 1, end, thousandths);
  return whole * 1000 + thousandths;
}

HpaSpec hpa_of(const KedaSpec& spec) {
  HpaSpec hpa;
  hpa.min_replicas = std::max(1, spec.min_replicas);
  hpa.max_replicas = spec.max_replicas;
  const auto external = [&](HpaTargetType type, std::int64_t target) {
    hpa.metrics.push_back({HpaMetricType::kExternal, type, target, false});
  };
  if (spec.modifiers) {
    external(spec.modifiers->target_type, truncated(spec.modifiers->target * 1000));
  } else {
    for (const KedaTrigger& t : spec.triggers) external(t.target_type, keda_quantity(t.threshold));
  }
  hpa.behavior = spec.behavior;
  const bool is_held = spec.annotations.pauses_scale_in || spec.annotations.pauses_scale_out;
  if (is_held && !hpa.behavior) hpa.behavior.emplace();
  if (spec.annotations.pauses_scale_in) hpa.behavior->scale_down.select = HpaSelect::kDisabled;
  if (spec.annotations.pauses_scale_out) hpa.behavior->scale_up.select = HpaSelect::kDisabled;
  return hpa;
}

std::optional<std::int64_t> KedaOperator::fallback_value(std::size_t trigger,
                                                         const KedaScale& scale) const {
  const KedaFallback& fallback = *spec_.fallback;
  double replicas = fallback.replicas;
  if (fallback.behavior == KedaFallbackBehavior::kCurrentReplicas) replicas = scale.replicas;
  if (fallback.behavior == KedaFallbackBehavior::kCurrentReplicasIfHigher)
    replicas = std::max(scale.replicas, fallback.replicas);
  if (fallback.behavior == KedaFallbackBehavior::kCurrentReplicasIfLower)
    replicas = std::min(scale.replicas, fallback.replicas);
  const KedaTrigger& t = spec_.triggers[trigger];
  const HpaTargetType type = spec_.modifiers ? spec_.modifiers->target_type : t.target_type;
  if (type == HpaTargetType::kValue) {
    if (scale.ready == 0) return std::nullopt;
    replicas /= scale.ready;
  }
  const double target =
      spec_.modifiers ? spec_.modifiers->target : approximate(keda_quantity(t.threshold));
  return truncated(target * 1000 * replicas);
}

KedaOperator::Metric KedaOperator::metric_of(std::size_t trigger, std::optional<double> value,
                                             const KedaScale& scale) {
  if (value) {
    failures_[trigger] = 0;
    return {false, false, keda_quantity(*value)};
  }
  if (!spec_.fallback) return {true, false, 0};
  if (++failures_[trigger] <= spec_.fallback->failure_threshold) return {true, false, 0};
  // The formula reads it as nil.
  if (spec_.fallback->behavior == KedaFallbackBehavior::kScalingModifiers)
    return {false, false, -1000};
  const std::optional<std::int64_t> stand_in = fallback_value(trigger, scale);
  if (!stand_in) return {true, false, 0};
  return {false, true, *stand_in};
}

std::vector<KedaOperator::Metric> KedaOperator::metrics_of(
    const std::vector<std::optional<double>>& values, const KedaScale& scale) {
  std::vector<Metric> metrics;
  for (std::size_t i = 0; i < values.size(); ++i) metrics.push_back(metric_of(i, values[i], scale));
  return metrics;
}

std::optional<std::int64_t> KedaOperator::composite(const std::vector<Metric>& metrics) const {
  for (const Metric& m : metrics)
    if (m.is_fallback) return m.value;
  const bool may_be_nil =
      spec_.fallback && spec_.fallback->behavior == KedaFallbackBehavior::kScalingModifiers;
  std::vector<std::optional<double>> values;
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    const bool is_nil =
        metrics[i].failed || (may_be_nil && failures_[i] > spec_.fallback->failure_threshold);
    values.push_back(is_nil ? std::nullopt : std::optional(approximate(metrics[i].value)));
  }
  const FormulaResult result = evaluate_formula(spec_.modifiers->formula, values);
  if (result.failed) return std::nullopt;
  if (result.value) return truncated(*result.value * 1000);
  if (!spec_.fallback) return std::nullopt;
  return truncated(spec_.fallback->replicas * spec_.modifiers->target * 1000);
}

std::vector<HpaReading> KedaOperator::readings(const KedaScale& scale,
                                               const std::vector<std::optional<double>>& values) {
  const std::vector<Metric> metrics = metrics_of(values, scale);
  if (!spec_.modifiers) {
    std::vector<HpaReading> out;
    for (const Metric& m : metrics) out.push_back({m.failed, m.value, {}});
    return out;
  }
  // One failure is enough, unless another trigger has fallen back.
  const bool falls_back = std::ranges::any_of(metrics, &Metric::is_fallback);
  const bool failed = !falls_back && std::ranges::any_of(metrics, &Metric::failed);
  const std::optional<std::int64_t> value = failed ? std::nullopt : composite(metrics);
  return {{!value, value.value_or(0), {}}};
}

std::optional<std::int32_t> KedaOperator::poll(SimTime now, const KedaScale& scale,
                                               const std::vector<std::optional<double>>& values) {
  const std::vector<Metric> metrics = metrics_of(values, scale);
  bool is_active = false, is_error = false;
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    is_error |= metrics[i].failed;
    is_active |= metrics[i].is_fallback ||
                 (values[i] && *values[i] > spec_.triggers[i].activation_threshold);
  }
  if (spec_.modifiers) {
    const std::optional<std::int64_t> value = is_error ? std::nullopt : composite(metrics);
    is_active = value && approximate(*value) > spec_.modifiers->activation_target;
  }
  return request_scale(now, scale.replicas, is_active, is_error);
}

std::optional<std::int32_t> KedaOperator::to_idle(SimTime now) const {
  if (spec_.annotations.pauses_scale_in) return std::nullopt;
  // A scale that was never active waits for the initial period alone.
  const SimTime due = last_active_ ? *last_active_ + Duration::seconds(spec_.cooldown_seconds)
                                   : created_ + Duration::seconds(spec_.initial_cooldown_seconds);
  if (!(due < now)) return std::nullopt;
  return spec_.idle_replicas.value_or(spec_.min_replicas);
}

std::optional<std::int32_t> KedaOperator::request_scale(SimTime now, std::int32_t replicas,
                                                        bool is_active, bool is_error) {
  if (is_paused()) {
    const std::optional<std::int32_t> held = spec_.annotations.paused_replicas;
    return held && *held != replicas ? held : std::nullopt;
  }
  const std::optional<std::int32_t> idle = spec_.idle_replicas;
  if (is_active || spec_.annotations.forces_activation) {
    if ((idle && replicas < spec_.min_replicas) || replicas == 0) {
      if (spec_.annotations.pauses_scale_out) return std::nullopt;
      last_active_ = whole_second(now);
      return std::max(1, spec_.min_replicas);
    }
    if (!is_error) last_active_ = whole_second(now);
    return std::nullopt;
  }
  if (is_error && (!spec_.fallback || spec_.fallback->replicas != 0)) return std::nullopt;
  if ((idle && replicas > *idle) || (replicas > 0 && spec_.min_replicas == 0)) return to_idle(now);
  if (!idle && replicas < spec_.min_replicas) return spec_.min_replicas;
  return std::nullopt;
}

}  // namespace routesim::sim
