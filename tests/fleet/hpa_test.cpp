// HorizontalPodAutoscalers: trajectories that a reader can redo by hand, and those of the real
// controller.
#include "sim/scaling/hpa.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace routesim::sim {
namespace {

// Trajectories of HorizontalPodAutoscalers that a reader can redo by hand.

SimTime at(std::int64_t seconds) { return SimTime::zero() + Duration::seconds(seconds); }

/// One External metric with one unit per replica.
HpaSpec one_per_replica(std::int32_t most) {
  HpaSpec spec;
  spec.max_replicas = most;
  spec.metrics = {{HpaMetricType::kExternal, HpaTargetType::kAverageValue, 1'000, false}};
  return spec;
}

/// All pods exist and are ready at once.
HpaInput fleet(std::int64_t seconds, std::int32_t replicas, double total) {
  HpaInput input;
  input.now = at(seconds);
  input.spec_replicas = input.status_replicas = replicas;
  HpaPod pod;
  pod.started = pod.ready_changed = at(0);
  input.pods.assign(static_cast<std::size_t>(replicas), pod);
  HpaReading reading;
  reading.total = static_cast<std::int64_t>(total * 1000);
  input.readings = {reading};
  return input;
}

/// Replicas after each sync, every 15 s, while `total(t)` is asked for.
template <class Total>
std::vector<std::int32_t> replicas_of(HpaController& hpa, std::int32_t replicas, int syncs,
                                      const Total& total) {
  std::vector<std::int32_t> out;
  for (int i = 0; i < syncs; ++i) {
    replicas = hpa.sync(fleet(15 * i, replicas, total(15 * i))).desired;
    out.push_back(replicas);
  }
  return out;
}

const auto kTen = [](std::int64_t) { return 10.0; };

TEST(Hpa, WithoutBehaviorDoublesOrGoesToFour) {
  HpaController hpa(one_per_replica(100), {});
  EXPECT_EQ(replicas_of(hpa, 1, 4, kTen), (std::vector<std::int32_t>{4, 8, 10, 10}));
}

TEST(Hpa, DefaultBehaviorAddsFourPodsOrDoubles) {
  HpaSpec spec = one_per_replica(100);
  spec.behavior.emplace();
  HpaController hpa(spec, {});
  const auto forty = [](std::int64_t) { return 40.0; };
  // 1 + 4 and 5 + 4 beat doubling, then doubling beats four more: 5, 10, 20, 40.
  EXPECT_EQ(replicas_of(hpa, 1, 4, forty), (std::vector<std::int32_t>{5, 10, 20, 40}));
}

TEST(Hpa, PercentPolicyDoublesInEachPeriod) {
  HpaSpec spec = one_per_replica(100);
  spec.behavior.emplace();
  spec.behavior->scale_up.policies = {{HpaPolicyType::kPercent, 100, 15}};
  HpaController fast(spec, {});
  EXPECT_EQ(replicas_of(fast, 1, 5, kTen), (std::vector<std::int32_t>{2, 4, 8, 10, 10}));
  // With a period of 60 s, a change counts until it is 60 s old, and no longer.
  spec.behavior->scale_up.policies = {{HpaPolicyType::kPercent, 100, 60}};
  HpaController slow(spec, {});
  EXPECT_EQ(replicas_of(slow, 1, 9, kTen), (std::vector<std::int32_t>{2, 2, 2, 2, 4, 4, 4, 4, 8}));
}

/// The load falls from ten to two after the sync at 60 s.
const auto kFalls = [](std::int64_t t) { return t <= 60 ? 10.0 : 2.0; };

TEST(Hpa, ScalesDownWhenNoRecommendationOfTheWindowIsHigher) {
  HpaController plain(one_per_replica(100), {});
  const std::vector<std::int32_t> without = replicas_of(plain, 10, 27, kFalls);
  // The recommendation of 60 s still counts at 360 s (sync 24), where it is exactly 300 s old.
  EXPECT_EQ(without[24], 10);
  EXPECT_EQ(without[25], 2);
  HpaSpec spec = one_per_replica(100);
  spec.behavior.emplace();
  HpaController behaved(spec, {});
  const std::vector<std::int32_t> with = replicas_of(behaved, 10, 27, kFalls);
  // With `behavior` it does not.
  EXPECT_EQ(with[23], 10);
  EXPECT_EQ(with[24], 2);
}

TEST(Hpa, ScalesDownOnePodInTwoMinutes) {
  HpaSpec spec = one_per_replica(8);
  spec.behavior.emplace();
  spec.behavior->scale_down.stabilization_window_seconds = 180;
  spec.behavior->scale_down.policies = {{HpaPolicyType::kPods, 1, 120}};
  HpaController hpa(spec, {});
  const std::vector<std::int32_t> got =
      replicas_of(hpa, 8, 40, [](std::int64_t t) { return t == 0 ? 8.0 : 3.0; });
  // The first at 180 s (sync 12), then one each 120 s.
  for (int i = 0; i < 40; ++i)
    EXPECT_EQ(got[static_cast<std::size_t>(i)], i < 12 ? 8 : std::max(3, 7 - (i - 12) / 8)) << i;
}

TEST(Hpa, UpWindowTakesTheLowestRecommendation) {
  HpaSpec spec = one_per_replica(8);
  spec.behavior.emplace();
  spec.behavior->scale_up.stabilization_window_seconds = 60;
  HpaController hpa(spec, {});
  // The first recommendation is the present scale; it stays in the window for less than 60 s.
  const auto ramp = [](std::int64_t t) { return t == 30 ? 3.0 : 8.0; };
  EXPECT_EQ(replicas_of(hpa, 2, 7, ramp), (std::vector<std::int32_t>{2, 2, 2, 2, 3, 3, 7}));
}

TEST(Hpa, RememberedChangesAreOverwrittenOnceTheyAreOld) {
  HpaSpec spec = one_per_replica(100);
  spec.behavior.emplace();
  spec.behavior->scale_up.policies = {{HpaPolicyType::kPods, 100, 15}};
  spec.behavior->scale_down.stabilization_window_seconds = 0;
  spec.behavior->scale_down.policies = {{HpaPolicyType::kPods, 1, 300}};
  HpaController hpa(spec, {});
  EXPECT_EQ(hpa.sync(fleet(0, 10, 14)).desired, 14);
  EXPECT_EQ(hpa.sync(fleet(20, 14, 20)).desired, 20);
  // The second change took the place of the first, which is older than the longest period of
  // scaleUp: 20 - 6 - 1, and not 20 - 6 - 4 - 1.
  const HpaDecision down = hpa.sync(fleet(40, 20, 1));
  EXPECT_EQ(down.desired, 13);
  EXPECT_EQ(down.scaling_limited.reason, "ScaleDownLimit");
  // At exactly 15 s the first is not old yet, and stays beside the second.
  HpaController exact(spec, {});
  EXPECT_EQ(exact.sync(fleet(0, 10, 14)).desired, 14);
  EXPECT_EQ(exact.sync(fleet(15, 14, 20)).desired, 20);
  EXPECT_EQ(exact.sync(fleet(40, 20, 1)).desired, 9);
}

TEST(Hpa, ToleranceIsInclusive) {
  HpaController hpa(one_per_replica(100), {});
  EXPECT_EQ(hpa.sync(fleet(0, 10, 11.0)).desired, 10);
  EXPECT_EQ(hpa.sync(fleet(15, 10, 11.001)).desired, 12);
}

TEST(Hpa, AMetricThatFailsBlocksTheWayDownOnly) {
  HpaSpec spec = one_per_replica(100);
  spec.metrics.push_back(spec.metrics[0]);
  HpaController hpa(spec, {});
  const auto with_failure = [&](std::int64_t seconds, double total) {
    HpaInput input = fleet(seconds, 4, total);
    input.readings.push_back({.failed = true});
    return hpa.sync(input);
  };
  EXPECT_EQ(with_failure(0, 6).desired, 6);
  const HpaDecision down = with_failure(1000, 1);
  EXPECT_TRUE(down.failed);
  EXPECT_EQ(down.desired, 4);
  EXPECT_EQ(down.scaling_active.reason, "FailedGetExternalMetric");
}

TEST(Hpa, ZeroReplicasDisableIt) {
  HpaController hpa(one_per_replica(100), {});
  const HpaDecision decision = hpa.sync(fleet(0, 0, 100));
  EXPECT_EQ(decision.desired, 0);
  EXPECT_EQ(decision.scaling_active.reason, "ScalingDisabled");
}

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
