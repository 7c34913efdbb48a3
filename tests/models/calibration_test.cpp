#include "models/calibration.h"

#include <gtest/gtest.h>

#include <cmath>

#include "models/catalogue.h"
#include "models/roofline.h"
#include "tests/models/engine_steps.h"
#include "tools/ingest/servers/catalogue_file.h"

namespace routesim::models {
namespace {

CostCurveParameters h100_roofline(std::int64_t tp) {
  const Catalogue c = tools::builtin_catalogue();
  return Roofline(*c.find_accelerator("H100"), *c.find_model("Qwen3-32B"), {.tp = tp})
      .as_cost_curve();
}

CurveFit fit_tpot(int tp, const CostCurveParameters& prior, double prior_sd) {
  std::vector<CurveSample> samples;
  for (const StaticBatchRow& row : engine_steps(tp)) samples.push_back(tpot_sample(row));
  Diagnostics d;
  auto fit = fit_cost_curve(samples, prior, {.prior_relative_sd = prior_sd}, d);
  EXPECT_TRUE(fit.has_value());
  return fit.value_or(CurveFit{});
}

void expect_curve(const CurveFit& fit, double a, double c, double d, double p1, double p2,
                  double tolerance) {
  const CostCurveParameters& p = fit.parameters;
  EXPECT_NEAR(p.step_ms, a, a * tolerance);
  EXPECT_NEAR(p.sequence_ms, c, c * tolerance);
  EXPECT_NEAR(p.context_us_per_ktok, d, d * tolerance);
  EXPECT_NEAR(p.prefill_us_per_token, p1, p1 * tolerance);
  EXPECT_NEAR(p.prefill_pair_ns, p2, p2 * tolerance);
}

TEST(NonNegative, HandSolvedProblems) {
  // Unconstrained solution (2, 1) is feasible.
  EXPECT_NEAR(solve_non_negative({{1, 0}, {0, 1}, {1, 1}}, {2, 1, 3})[0], 2, 1e-12);
  // x = (1, -1) solves exactly; with x1 >= 0 the best x0 is (1*0 + 1*1 + 0)/2 = 0.5.
  const auto x = solve_non_negative({{1, 1}, {1, 0}}, {0, 1});
  EXPECT_NEAR(x[0], 0.5, 1e-12);
  EXPECT_EQ(x[1], 0);
  // Everything pushes below zero.
  EXPECT_EQ(solve_non_negative({{1, 0}, {0, 2}}, {-1, -1}), (std::vector<double>{0, 0}));
}

constexpr CostCurveParameters kTruth{.step_ms = 12,
                                     .sequence_ms = 0.07,
                                     .context_us_per_ktok = 40,
                                     .shared_context_weight = 0.45,
                                     .prefill_us_per_token = 50,
                                     .prefill_pair_ns = 1.2};

/// Ninety-six mixed steps of kTruth, each off by up to `error` of either sign.
std::vector<CurveSample> synthetic_steps(double error, std::uint64_t seed) {
  std::vector<CurveSample> samples;
  std::uint64_t state = seed;
  for (std::int64_t b = 1; b <= 128; b *= 2)
    for (std::int64_t context : {500, 4'000, 9'000})
      for (std::int64_t prompt : {0, 300, 2'000, 8'000}) {
        BatchShape s{.decode_requests = b, .decode_context = b * context};
        s.shared_context = b % 4 == 0 ? s.decode_context / 2 : 0;
        s.prefill_requests = prompt > 0;
        s.prefill_tokens = s.prefill_context = prompt;
        s.prefill_pairs = prompt * prompt;
        state = state * 6'364'136'223'846'793'005ULL + 1'442'695'040'888'963'407ULL;
        const double u = static_cast<double>(state >> 11) * 0x1p-53;
        CurveSample sample = step_sample(s, 1);
        sample.ms = predict_ms(kTruth, sample) * (1 + error * (2 * u - 1));
        samples.push_back(sample);
      }
  return samples;
}

TEST(CurveFit, RecoversKnownParametersFromExactSteps) {
  Diagnostics d;
  const auto fit = fit_cost_curve(synthetic_steps(0, 1), {}, {.prior_relative_sd = 0}, d);
  ASSERT_TRUE(fit);
  expect_curve(*fit, 12, 0.07, 40, 50, 1.2, 1e-9);
  EXPECT_NEAR(fit->parameters.shared_context_weight, 0.45, 1e-9);
  EXPECT_LT(fit->residuals.max, 1e-9);
}

TEST(CurveFit, IntervalsHoldTheTruthNineteenTimesInTwenty) {
  const double truth[] = {12, 0.07, 40, 18, 50, 1.2};
  constexpr int kFits = 400;
  int held[6] = {};
  for (int n = 0; n < kFits; ++n) {
    Diagnostics d;
    const auto fit = fit_cost_curve(synthetic_steps(0.01, static_cast<std::uint64_t>(n)), {},
                                    {.prior_relative_sd = 0}, d);
    ASSERT_TRUE(fit);
    ASSERT_EQ(fit->coefficients.size(), 6u);
    for (std::size_t i = 0; i < 6; ++i)
      if (fit->coefficients[i].low <= truth[i] && truth[i] <= fit->coefficients[i].high) ++held[i];
  }
  // 400 trials of 95 %: standard error 1.1 %.
  for (int i = 0; i < 6; ++i)
    EXPECT_NEAR(static_cast<double>(held[i]) / kFits, 0.95, 0.035)
        << coefficient_name(static_cast<Coefficient>(i));
}

TEST(CurveFit, ReproducesTheStaticBatchTable) {
  expect_curve(fit_tpot(2, {}, 0), 14.30, 0.068, 43.9, 47.7, 1.05, 0.005);
  EXPECT_NEAR(fit_tpot(2, {}, 0).residuals.mean_absolute, 1.25, 0.01);
  EXPECT_EQ(fit_tpot(2, {}, 0).residuals.samples, 25u);
  expect_curve(fit_tpot(4, {}, 0), 9.42, 0.0622, 23.3, 28.3, 0.436, 0.005);
  EXPECT_NEAR(fit_tpot(4, {}, 0).residuals.mean_absolute, 1.37, 0.01);
  // An unbounded fit of TP8 gives p2 = -0.0004; at the bound p1 and d move to 18.6 and 10.5.
  const CurveFit tp8 = fit_tpot(8, {}, 0);
  EXPECT_EQ(tp8.parameters.prefill_pair_ns, 0);
  EXPECT_NEAR(tp8.parameters.step_ms, 7.13, 0.01);
  EXPECT_NEAR(tp8.parameters.prefill_us_per_token, 18.56, 0.05);
  EXPECT_NEAR(tp8.residuals.mean_absolute, 1.58, 0.01);
  EXPECT_EQ(tp8.coefficients.at(5).identified, Identified::kAtZero);
  EXPECT_GT(tp8.coefficients.at(5).high, 0);
}

TEST(CurveFit, ShippedCurvesAreThisFitUnderTheRooflinePrior) {
  const Catalogue c = tools::builtin_catalogue();
  for (const int tp : {2, 4, 8}) {
    const FittedCurve* shipped = c.find_cost_curve("H100", "Qwen3-32B", {.tp = tp}, "2025-H2");
    ASSERT_NE(shipped, nullptr);
    const CurveFit fit = fit_tpot(tp, h100_roofline(tp), 3.0);
    const CostCurveParameters& p = shipped->parameters;
    expect_curve(fit, p.step_ms, p.sequence_ms, p.context_us_per_ktok, p.prefill_us_per_token,
                 p.prefill_pair_ns, 0.002);
    EXPECT_NEAR(fit.parameters.shared_context_weight, 0.53, 1e-4);
    EXPECT_EQ(fit.coefficients.at(3).identified, Identified::kNotInData);
    EXPECT_LT(fit.residuals.mean_absolute, 1.6);
  }
}

TEST(CurveFit, SaysWhatTheDataCannotTell) {
  // One batch size and one context: constant, per sequence and context move together.
  std::vector<CurveSample> samples;
  for (const double ms : {20.0, 20.4, 19.8, 20.1})
    samples.push_back(step_sample({.decode_requests = 8, .decode_context = 8'000}, ms));
  Diagnostics d;
  const auto blind = fit_cost_curve(samples, {}, {.prior_relative_sd = 0}, d);
  ASSERT_TRUE(blind);
  EXPECT_EQ(blind->coefficients.at(0).identified, Identified::kWeakly);
  EXPECT_EQ(blind->coefficients.at(4).identified, Identified::kNotInData);
  const auto led = fit_cost_curve(samples, h100_roofline(2), {}, d);
  ASSERT_TRUE(led);
  EXPECT_EQ(led->coefficients.at(1).identified, Identified::kByPrior);
  EXPECT_GT(led->parameters.sequence_ms, 0);
  EXPECT_EQ(led->parameters.prefill_us_per_token, h100_roofline(2).prefill_us_per_token);
  EXPECT_LT(led->residuals.mean_absolute, 1.5) << "the prior must not cost accuracy";
}

TEST(CurveFit, RefusesBadSamples) {
  Diagnostics d;
  EXPECT_FALSE(fit_cost_curve(std::vector{step_sample({.decode_requests = 1}, 5)}, {}, {}, d));
  EXPECT_FALSE(fit_cost_curve(
      std::vector{step_sample({.decode_requests = 1}, 5), step_sample({.decode_requests = 2}, -5),
                  step_sample({.decode_requests = 3}, NAN)},
      {}, {}, d));
  EXPECT_EQ(d.items().size(), 3u);
}

TEST(ObjectiveFit, FindsTheMinimumInsideAndAtBounds) {
  // Rosenbrock: minimum 0 at (1, 1).
  const auto rosenbrock = [](const std::vector<double>& x) {
    return std::vector<double>{10 * (x[1] - x[0] * x[0]), 1 - x[0]};
  };
  const ObjectiveFitOptions options{.max_evaluations = 500, .relative_tolerance = 1e-12};
  const auto inside =
      fit_objective({{"x", -1, -2, 2, 1e-5}, {"y", 1, -2, 2, 1e-5}}, rosenbrock, options);
  EXPECT_NEAR(inside.parameters[0].value, 1, 1e-2);
  EXPECT_NEAR(inside.parameters[1].value, 1, 1e-2);
  EXPECT_LT(inside.cost, 1e-4);
  // With x <= 0.5 the minimum is at (0.5, 0.25).
  const auto bounded =
      fit_objective({{"x", -1, -2, 0.5, 1e-5}, {"y", 1, -2, 2, 1e-5}}, rosenbrock, options);
  EXPECT_NEAR(bounded.parameters[0].value, 0.5, 1e-3);
  EXPECT_TRUE(bounded.parameters[0].at_bound);
  EXPECT_NEAR(bounded.parameters[1].value, 0.25, 1e-2);
}

TEST(ObjectiveFit, ExploringFindsTheDeepestOfManyValleysFromAnywhere) {
  // Valleys a unit apart in x, the deepest at (7, 3); the descent alone stays in the first.
  const auto valleys = [](const std::vector<double>& x) {
    return std::vector<double>{0.3 * (x[0] - 7), std::sin(3.14159265358979 * x[0]), x[1] - 3};
  };
  const ObjectiveFitOptions options{.max_evaluations = 100};
  const auto stuck =
      fit_objective({{"x", 1.9, 0, 10, 1e-4}, {"y", 5, 0, 10, 1e-4}}, valleys, options);
  EXPECT_GT(stuck.cost, 0.1);
  std::vector<double> found;
  for (const double start : {1.9, 9.0}) {
    int calls = 0;
    const auto counted = [&](const std::vector<double>& x) {
      ++calls;
      EXPECT_TRUE(x[0] >= 0 && x[0] <= 10 && x[1] >= 0 && x[1] <= 10) << x[0] << ", " << x[1];
      return valleys(x);
    };
    const auto spread =
        explore_objective({{"x", start, 0, 10, 1e-4}, {"y", start, 0, 10, 1e-4}}, counted, 200);
    EXPECT_EQ(calls, 200);
    const auto fit = fit_objective(spread, valleys, options);
    EXPECT_NEAR(fit.parameters[0].value, 7, 1e-3);
    EXPECT_NEAR(fit.parameters[1].value, 3, 1e-3);
    found.push_back(spread[0].start);
  }
  EXPECT_EQ(found[0], found[1]) << "the start must not matter";
  EXPECT_EQ(explore_objective({{"x", 4, 0, 10, 0}}, valleys, 0)[0].start, 4);
}

TEST(ObjectiveFit, FlagsWhatNothingReactsToAndKeepsItsBudget) {
  int calls = 0;
  const auto fit = fit_objective({{"slope", 1, 0, 10, 0}, {"ghost", 3, 0, 10, 0}},
                                 [&calls](const std::vector<double>& x) {
                                   ++calls;
                                   std::vector<double> r;
                                   for (int i = 1; i <= 8; ++i)
                                     r.push_back(x[0] * i - 2.5 * i + (i % 2 == 0 ? 0.1 : -0.1));
                                   return r;
                                 },
                                 {.max_evaluations = 30});
  EXPECT_NEAR(fit.parameters[0].value, 2.5, 0.02);
  EXPECT_TRUE(fit.parameters[0].identifiable);
  EXPECT_LT(fit.parameters[0].low, 2.51);
  EXPECT_GT(fit.parameters[0].high, 2.49);
  EXPECT_LT(fit.parameters[0].high - fit.parameters[0].low, 0.2);
  EXPECT_FALSE(fit.parameters[1].identifiable);
  EXPECT_EQ(fit.parameters[1].value, 3);
  EXPECT_TRUE(fit.converged);
  EXPECT_EQ(fit.evaluations, calls);
  EXPECT_LE(calls, 30);
}

}  // namespace
}  // namespace routesim::models
