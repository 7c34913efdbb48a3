#include "sim/scaling/autoscaler_config.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace routesim::sim {

namespace {

constexpr IntRange kReplicas{0, 100'000};
constexpr IntRange kAtLeastOne{1, 100'000};
/// Above 0, and such that thousandths fit in the HPA's integers.
constexpr RealRange kTarget{.min = 0.001, .max = 1e12};
constexpr DurationRange kInterval{Duration::seconds(1), Duration::seconds(3600)};
constexpr DurationRange kPeriod{Duration::zero(), Duration::seconds(86'400)};

HpaTargetType target_type_of(ScalingTargetType type) {
  return type == ScalingTargetType::kValue ? HpaTargetType::kValue : HpaTargetType::kAverageValue;
}

/// Kubernetes' quantities round up to thousandths.
std::int64_t quantity_of(double value) {
  return static_cast<std::int64_t>(std::ceil(value * 1000 - 1e-6));
}

HpaRules rules_with(const std::optional<ScalingRulesConfig>& config, HpaRules rules) {
  if (!config) return rules;
  if (config->stabilization_window_seconds)
    rules.stabilization_window_seconds = config->stabilization_window_seconds;
  rules.select = config->select_policy;
  rules.tolerance = config->tolerance;
  if (config->policies.empty()) return rules;
  rules.policies.clear();
  for (const ScalingPolicyConfig& p : config->policies)
    rules.policies.push_back({p.type, p.value, p.period_seconds});
  return rules;
}

std::vector<std::string> names_of_rules(const AutoscalerConfig& config) {
  std::vector<std::string> names;
  for (const RecordingRuleConfig& rule : config.prometheus.recording_rules)
    names.push_back(rule.record);
  return names;
}

std::vector<std::string> names_of_triggers(const AutoscalerConfig& config) {
  std::vector<std::string> names;
  for (const KedaTriggerConfig& trigger : config.triggers) names.push_back(trigger.name);
  return names;
}

std::string item(std::string_view list, std::size_t i, std::string_view key) {
  std::string path(list);
  path += '[';
  path += std::to_string(i);
  path += "].";
  path += key;
  return path;
}

using Faults = std::vector<AutoscalerFault>;

void check_query(const std::string& text, const std::string& path,
                 const std::vector<std::string>& rules, Faults& faults) {
  const auto query = parse_promql(text, rules);
  if (const PromFault* fault = std::get_if<PromFault>(&query))
    faults.push_back({path, fault->message, fault->hint, fault->position});
}

void check_names(const std::vector<std::string>& names, std::string_view list, std::string_view key,
                 Faults& faults) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (!names[i].empty() &&
        std::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(i), names[i]) !=
            names.begin() + static_cast<std::ptrdiff_t>(i))
      faults.push_back({item(list, i, key), "`" + names[i] + "` stands twice"});
}

void check_hpa(const AutoscalerConfig& c, Faults& faults) {
  const std::pair<const char*, bool> keys[] = {
      {"min_replica_count", c.min_replica_count.has_value()},
      {"max_replica_count", c.max_replica_count.has_value()},
      {"idle_replica_count", c.idle_replica_count.has_value()},
      {"polling_interval", c.polling_interval.has_value()},
      {"cooldown_period", c.cooldown_period.has_value()},
      {"initial_cooldown_period", c.initial_cooldown_period.has_value()},
      {"triggers", !c.triggers.empty()},
      {"fallback", c.fallback.has_value()},
      {"scaling_modifiers", c.scaling_modifiers.has_value()},
      {"annotations", c.annotations.has_value()}};
  for (const auto& [key, is_set] : keys)
    if (is_set) faults.push_back({key, "this key is KEDA's", "write kind: keda"});
  if (!c.max_replicas) faults.push_back({"max_replicas", "max_replicas is missing"});
  if (c.max_replicas && c.min_replicas.value_or(1) > *c.max_replicas)
    faults.push_back({"max_replicas", "max_replicas is below min_replicas"});
  const bool has_total = std::ranges::any_of(
      c.metrics, [](const ScalingMetricConfig& m) { return m.type != ScalingMetricType::kPods; });
  if (c.min_replicas == 0 && c.controller.scale_to_zero && !c.metrics.empty() && !has_total)
    faults.push_back({"min_replicas", "0 needs a metric of type object or external"});
  if (c.min_replicas == 0 && !c.controller.scale_to_zero)
    faults.push_back({"min_replicas",
                      "a HorizontalPodAutoscaler needs the gate HPAScaleToZero for 0",
                      "set 1 or more, scale by KEDA, or write the autoscaler into the scenario, "
                      "with controller.scale_to_zero: true"});
  if (c.metrics.empty())
    faults.push_back({"metrics", "without metrics Kubernetes scales by CPU, which is not simulated",
                      "add a metric with a `query`"});
  for (std::size_t i = 0; i < c.metrics.size(); ++i)
    if (c.metrics[i].type == ScalingMetricType::kPods &&
        c.metrics[i].target_type == ScalingTargetType::kValue)
      faults.push_back(
          {item("metrics", i, "target_type"), "metrics of pods have an average_value"});
}

void check_modifiers(const AutoscalerConfig& c, Faults& faults) {
  const std::vector<std::string> names = names_of_triggers(c);
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i].empty())
      faults.push_back({item("triggers", i, "name"), "scaling_modifiers need a name here"});
  const auto formula = parse_formula(c.scaling_modifiers->formula, names);
  if (const FormulaFault* fault = std::get_if<FormulaFault>(&formula))
    faults.push_back({"scaling_modifiers.formula", fault->message, fault->hint, fault->position});
}

void check_keda(const AutoscalerConfig& c, Faults& faults) {
  const std::pair<const char*, bool> keys[] = {{"min_replicas", c.min_replicas.has_value()},
                                               {"max_replicas", c.max_replicas.has_value()},
                                               {"metrics", !c.metrics.empty()}};
  for (const auto& [key, is_set] : keys)
    if (is_set)
      faults.push_back({key, "this key is a HorizontalPodAutoscaler's",
                        "KEDA has min_replica_count, max_replica_count and triggers"});
  if (c.triggers.empty()) faults.push_back({"triggers", "triggers are missing"});
  // CheckReplicaCountBoundsAreValid of KEDA's webhook.
  if (least_replicas(c) > most_replicas(c))
    faults.push_back({"max_replica_count", "max_replica_count is below min_replica_count"});
  if (c.idle_replica_count && *c.idle_replica_count >= least_replicas(c))
    faults.push_back({"idle_replica_count", "idle_replica_count is not below min_replica_count"});
  if (c.scaling_modifiers) check_modifiers(c, faults);
  if (c.fallback && c.fallback->behavior == KedaFallbackBehavior::kScalingModifiers &&
      !c.scaling_modifiers)
    faults.push_back({"fallback.behavior", "scaling_modifiers are missing"});
}

}  // namespace

std::int32_t least_replicas(const AutoscalerConfig& c) {
  return c.kind == AutoscalerKind::kKeda ? c.min_replica_count.value_or(0)
                                         : c.min_replicas.value_or(1);
}

std::int32_t most_replicas(const AutoscalerConfig& c) {
  return c.kind == AutoscalerKind::kKeda ? c.max_replica_count.value_or(100)
                                         : c.max_replicas.value_or(1);
}

std::vector<AutoscalerFault> autoscaler_faults(const AutoscalerConfig& c) {
  Faults faults;
  if (c.kind == AutoscalerKind::kKeda) {
    check_keda(c, faults);
  } else {
    check_hpa(c, faults);
  }
  const std::vector<std::string> rules = names_of_rules(c);
  for (std::size_t i = 0; i < c.metrics.size(); ++i)
    check_query(c.metrics[i].query, item("metrics", i, "query"), rules, faults);
  for (std::size_t i = 0; i < c.triggers.size(); ++i)
    check_query(c.triggers[i].query, item("triggers", i, "query"), rules, faults);
  for (std::size_t i = 0; i < rules.size(); ++i)
    check_query(c.prometheus.recording_rules[i].expr, item("prometheus.recording_rules", i, "expr"),
                rules, faults);
  check_names(rules, "prometheus.recording_rules", "record", faults);
  check_names(names_of_triggers(c), "triggers", "name", faults);
  return faults;
}

AutoscalerPlan autoscaler_plan(const AutoscalerConfig& c) {
  AutoscalerPlan plan;
  const std::vector<std::string> rules = names_of_rules(c);
  const auto query = [&](const std::string& text) {
    return std::get<PromQuery>(parse_promql(text, rules, c.exporters));
  };
  std::optional<HpaBehavior> behavior;
  if (c.behavior)
    behavior = {rules_with(c.behavior->scale_up, default_scale_up_rules()),
                rules_with(c.behavior->scale_down, default_scale_down_rules())};
  for (const RecordingRuleConfig& rule : c.prometheus.recording_rules)
    plan.rules.push_back(query(rule.expr));
  if (c.kind == AutoscalerKind::kHpa) {
    plan.hpa = {least_replicas(c), most_replicas(c), {}, behavior};
    for (const ScalingMetricConfig& m : c.metrics) {
      const HpaMetricType type = m.type == ScalingMetricType::kPods     ? HpaMetricType::kPods
                                 : m.type == ScalingMetricType::kObject ? HpaMetricType::kObject
                                                                        : HpaMetricType::kExternal;
      plan.hpa.metrics.push_back(
          {type, target_type_of(m.target_type), quantity_of(m.target), false});
      plan.queries.push_back(query(m.query));
    }
    return plan;
  }
  KedaSpec& keda = plan.keda.emplace();
  const auto seconds = [](Duration d) { return static_cast<std::int32_t>(d.to_seconds()); };
  keda.initial_cooldown_seconds = seconds(c.initial_cooldown_period.value_or(Duration::zero()));
  keda.cooldown_seconds = seconds(c.cooldown_period.value_or(Duration::seconds(300)));
  keda.idle_replicas = c.idle_replica_count;
  keda.min_replicas = least_replicas(c);
  keda.max_replicas = most_replicas(c);
  for (const KedaTriggerConfig& t : c.triggers) {
    keda.triggers.push_back({target_type_of(t.metric_type), t.threshold, t.activation_threshold});
    plan.queries.push_back(query(t.query));
  }
  if (c.fallback)
    keda.fallback = {c.fallback->failure_threshold, c.fallback->replicas, c.fallback->behavior};
  if (const std::optional<ScalingModifiersConfig>& m = c.scaling_modifiers)
    keda.modifiers = {std::get<Formula>(parse_formula(m->formula, names_of_triggers(c))), m->target,
                      m->activation_target, target_type_of(m->metric_type)};
  keda.behavior = behavior;
  if (const std::optional<KedaAnnotationsConfig>& a = c.annotations)
    keda.annotations = {a->paused, a->paused_replicas, a->paused_scale_in, a->paused_scale_out,
                        a->force_activation};
  plan.hpa = hpa_of(keda);
  return plan;
}

namespace {

/// The words that the queries of an autoscaler keep in `which`, each once.
std::vector<std::string> words_of(const AutoscalerConfig& config,
                                  std::vector<std::string> PromQuery::*which) {
  std::vector<std::string> all;
  const AutoscalerPlan plan = autoscaler_plan(config);
  for (const std::vector<PromQuery>* queries : {&plan.queries, &plan.rules})
    for (const PromQuery& query : *queries)
      for (const std::string& word : query.*which)
        if (std::ranges::find(all, word) == all.end()) all.push_back(word);
  return all;
}

}  // namespace

std::vector<std::string> unused_matchers(const AutoscalerConfig& config) {
  return words_of(config, &PromQuery::matchers);
}

std::vector<std::string> missing_series(const AutoscalerConfig& config) {
  return words_of(config, &PromQuery::missing);
}

void describe(Describer& d, ScalingPolicyConfig& c) {
  field(d, {"type", "What the value counts: pods, or percent of the replicas."}, c.type);
  field(d, {"value", "The largest change in a period."}, c.value, IntRange{1, 1'000'000});
  field(d, {"period_seconds", "Seconds over which changes are added up."}, c.period_seconds,
        IntRange{1, 1800});
}

void describe(Describer& d, ScalingRulesConfig& c) {
  field(d,
        {"stabilization_window_seconds",
         "Seconds whose most careful recommendation counts. By default 0 up and "
         "controller.downscale_stabilization down."},
        c.stabilization_window_seconds, IntRange{0, 3600});
  field(d, {"select_policy", "The policy that counts: the largest change, the smallest, or none."},
        c.select_policy);
  field(d,
        {"policies",
         "Limits of changes. By default 4 pods or 100 percent in 15 s up, 100 percent "
         "in 15 s down."},
        c.policies);
  field(d,
        {"tolerance",
         "Deviations from the target up to this share change nothing. By default "
         "controller.tolerance."},
        c.tolerance, RealRange{.min = 0, .max = 100});
}

void describe(Describer& d, ScalingBehaviorConfig& c) {
  field(d, {"scale_up", "Rules for more replicas."}, c.scale_up);
  field(d, {"scale_down", "Rules for fewer replicas."}, c.scale_down);
}

void describe(Describer& d, ScalingMetricConfig& c) {
  field(d, {"type", "Metrics of pods are averaged over them; object and external are totals."},
        c.type);
  field(d, {.name = "query", .doc = "PromQL, as the metrics adapter asks it.", .required = true},
        c.query);
  field(d, {"target_type", "average_value: the target of one replica; value: of the whole."},
        c.target_type);
  field(d, {.name = "target", .doc = "The target, in the query's unit.", .required = true},
        c.target, kTarget);
}

void describe(Describer& d, KedaTriggerConfig& c) {
  field(d, {"name", "The trigger's name in scaling_modifiers.formula."}, c.name);
  field(d, {.name = "query", .doc = "PromQL that gives one element.", .required = true}, c.query);
  field(d, {"threshold", "The target, in the query's unit."}, c.threshold, kTarget);
  field(d, {"activation_threshold", "Above this the trigger is active: zero replicas become one."},
        c.activation_threshold);
  field(d, {"metric_type", "average_value: the target of one replica; value: of the whole."},
        c.metric_type);
  field(d, {"ignore_null_values", "An empty result counts as 0. Otherwise it is an error."},
        c.ignore_null_values);
  field(d, {"use_cached_metrics", "The HPA reads what the last poll saw, and does not ask again."},
        c.use_cached_metrics);
}

void describe(Describer& d, KedaFallbackConfig& c) {
  // KEDA's CRD requires both, as its webhook does the target of a formula.
  field(d,
        {.name = "failure_threshold",
         .doc = "Failed queries in a row before the fallback.",
         .required = true},
        c.failure_threshold, IntRange{0, 1'000'000});
  field(d, {.name = "replicas", .doc = "Replicas of the fallback.", .required = true}, c.replicas,
        kReplicas);
  field(d, {"behavior", "Which of `replicas` and the present ones count."}, c.behavior);
}

void describe(Describer& d, ScalingModifiersConfig& c) {
  field(d,
        {.name = "formula",
         .doc = "Makes one metric of the triggers, by their names: let, ?:, ??, comparisons, "
                "arithmetic, min, max, abs, ceil, floor, round and float of expr-lang.",
         .required = true},
        c.formula);
  field(d, {.name = "target", .doc = "The formula's target.", .required = true}, c.target, kTarget);
  field(d, {"activation_target", "Above this the formula is active."}, c.activation_target);
  field(d, {"metric_type", "average_value: the target of one replica; value: of the whole."},
        c.metric_type);
}

void describe(Describer& d, KedaAnnotationsConfig& c) {
  field(d, {"paused", "autoscaling.keda.sh/paused: nothing is scaled."}, c.paused);
  field(d, {"paused_replicas", "autoscaling.keda.sh/paused-replicas: paused at this number."},
        c.paused_replicas, kReplicas);
  field(d, {"paused_scale_in", "autoscaling.keda.sh/paused-scale-in: never fewer."},
        c.paused_scale_in);
  field(d, {"paused_scale_out", "autoscaling.keda.sh/paused-scale-out: never more."},
        c.paused_scale_out);
  field(d, {"force_activation", "autoscaling.keda.sh/force-activation: always active."},
        c.force_activation);
}

void describe(Describer& d, RecordingRuleConfig& c) {
  field(d, {.name = "record", .doc = "The name that queries use.", .required = true}, c.record);
  field(d, {.name = "expr", .doc = "PromQL.", .required = true}, c.expr);
}

void describe(Describer& d, PrometheusConfig& c) {
  field(d, {"scrape_interval", "Time between two scrapes of a server or of the router."},
        c.scrape_interval, kInterval);
  field(d, {"evaluation_interval", "Time between two evaluations of the recording rules."},
        c.evaluation_interval, kInterval);
  field(d, {"recording_rules", "Queries with names, evaluated in order."}, c.recording_rules);
}

void describe(Describer& d, HpaControllerConfig& c) {
  field(d, {"sync_period", "--horizontal-pod-autoscaler-sync-period."}, c.sync_period, kInterval);
  field(d, {"downscale_stabilization", "--horizontal-pod-autoscaler-downscale-stabilization."},
        c.downscale_stabilization, kPeriod);
  field(d, {"tolerance", "--horizontal-pod-autoscaler-tolerance."}, c.tolerance,
        RealRange{.min = 0, .max = 100});
  field(d,
        {"scale_to_zero",
         "Gate HPAScaleToZero, as Kubernetes 1.36 has it: the HPA wakes what it put to sleep."},
        c.scale_to_zero);
}

void describe(Describer& d, AutoscalerConfig& c) {
  field(d, {"kind", "hpa: a HorizontalPodAutoscaler; keda: a ScaledObject."}, c.kind);
  field(d, {"min_replicas", "Least replicas of an hpa; by default 1."}, c.min_replicas, kReplicas);
  field(d, {"max_replicas", "Most replicas of an hpa."}, c.max_replicas, kAtLeastOne);
  field(d, {"metrics", "Metrics of an hpa; the one that asks for the most decides."}, c.metrics);
  field(d, {"min_replica_count", "Least replicas under keda; by default 0."}, c.min_replica_count,
        kReplicas);
  field(d, {"max_replica_count", "Most replicas under keda; by default 100."}, c.max_replica_count,
        kAtLeastOne);
  field(d, {"idle_replica_count", "Replicas under keda while no trigger is active."},
        c.idle_replica_count, kReplicas);
  field(d, {"polling_interval", "Time between two rounds of keda's operator; by default 30 s."},
        c.polling_interval, kInterval);
  field(d, {"cooldown_period", "Time without an active trigger before zero; by default 300 s."},
        c.cooldown_period, kPeriod);
  field(d, {"initial_cooldown_period", "The same before the first active trigger; by default 0."},
        c.initial_cooldown_period, kPeriod);
  field(d, {"triggers", "Prometheus triggers of keda."}, c.triggers);
  field(d, {"fallback", "Replicas while keda's queries fail."}, c.fallback);
  field(d, {"scaling_modifiers", "A formula in place of the triggers."}, c.scaling_modifiers);
  field(d, {"annotations", "Annotations of the ScaledObject."}, c.annotations);
  field(d, {"behavior", "Windows and limits of changes. Absent is not the same as its defaults."},
        c.behavior);
  field(d, {"prometheus", "The Prometheus that is asked."}, c.prometheus);
  field(d, {"controller", "Flags of kube-controller-manager."}, c.controller);
}

}  // namespace routesim::sim
