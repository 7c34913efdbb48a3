#include "tools/ingest/scalers/autoscaler_yaml.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tools/ingest/tree/ledger.h"
#include "tools/ingest/tree/parse_config.h"

namespace routesim::tools {
namespace {

struct Read {
  std::vector<ScalerObject> objects;
  std::vector<std::optional<sim::AutoscalerConfig>> configs;
  Diagnostics diagnostics;
  std::string messages() const {
    std::string text;
    for (const Diagnostic& d : diagnostics.items()) text += to_string(d) + "\n";
    return text;
  }
};

Read read_manifest(const std::string& text) {
  Read read;
  const ConfigNode::Ptr root = parse_manifest(text, {.file = "f.yaml"}, read.diagnostics);
  if (root == nullptr) return read;
  read.objects = scalers_in_tree(root, "autoscaler", read.diagnostics);
  for (const ScalerObject& object : read.objects)
    read.configs.push_back(read_autoscaler(*object.autoscaler, "autoscaler", read.diagnostics));
  return read;
}

TEST(AutoscalerYaml, ReadsAHorizontalPodAutoscaler) {
  const Read read = read_manifest(R"(apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: decode-hpa}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: decode}
  minReplicas: 2
  maxReplicas: 8
  behavior:
    scaleUp:
      stabilizationWindowSeconds: 120
      selectPolicy: Min
      tolerance: 50m
      policies:
        - {type: Percent, value: 100, periodSeconds: 15}
    scaleDown:
      stabilizationWindowSeconds: 0
  metrics:
    - type: Pods
      pods:
        metric: {name: vllm_num_requests_waiting}
        target: {type: AverageValue, averageValue: 2500m}
    - type: External
      external:
        metric:
          name: inference_pool_average_kv_cache_utilization
          selector: {matchLabels: {name: pool}}
        target: {value: "0.8"}
)");
  EXPECT_EQ(read.messages(), "");
  ASSERT_EQ(read.objects.size(), 1U);
  EXPECT_EQ(read.objects[0].target, "decode");
  EXPECT_EQ(read.objects[0].name, "decode-hpa");
  ASSERT_TRUE(read.configs[0]);
  const sim::AutoscalerConfig& c = *read.configs[0];
  EXPECT_EQ(c.kind, sim::AutoscalerKind::kHpa);
  EXPECT_EQ(c.min_replicas, 2);
  EXPECT_EQ(c.max_replicas, 8);
  ASSERT_EQ(c.metrics.size(), 2U);
  EXPECT_EQ(c.metrics[0].type, sim::ScalingMetricType::kPods);
  EXPECT_EQ(c.metrics[0].query, "vllm:num_requests_waiting");
  EXPECT_EQ(c.metrics[0].target, 2.5);
  EXPECT_EQ(c.metrics[1].query, "sum(inference_pool_average_kv_cache_utilization)");
  EXPECT_EQ(c.metrics[1].target_type, sim::ScalingTargetType::kValue);
  EXPECT_EQ(c.metrics[1].target, 0.8);
  ASSERT_TRUE(c.behavior && c.behavior->scale_up && c.behavior->scale_down);
  EXPECT_EQ(c.behavior->scale_up->stabilization_window_seconds, 120);
  EXPECT_EQ(c.behavior->scale_up->select_policy, sim::HpaSelect::kMin);
  EXPECT_EQ(c.behavior->scale_up->tolerance, 0.05);
  ASSERT_EQ(c.behavior->scale_up->policies.size(), 1U);
  EXPECT_EQ(c.behavior->scale_up->policies[0].type, sim::HpaPolicyType::kPercent);
  const sim::AutoscalerPlan plan = sim::autoscaler_plan(c);
  EXPECT_EQ(plan.hpa.metrics[0].target, 2500);
  EXPECT_EQ(plan.hpa.behavior->scale_down.policies[0].value, 100);
}

constexpr const char* kAdaptedHpa = R"(apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
spec:
  scaleTargetRef: {kind: Deployment, name: vllm}
  maxReplicas: 3
  metrics:
  - type: External
    external: {metric: {name: igw_queue_depth}, target: {type: Value, value: "250"}}
  - type: Pods
    pods: {metric: {name: kv_usage}, target: {type: AverageValue, averageValue: 800m}}
)";
constexpr const char* kExternalRule = R"(
  - seriesQuery: 'inference_extension_flow_control_queue_size{inference_pool!=""}'
    name: {as: igw_queue_depth}
    metricsQuery: 'sum(<<.Series>>{<<.LabelMatchers>>}) by (namespace)'
)";
constexpr const char* kPodsRule = R"(
  - seriesQuery: '{__name__="vllm:kv_cache_usage_perc"}'
    name: {as: kv_usage}
    metricsQuery: 'max by (<<.GroupBy>>) (max_over_time(<<.Series>>{<<.LabelMatchers>>}[1m]))'
)";

void expect_adapted(const std::vector<ScalerObject>& objects, Diagnostics& diagnostics) {
  ASSERT_EQ(objects.size(), 1U);
  const auto config = read_autoscaler(*objects[0].autoscaler, "autoscaler", diagnostics);
  ASSERT_TRUE(config) << to_string(diagnostics.items().at(0));
  EXPECT_TRUE(diagnostics.items().empty());
  EXPECT_EQ(config->metrics[0].query,
            "sum(inference_extension_flow_control_queue_size{}) by (namespace)");
  EXPECT_EQ(config->metrics[1].query,
            "max by (pod) (max_over_time(vllm:kv_cache_usage_perc{}[1m]))");
  EXPECT_EQ(config->metrics[1].target, 0.8);
}

TEST(AutoscalerYaml, TakesQueriesFromTheAdaptersRules) {
  Diagnostics d;
  const auto parsed = [&](const std::string& text) {
    return parse_manifest(text, {.file = "f.yaml"}, d);
  };
  const std::string values =
      std::string("rules:\n  external:") + kExternalRule + "  custom:" + kPodsRule;
  expect_adapted(scalers_in_tree(parsed(kAdaptedHpa), "autoscaler", d, parsed(values)), d);
  std::string map = "apiVersion: v1\nkind: ConfigMap\ndata:\n  config.yaml: |\n";
  for (const char c : std::string("externalRules:") + kExternalRule + "rules:" + kPodsRule) {
    if (map.back() == '\n') map += "    ";
    map += c;
  }
  expect_adapted(scalers_in_tree(parsed(map + "---\n" + kAdaptedHpa), "autoscaler", d), d);
  // Without them nobody knows what the metric is.
  EXPECT_NE(read_manifest(kAdaptedHpa).messages().find("metric `igw_queue_depth` is not simulated"),
            std::string::npos);
}

/// The query of `metric` by a rule of prometheus-adapter, or what is said.
std::string adapted(const std::string& metric, const std::string& rule) {
  Diagnostics d;
  const auto parsed = [&](const std::string& text) {
    return parse_manifest(text, {.file = "f.yaml"}, d);
  };
  const ConfigNode::Ptr hpa = parsed(
      "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nspec:\n  maxReplicas: 3\n"
      "  metrics: [{type: Pods, pods: {metric: {name: " +
      metric + "}, target: {averageValue: 2}}}]\n");
  const std::vector<ScalerObject> objects =
      scalers_in_tree(hpa, "autoscaler", d, parsed("rules:\n- " + rule));
  if (!d.items().empty()) return to_string(d.items().front());
  const auto config = read_autoscaler(*objects.at(0).autoscaler, "autoscaler", d);
  return config ? config->metrics.at(0).query : to_string(d.items().front());
}

// docs/config.md of prometheus-adapter, with metrics of vLLM; metric_namer.go for the defaults.
TEST(AutoscalerYaml, TheAdaptersRulesMayBeExpressions) {
  const std::string mean =
      ", metricsQuery: 'avg_over_time(<<.Series>>{<<.LabelMatchers>>}[10m])'}\n";
  const std::string any = "{seriesQuery: '{__name__=~\"^vllm:num_requests_.*\",pod!=\"\"}'";
  const std::string waiting = "avg_over_time(vllm:num_requests_waiting{}[10m])";
  EXPECT_EQ(adapted("vllm_num_requests_waiting",
                    any + ", name: {matches: '^vllm:(.*)$', as: 'vllm_${1}'}" + mean),
            waiting);
  EXPECT_EQ(adapted("num_requests_running", any + ", name: {matches: '^vllm:(.*)$'}" + mean),
            "avg_over_time(vllm:num_requests_running{}[10m])")
      << "one group is the name";
  EXPECT_EQ(adapted("'vllm:num_requests_waiting'", any + mean), waiting);
  EXPECT_EQ(adapted("queue", any + ", name: {matches: 'waiting$', as: queue}" + mean), waiting);
  EXPECT_EQ(adapted("num_waiting",
                    any + ", name: {matches: '(num)_requests', as: '$_${1}_waiting$1x'}" + mean),
            waiting)
      << "groups called _ and 1x are empty";
  EXPECT_EQ(adapted("queue",
                    "{seriesQuery: '{__name__=~\"vllm:num_.*\"}', seriesFilters: [{isNot: "
                    "_running$}, {is: requests}], name: {as: queue}" +
                        mean),
            waiting);
  // Prometheus anchors expressions, and the adapter's filters are not.
  EXPECT_EQ(adapted("queue",
                    "{seriesQuery: '{__name__=~\"num_requests_waiting\"}', name: {as: "
                    "queue}" +
                        mean)
                .substr(0, 63),
            "f.yaml:5:48: error: autoscaler: metric `queue` is not simulated");
  EXPECT_EQ(adapted("ttft",
                    "{seriesQuery: '{__name__=~\"vllm:time_to_first_token_seconds_(sum|count)\"}', "
                    "name: {matches: '_sum$', as: ttft}, metricsQuery: 'sum(rate(<< .Series >>{<< "
                    ".LabelMatchers >>, container!=\"POD\"}[2m])) by (<<.GroupBy>>)'}\n"),
            "sum(rate(vllm:time_to_first_token_seconds_sum{ container!=\"POD\"}[2m])) by (pod)");
  for (const char* name : {"{matches: '(vllm|sglang):(.*)'}", "{matches: '(?P<x>a)', as: $x}",
                           "{matches: '[', as: x}", "{matches: 'a{2}', as: x}"})
    EXPECT_EQ(adapted("vllm_num_requests_waiting", any + ", name: " + name + mean).substr(0, 66),
              "f.yaml:2:3: warning: autoscaler: prometheus-adapter's rule is not ")
        << name;
}

constexpr const char* kScaledObject = R"(apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata: {name: rules}
spec:
  groups:
  - name: g
    interval: 15s
    rules:
    - record: epp:raw
      expr: >-
        (histogram_quantile(0.9, sum(rate(llm_d_epp_request_ttft_seconds_bucket[1m])) by (le))
        >= 0) or vector(0)
    - alert: TooSlow
      expr: anything(at, all)
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  name: decode
  annotations: {autoscaling.keda.sh/paused-scale-in: "true", other: "1"}
spec:
  scaleTargetRef: {name: decode-deployment}
  pollingInterval: 15
  cooldownPeriod: 60
  minReplicaCount: 3
  maxReplicaCount: 8
  fallback: {failureThreshold: 3, replicas: 1, behavior: currentReplicasIfHigher}
  advanced:
    restoreToOriginalReplicaCount: false
    horizontalPodAutoscalerConfig:
      name: keda-hpa
      behavior:
        scaleDown: {stabilizationWindowSeconds: 180,
                    policies: [{type: Pods, value: 1, periodSeconds: 120}]}
    scalingModifiers:
      target: "1"
      metricType: AverageValue
      activationTarget: "0.5"
      formula: "signal > 1 ? queue : signal"
  triggers:
  - type: prometheus
    name: signal
    metadata: {serverAddress: "http://p:9090", query: "epp:raw", threshold: "1"}
  - type: prometheus
    name: queue
    metricType: Value
    useCachedMetrics: true
    authenticationRef: {name: auth}
    metadata:
      serverAddress: http://p:9090
      query: |
        sum(llm_d_epp_flow_control_queue_size{namespace="n"}) or
          vector(0)
      threshold: '16'
      activationThreshold: '2'
      ignoreNullValues: "false"
)";

TEST(AutoscalerYaml, ReadsAScaledObjectWithItsRules) {
  const Read read = read_manifest(kScaledObject);
  EXPECT_EQ(
      read.messages(),
      "f.yaml:22:3: warning: autoscaler: labels select nothing here, since all series are the "
      "pool's own: namespace=\"n\"\n");
  ASSERT_EQ(read.objects.size(), 1U);
  EXPECT_EQ(read.objects[0].kind, "ScaledObject");
  EXPECT_EQ(read.objects[0].target, "decode-deployment");
  ASSERT_TRUE(read.configs[0]);
  const sim::AutoscalerConfig& c = *read.configs[0];
  EXPECT_EQ(c.kind, sim::AutoscalerKind::kKeda);
  EXPECT_EQ(c.polling_interval, Duration::seconds(15));
  EXPECT_EQ(c.cooldown_period, Duration::seconds(60));
  EXPECT_EQ(c.min_replica_count, 3);
  EXPECT_EQ(c.fallback->behavior, sim::KedaFallbackBehavior::kCurrentReplicasIfHigher);
  ASSERT_TRUE(c.annotations);
  EXPECT_TRUE(c.annotations->paused_scale_in);
  EXPECT_FALSE(c.annotations->paused);
  ASSERT_EQ(c.triggers.size(), 2U);
  EXPECT_EQ(c.triggers[1].metric_type, sim::ScalingTargetType::kValue);
  EXPECT_TRUE(c.triggers[1].use_cached_metrics);
  EXPECT_FALSE(c.triggers[1].ignore_null_values);
  EXPECT_EQ(c.triggers[1].threshold, 16);
  EXPECT_EQ(c.triggers[1].activation_threshold, 2);
  EXPECT_EQ(c.scaling_modifiers->activation_target, 0.5);
  ASSERT_EQ(c.prometheus.recording_rules.size(), 1U);
  EXPECT_EQ(c.prometheus.recording_rules[0].record, "epp:raw");
  const sim::AutoscalerPlan plan = sim::autoscaler_plan(c);
  EXPECT_EQ(plan.hpa.behavior->scale_down.select, sim::HpaSelect::kDisabled);
  std::size_t ignored = 0;
  for (const KeyUse& use : ledger(read.diagnostics)) ignored += use.fate == Fate::kNoEffect;
  EXPECT_EQ(ignored, 5U);  // serverAddress twice, restore..., the HPA's name, authenticationRef.
}

std::string with(const std::string& from, const std::string& to) {
  std::string text = kScaledObject;
  text.replace(text.find(from), from.size(), to);
  return read_manifest(text).messages();
}

TEST(AutoscalerYaml, PlacesFaults) {
  // In a literal block, by line and column.
  EXPECT_EQ(
      with("          vector(0)\n", "          vektor(0)\n").substr(0, 113),
      "f.yaml:53:11: error: autoscaler.triggers[1].query: function `vektor` is not simulated\n"
      "  hint: did you mean vector");
  // In quotes, by column.
  EXPECT_EQ(
      with("? queue :", "? que :"),
      "f.yaml:39:30: error: autoscaler.scaling_modifiers.formula: `que` is no trigger's name\n"
      "  hint: did you mean queue?\n");
  EXPECT_EQ(with("cooldownPeriod", "coolDownPeriod").substr(0, 98),
            "f.yaml:24:3: error: autoscaler: unknown key `coolDownPeriod`\n"
            "  hint: did you mean cooldownPeriod?\n");
  EXPECT_EQ(with("type: prometheus\n    name: queue", "type: cron\n    name: queue").substr(0, 70),
            "f.yaml:44:5: error: autoscaler: trigger type `cron` is not simulated\n ");
  EXPECT_EQ(with("minReplicaCount: 3", "minReplicaCount: three").substr(0, 60),
            "f.yaml:25:20: error: autoscaler.min_replica_count: must be a");
  EXPECT_EQ(with("minReplicaCount: 3", "minReplicaCount: 9"),
            "f.yaml:26:20: error: autoscaler.max_replica_count: max_replica_count is below "
            "min_replica_count\n");
}

std::string hpa_messages(const std::string& spec) {
  return read_manifest("apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nspec:\n" + spec)
      .messages();
}

TEST(AutoscalerYaml, RefusesWhatIsNotSimulated) {
  EXPECT_EQ(
      hpa_messages("  maxReplicas: 3\n  targetCPUUtilizationPercentage: 80\n").substr(0, 94),
      "f.yaml:5:35: error: autoscaler: CPU of model servers is not simulated\n  hint: scale by "
      "waiting");
  EXPECT_EQ(
      hpa_messages("  maxReplicas: 3\n  metrics:\n  - type: External\n    external:\n      metric: "
                   "{name: wva_desired_replicas}\n      target: {averageValue: 1}\n")
          .substr(0, 76),
      "f.yaml:8:22: error: autoscaler: metric `wva_desired_replicas` is not simulat");
  EXPECT_EQ(hpa_messages("  maxReplicas: 3\n  metrics:\n  - type: Pods\n    pods:\n      metric: "
                         "{name: vllm_num_requests_waiting}\n      target: {averageValue: much}\n"),
            "f.yaml:9:30: error: autoscaler: averageValue must be a quantity (got much)\n"
            "  hint: write 5, 0.8 or 800m\n"
            "f.yaml:6:5: error: autoscaler.metrics[0].target: is missing\n"
            "  hint: The target, in the query's unit.\n");
  // CPU beside another metric is a warning.
  EXPECT_EQ(
      hpa_messages("  maxReplicas: 3\n  metrics:\n  - type: Resource\n    resource: {}\n"
                   "  - type: Pods\n    pods:\n      metric: {name: vllm_num_requests_waiting}"
                   "\n      target: {averageValue: 4}\n")
          .substr(0, 60),
      "f.yaml:6:5: warning: autoscaler: is not modelled: CPU and me");
}

/// The target of an HPA's metric of type `type`, as `kind:number`, or what is wrong with it.
std::string target_of(const std::string& type, const std::string& target) {
  const std::string key = type == "External" ? "external" : type == "Pods" ? "pods" : "object";
  const Read read = read_manifest(
      "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nspec:\n  maxReplicas: 3\n"
      "  metrics:\n  - {type: " +
      type + ", " + key + ": {metric: {name: vllm_num_requests_waiting}, target: {" + target +
      "}}}\n");
  if (read.diagnostics.has_errors()) return read.messages();
  const sim::ScalingMetricConfig& m = read.configs[0]->metrics.at(0);
  return std::string(enum_name(m.target_type)) + ":" + std::to_string(std::lround(m.target));
}

// horizontal.go looks at the type of an object's target only; validation.go allows one key of an
// external one.
TEST(AutoscalerYaml, TheTargetIsTheOneThatTheControllerReads) {
  EXPECT_EQ(target_of("External", "type: Value, averageValue: 3"), "average_value:3");
  EXPECT_EQ(target_of("External", "type: AverageValue, value: 4"), "value:4");
  EXPECT_EQ(target_of("Pods", "type: Value, averageValue: 3, value: 9"), "average_value:3");
  EXPECT_EQ(target_of("Object", "type: Value, averageValue: 3, value: 9"), "value:9");
  EXPECT_EQ(target_of("Object", "type: AverageValue, averageValue: 3, value: 9"),
            "average_value:3");
  EXPECT_NE(target_of("External", "type: Value, averageValue: 3, value: 3")
                .find("may not set both a target value for metric and a per-pod target"),
            std::string::npos);
  EXPECT_NE(target_of("Object", "type: Value, averageValue: 3").find("target: is missing"),
            std::string::npos);
  EXPECT_NE(target_of("Object", "type: Utilization, value: 3").find("is not possible here"),
            std::string::npos);
}

// prometheus_scaler.go: a trigger without them is an error.
TEST(AutoscalerYaml, TriggersNeedAThreshold) {
  EXPECT_NE(with("      threshold: '16'\n", "").find("`threshold` is missing"), std::string::npos);
  EXPECT_EQ(with("serverAddress:", "cortexOrgID:").find("is missing"), std::string::npos);
}

// CheckFallbackValid, ValidateAndCompileScalingModifiers and the CRD of KEDA 2.21.
TEST(AutoscalerYaml, RefusesWhatKedaRefuses) {
  EXPECT_EQ(with("      target: \"1\"\n", "").substr(0, 68),
            "f.yaml:36:7: error: autoscaler.scaling_modifiers.target: is missing\n");
  EXPECT_EQ(with("failureThreshold: 3, ", "").substr(0, 67),
            "f.yaml:27:13: error: autoscaler.fallback.failure_threshold: is miss");
  EXPECT_EQ(with("replicas: 1, ", "").substr(0, 58),
            "f.yaml:27:13: error: autoscaler.fallback.replicas: is miss");
  EXPECT_EQ(with("signal > 1 ? queue : signal", "signal > 1").substr(0, 92),
            "f.yaml:39:17: error: autoscaler.scaling_modifiers.formula: the formula must be a "
            "number (it ");
}

TEST(AutoscalerYaml, TheHintForZeroReplicasFitsAManifest) {
  EXPECT_NE(
      hpa_messages("  maxReplicas: 3\n  minReplicas: 0\n  metrics:\n  - type: Pods\n    pods: "
                   "{metric: {name: vllm_num_requests_waiting}, target: {averageValue: 1}}\n")
          .find("set 1 or more, scale by KEDA, or write the autoscaler into the scenario"),
      std::string::npos);
}

}  // namespace
}  // namespace routesim::tools
