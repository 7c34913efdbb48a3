// The predictor beside llm-d's router: its regression against scikit-learn, when it learns what,
// and what a router does with it.
#include <cmath>

#include "sim/plan/unsupplied_inputs.h"
#include "sim/prediction/online_predictor.h"
#include "tests/sim/plan_fixture.h"

namespace routesim::sim::testing {
namespace {

using policies::LatencyFeatures;
using policies::LatencyPrediction;

// scikit-learn 1.9.1: StandardScaler, then BayesianRidge() with its defaults. The third feature
// never varies and the fourth is half the first one.
TEST(BayesianRidge, FitsAsScikitLearnDoes) {
  std::vector<double> rows, targets;
  for (int i = 0; i < 40; ++i) {
    const double a = i * 7 % 11, b = i * i % 13;
    rows.insert(rows.end(), {a, b, 5, a / 2});
    targets.push_back(20 + 3 * a - 2 * b + (i * 5 % 7 - 3) * 0.4);
  }
  const BayesianRidge model(rows, targets, 4);
  const std::array<double, 4> inside = {4, 9, 5, 2}, outside = {20, 0, 7, 10};
  EXPECT_NEAR(model.predict(inside), 14.01911961, 1e-5);
  EXPECT_NEAR(model.predict(outside), 79.73279538, 1e-5);
  EXPECT_NEAR(model.deviation(inside), 0.84059091, 1e-5);
  EXPECT_NEAR(model.deviation(outside), 15.51044128, 1e-4);
}

TEST(BayesianRidge, OneSampleIsAConstant) {
  const std::vector<double> row = {1, 2}, target = {7};
  const BayesianRidge model(row, target, 2);
  EXPECT_NEAR(model.predict(std::array<double, 2>{5, 9}), 7, 1e-9);
}

LatencyFeatures features(std::int64_t prompt, std::int64_t tokens_in_flight, double waiting = 0) {
  return {.waiting = waiting, .prompt_tokens = prompt, .tokens_in_flight = tokens_in_flight};
}

/// 20 ms, and 1 ms per 10 tokens ahead.
void teach(OnlinePredictor& predictor, int samples, SimTime now, double waiting = 0) {
  for (int i = 0; i < samples; ++i) {
    const std::int64_t prompt = 100 * (i % 7 + 1), ahead = 100 * (i % 5);
    const double ttft = 20 + static_cast<double>(prompt + ahead) / 10 + 50 * waiting;
    predictor.observe({.features = features(prompt, ahead, waiting), .ttft_ms = ttft}, now);
    predictor.observe({.features = features(prompt, ahead, waiting), .tpot_ms = 8 + waiting}, now);
  }
}

LatencyPrediction ask(const OnlinePredictor& predictor, const LatencyFeatures& f) {
  const policies::RequestView request;
  std::array<LatencyPrediction, 1> out;
  predictor.predict(request, {&f, 1}, out);
  return out[0];
}

TEST(OnlinePredictor, PredictsTenMillisecondsUntilItsFirstModelIsServed) {
  OnlinePredictor predictor({}, 1);
  teach(predictor, 100, at_ms(1000));
  for (const std::int64_t ms : {1000, 10'000, 29'999}) {
    predictor.advance(at_ms(ms));
    EXPECT_EQ(ask(predictor, features(700, 400)).ttft_ms, 10) << ms;
    EXPECT_EQ(ask(predictor, features(100, 0)).tpot_ms, 10) << ms;
  }
  EXPECT_EQ(predictor.trainings(), 1) << "at 10 s; at 20 s there was nothing new";
  predictor.advance(at_ms(30'000));
  EXPECT_NEAR(ask(predictor, features(700, 400)).ttft_ms, 130, 0.5);
  EXPECT_NEAR(ask(predictor, features(100, 0)).ttft_ms, 30, 0.5);
  EXPECT_NEAR(ask(predictor, features(100, 0)).tpot_ms, 8, 0.1);
}

TEST(OnlinePredictor, NineSamplesAreTooFew) {
  OnlinePredictor predictor({.test_share = 0}, 1);
  teach(predictor, 4, at_ms(0));
  predictor.observe({.features = features(1, 0), .ttft_ms = 20}, at_ms(0));
  predictor.advance(at_ms(60'000));
  EXPECT_EQ(predictor.trainings(), 0);
  predictor.observe({.features = features(2, 0), .ttft_ms = 20}, at_ms(60'000));
  predictor.advance(at_ms(70'000));
  EXPECT_EQ(predictor.trainings(), 1);
}

// All queueing samples lie in a plane of their own; one model of both is not able to follow it.
TEST(OnlinePredictor, QueueingServersHaveAModelOfTheirOwnOnceThereAreEnoughSamples) {
  const auto error = [](int samples) {
    OnlinePredictor predictor({.test_share = 0}, 1);
    for (int i = 0; i < samples; ++i) {
      const std::int64_t ahead = 100 * (i % 5);
      const auto tell = [&](double waiting, double ttft) {
        const LatencyFeatures f = features(500, ahead, waiting);
        predictor.observe({.features = f, .ttft_ms = ttft}, at_ms(0));
        predictor.observe({.features = f, .tpot_ms = 8}, at_ms(0));
      };
      tell(0, 100);
      tell(1 + i % 3, 100 + static_cast<double>(ahead));
    }
    predictor.advance(at_ms(30'000));
    return std::fabs(ask(predictor, features(500, 400)).ttft_ms - 100);
  };
  EXPECT_GT(error(199), 50) << "199 samples of each kind";
  EXPECT_LT(error(200), 1);
}

TEST(OnlinePredictor, TheNewestSamplesOfABucketCount) {
  OnlinePredictor predictor({.bucket_size = 50, .test_share = 0}, 1);
  for (int i = 0; i < 100; ++i)
    predictor.observe({.features = features(100 + i % 3, 0), .ttft_ms = i < 50 ? 1000.0 : 40.0},
                      at_ms(0));
  predictor.advance(at_ms(30'000));
  EXPECT_NEAR(ask(predictor, features(100, 0)).ttft_ms, 40, 0.1);
}

TEST(OnlinePredictor, AQuantileLiesAboveTheMean) {
  const auto predicted = [](PredictionObjective objective) {
    OnlinePredictor predictor({.test_share = 0, .objective = objective}, 1);
    for (int i = 0; i < 400; ++i)
      predictor.observe({.features = features(100 + i % 3, 0), .ttft_ms = i % 20 < 10 ? 90. : 110.},
                        at_ms(0));
    predictor.advance(at_ms(30'000));
    return ask(predictor, features(101, 0)).ttft_ms;
  };
  EXPECT_NEAR(predicted(PredictionObjective::kMean), 100, 0.5);
  EXPECT_NEAR(predicted(PredictionObjective::kQuantile), 100 + 1.2816 * 10, 0.5);
}

policies::EndpointPickerConfig predicting() {
  return DocumentBuilder()
      .plugin("predicted-latency-producer", map({{"streamingMode", tree::boolean(true)}}))
      .plugin("latency-scorer")
      .plugin("max-score-picker")
      .profile("default", {{"latency-scorer", 1}, {"max-score-picker"}})
      .build();
}

/// Pairs of requests 300 ms apart: a long prompt, which takes 20 steps, and a short one right
/// behind it. Returns the mean TTFT in ms of the short ones sent in the second half.
double ttft_behind_long_prompts(std::optional<PredictorKind> kind) {
  std::vector<Sent> script;
  constexpr std::int64_t kPairs = 400;
  for (std::int64_t i = 0; i < kPairs; ++i) {
    const auto content = static_cast<std::uint64_t>(2 * i);
    script.push_back({.at_ms = 300 * i, .parts = {{content, 1280}}, .output = 2});
    script.push_back({.at_ms = 300 * i + 2, .parts = {{content + 1, 16}}, .output = 2});
  }
  RunPlan plan = hand_made_plan(script, 2);
  plan.pools[0].rules.max_num_batched_tokens = 64;
  plan.endpoint_picker = predicting();
  if (kind) plan.latency_predictor = PredictorSettings{.kind = *kind};
  const RunResult r = run_by_hand(plan);
  double sum = 0;
  for (std::size_t i = kPairs + 1; i < r.requests.size(); i += 2)
    sum += static_cast<double>((r.requests[i].first_token - r.requests[i].sent).ns()) / 1e6;
  return sum / (kPairs / 2);
}

TEST(PredictedLatency, RoutesAroundLongPromptsOnceItHasLearnt) {
  const double online = ttft_behind_long_prompts(PredictorKind::kOnline);
  const double perfect = ttft_behind_long_prompts(PredictorKind::kPerfect);
  const double none = ttft_behind_long_prompts(std::nullopt);
  EXPECT_LT(perfect, 25) << "the other server is idle";
  EXPECT_LT(online, 25);
  EXPECT_GT(none, 2 * online) << "the composite score sees neither";
}

TEST(PredictedLatency, GoalsComeFromHeaders) {
  const auto refused = [](std::vector<std::pair<std::string, std::string>> headers) {
    std::vector<Sent> script;
    for (std::int64_t i = 0; i < 4; ++i)  // Scraped by then, and never saturated.
      script.push_back(
          {.at_ms = 20 * (i + 1), .parts = {{static_cast<std::uint64_t>(i), 640}}, .output = 40});
    RunPlan plan = hand_made_plan(script, 1);
    plan.pools[0].rules.max_num_batched_tokens = 64;
    plan.scenario.workload.sheddable_fraction = 1;
    plan.endpoint_picker =
        DocumentBuilder()
            .plugin("predicted-latency-producer", map({{"streamingMode", tree::boolean(true)}}))
            .plugin("latency-slo-admitter")
            .plugin("latency-scorer")
            .profile("default", {{"latency-scorer", 1}})
            .build();
    plan.latency_predictor = PredictorSettings{.kind = PredictorKind::kPerfect};
    plan.headers = {std::move(headers)};
    return run_by_hand(plan).routing.rejected;
  };
  EXPECT_EQ(refused({}), 0);
  EXPECT_GT(refused({{"X-LLM-D-SLO-TTFT-MS", "30"}, {"x-llm-d-slo-tpot-ms", "1000"}}), 0);
  EXPECT_GT(refused({{"x-slo-ttft-ms", "30"}, {"x-slo-tpot-ms", "1000"}}), 0) << "older names";
  EXPECT_EQ(refused({{"x-llm-d-slo-ttft-ms", "100000"}, {"x-llm-d-slo-tpot-ms", "1000"}}), 0);
}

TEST(PredictedLatency, WhatIsLackingDependsOnThePredictorAndTheHeaders) {
  const policies::EndpointPickerConfig config =
      DocumentBuilder()
          .plugin("predicted-latency-producer")
          .plugin("slo-headroom-tier-filter")
          .plugin("latency-scorer")
          .profile("default", {{"slo-headroom-tier-filter"}, {"latency-scorer", 1}})
          .build();
  const auto warnings = [&](const SuppliedInputs& supplied) {
    Diagnostics found;
    warn_unsupplied_inputs(config, "epp", found, supplied);
    return found.items().size();
  };
  const std::vector<std::string> goals = {"x-llm-d-slo-ttft-ms"};
  EXPECT_EQ(warnings({}), 3U);
  EXPECT_EQ(warnings({.predictions = true}), 1U) << "the filter has no goals to hold against";
  EXPECT_EQ(warnings({.headers = goals, .predictions = true}), 0U);
  EXPECT_TRUE(deciding_predictor({}, config).has_value()) << "its producer is declared";
  RoutingConfig none;
  none.latency_predictor = PredictorSettings{.kind = PredictorKind::kNone};
  EXPECT_FALSE(deciding_predictor(none, config).has_value());
}

}  // namespace
}  // namespace routesim::sim::testing
