// Plugins that no vector file reaches, each against its rule.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "policies/scheduler.h"
#include "tests/policies/plugin_bench.h"

namespace routesim::policies {
namespace {

constexpr double kMissing = -1;  ///< Stands for an endpoint without the attribute.

/// Rows that an endpoint-attribute-filter keeps of endpoints with these values.
std::vector<EndpointRow> kept_by(const std::string& comparison, const std::vector<double>& values,
                                 bool fallback = false, const std::string& on_missing = "Pass") {
  const Json parameters = {
      {"attribute", "heat"},
      {"producer", "p"},
      {"onMissing", on_missing},
      {"fallbackOnEmpty", fallback},
      {"algorithm",
       {{"type", "threshold"}, {"threshold", {{"operator", comparison}, {"value", 2.0}}}}}};
  PluginBench bench("endpoint-attribute-filter", parameters, values.size());
  EXPECT_TRUE(bench.built()) << bench.errors();
  if (!bench.built()) return {};
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] != kMissing)
      bench.table().set_attribute("p/heat", EndpointId(static_cast<std::uint32_t>(i)), values[i]);
  return bench.kept();
}

using Rows = std::vector<EndpointRow>;

TEST(PluginRules, AnAttributeIsComparedAsTheOperatorSays) {
  const std::vector<double> values = {1, 2, 3};
  EXPECT_EQ(kept_by("LessThan", values), Rows({0}));
  EXPECT_EQ(kept_by("LessThanOrEqual", values), Rows({0, 1}));
  EXPECT_EQ(kept_by("GreaterThan", values), Rows({2}));
  EXPECT_EQ(kept_by("GreaterThanOrEqual", values), Rows({1, 2}));
  EXPECT_EQ(kept_by("Equal", values), Rows({1}));
  EXPECT_EQ(kept_by("NotEqual", values), Rows({0, 2}));
}

TEST(PluginRules, AMissingAttributePassesOrFailsAsAsked) {
  EXPECT_EQ(kept_by("LessThan", {kMissing, 3, 1}), Rows({0, 2}));
  EXPECT_EQ(kept_by("LessThan", {kMissing, 3, 1}, false, "Fail"), Rows({2}));
  EXPECT_EQ(kept_by("LessThan", {4, 3}), Rows());
  EXPECT_EQ(kept_by("LessThan", {4, 3}, true), Rows({0, 1}));
}

/// Scores of three endpoints behind active-request-scorer. A request goes to the first, whose
/// answer the client gets, and its prefill to the second.
std::vector<double> scores_after(Era era, Distribution distribution, bool headers, bool end,
                                 std::int64_t seconds) {
  PluginBench bench("active-request-scorer", nullptr, 3,
                    {.era = era, .distribution = distribution, .registry = nullptr});
  EXPECT_TRUE(bench.built()) << bench.errors();
  RequestView request;
  request.id = 1;
  Decision decision;
  decision.outcome = Outcome::kRouted;
  decision.primary = EndpointId(0);
  decision.profiles.resize(2);
  for (EndpointRow row = 0; row < 2; ++row) {
    decision.profiles[row].state = ProfileState::kOk;
    decision.profiles[row].targets = {row};
  }
  bench.scheduler().on_routed(request, decision, bench.table(), SimTime::zero());
  if (headers) bench.scheduler().on_response_started(1, SimTime::zero());
  if (end) bench.scheduler().on_completed(1, SimTime::zero());
  bench.scheduler().advance(SimTime::zero() + Duration::seconds(seconds));
  return bench.scores();
}

TEST(PluginRules, AnActiveRequestCountsAsLongAsItsReleaseSays) {
  using ThreeScores = std::vector<double>;
  constexpr auto kLlmD = Distribution::kLlmD;
  for (const Era era : {Era::kV0_3_2, Era::kV0_4_0, Era::kV0_5_0, Era::kV0_6_0})
    EXPECT_EQ(scores_after(era, kLlmD, false, false, 1), ThreeScores({0, 0, 1}));
  EXPECT_EQ(scores_after(Era::kV0_3_2, kLlmD, true, false, 1), ThreeScores({1, 0, 1}));
  EXPECT_EQ(scores_after(Era::kV0_3_2, kLlmD, true, true, 1), ThreeScores({1, 0, 1}));
  EXPECT_EQ(scores_after(Era::kV0_3_2, kLlmD, false, true, 1), ThreeScores({1, 0, 1}));
  EXPECT_EQ(scores_after(Era::kV0_3_2, kLlmD, true, true, 120), ThreeScores({1, 1, 1}));
  EXPECT_EQ(scores_after(Era::kV0_4_0, kLlmD, true, false, 1), ThreeScores({0, 0, 1}));
  EXPECT_EQ(scores_after(Era::kV0_4_0, kLlmD, true, true, 1), ThreeScores({1, 0, 1}));
  EXPECT_EQ(scores_after(Era::kV0_4_0, kLlmD, true, true, 120), ThreeScores({1, 1, 1}));
  EXPECT_EQ(scores_after(Era::kV0_5_0, kLlmD, true, false, 1), ThreeScores({0, 0, 1}));
  EXPECT_EQ(scores_after(Era::kV0_5_0, kLlmD, true, true, 1), ThreeScores({1, 1, 1}));
  EXPECT_EQ(scores_after(Era::kV0_3_2, Distribution::kHeimdall, true, false, 1),
            ThreeScores({0, 0, 1}));
  EXPECT_EQ(scores_after(Era::kV0_3_2, Distribution::kHeimdall, true, true, 1),
            ThreeScores({1, 1, 1}));
}

TEST(PluginRules, LabelExpressionsSelectAsInKubernetes) {
  const auto kept = [](const Json& expression) {
    PluginBench bench("label-selector-filter", {{"matchExpressions", Json::array({expression})}},
                      0);
    EXPECT_TRUE(bench.built()) << bench.errors();
    for (const char* tier : {"gold", "iron", ""}) {
      EndpointInfo info;
      info.pod_name = tier;
      if (!info.pod_name.empty()) info.labels["tier"] = tier;
      bench.table().add(std::move(info));
    }
    return bench.kept();
  };
  const Json gold = Json::array({"gold"});
  EXPECT_EQ(kept({{"key", "tier"}, {"operator", "In"}, {"values", gold}}), Rows({0}));
  EXPECT_EQ(kept({{"key", "tier"}, {"operator", "NotIn"}, {"values", gold}}), Rows({1, 2}));
  EXPECT_EQ(kept({{"key", "tier"}, {"operator", "Exists"}}), Rows({0, 1}));
  EXPECT_EQ(kept({{"key", "tier"}, {"operator", "DoesNotExist"}}), Rows({2}));
}

/// Rows that prefix-cache-affinity-filter keeps of two endpoints: 0 holds the prompt and has
/// `tokens` in flight, 1 has neither.
std::vector<EndpointRow> kept_by_affinity(const Json& parameters, std::int64_t tokens, Era era) {
  PluginBench bench("prefix-cache-affinity-filter", parameters, 2,
                    {.era = era, .distribution = {}, .registry = nullptr});
  EXPECT_TRUE(bench.built()) << bench.errors();
  bench.stub().matches = {StubData::Match{100, 100, 1, {}}, StubData::Match{0, 100, 1, {}}};
  bench.load(0, 1, tokens);
  return bench.kept();
}

TEST(PluginRules, InMay2026TokensInFlightBreakStickiness) {
  const Json parameters = {
      {"maxTokensInFlightPenalty", 1000}, {"explorationProbability", 0}, {"maxTTFTPenaltyMs", 0}};
  EXPECT_EQ(kept_by_affinity(parameters, 1000, Era::kMay2026), Rows({0}));
  EXPECT_EQ(kept_by_affinity(parameters, 1001, Era::kMay2026), Rows({0, 1}));
  // Without a predictor TTFT is unknown on both sides and costs nothing.
  EXPECT_EQ(kept_by_affinity({{"explorationProbability", 0}}, 1'000'000'000, Era::kMay2026),
            Rows({0}));
  // From June on the same tokens count as time: 18 s at 15,928 tokens/s.
  EXPECT_EQ(kept_by_affinity(Json(), 286'000, Era::kAug2026), Rows({0}));
  EXPECT_EQ(kept_by_affinity(Json(), 287'000, Era::kAug2026), Rows({0, 1}));
}

TEST(PluginRules, FromJune2026OnTheTokenGateIsRefused) {
  PluginBench bench("prefix-cache-affinity-filter", {{"maxTokensInFlightPenalty", 1000}}, 2,
                    {.era = Era::kAug2026, .distribution = {}, .registry = nullptr});
  EXPECT_FALSE(bench.built());
  EXPECT_NE(bench.errors().find("was replaced by maxTTFTPenaltyMs"), std::string::npos)
      << bench.errors();
}

TEST(PluginRules, EveryMatchLabelMustHold) {
  PluginBench bench(
      "by-label-selector",
      {{"matchLabels", {{"tier", "gold"}, {"zone", "a"}}}, {"matchExpressions", nullptr}}, 3);
  ASSERT_TRUE(bench.built()) << bench.errors();
  bench.table().mutable_info(EndpointId(0)).labels = {{"tier", "gold"}};
  bench.table().mutable_info(EndpointId(1)).labels = {{"tier", "gold"}, {"zone", "a"}, {"x", "y"}};
  EXPECT_EQ(bench.kept(), Rows({1}));
}

TEST(PluginRules, ALabelEqualToAHeaderScoresOne) {
  PluginBench bench("header-label-affinity-scorer",
                    {{"headerName", "x-tier"}, {"labelKey", "tier"}}, 3);
  ASSERT_TRUE(bench.built()) << bench.errors();
  bench.table().mutable_info(EndpointId(0)).labels["tier"] = "iron";
  bench.table().mutable_info(EndpointId(2)).labels["tier"] = "gold";
  const std::array<Header, 1> headers = {{{"X-Tier", "gold"}}};
  EXPECT_EQ(bench.scores({.id = 1, .headers = headers}), std::vector<double>({0, 0, 1}));
  EXPECT_EQ(bench.scores({.id = 2}), std::vector<double>({0, 0, 0}));
  bench.table().mutable_info(EndpointId(1)).labels["tier"] = "";
  const std::array<Header, 1> blank = {{{"X-Tier", ""}}};
  EXPECT_EQ(bench.scores({.id = 3, .headers = blank}), std::vector<double>({0, 0, 0}));
  PluginBench empty("header-label-affinity-scorer", {{"headerName", ""}, {"labelKey", ""}}, 1);
  EXPECT_NE(empty.errors().find("headerName: must not be empty"), std::string::npos);
  EXPECT_NE(empty.errors().find("labelKey: must not be empty"), std::string::npos);
}

TEST(PluginRules, LabelSelectorsAreRefusedWithTheirPlace) {
  const auto errors = [](const Json& parameters) {
    PluginBench bench("label-selector-filter", parameters, 1);
    EXPECT_FALSE(bench.built());
    return bench.errors();
  };
  const auto expression = [](const Json& e) -> Json {
    return {{"matchExpressions", Json::array({e})}};
  };
  EXPECT_NE(errors({{"matchExpressions", "tier"}}).find("must be a list"), std::string::npos);
  EXPECT_NE(errors({{"matchLabels", "tier"}}).find("must be a map"), std::string::npos);
  EXPECT_NE(errors({{"matchLabels", {{"tier", 1}}}}).find("matchLabels.tier: must be text"),
            std::string::npos);
  EXPECT_NE(errors({{"tier", "gold"}}).find("tier: unknown key"), std::string::npos);
  EXPECT_NE(errors(expression({{"key", "tier"}, {"operator", "Like"}}))
                .find("matchExpressions[0]: needs a key and an operator"),
            std::string::npos);
  EXPECT_NE(errors(expression({{"key", "tier"}, {"operator", "In"}})).find("needs string values"),
            std::string::npos);
  EXPECT_NE(
      errors(expression({{"key", "tier"}, {"operator", "Exists"}, {"values", Json::array({"x"})}}))
          .find("takes no values"),
      std::string::npos);
}

TEST(PluginRules, ATestHeaderNamesTheEndpoints) {
  PluginBench bench("header-based-testing-filter", nullptr, 3);
  ASSERT_TRUE(bench.built()) << bench.errors();
  const auto kept = [&](std::string_view value) {
    const std::array<Header, 1> headers = {{{"test-epp-endpoint-selection", value}}};
    return bench.kept({.id = 1, .headers = headers});
  };
  EXPECT_EQ(kept("10.0.0.2"), Rows({1}));
  EXPECT_EQ(kept("10.0.0.3:8000 , 10.0.0.1"), Rows({0, 2}));
  EXPECT_EQ(kept("10.0.0.9"), Rows());
  EXPECT_EQ(kept(""), Rows({0, 1, 2}));
}

TEST(PluginRules, AHeaderNamesTheProfileToRun) {
  PluginBench bench("header-profile-handler",
                    {{"headerName", "x-profile"}, {"defaultProfile", "a"}}, 2, {}, {"a", "b"});
  ASSERT_TRUE(bench.built()) << bench.errors();
  const auto ran = [&](std::string_view value) {
    const std::array<Header, 1> headers = {{{"x-profile", value}}};
    Explanation explanation;
    const Decision decision = bench.scheduler().explain(
        {.id = 1, .headers = headers}, bench.table(), SimTime::zero(), explanation);
    if (decision.routed()) return decision.primary_profile;
    EXPECT_EQ(decision.outcome, Outcome::kHandlerError);
    EXPECT_EQ(decision.http_status, 429);
    EXPECT_STREQ(decision.reason, "the header names no scheduling profile");
    return -1;
  };
  EXPECT_EQ(ran("a"), 0);
  EXPECT_EQ(ran(" b "), 1);
  EXPECT_EQ(ran(" "), 0) << "a blank header is none";
  EXPECT_EQ(ran("neither"), -1);
}

// llm-d-router ebab6879 header_profile_handler.go: one profile runs whatever the header says.
TEST(PluginRules, AHeaderDoesNotChooseAmongOneProfile) {
  PluginBench bench("header-profile-handler", nullptr, 2, {}, {"only"});
  ASSERT_TRUE(bench.built()) << bench.errors();
  const std::array<Header, 1> headers = {{{"EPP-Profile", "other"}}};
  EXPECT_TRUE(bench.scheduler()
                  .schedule({.id = 1, .headers = headers}, bench.table(), SimTime::zero())
                  .routed());
}

/// The scores of attributes 20, 50 and 80 where less is better.
std::vector<double> attribute_scores_with(const Json& normalization) {
  PluginBench bench(
      "endpoint-attribute-scorer",
      {{"attributeKey", "x"},
       {"algorithm", {{"type", "linear_lower_is_better"}, {"normalization", normalization}}}},
      3);
  EXPECT_TRUE(bench.built()) << bench.errors();
  for (std::uint32_t row = 0; row < 3; ++row)
    bench.table().set_attribute("core-metrics-extractor/x", EndpointId(row), 20 + 30.0 * row);
  return bench.built() ? bench.scores() : std::vector<double>();
}

// llm-d-router ebab6879 scorer/endpointattribute: the key that is there selects the mode.
TEST(PluginRules, TheKeyFixedRangeSelectsFixedBounds) {
  EXPECT_EQ(attribute_scores_with(Json::object()), std::vector<double>({1, 0.5, 0}));
  EXPECT_EQ(attribute_scores_with({{"adaptiveRange", Json::object()}}),
            std::vector<double>({1, 0.5, 0}));
  EXPECT_EQ(attribute_scores_with({{"fixedRange", {{"min", 0}, {"max", 100}}}}),
            std::vector<double>({0.8, 0.5, 0.2}));
  EXPECT_EQ(attribute_scores_with({{"fixedRange", {{"max", 40}}}}),
            std::vector<double>({0.5, 0, 0}))
      << "an absent bound is 0";
}

TEST(PluginRules, NormalizationHasNoType) {
  const auto errors = [](const Json& normalization) {
    return PluginBench("endpoint-attribute-scorer",
                       {{"attributeKey", "x"},
                        {"algorithm",
                         {{"type", "linear_lower_is_better"}, {"normalization", normalization}}}},
                       1)
        .errors();
  };
  EXPECT_NE(errors({{"type", "fixedRange"}}).find("normalization.type: unknown key"),
            std::string::npos)
      << errors({{"type", "fixedRange"}});
  EXPECT_NE(errors({{"fixedRange", {{"max", 1}}}, {"adaptiveRange", Json::object()}})
                .find("exclude each other"),
            std::string::npos);
  EXPECT_NE(errors({{"fixedRange", {{"min", 2}, {"max", 2}}}}).find("needs min < max"),
            std::string::npos);
}

// llm-d-router ebab6879 pkg/epp/datalayer/data_graph.go finds no default producer of
// UncachedRequestTokens; the May release did not ask for it.
TEST(PluginRules, TokenLoadNeedsADeclaredProducer) {
  const auto errors = [](Era era, const Json& more, const Json& parameters = nullptr) {
    return PluginBench("token-load-scorer", parameters, 1,
                       {.era = era, .distribution = {}, .registry = nullptr}, {"default"}, more)
        .errors();
  };
  const Json none = Json::array();
  const Json other = Json::array({{{"type", "active-request-scorer"}}});
  const Json declared = Json::array({{{"type", "inflight-load-producer"}}});
  for (const Json& more : {none, other})
    EXPECT_NE(errors(Era::kAug2026, more).find("needs a declared inflight-load-producer"),
              std::string::npos);
  EXPECT_EQ(errors(Era::kAug2026, declared), "");
  EXPECT_EQ(errors(Era::kMay2026, none), "");
  const Json named = Json::array({{{"name", "mine"}, {"type", "inflight-load-producer"}}});
  EXPECT_EQ(errors(Era::kAug2026, named, {{"inFlightLoadProducerName", "mine"}}), "");
}

/// One endpoint behind latency-slo-admitter, whose side-car predicts 100 ms and 30 ms per token.
class LatencyObjectives : public ::testing::Test {
 protected:
  LatencyObjectives()
      : scheduler_(make_scheduler(document("- type: predicted-latency-producer\n"
                                           "  parameters:\n"
                                           "    streamingMode: true\n"
                                           "    endpointRoleLabel: role\n"
                                           "- type: latency-slo-admitter\n"
                                           "- type: queue-scorer\n",
                                           "  - pluginRef: queue-scorer\n"))),
        table_(make_endpoints(1)) {
    table_.set_metrics(EndpointId(0), 0, 1, 0.5, SimTime::zero());
  }

  RequestView request(std::uint64_t id, double slo_ttft_ms, double slo_tpot_ms) const {
    RequestView r{.id = id, .predictions = predictions_};
    r.priority = -1;  // Others are never refused.
    r.slo_ttft_ms = slo_ttft_ms;
    r.slo_tpot_ms = slo_tpot_ms;
    return r;
  }
  bool admitted(const RequestView& r) const {
    return scheduler_->schedule(r, table_, SimTime::zero()).routed();
  }

  std::unique_ptr<Scheduler> scheduler_;
  EndpointTable table_;
  std::array<LatencyPrediction, 1> predictions_ = {
      {{.present = true, .ttft_ms = 100, .tpot_ms = 30}}};
};

TEST_F(LatencyObjectives, ARequestThatWouldBeLateIsRefused) {
  EXPECT_TRUE(admitted(request(1, 200, 40)));
  EXPECT_FALSE(admitted(request(2, 50, 40))) << "the first token would be late";
  EXPECT_FALSE(admitted(request(3, 200, 20))) << "the other tokens would be late";
  EXPECT_TRUE(admitted(request(4, 0, 0))) << "it has no objectives";
  RequestView urgent = request(5, 50, 20);
  urgent.priority = 0;
  EXPECT_TRUE(admitted(urgent)) << "it may not be shed";
}

TEST_F(LatencyObjectives, WithoutEvidenceNothingIsRefused) {
  table_.set_metrics(EndpointId(0), 0, 1, 0.01, SimTime::zero());
  EXPECT_TRUE(admitted(request(1, 50, 20))) << "its cache is cold";
  table_.set_metrics(EndpointId(0), 0, 0, 0.5, SimTime::zero());
  EXPECT_TRUE(admitted(request(2, 50, 20))) << "it is idle";
  table_.set_metrics(EndpointId(0), 0, 1, 0.5, SimTime::zero());
  predictions_[0].present = false;
  EXPECT_TRUE(admitted(request(3, 50, 20))) << "nobody predicted anything";
}

TEST_F(LatencyObjectives, TheTightestRunningRequestBindsUntilItIsDone) {
  const SimTime now = SimTime::zero();
  const RequestView tight = request(1, 200, 31);
  predictions_[0].tpot_ms = 30.5;
  const Decision decision = scheduler_->schedule(tight, table_, now);
  ASSERT_TRUE(decision.routed());
  scheduler_->on_routed(tight, decision, table_, now);
  predictions_[0].tpot_ms = 35;
  EXPECT_FALSE(admitted(request(2, 200, 40))) << "it would slow the first one beyond 31 ms";
  scheduler_->on_completed(1, now);
  EXPECT_TRUE(admitted(request(3, 200, 40)));
  scheduler_->on_completed(1, now);  // Twice is once.
  EXPECT_TRUE(admitted(request(4, 200, 40)));
}

TEST_F(LatencyObjectives, WhatRanOnARemovedEndpointBindsNoMore) {
  const SimTime now = SimTime::zero();
  const RequestView tight = request(1, 200, 31);
  const Decision decision = scheduler_->schedule(tight, table_, now);
  ASSERT_TRUE(decision.routed());
  scheduler_->on_routed(tight, decision, table_, now);
  scheduler_->on_endpoint_removed(0, table_, now);
  predictions_[0].tpot_ms = 35;
  EXPECT_TRUE(admitted(request(2, 200, 40)));
  scheduler_->on_completed(1, now);
  EXPECT_TRUE(admitted(request(3, 200, 40)));
}

TEST_F(LatencyObjectives, APrefillServerHasNoTokensToBeLateWith) {
  table_.mutable_info(EndpointId(0)).labels["role"] = "prefill";
  EXPECT_TRUE(admitted(request(1, 200, 20)));
  EXPECT_FALSE(admitted(request(2, 50, 20)));
}

}  // namespace
}  // namespace routesim::policies
