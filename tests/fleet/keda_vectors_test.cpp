// Replays trajectories that KEDA's own functions walked. keda_vectors.jsonl holds one trajectory a
// line: the answers of RequestScale (pkg/scaling/executor), GetMetricsWithFallback (pkg/fallback),
// HandleScalingModifiers (pkg/scaling/modifiers) and ValidateAndCompileScalingModifiers of
// kedacore/keda v2.21.0, put together as pkg/scaling/scale_handler.go does, on fakes of the API
// server and with a clock of the recorder. Specifications and values are random; these 180 of
// 6,000, 20 steps each, show every combination. All 6,000 agreed, over 40 steps each.
//
//   spec:  min, max, idle, cooldown, initial, annotations, fallback (threshold, replicas,
//   behavior),
//          triggers (type, threshold, activation), modifiers (formula, target, activation, type)
//   steps: seconds, replicas, ready pods, values (null: the query failed), then `poll` with the
//          replicas after it, or `read` with what the HPA reads in thousandths (null: an error)
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "sim/scaling/keda.h"

namespace routesim::sim {
namespace {

using Json = nlohmann::json;

HpaTargetType target_of(const std::string& name) {
  return name == "Value" ? HpaTargetType::kValue : HpaTargetType::kAverageValue;
}

KedaFallbackBehavior behavior_of(const std::string& name) {
  if (name == "currentReplicas") return KedaFallbackBehavior::kCurrentReplicas;
  if (name == "currentReplicasIfHigher") return KedaFallbackBehavior::kCurrentReplicasIfHigher;
  if (name == "currentReplicasIfLower") return KedaFallbackBehavior::kCurrentReplicasIfLower;
  if (name == "scalingModifiers") return KedaFallbackBehavior::kScalingModifiers;
  return KedaFallbackBehavior::kStatic;
}

KedaAnnotations annotations_of(const Json& names) {
  KedaAnnotations out;
  for (const std::string name : names) {
    out.is_paused |= name == "paused";
    out.pauses_scale_in |= name == "in";
    out.pauses_scale_out |= name == "out";
    out.forces_activation |= name == "force";
  }
  return out;
}

KedaSpec keda_spec_of(const Json& json) {
  KedaSpec spec;
  spec.min_replicas = json.value("min", 0);
  spec.max_replicas = json.value("max", 100);
  spec.cooldown_seconds = json.value("cooldown", 300);
  spec.initial_cooldown_seconds = json.value("initial", 0);
  if (json.contains("idle")) spec.idle_replicas = json["idle"];
  if (json.contains("annotations")) spec.annotations = annotations_of(json["annotations"]);
  if (json.contains("fallback")) {
    const Json& f = json["fallback"];
    spec.fallback = {f[0], f[1], behavior_of(f[2])};
  }
  for (const Json& t : json["triggers"]) spec.triggers.push_back({target_of(t[0]), t[1], t[2]});
  if (json.contains("modifiers")) {
    const Json& m = json["modifiers"];
    const auto formula = parse_formula(m[0].get<std::string>(), {"a", "b"});
    EXPECT_TRUE(std::holds_alternative<Formula>(formula)) << m[0];
    const std::string activation = m[2];
    spec.modifiers = {std::get<Formula>(formula), std::stod(m[1].get<std::string>()),
                      activation.empty() ? 0 : std::stod(activation), target_of(m[3])};
  }
  return spec;
}

TEST(KedaVectors, DecidesAsTheOperator) {
  const char* other = std::getenv("ROUTESIM_KEDA_VECTORS");
  std::ifstream file(other != nullptr ? other
                                      : ROUTESIM_SOURCE_DIR "/tests/fleet/keda_vectors.jsonl");
  ASSERT_TRUE(file);
  std::size_t trajectories = 0, steps = 0;
  for (std::string line; std::getline(file, line); ++trajectories) {
    const Json json = Json::parse(line);
    KedaOperator keda(keda_spec_of(json["spec"]), SimTime::zero());
    for (const Json& step : json["steps"]) {
      SCOPED_TRACE("trajectory " + std::to_string(trajectories + 1) + ": " + json["spec"].dump() +
                   step.dump());
      const SimTime now = SimTime::zero() + Duration::from_seconds(step[0].get<double>());
      const KedaScale scale{step[1], step[2]};
      std::vector<std::optional<double>> values;
      for (const Json& v : step[3])
        values.push_back(v.is_null() ? std::nullopt : std::optional(v.get<double>()));
      if (step[4] == "poll") {
        ASSERT_EQ(keda.poll(now, scale, values).value_or(scale.replicas), step[5].get<int>());
      } else {
        Json got = Json::array();
        for (const HpaReading& r : keda.readings(scale, values))
          got.push_back(r.failed ? Json() : Json(r.total));
        ASSERT_EQ(got, step[5]);
      }
      ++steps;
    }
  }
  EXPECT_GE(trajectories, 150U);
  EXPECT_GE(steps, 3000U);
}

}  // namespace
}  // namespace routesim::sim
