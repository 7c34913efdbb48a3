#include "sim/scaling/hpa.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace routesim::sim {

namespace {

constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
constexpr std::int32_t kLeast = std::numeric_limits<std::int32_t>::min();

/// Go's int32(x) on amd64: what does not fit becomes the least value.
std::int32_t go_int32(double x) {
  if (!(x > -2147483649.0 && x < 2147483648.0)) return kLeast;
  return static_cast<std::int32_t>(x);
}

std::int32_t go_ceil(double x) { return go_int32(std::ceil(x)); }

/// A condition's reason where a metric of this type cannot be had.
std::string_view failed_reason(HpaMetricType type) {
  switch (type) {
    case HpaMetricType::kResource:
      return "FailedGetResourceMetric";
    case HpaMetricType::kContainerResource:
      return "FailedGetContainerResourceMetric";
    case HpaMetricType::kPods:
      return "FailedGetPodsMetric";
    case HpaMetricType::kObject:
      return "FailedGetObjectMetric";
    default:
      return "FailedGetExternalMetric";
  }
}

/// What groupPods makes of a pod.
enum class PodGroup { kReady, kUnready, kMissing, kIgnored };

PodGroup group_of(const HpaPod& pod, const std::optional<HpaSample>& sample, bool is_cpu,
                  const HpaFlags& flags, SimTime now) {
  if (pod.terminating || pod.phase == HpaPodPhase::kFailed) return PodGroup::kIgnored;
  if (pod.phase == HpaPodPhase::kPending) return PodGroup::kUnready;
  if (!sample) return PodGroup::kMissing;
  if (!is_cpu) return PodGroup::kReady;
  if (!pod.started || !pod.ready_changed) return PodGroup::kUnready;
  const bool is_young = *pod.started + flags.cpu_initialization_period > now;
  // A young pod counts from one whole window after it became ready on. An older one counts unless
  // it has never been ready.
  const bool unready =
      is_young ? !pod.ready || sample->taken < *pod.ready_changed + sample->window
               : !pod.ready && *pod.started + flags.initial_readiness_delay > *pod.ready_changed;
  return unready ? PodGroup::kUnready : PodGroup::kReady;
}

/// The samples that count, and how they compare with the target.
class Usage {
 public:
  explicit Usage(const HpaMetricSpec& metric) : metric_(metric) {}

  void add(std::int64_t value, const HpaPod& pod) {
    total_ += value;
    requests_ += pod.request;
    ++count_;
  }
  /// Go divides integers here, so both lose their fraction.
  double ratio() const {
    if (metric_.target_type == HpaTargetType::kUtilization)
      return static_cast<double>(go_int32(static_cast<double>(total_ * 100 / requests_))) /
             static_cast<double>(metric_.target);
    return static_cast<double>(total_ / count_) / static_cast<double>(metric_.target);
  }
  bool has_ratio() const {
    return count_ > 0 && (metric_.target_type != HpaTargetType::kUtilization || requests_ > 0);
  }
  std::int64_t count() const { return count_; }

 private:
  const HpaMetricSpec& metric_;
  std::int64_t total_ = 0, requests_ = 0, count_ = 0;
};

/// The value of a pod without a sample: all of its request or its target where the others ask for
/// fewer pods.
std::int64_t stand_in(const HpaMetricSpec& metric, const HpaPod& pod) {
  if (metric.target_type != HpaTargetType::kUtilization) return metric.target;
  return pod.request * std::max<std::int64_t>(100, metric.target) / 100;
}

std::int32_t longest_period(const HpaRules& rules) {
  std::int32_t longest = 0;
  for (const HpaPolicy& policy : rules.policies) longest = std::max(longest, policy.period_seconds);
  return longest;
}

template <class Events>
std::int32_t change_since(const Events& events, SimTime cutoff) {
  std::int32_t sum = 0;
  for (const auto& event : events)
    if (event.at > cutoff) sum += event.replicas;
  return sum;
}

/// Overwrites the last event before `cutoff`, else appends. As in the controller, others before it
/// stay: the rules of one direction look at the events of both, with periods of their own.
template <class Events, class Event>
void keep(Events& events, SimTime cutoff, const Event& event) {
  const auto old =
      std::find_if(events.rbegin(), events.rend(), [&](const Event& e) { return e.at < cutoff; });
  if (old != events.rend())
    *old = event;
  else
    events.push_back(event);
}

bool has_object_metric(const HpaSpec& spec) {
  return std::ranges::any_of(spec.metrics, [](const HpaMetricSpec& m) {
    return m.type == HpaMetricType::kObject || m.type == HpaMetricType::kExternal;
  });
}

}  // namespace

HpaRules default_scale_up_rules() {
  HpaRules rules;
  rules.stabilization_window_seconds = 0;
  rules.policies = {{HpaPolicyType::kPods, 4, 15}, {HpaPolicyType::kPercent, 100, 15}};
  return rules;
}

HpaRules default_scale_down_rules() {
  HpaRules rules;
  rules.policies = {{HpaPolicyType::kPercent, 100, 15}};
  return rules;
}

bool HpaController::is_within(double ratio) const {
  double up = flags_.tolerance, down = flags_.tolerance;
  if (spec_.behavior && flags_.configurable_tolerance) {
    up = spec_.behavior->scale_up.tolerance.value_or(up);
    down = spec_.behavior->scale_down.tolerance.value_or(down);
  }
  return 1.0 - down <= ratio && ratio <= 1.0 + up;
}

std::optional<std::int32_t> HpaController::by_pods(std::size_t metric,
                                                   const HpaInput& input) const {
  const HpaMetricSpec& spec = spec_.metrics[metric];
  const std::vector<std::optional<HpaSample>>& samples = input.readings[metric].per_pod;
  const bool is_resource = spec.type != HpaMetricType::kPods;
  if (input.pods.empty()) return std::nullopt;
  std::vector<PodGroup> groups;
  Usage usage(spec);
  for (std::size_t i = 0; i < input.pods.size(); ++i) {
    const HpaPod& pod = input.pods[i];
    if (spec.target_type == HpaTargetType::kUtilization && pod.request <= 0) return std::nullopt;
    groups.push_back(group_of(pod, samples[i], is_resource && spec.is_cpu, flags_, input.now));
    if (groups.back() == PodGroup::kReady) usage.add(samples[i]->value, pod);
  }
  if (!usage.has_ratio()) return std::nullopt;
  const double ratio = usage.ratio();
  const bool has_missing = std::ranges::count(groups, PodGroup::kMissing) > 0;
  const bool adds_unready = ratio > 1.0 && std::ranges::count(groups, PodGroup::kUnready) > 0;
  if (!adds_unready && !has_missing) {
    if (is_within(ratio)) return input.spec_replicas;
    return go_ceil(ratio * static_cast<double>(usage.count()));
  }
  // Pods without a sample slow the change down: they use nothing where the others ask for more
  // pods, and their target where the others ask for fewer.
  for (std::size_t i = 0; i < input.pods.size(); ++i) {
    const bool is_missing = groups[i] == PodGroup::kMissing;
    if (is_missing && ratio < 1.0) usage.add(stand_in(spec, input.pods[i]), input.pods[i]);
    const bool is_idle =
        (is_missing && ratio > 1.0) || (adds_unready && groups[i] == PodGroup::kUnready);
    if (is_idle) usage.add(0, input.pods[i]);
  }
  const double again = usage.ratio();
  if (is_within(again) || (ratio < 1.0 && again > 1.0) || (ratio > 1.0 && again < 1.0))
    return input.spec_replicas;
  const std::int32_t replicas = go_ceil(again * static_cast<double>(usage.count()));
  if ((again < 1.0 && replicas > input.spec_replicas) ||
      (again > 1.0 && replicas < input.spec_replicas))
    return input.spec_replicas;
  return replicas;
}

std::optional<std::int32_t> HpaController::by_total(std::size_t metric,
                                                    const HpaInput& input) const {
  const HpaMetricSpec& spec = spec_.metrics[metric];
  const auto total = static_cast<double>(input.readings[metric].total);
  const auto target = static_cast<double>(spec.target);
  const bool clamps = spec.type == HpaMetricType::kExternal;
  if (spec.target_type == HpaTargetType::kAverageValue) {
    // Without a pod the ratio is infinite or no number, and so outside.
    if (is_within(total / (target * static_cast<double>(input.status_replicas))))
      return input.status_replicas;
    const double replicas = std::ceil(total / target);
    return clamps && replicas > kMost ? kMost : go_int32(replicas);
  }
  const double ratio = total / target;
  if (input.spec_replicas == 0) return go_ceil(ratio);
  if (is_within(ratio)) return input.spec_replicas;
  if (input.pods.empty()) return std::nullopt;
  const auto ready = std::ranges::count_if(input.pods, [](const HpaPod& pod) {
    return pod.phase == HpaPodPhase::kRunning && pod.ready && pod.ready_changed;
  });
  const double replicas = ratio * static_cast<double>(ready);
  return replicas > kMost ? kMost : go_ceil(replicas);
}

std::optional<std::int32_t> HpaController::propose_one(std::size_t metric,
                                                       const HpaInput& input) const {
  if (input.readings[metric].failed) return std::nullopt;
  const HpaMetricType type = spec_.metrics[metric].type;
  const bool has_total = type == HpaMetricType::kObject || type == HpaMetricType::kExternal;
  return has_total ? by_total(metric, input) : by_pods(metric, input);
}

std::optional<std::int32_t> HpaController::propose(const HpaInput& input, HpaDecision& decision) {
  std::int32_t most = 0;
  std::optional<std::size_t> first_failed;
  std::size_t failures = 0;
  for (std::size_t i = 0; i < spec_.metrics.size(); ++i) {
    const std::optional<std::int32_t> one = propose_one(i, input);
    if (!one) {
      if (!first_failed) first_failed = i;
      ++failures;
    } else if (most == 0 || *one > most) {
      most = *one;
      decision.metric = i;
    }
  }
  // A metric that cannot be had might have asked for more, so nothing is taken away.
  if (failures >= spec_.metrics.size() || (failures > 0 && most < input.spec_replicas)) {
    active_ = {false, failed_reason(spec_.metrics[*first_failed].type)};
    decision.metric.reset();
    return std::nullopt;
  }
  active_ = {true, "ValidMetricFound"};
  return most;
}

std::int32_t HpaController::stabilize_by_rules(const HpaInput& input, std::int32_t desired) {
  const HpaBehavior& behavior = *spec_.behavior;
  const auto window = [](std::int32_t s) { return Duration::seconds(s); };
  const SimTime up_cutoff =
      input.now - window(behavior.scale_up.stabilization_window_seconds.value_or(0));
  const SimTime down_cutoff =
      input.now - (behavior.scale_down.stabilization_window_seconds
                       ? window(*behavior.scale_down.stabilization_window_seconds)
                       : flags_.downscale_stabilization);
  std::int32_t least = desired, most = desired;
  for (const Event& r : recommendations_) {
    if (r.at > up_cutoff) least = std::min(least, r.replicas);
    if (r.at > down_cutoff) most = std::max(most, r.replicas);
  }
  keep(recommendations_, std::min(up_cutoff, down_cutoff), Event{desired, input.now});
  std::int32_t stable = input.spec_replicas;
  if (stable < least) stable = least;
  if (stable > most) stable = most;
  able_ = stable == desired                ? HpaCondition{true, "ReadyForNewScale"}
          : desired >= input.spec_replicas ? HpaCondition{true, "ScaleUpStabilized"}
                                           : HpaCondition{true, "ScaleDownStabilized"};
  return stable;
}

std::int32_t HpaController::policy_limit(const HpaRules& rules, bool is_up,
                                         const HpaInput& input) const {
  if (rules.select == HpaSelect::kDisabled) return input.spec_replicas;
  // The largest change is the highest limit upwards and the lowest one downwards.
  const bool takes_most = (rules.select == HpaSelect::kMax) == is_up;
  std::int32_t result = takes_most ? kLeast : kMost;
  for (const HpaPolicy& policy : rules.policies) {
    const SimTime cutoff = input.now - Duration::seconds(policy.period_seconds);
    const std::int32_t start =
        input.spec_replicas - change_since(ups_, cutoff) + change_since(downs_, cutoff);
    const double share = static_cast<double>(policy.value) / 100;
    std::int32_t limit = is_up ? start + policy.value : start - policy.value;
    if (policy.type == HpaPolicyType::kPercent)
      limit = is_up ? go_ceil(static_cast<double>(start) * (1 + share))
                    : go_int32(static_cast<double>(start) * (1 - share));
    result = takes_most ? std::max(result, limit) : std::min(result, limit);
  }
  return result;
}

std::int32_t HpaController::normalize_by_rules(const HpaInput& input, std::int32_t desired) {
  const std::int32_t current = input.spec_replicas;
  const std::int32_t stable = stabilize_by_rules(input, desired);
  limited_ = {false, "DesiredWithinRange"};
  if (stable > current) {
    const std::int32_t most =
        std::max(current, policy_limit(spec_.behavior->scale_up, true, input));
    const bool too_fast = spec_.max_replicas > most;
    const std::int32_t allowed = std::min(spec_.max_replicas, most);
    if (stable <= allowed) return stable;
    limited_ = {true, too_fast ? "ScaleUpLimit" : "TooManyReplicas"};
    return allowed;
  }
  if (stable < current) {
    const std::int32_t least =
        std::min(current, policy_limit(spec_.behavior->scale_down, false, input));
    const bool too_fast = spec_.min_replicas < least;
    const std::int32_t allowed = std::max(spec_.min_replicas, least);
    if (stable >= allowed) return stable;
    limited_ = {true, too_fast ? "ScaleDownLimit" : "TooFewReplicas"};
    return allowed;
  }
  return stable;
}

std::int32_t HpaController::normalize(const HpaInput& input, std::int32_t desired) {
  const SimTime cutoff = input.now - flags_.downscale_stabilization;
  std::int32_t stable = desired;
  for (const Event& r : recommendations_)
    if (r.at >= cutoff) stable = std::max(stable, r.replicas);
  keep(recommendations_, cutoff, Event{desired, input.now});
  able_ = {true, stable != desired ? "ScaleDownStabilized" : "ReadyForNewScale"};
  // Without `behavior`, one sync at most doubles the pods, but four are always allowed.
  const std::int32_t most = go_int32(std::max(2.0 * static_cast<double>(input.spec_replicas), 4.0));
  limited_ = {true, "TooFewReplicas"};
  if (stable < spec_.min_replicas) return spec_.min_replicas;
  limited_ = {true, spec_.max_replicas > most ? "ScaleUpLimit" : "TooManyReplicas"};
  if (stable > std::min(spec_.max_replicas, most)) return std::min(spec_.max_replicas, most);
  limited_ = {false, "DesiredWithinRange"};
  return stable;
}

void HpaController::remember_scale(const HpaInput& input, std::int32_t desired) {
  scaled_to_zero_ = flags_.scale_to_zero && input.spec_replicas > 0 && desired == 0 &&
                    spec_.min_replicas == 0 && has_object_metric(spec_);
  able_ = {true, "SucceededRescale"};
  if (!spec_.behavior) return;
  const bool is_up = desired > input.spec_replicas;
  const HpaRules& rules = is_up ? spec_.behavior->scale_up : spec_.behavior->scale_down;
  keep(is_up ? ups_ : downs_, input.now - Duration::seconds(longest_period(rules)),
       Event{std::abs(desired - input.spec_replicas), input.now});
}

HpaDecision HpaController::sync(const HpaInput& input) {
  const std::int32_t current = input.spec_replicas;
  if (recommendations_.empty()) recommendations_.push_back({current, input.now});
  able_ = {true, "SucceededGetScale"};
  HpaDecision decision;
  decision.desired = decision.proposed = current;
  const bool was_scaled_to_zero = flags_.scale_to_zero && scaled_to_zero_;
  if (current == 0 &&
      !(was_scaled_to_zero && (spec_.min_replicas != 0 || has_object_metric(spec_)))) {
    active_ = {false, "ScalingDisabled"};
  } else if (current > spec_.max_replicas) {
    decision.desired = spec_.max_replicas;
  } else if (current != 0 && current < spec_.min_replicas) {
    decision.desired = spec_.min_replicas;
  } else if (const std::optional<std::int32_t> proposed = propose(input, decision)) {
    decision.proposed = std::max(0, *proposed);
    decision.desired = spec_.behavior ? normalize_by_rules(input, decision.proposed)
                                      : normalize(input, decision.proposed);
    if (current == 0 && was_scaled_to_zero)
      decision.desired = std::max(decision.desired, spec_.min_replicas);
  } else {
    decision.failed = true;
  }
  decision.rescaled = decision.desired != current;
  if (decision.rescaled) remember_scale(input, decision.desired);
  decision.able_to_scale = able_;
  decision.scaling_active = active_;
  decision.scaling_limited = limited_;
  return decision;
}

}  // namespace routesim::sim
