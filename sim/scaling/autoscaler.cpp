#include "sim/scaling/autoscaler.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace routesim::sim {

namespace {

std::vector<SeriesId> scraped_series(const AutoscalerPlan& plan) {
  std::vector<SeriesId> out;
  for (const std::vector<PromQuery>* queries : {&plan.queries, &plan.rules})
    for (const PromQuery& query : *queries)
      for (const SeriesId id : query.series)
        if (id < kFirstRule) out.push_back(id);
  return out;
}

Duration longest_range(const AutoscalerPlan& plan) {
  Duration longest = Duration::zero();
  for (const std::vector<PromQuery>* queries : {&plan.queries, &plan.rules})
    for (const PromQuery& query : *queries) longest = std::max(longest, query.longest_range);
  return longest;
}

HpaFlags flags_of(const HpaControllerConfig& config) {
  HpaFlags flags;
  flags.downscale_stabilization = config.downscale_stabilization;
  flags.tolerance = config.tolerance;
  flags.scale_to_zero = config.scale_to_zero;
  return flags;
}

/// prometheus-adapter: thousandths without their fraction, and 0 for NaN.
std::int64_t adapter_quantity(double value) {
  if (std::isnan(value)) return 0;
  return static_cast<std::int64_t>(std::clamp(value * 1000, -9e15, 9e15));
}

/// KEDA's prometheus scaler (pkg/scalers/prometheus_scaler.go) takes one element.
std::optional<double> scaler_value(const PromVector& result, bool ignores_null) {
  if (result.size() > 1) return std::nullopt;
  const bool is_null = result.empty() || !std::isfinite(result[0].value);
  if (!is_null) return result[0].value;
  return ignores_null ? std::optional(0.0) : std::nullopt;
}

}  // namespace

bool Autoscaler::Clock::take(SimTime now) {
  if (next > now) return false;
  next += every;
  return true;
}

Autoscaler::Autoscaler(const AutoscalerConfig& config, SimTime created)
    : plan_(autoscaler_plan(config)),
      triggers_(config.triggers),
      store_(scraped_series(plan_), longest_range(plan_)),
      hpa_(plan_.hpa, flags_of(config.controller)),
      cached_(plan_.queries.size()) {
  if (plan_.keda) keda_.emplace(*plan_.keda, created);
  for (const KedaTriggerConfig& t : config.triggers) asked_.push_back({t.query});
  for (const ScalingMetricConfig& m : config.metrics) asked_.push_back({m.query});
  const PrometheusConfig& prometheus = config.prometheus;
  const SimTime rules_at = created + prometheus.scrape_interval / 2;
  const SimTime asks_at =
      plan_.rules.empty() ? rules_at : rules_at + prometheus.evaluation_interval / 2;
  scrapes_ = {prometheus.scrape_interval, created};
  rules_ = {prometheus.evaluation_interval, plan_.rules.empty() ? SimTime::max() : rules_at};
  polls_ = {config.polling_interval.value_or(Duration::seconds(30)),
            keda_ ? asks_at : SimTime::max()};
  // The controller queues an object for one period before its first sync.
  const bool has_hpa = !keda_ || !keda_->is_paused();
  syncs_ = {config.controller.sync_period,
            has_hpa ? asks_at + config.controller.sync_period : SimTime::max()};
}

SimTime Autoscaler::next_look() const {
  return std::min({scrapes_.next, rules_.next, polls_.next, syncs_.next});
}

void Autoscaler::count_look(std::size_t query, bool failed) {
  ++asked_[query].looks;
  if (failed) ++asked_[query].failures;
}

std::vector<std::string> Autoscaler::failing_queries() const {
  std::vector<std::string> out;
  for (const Asked& a : asked_) {
    if (2 * a.failures <= a.looks) continue;
    out.push_back("its query `" + a.query + "` failed at " + std::to_string(a.failures) + " of " +
                  std::to_string(a.looks) + " looks: " +
                  (keda_ ? "KEDA takes one element" : "the HPA gets no value from it"));
  }
  return out;
}

Autoscaler::Values Autoscaler::ask_triggers(SimTime now) {
  Values values;
  for (std::size_t i = 0; i < triggers_.size(); ++i) {
    values.push_back(scaler_value(evaluate(*plan_.queries[i].root, store_, now),
                                  triggers_[i].ignore_null_values));
    count_look(i, !values.back());
  }
  return values;
}

KedaScale Autoscaler::scale_of(std::int32_t replicas) const {
  const auto ready = std::ranges::count_if(pods_, [](const FleetPod& pod) {
    // Deployments do not count pods that they have deleted.
    return pod.state.phase == HpaPodPhase::kRunning && pod.state.ready && !pod.state.terminating;
  });
  return {replicas, static_cast<std::int32_t>(ready)};
}

HpaReading Autoscaler::read_metric(std::size_t metric, SimTime now) {
  const PromVector result = evaluate(*plan_.queries[metric].root, store_, now);
  HpaReading reading;
  reading.failed = result.empty();
  if (plan_.hpa.metrics[metric].type != HpaMetricType::kPods) {
    for (const PromSample& s : result) reading.total += adapter_quantity(s.value);
    count_look(metric, reading.failed);
    return reading;
  }
  for (const FleetPod& pod : pods_) {
    const auto found = std::ranges::find(result, pod.id, &PromSample::pod);
    reading.per_pod.emplace_back();
    if (found != result.end())
      reading.per_pod.back() = {adapter_quantity(found->value), now, Duration::zero()};
  }
  const auto has_value = [](const std::optional<HpaSample>& s) { return s.has_value(); };
  count_look(metric, !pods_.empty() && std::ranges::none_of(reading.per_pod, has_value));
  return reading;
}

void Autoscaler::evaluate_rules(SimTime now) {
  for (std::size_t i = 0; i < plan_.rules.size(); ++i)
    store_.record(now, kFirstRule + static_cast<SeriesId>(i),
                  evaluate(*plan_.rules[i].root, store_, now));
}

void Autoscaler::sync(SimTime now, std::int32_t replicas) {
  HpaInput input;
  input.now = now;
  input.spec_replicas = replicas;
  for (const FleetPod& pod : pods_) {
    input.pods.push_back(pod.state);
    // A ReplicaSet counts the pods that it has not deleted.
    if (!pod.state.terminating && pod.state.phase != HpaPodPhase::kFailed) ++input.status_replicas;
  }
  if (keda_) {
    Values values = ask_triggers(now);
    for (std::size_t i = 0; i < values.size(); ++i)
      if (triggers_[i].use_cached_metrics) values[i] = cached_[i];
    // An HPA that is disabled asks nothing.
    if (replicas > 0) input.readings = keda_->readings(scale_of(replicas), values);
  } else {
    for (std::size_t i = 0; i < plan_.queries.size(); ++i)
      input.readings.push_back(read_metric(i, now));
  }
  decision_ = hpa_.sync(input);
}

std::optional<std::int32_t> Autoscaler::look(SimTime now, const FleetMetrics& fleet) {
  if (scrapes_.take(now)) store_.scrape(now, fleet);
  if (rules_.take(now)) evaluate_rules(now);
  const bool polls = polls_.take(now), syncs = syncs_.take(now);
  if (!polls && !syncs) return std::nullopt;
  pods_.clear();
  fleet.pods(pods_);
  const std::int32_t before = fleet.spec_replicas();
  std::int32_t replicas = before;
  if (polls) {
    cached_ = ask_triggers(now);
    replicas = keda_->poll(now, scale_of(replicas), cached_).value_or(replicas);
  }
  if (syncs) {
    sync(now, replicas);
    replicas = decision_.desired;
  }
  if (replicas == before) return std::nullopt;
  return replicas;
}

}  // namespace routesim::sim
