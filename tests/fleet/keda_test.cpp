#include "sim/scaling/keda.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace routesim::sim
