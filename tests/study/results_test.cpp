// Results as values, and what studies keep of them; the statistics of repeated runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "tests/tools/scenario_fixture.h"
#include "tools/results/described_json.h"
#include "tools/results/goodput.h"
#include "tools/results/metric_name.h"
#include "tools/results/metrics.h"
#include "tools/results/output_file.h"
#include "tools/results/report.h"
#include "tools/results/result_record.h"
#include "tools/results/result_set.h"
#include "tools/results/statistics.h"
#include "tools/results/trust_errors.h"
#include "tools/study/experiment/experiment.h"
#include "tools/study/experiment/journal.h"

namespace routesim::tools {
namespace {

// Results as values, and what studies keep of them: metrics, goodput, sets of runs, keys of
// candidates and journals, against numbers a reader can redo.

using models::Trust;

/// Eight requests in five seconds, of which three failed; each TTFT is `ttft_s`.
sim::StageResult eight_requests(double ttft_s) {
  sim::StageResult s;
  s.requests = 8;
  s.successes = 5;
  s.failures = 3;
  s.first_send = SimTime::zero();
  s.last_send = SimTime::zero() + Duration::seconds(5);
  s.last_end = SimTime::zero() + Duration::seconds(10);
  for (int i = 0; i < 5; ++i) s.time_to_first_token.add(ttft_s);
  s.info.name = "4";
  s.info.requested_rate = 2;
  return s;
}

sim::RunResult run_of(std::uint64_t seed, double ttft_s) {
  sim::RunResult result;
  result.seed = seed;
  result.stages = {eight_requests(ttft_s)};
  result.summary = eight_requests(ttft_s);
  return result;
}

TEST(MetricValue, OfALadderIsWeightedByAllThatWasSent) {
  const sim::StageResult a = eight_requests(1);
  sim::StageResult b = eight_requests(4);
  b.requests = 16;
  const std::vector<const sim::StageResult*> stages = {&a, &b};
  EXPECT_DOUBLE_EQ(*ladder_value(stages, "ttft", "request_weighted_mean_of_2_stage_means", "s"),
                   (8.0 * 1 + 16 * 4) / 24);
}

TEST(MetricValue, TellsTheWaitsOfATierApart) {
  sim::StageResult s = eight_requests(1);
  EXPECT_FALSE(metric_value(s, "tier_pull_wait", "mean", "s").has_value()) << "no tiers";
  sim::TierResult& tiers = s.tiers.emplace();
  tiers.did.load_waits.add(Duration::seconds(1));
  tiers.did.pull_waits.add(Duration::seconds(2));
  tiers.did.pull_waits.add(Duration::seconds(4));
  tiers.did.loaded_bytes = 5e9;
  tiers.did.pulled_bytes = 7e9;
  EXPECT_EQ(metric_value(s, "tier_load_wait", "mean", "s"), 1);
  EXPECT_EQ(metric_value(s, "tier_pull_wait", "mean", "ms"), 3000);
  EXPECT_DOUBLE_EQ(*metric_value(s, "tier_loaded_gigabytes", "mean", "GB"), 5);
  EXPECT_DOUBLE_EQ(*metric_value(s, "tier_pulled_gigabytes", "mean", "GB"), 7);
}

TEST(MetricValue, HasPercentilesFromZeroToAHundred) {
  sim::StageResult s = eight_requests(0.1);
  s.time_to_first_token.add(0.3);
  for (const auto& [text, value] :
       {std::pair{"ttft_ms.p0", 100.0}, {"ttft_ms.p100", 300.0}, {"ttft_ms.max", 300.0}}) {
    const Parsed<MetricName> name = parse_metric_name(text);
    ASSERT_TRUE(name.value.has_value()) << name.message;
    EXPECT_EQ(name.value->text, text);
    EXPECT_NEAR(*metric_value(s, *name.value), value, 1e-9) << text;
  }
  EXPECT_FALSE(parse_metric_name("ttft_ms.p100.1").value.has_value());
}

TEST(MetricValue, OfARecordIsThatOfTheRun) {
  StageRecord record;
  record.kv_cache_usage = {.mean = 0.5, .max = 0.75};
  const auto value = [&record](std::string_view name) {
    return record_value(record, *parse_metric_name(name).value);
  };
  EXPECT_EQ(value("kv_cache_usage.mean"), 0.5);
  EXPECT_EQ(value("kv_cache_usage_percent.max"), 75);
}

TEST(ResultRecord, TheAchievedRateIsOfAllThatWasSent) {
  const LifecycleRecord record = lifecycle_record(eight_requests(1), {}, false);
  ASSERT_TRUE(record.load.stage.has_value());
  EXPECT_DOUBLE_EQ(record.load.stage->achieved_rate, 8.0 / 5);
  EXPECT_DOUBLE_EQ(record.load.stage->requested_rate, 2);
}

TEST(ResultRecord, AStretchWithoutAHitIsNotOneWithoutALookup) {
  Report report;
  VariantReport& variant = report.variants.emplace_back();
  sim::TimeSeries& series = variant.series.emplace();
  series.interval = Duration::seconds(1);
  series.cluster.resize(4);
  sim::EndpointSeries& endpoint = series.endpoints.emplace_back();
  endpoint.usable_blocks = 10;
  endpoint.points.resize(4);
  // Asked for 10 tokens and found 5; for 10 more and found none; for none.
  for (const std::size_t i : {1U, 2U, 3U}) {
    endpoint.points[i].query_tokens = i == 1 ? 10 : 20;
    endpoint.points[i].hit_tokens = 5;
  }
  const std::vector<double> rates =
      run_record(report).variants[0].series->endpoints[0].prefix_hit_rate;
  ASSERT_EQ(rates.size(), 4U);
  EXPECT_TRUE(std::isnan(rates[0]));
  EXPECT_EQ(rates[1], 0.5);
  EXPECT_EQ(rates[2], 0);
  EXPECT_TRUE(std::isnan(rates[3]));
}

TEST(ResultRecord, AMedianOfAnEvenNumberIsBetweenTheMiddleTwo) {
  ResultSetBuilder builder({"old"}, standard_metrics());
  std::size_t r = 0;
  for (const double ttft_s : {0.6, 0.1, 0.5, 0.2, 0.4, 0.3}) {
    builder.add(0, r, run_of(r + 1, ttft_s));
    ++r;
  }
  const ReplicationsRecord record = replications_record(builder.take(6));
  const auto& metrics = record.variants[0].summary.metrics.items;
  const auto found =
      std::ranges::find_if(metrics, [](const auto& m) { return m.first == "ttft_ms.mean"; });
  ASSERT_NE(found, metrics.end());
  EXPECT_NEAR(*found->second->median, 350, 1e-9);
  // Six runs lie on both sides of the median with probability 1 - 2 / 64 = 0.97.
  EXPECT_NEAR(*found->second->median_low, 100, 1e-9);
  EXPECT_NEAR(*found->second->median_high, 600, 1e-9);
}

TEST(ResultSet, ARateThatTheSeedChangesIsNoRate) {
  for (const double second : {2.0, 3.0}) {
    ResultSetBuilder builder({"old"}, standard_metrics());
    sim::RunResult other = run_of(2, 0.1);
    other.stages.front().info.requested_rate = second;
    builder.add(0, 0, run_of(1, 0.1));
    builder.add(0, 1, other);
    EXPECT_EQ(builder.take(2).variants[0].stages.front().rate, second == 2 ? 2 : 0);
  }
}

TEST(ResultSet, AWarmUpStageIsNoPartOfTheWholeRun) {
  sim::RunResult run = run_of(1, 0.1);
  run.stages.insert(run.stages.begin(), run.stages.front());
  run.stages.front().info.name = "3";
  run.stages.front().info.reported = false;
  run.stages.front().queue_growth = 0.5;
  ResultSetBuilder builder({"old"}, standard_metrics());
  builder.add(0, 0, run);
  ResultSet set = builder.take(1);
  VariantValues& variant = set.variants[0];
  EXPECT_TRUE(find_stage(variant, "3")->overloaded);
  EXPECT_FALSE(find_stage(variant, "")->overloaded);
  EXPECT_EQ(pooled_overload(variant, ""), "");
  std::swap(variant.stages[0].overloaded, variant.stages[1].overloaded);
  EXPECT_EQ(pooled_overload(variant, ""), "") << "the healthy stage is the warm-up";
}

TEST(Decision, AnIntervalThatTouchesTheBoundIsDecidedByTheSign) {
  // From 0 to 10, from -10 to 0, and 0 alone: what is asked is < 0, or <= 0.
  const sim::Estimate above{.n = 3, .mean = 5, .half_width = 5};
  const sim::Estimate below{.n = 3, .mean = -5, .half_width = 5};
  const sim::Estimate at{.n = 3, .mean = 0, .half_width = 0};
  EXPECT_EQ(decide_below_zero(above, false), Decision::kFails);
  EXPECT_EQ(decide_below_zero(above, true), Decision::kUndecided);
  EXPECT_EQ(decide_below_zero(below, false), Decision::kUndecided);
  EXPECT_EQ(decide_below_zero(below, true), Decision::kHolds);
  EXPECT_EQ(decide_below_zero(at, false), Decision::kFails);
  EXPECT_EQ(decide_below_zero(at, true), Decision::kHolds);
}

TEST(Capacity, MoreBlocksMayHelpAsMuchAsFewerHurt) {
  const StageSide side{.ttft_mean_s = 90, .overloaded = false};
  VariantReport variant;
  variant.capacity_band = {{.stage = "0", .as_is = side, .fewer = side, .more = side}};
  variant.capacity_band[0].more.ttft_mean_s = 80;
  const std::string text = capacity_text(variant);
  EXPECT_NE(text.find("from 90.00 s to 90.00 s (fewer) or 80.00 s (more)"), std::string::npos)
      << text;
}

TEST(GoodputObserver, WhatHoldsARequestOpenIsPartOfItsLatency) {
  GoodputGoals goals;
  EXPECT_EQ(read_goal("request_latency:2s", goals), "");
  GoodputObserver observer(goals, 1.0);
  sim::RequestRecord r;
  r.sent = SimTime::zero() + Duration::seconds(3);
  r.first_token = r.sent + Duration::milliseconds(400);
  r.end = r.sent + Duration::milliseconds(800);
  r.output_tokens = 11;
  r.held_open = Duration::milliseconds(1200);
  observer.on_done(r);
  r.held_open = Duration::milliseconds(1201);
  observer.on_done(r);
  sim::RunResult run;
  run.stages.resize(1);
  const GoodputResult result = observer.result(run);
  EXPECT_EQ(result.summary.good, 1);
  EXPECT_EQ(result.summary.tool.good, 1);
  EXPECT_EQ(result.summary.tool.last_end, r.sent + Duration::milliseconds(2001));
}

TEST(TrustErrors, TheBandIsTheLargerMeanErrorOfOutputAndOfTimePerToken) {
  for (const Trust trust : trust_classes()) {
    double largest = 0;
    for (const TrustError& e : trust_errors())
      if (e.trust == trust &&
          (e.quantity == "output tokens/s" || e.quantity == "time per output token"))
        largest = std::max(largest, e.mean);
    EXPECT_DOUBLE_EQ(step_time_band(trust), largest / 100) << enum_name(trust);
  }
}

TEST(TrustErrors, QuantitiesAreThoseOfTheTable) {
  EXPECT_EQ(trust_quantity("ttft", "mean"), "TTFT mean");
  for (const std::string_view high : {"p90", "p95", "p99", "p99.9"})
    EXPECT_EQ(trust_quantity("ttft", high), "TTFT p90 and above") << high;
  for (const std::string_view low : {"median", "p75", "p89"})
    EXPECT_EQ(trust_quantity("ttft", low), "") << low;
  EXPECT_EQ(trust_quantity("itl", "mean"), "time per output token");
  EXPECT_EQ(trust_quantity("itl", "p90"), "");
  EXPECT_EQ(trust_quantity("output_throughput", "mean"), "output tokens/s");
}

TEST(WriteTree, KnowsTheTruthOfYamlInEverySpelling) {
  std::vector<ConfigNode::Ptr> items;
  for (const char* const text : {"true", "True", "TRUE", "false", "False", "FALSE"})
    items.push_back(ConfigNode::make_scalar(text, ConfigNode::Style::kPlain, {}));
  JsonWriter writer(0);
  write_tree(writer, *ConfigNode::make_sequence(std::move(items), {}));
  EXPECT_EQ(writer.str(), "[true,true,true,false,false,false]");
}

class OutputFiles : public testing::FolderTest {};

TEST_F(OutputFiles, ALinkIsFollowedFromItsOwnFolder) {
  const std::string real = write("there/real.txt", "old");
  std::filesystem::create_directories(folder_ / "here");
  std::filesystem::create_symlink("../there/real.txt", folder_ / "here/link.txt");
  EXPECT_EQ(write_file(path("here/link.txt"), "new"), "");
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "here/link.txt"));
  std::ifstream in(real);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "new");
}

std::string journal_row() {
  return sealed_row("{\"key\":\"" + std::string(32, 'a') + "\"", ",\"variant\":\"v\",\"x\":1", "");
}

class Journals : public testing::FolderTest {
 protected:
  std::set<std::string> keys_ = {std::string(32, 'a')};
};

// A kill between writing OUTPUT and removing the partial file leaves both.
TEST_F(Journals, ARowInBothFilesIsTakenUpOnce) {
  write("out.jsonl.partial", journal_row());
  Journal journal(write("out.jsonl", journal_row()), "");
  Diagnostics diagnostics;
  EXPECT_TRUE(journal.open(true, keys_, diagnostics));
  EXPECT_TRUE(diagnostics.items().empty());
  EXPECT_EQ(journal.size(), 1U);
}

TEST_F(Journals, RowsStayWhereTheOtherFileIsBroken) {
  const std::string partial = write("out.jsonl.partial", journal_row());
  Diagnostics diagnostics;
  EXPECT_FALSE(Journal(write("out.jsonl", "broken\n"), "").open(true, keys_, diagnostics));
  EXPECT_TRUE(std::filesystem::exists(partial));
}

TEST(KeyHash, TellsWhereAPartEnds) {
  const auto hash = [](const std::vector<std::string>& parts) {
    KeyHash key;
    for (const std::string& part : parts) key.add(part);
    return key.finish();
  };
  EXPECT_EQ(hash({"ab", "c"}).size(), 32U);
  EXPECT_EQ(hash({"ab", "c"}), hash({"ab", "c"}));
  EXPECT_NE(hash({"ab", "c"}), hash({"a", "bc"}));
  EXPECT_NE(hash({"ab", ""}), hash({"ab"}));
}

class CandidateKeys : public testing::ScenarioTest {
 protected:
  std::string key(const std::string& more, std::size_t variant = 0) const {
    Diagnostics diagnostics;
    const LoadedScenario scenario = load(more, diagnostics);
    EXPECT_FALSE(diagnostics.has_errors()) << more;
    return candidate_key(scenario.variants.at(variant), {}, diagnostics);
  }
};

TEST_F(CandidateKeys, TellWhatDecidesTheNumbersAndNoMore) {
  const std::string bare = key("");
  EXPECT_EQ(key("question: Why?\n"), bare);
  EXPECT_EQ(key("expect:\n- {that: ttft_ms.mean < 500}\n"), bare);
  EXPECT_NE(key("goodput: [\"ttft:1s\"]\n"), bare);
  const std::string twins = "variants:\n- {name: x}\n- {name: y}\n";
  EXPECT_NE(key(twins, 0), key(twins, 1)) << "each has a row of its own";
}

}  // namespace
}  // namespace routesim::tools

namespace routesim::sim {
namespace {

// The formulas, against tables and numbers a reader can redo.

/// The table in every statistics book: two-sided 95 %.
TEST(StudentT, AgreesWithThePrintedTable) {
  struct Row {
    double degrees;
    double t;
  };
  constexpr std::array<Row, 6> kTable = {
      {{1, 12.706}, {2, 4.303}, {4, 2.776}, {9, 2.262}, {30, 2.042}, {1000, 1.962}}};
  for (const Row& row : kTable) {
    EXPECT_NEAR(student_t_quantile(0.975, row.degrees), row.t, 5e-4) << row.degrees;
    EXPECT_NEAR(student_t_quantile(0.025, row.degrees), -row.t, 5e-4) << row.degrees;
  }
}

TEST(StudentT, HasAClosedFormForOneAndTwoDegrees) {
  for (const double p : {0.6, 0.9, 0.975, 0.999}) {
    EXPECT_NEAR(student_t_quantile(p, 1), std::tan(M_PI * (p - 0.5)), 1e-9);
    const double a = 4 * p * (1 - p);
    EXPECT_NEAR(student_t_quantile(p, 2), 2 * (p - 0.5) * std::sqrt(2 / a), 1e-9);
  }
}

TEST(Estimate, OfFourNumbers) {
  const std::vector<double> values = {1, 2, 3, 6};  // Mean 3, squares 4 + 1 + 0 + 9 = 14.
  const Estimate e = estimate(values);
  EXPECT_DOUBLE_EQ(e.mean, 3);
  EXPECT_DOUBLE_EQ(e.sd, std::sqrt(14.0 / 3));
  EXPECT_NEAR(e.half_width, 3.18245 * std::sqrt(14.0 / 3) / 2, 1e-4);
  EXPECT_TRUE(e.holds(0));
  EXPECT_FALSE(e.holds(7));
}

TEST(Estimate, OfOneRunIsUnbounded) {
  const std::vector<double> one = {5};
  EXPECT_TRUE(std::isinf(estimate(one).half_width));
  EXPECT_EQ(verdict(estimate(one), Direction::kLargerIsBetter), Verdict::kNotDistinguishable);
  EXPECT_TRUE(std::isinf(estimate({}).half_width));
}

TEST(PairedDifference, CancelsTheNoiseTheVariantsShare) {
  const std::vector<double> base = {10, 50, 90};
  const std::vector<double> changed = {11, 52, 91};  // Differences 1, 2, 1.
  const Estimate paired = paired_difference(base, changed);
  EXPECT_DOUBLE_EQ(paired.mean, 4.0 / 3);
  EXPECT_DOUBLE_EQ(paired.sd, std::sqrt(1.0 / 3));
  EXPECT_TRUE(paired.holds(1.0));
  const Estimate apart = independent_difference(base, changed);
  EXPECT_NEAR(apart.mean, paired.mean, 1e-12);
  EXPECT_GT(apart.half_width, 40 * paired.half_width);
}

TEST(PairedDifference, WithAFactorAsksForAChangeInPercent) {
  const std::vector<double> base = {100, 200};
  const std::vector<double> changed = {106, 212};
  EXPECT_NEAR(paired_difference(base, changed, 1.05).mean, 1.5, 1e-9);
  EXPECT_NEAR(paired_difference(base, changed, 1.06).mean, 0, 1e-9);
}

/// Welch's worked example with equal sizes and spreads is the pooled test with 2(n-1) degrees.
TEST(IndependentDifference, IsThePooledOneForEqualSpreads) {
  const std::vector<double> base = {1, 2, 3};
  const std::vector<double> changed = {11, 12, 13};
  const Estimate e = independent_difference(base, changed);
  EXPECT_DOUBLE_EQ(e.mean, 10);
  EXPECT_NEAR(e.half_width, student_t_quantile(0.975, 4) * std::sqrt(2.0 / 3), 1e-9);
}

TEST(IndependentDifference, HasWelchsDegreesForUnequalSizes) {
  // Variances of the means: 2 / 2 = 1 and 2.5 / 5 = 0.5, with 1 and 4 degrees.
  const std::vector<double> base = {0, 2};
  const std::vector<double> changed = {1, 2, 3, 4, 5};
  const double degrees = 1.5 * 1.5 / (1.0 / 1 + 0.25 / 4);
  const Estimate e = independent_difference(base, changed);
  EXPECT_DOUBLE_EQ(e.mean, 2);
  EXPECT_NEAR(e.half_width, student_t_quantile(0.975, degrees) * std::sqrt(1.5), 1e-9);
}

TEST(IndependentDifference, WithoutSpreadIsExact) {
  const std::vector<double> base = {2, 2};
  const std::vector<double> changed = {3, 3, 3};
  EXPECT_EQ(independent_difference(base, changed).half_width, 0);
  EXPECT_EQ(independent_difference(base, changed).mean, 1);
}

/// The bounds are where the paired difference with that factor just touches zero.
TEST(PairedRatio, DecidesAsThePairedDifferenceDoes) {
  const std::vector<double> base = {10, 12, 9, 11, 10.5};
  const std::vector<double> changed = {12.2, 14.1, 10.7, 13.4, 12.5};
  const std::optional<Interval> ratio = paired_ratio(base, changed);
  ASSERT_TRUE(ratio.has_value());
  EXPECT_NEAR(paired_difference(base, changed, ratio->low).low(), 0, 1e-9);
  EXPECT_NEAR(paired_difference(base, changed, ratio->high).high(), 0, 1e-9);
  EXPECT_LT(ratio->low, mean(changed) / mean(base));
  EXPECT_GT(ratio->high, mean(changed) / mean(base));
}

TEST(PairedRatio, IsUnboundedWhenTheBaseMayBeZero) {
  EXPECT_FALSE(paired_ratio(std::vector<double>{-1, 1.5}, std::vector<double>{3, 4}).has_value());
  EXPECT_FALSE(paired_ratio(std::vector<double>{1}, std::vector<double>{3}).has_value());
}

/// P(l < B <= u) of a fair coin thrown n times, by counting.
double fair_coin(std::size_t n, std::size_t low, std::size_t high) {
  double coverage = 0;
  double ways = 1;
  for (std::size_t k = 0; k <= n; ++k) {
    if (k > low && k <= high) coverage += ways / std::pow(2.0, static_cast<double>(n));
    ways *= static_cast<double>(n - k) / static_cast<double>(k + 1);
  }
  return coverage;
}

TEST(QuantileRanks, OfAMedianAreTheSignTest) {
  // Six values: smallest and largest hold the median unless all six fall on one side, 1 - 2/64.
  const std::optional<RankInterval> six = quantile_ranks(6, 0.5);
  ASSERT_TRUE(six.has_value());
  EXPECT_EQ(six->low, 0U);
  EXPECT_EQ(six->high, 5U);
  EXPECT_NEAR(six->coverage, 1 - 2.0 / 64, 1e-12);
  EXPECT_FALSE(quantile_ranks(5, 0.5).has_value());
  const std::optional<RankInterval> twenty = quantile_ranks(20, 0.5);
  ASSERT_TRUE(twenty.has_value());
  EXPECT_NEAR(twenty->coverage, fair_coin(20, twenty->low, twenty->high), 1e-9);
  EXPECT_GE(twenty->coverage, kConfidence);
  // No pair one rank shorter is enough.
  EXPECT_LT(fair_coin(20, twenty->low + 1, twenty->high), kConfidence);
  EXPECT_LT(fair_coin(20, twenty->low, twenty->high - 1), kConfidence);
}

TEST(QuantileRanks, OfAP99NeedEnoughValues) {
  EXPECT_FALSE(quantile_ranks(200, 0.99).has_value());
  const std::optional<RankInterval> ranks = quantile_ranks(10'000, 0.99);
  ASSERT_TRUE(ranks.has_value());
  // Normal approximation: 9900 +- 1.96 sqrt(10000 * 0.99 * 0.01) = 9900 +- 19.5.
  EXPECT_NEAR(static_cast<double>(ranks->low), 9880, 3);
  EXPECT_NEAR(static_cast<double>(ranks->high), 9920, 3);
  EXPECT_GE(ranks->coverage, kConfidence);
}

TEST(Verdict, NeedsAnIntervalWithoutZero) {
  const Estimate up{.n = 5, .mean = 2, .sd = 1, .half_width = 1};
  EXPECT_EQ(verdict(up, Direction::kLargerIsBetter), Verdict::kBetter);
  EXPECT_EQ(verdict(up, Direction::kSmallerIsBetter), Verdict::kWorse);
  const Estimate unclear{.n = 5, .mean = 2, .sd = 1, .half_width = 2};
  EXPECT_EQ(verdict(unclear, Direction::kSmallerIsBetter), Verdict::kNotDistinguishable);
  const Estimate same{.n = 5};
  EXPECT_EQ(verdict(same, Direction::kSmallerIsBetter), Verdict::kNotDistinguishable);
  EXPECT_EQ(verdict_text(Verdict::kNotDistinguishable), "not distinguishable");
}

}  // namespace
}  // namespace routesim::sim
