// KEDA: by hand, and trajectories that its own functions walked.
#include "sim/scaling/keda.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace routesim::sim {
namespace {

SimTime second(std::int64_t s) { return SimTime::zero() + Duration::seconds(s); }

double formula_value(const std::string& text, std::optional<double> a, std::optional<double> b) {
  const auto formula = parse_formula(text, {"a", "b"});
  if (!std::holds_alternative<Formula>(formula)) return -999;
  const FormulaResult result = evaluate_formula(std::get<Formula>(formula), {a, b});
  return result.failed ? -998 : result.value.value_or(-997);
}

TEST(KedaFormula, BindsLikeExprLang) {
  EXPECT_EQ(formula_value("a ?? 3 * 2", std::nullopt, 0), 6);
  EXPECT_EQ(formula_value("a ?? 3 * 2", 5, 0), 10);
  EXPECT_EQ(formula_value("-a ** 2", 3, 0), -9);
  EXPECT_EQ(formula_value("2 ** 3 ** 2", 3, 0), 512);
  EXPECT_EQ(formula_value("10 - a - 1", 3, 0), 6);
  EXPECT_EQ(formula_value("let x = a + 1; let y = x * 2; max(x, y, b)", 3, 5), 8);
  EXPECT_EQ(formula_value("a > 1 and b > 1 ? 1 : a > 1 or b > 1 ? 2 : 3", 0, 4), 2);
}

TEST(KedaFormula, NilIsAnErrorOutsideOfItsOperator) {
  EXPECT_EQ(formula_value("a", std::nullopt, 0), -998);
  EXPECT_EQ(formula_value("a + b", std::nullopt, 1), -998);
  // With `??` anywhere a result may be nil: KEDA's fallback is taken then.
  EXPECT_EQ(formula_value("(b ?? 1) > 0 ? a : b", std::nullopt, 1), -997);
}

TEST(KedaFormula, NamesFaults) {
  const auto fault = [](const std::string& text) {
    const auto formula = parse_formula(text, {"queue", "replicas"});
    if (!std::holds_alternative<FormulaFault>(formula)) return std::string("none");
    const FormulaFault& f = std::get<FormulaFault>(formula);
    return std::to_string(f.position) + ": " + f.message + (f.hint.empty() ? "" : " | " + f.hint);
  };
  EXPECT_EQ(fault("queue / replica"), "8: `replica` is no trigger's name | did you mean replicas?");
  EXPECT_EQ(fault("count(queue)"),
            "0: function `count` is not simulated | known are min, max, abs, ceil, floor, round "
            "and float");
  EXPECT_EQ(fault("(queue"), "6: `)` is missing");
  EXPECT_EQ(fault("queue % 2"),
            "6: unexpected `%` | KEDA refuses % because triggers are no whole numbers");
  EXPECT_EQ(fault(std::string(1000, '(')), "66: the formula is nested too deeply");
  EXPECT_EQ(fault(""), "0: the formula ends too early");
  EXPECT_EQ(fault("é * 2"), "0: unexpected `é`");
  EXPECT_EQ(fault("queue ü"), "6: unexpected `ü`");
}

// What expr-lang 1.17 says of the same formulas: KEDA's webhook compiles them.
TEST(KedaFormula, NumbersAndTruthsDoNotMix) {
  const auto fault = [](const std::string& text) {
    const auto formula = parse_formula(text, {"a", "b"});
    if (std::holds_alternative<Formula>(formula)) return std::string();
    const FormulaFault& f = std::get<FormulaFault>(formula);
    return std::to_string(f.position) + ": " + f.message;
  };
  const std::string whole = "0: the formula must be a number (it is true or false)";
  for (const char* text : {"a > 1", "a > 1 && b > 1", "not (a == b)", "let x = a > b; x",
                           "(a ?? b) > 1", "a > 1 ? b > 1 : b > 2"})
    EXPECT_EQ(fault(text), whole) << text;
  EXPECT_EQ(fault("2 * (a > 1)"), "2: this takes numbers, and not true or false");
  EXPECT_EQ(fault("max(a, b > 1)"), "0: this takes numbers, and not true or false");
  EXPECT_EQ(fault("-(a > 1)"), "0: this takes numbers, and not true or false");
  EXPECT_EQ(fault("a && b"), "2: this takes true or false, and not a number");
  EXPECT_EQ(fault("!a ? 1 : 2"), "0: this takes true or false, and not a number");
  EXPECT_EQ(fault("(a > 1) == b ? 1 : 2"), "8: this takes true or false, and not a number");
  EXPECT_EQ(fault("a ? 1 : 2"), "2: `?` takes true or false, and not a number");
  // Only a run knows which of the two it is.
  EXPECT_EQ(fault("a > 1 ? b > 1 : 2"), "");
  EXPECT_EQ(fault("let x = a > 1; x ? a : b"), "");
  EXPECT_EQ(fault("(a > 1) != (b > 1) ? 1 : 0"), "");
}

TEST(Keda, RoundsLikeItsMetricsServer) {
  EXPECT_EQ(keda_quantity(0.0005), 1);   // The double is a little above the tie.
  EXPECT_EQ(keda_quantity(0.0625), 62);  // This one is a tie: to even.
  EXPECT_EQ(keda_quantity(2.9999), 3000);
  EXPECT_EQ(keda_quantity(-4), 0);
  EXPECT_EQ(keda_quantity(1e300), 9'000'000'000'000'000);
}

TEST(Keda, MakesAnHpa) {
  KedaSpec spec;
  spec.triggers = {{HpaTargetType::kAverageValue, 0.7, 0}, {HpaTargetType::kValue, 16, 0}};
  spec.annotations.pauses_scale_in = true;
  const HpaSpec hpa = hpa_of(spec);
  EXPECT_EQ(hpa.min_replicas, 1);
  EXPECT_EQ(hpa.max_replicas, 100);
  ASSERT_EQ(hpa.metrics.size(), 2U);
  EXPECT_EQ(hpa.metrics[0].target, 700);
  EXPECT_EQ(hpa.metrics[1].target, 16'000);
  EXPECT_EQ(hpa.metrics[1].target_type, HpaTargetType::kValue);
  ASSERT_TRUE(hpa.behavior);
  EXPECT_EQ(hpa.behavior->scale_down.select, HpaSelect::kDisabled);
  EXPECT_EQ(hpa.behavior->scale_up.select, HpaSelect::kMax);
}

TEST(Keda, GoesToZeroAfterTheCooldownAndBackAtOnce) {
  KedaSpec spec;
  spec.triggers = {{}};
  KedaOperator keda(spec, second(0));
  EXPECT_EQ(keda.poll(second(30), {2, 2}, {4.0}), std::nullopt);
  // The period of 300 s must be over, and not just reached.
  EXPECT_EQ(keda.poll(second(330), {2, 2}, {0.0}), std::nullopt);
  EXPECT_EQ(keda.poll(second(331), {2, 2}, {0.0}), 0);
  EXPECT_EQ(keda.poll(second(360), {0, 0}, {0.0}), std::nullopt);
  EXPECT_EQ(keda.poll(second(390), {0, 0}, {0.5}), 1);
}

// The API server keeps the last active time in whole seconds: 97.5 s become 97, and 300 s later is
// before 397.5 s.
TEST(Keda, CoolsDownFromAWholeSecond) {
  KedaSpec spec;
  spec.triggers = {{}};
  KedaOperator keda(spec, second(0));
  const auto half = [](int s) { return second(s) + Duration::milliseconds(500); };
  EXPECT_EQ(keda.poll(half(97), {2, 2}, {4.0}), std::nullopt);
  EXPECT_EQ(keda.poll(half(396), {2, 2}, {0.0}), std::nullopt);
  EXPECT_EQ(keda.poll(half(397), {2, 2}, {0.0}), 0);
}

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
