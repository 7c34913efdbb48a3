// Intervals, expectations, gates and the files build servers read, against numbers a reader can
// redo.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tests/base/messages.h"
#include "tests/tools/command_fixture.h"
#include "tools/render/document.h"
#include "tools/render/page/html_page.h"
#include "tools/results/described_json.h"
#include "tools/results/report.h"
#include "tools/results/result_record.h"
#include "tools/study/compare/comparison.h"
#include "tools/study/compare/comparison_record.h"
#include "tools/study/compare/expectation.h"
#include "tools/study/report/read_results.h"
#include "tools/study/run/render_run.h"

namespace routesim::tools {
namespace {

std::string drawn(const Comparison& c, const std::string& format) {
  return draw(comparison_document(comparison_record(c)), format, 10'000);
}
std::string text_of(const Comparison& c) { return drawn(c, "table"); }
std::string markdown_of(const Comparison& c) { return drawn(c, "markdown"); }
std::string page_of(const std::string& json) {
  Diagnostics diagnostics;
  const PageData data = read_results({{.file = "result", .text = json}}, diagnostics);
  EXPECT_EQ(messages_of(diagnostics), "");
  return render_page(data);
}

std::string json_of(const Comparison& c) {
  ComparisonRecord record = comparison_record(c);
  return json_text(record);
}

/// A run whose every TTFT is `ttft_s`, of ten requests with 100 output tokens each in ten seconds.
sim::RunResult run_of(std::uint64_t seed, double ttft_s) {
  sim::RunResult result;
  result.seed = seed;
  sim::StageResult s;
  s.requests = s.successes = 10;
  s.first_send = SimTime::zero();
  s.last_send = SimTime::zero() + Duration::seconds(5);
  s.last_end = SimTime::zero() + Duration::seconds(10);
  s.output_tokens_total = 1000;
  for (int i = 0; i < 10; ++i) s.time_to_first_token.add(ttft_s);
  s.info.name = "4";
  s.info.requested_rate = 2;
  result.stages = {s};
  result.summary = s;
  return result;
}

/// Seeds 1, 2, 3; TTFTs in seconds of two variants.
ResultSet two_variants(const std::vector<double>& a, const std::vector<double>& b) {
  ResultSetBuilder builder({"old", "new"}, standard_metrics());
  for (std::size_t r = 0; r < a.size(); ++r) {
    builder.add(0, r, run_of(r + 1, a[r]));
    builder.add(1, r, run_of(r + 1, b[r]));
  }
  ResultSet set = builder.take(builder.complete());
  set.scenario = "s";
  return set;
}

MetricName metric(std::string_view text) { return *parse_metric_name(text).value; }

Expectation expect(const std::string& that, const std::string& variant) {
  const Parsed<Condition> condition = parse_condition(that);
  EXPECT_TRUE(condition.value.has_value()) << that << ": " << condition.message;
  return {condition.value.value_or(Condition{}),
          variant,
          "",
          {.file = "s.yaml", .line = 7, .column = 3}};
}

TEST(ResultSet, HasOnlyWholeReplications) {
  ResultSetBuilder builder({"old", "new"}, standard_metrics());
  builder.add(0, 0, run_of(5, 0.1));
  EXPECT_EQ(builder.complete(), 0U);
  builder.add(1, 1, run_of(6, 0.1));
  builder.add(1, 0, run_of(5, 0.2));
  EXPECT_EQ(builder.complete(), 1U);
  const ResultSet set = builder.take(1);
  EXPECT_EQ(set.seeds, (std::vector<std::uint64_t>{5}));
  EXPECT_EQ(set.values(set.variants[1].stages.back(), metric("ttft_ms.mean")),
            (std::vector<double>{200}));
  EXPECT_FALSE(set.values(set.variants[1].stages.back(), metric("itl_ms.mean")).has_value());
  EXPECT_EQ(set.variants[0].stages.front().stage, "4");
}

TEST(Differences, ArePairedAndAdmitWhatTheyCannotTell) {
  const MetricName ttft = metric("ttft_ms.mean");
  const std::vector<double> base = {100, 200, 300};
  const Difference slower = difference_of(base, std::vector<double>{111, 209, 310}, ttft, true);
  EXPECT_EQ(verdict_text(slower, ttft), "worse");
  EXPECT_NEAR(slower.difference.mean, 10, 1e-9);
  EXPECT_NEAR(*slower.percent, 5, 1e-9);
  const Difference apart = difference_of(base, std::vector<double>{111, 209, 310}, ttft, false);
  EXPECT_EQ(verdict_text(apart, ttft), "not distinguishable");
  const MetricName rate = metric("output_tokens_per_s");
  EXPECT_EQ(verdict_text(slower, rate), "worse") << "the verdict is the one that was computed";
  EXPECT_EQ(verdict_text(difference_of(base, std::vector<double>{111, 209, 310}, rate, true), rate),
            "better");
  const Difference one = difference_of(std::vector<double>{1}, std::vector<double>{2}, ttft, true);
  EXPECT_EQ(verdict_text(one, ttft), "no interval");
  const Difference same = difference_of(std::vector<double>{1}, std::vector<double>{1}, ttft, true);
  EXPECT_EQ(verdict_text(same, ttft), "equal");
}

TEST(Differences, NumbersAreShort) {
  EXPECT_EQ(estimate_text({.n = 3, .mean = 1234.567, .sd = 1, .half_width = 12.3}), "1235 ± 12");
  EXPECT_EQ(estimate_text({.n = 3, .mean = 0.1234, .sd = 1, .half_width = 0.0056}),
            "0.1234 ± 0.0056");
  EXPECT_EQ(estimate_text({.n = 1, .mean = 12.34567, .half_width = INFINITY}), "12.35");
  EXPECT_EQ(estimate_text({.n = 3, .mean = 5, .half_width = 0}), "5.000 ± 0");
}

TEST(Until, ReadsEverySpelling) {
  for (const std::string text : {"ttft_ms.mean±2%", "ttft_ms.mean+-2%", "mean_ttft_ms +/- 2 %"}) {
    const Parsed<UntilRule> rule = parse_until(text);
    ASSERT_TRUE(rule.value.has_value()) << text << rule.message;
    EXPECT_EQ(rule.value->text, "ttft_ms.mean±2%");
    EXPECT_DOUBLE_EQ(rule.value->rule.relative_half_width, 0.02);
  }
  for (const std::string text : {"", "ttft_ms.mean", "ttft_ms.mean±2", "ttft_ms.mean±0%",
                                 "ttft_ms.mean±x%", "ttft_ms±2%", "tttt.mean±2%"})
    EXPECT_NE(parse_until(text).message, "") << text;
}

TEST(Markdown, HasNoControlCharactersOfNames) {
  EXPECT_EQ(markdown_cell("a\x1b[1m|b\n\tc\x7f"), R"(a\\x1b[1m\|b  c\\x7f)");
}

TEST(Conditions, AreReadStrictly) {
  const Condition c = *parse_condition(" output_tokens_per_s >= 1000 ").value;
  EXPECT_EQ(c.text, "output_tokens_per_s >= 1000");
  EXPECT_FALSE(c.less);
  EXPECT_TRUE(c.or_equal);
  EXPECT_EQ(c.bound, 1000);
  const Condition relative = *parse_condition("ttft_ms.mean < 50% of the old one").value;
  EXPECT_EQ(relative.reference, "the old one");
  EXPECT_EQ(relative.bound, 50);
  for (const std::string text :
       {"", "ttft_ms.p99", "ttft_ms.p99 = 5", "ttft_ms.p99 <", "ttft_ms.p99 < 5ms",
        "ttft_ms.p99 < 50%", "ttft_ms.p99 < 50% of ", "tttt_ms.p99 < 5", "ttft_ms < 5"})
    EXPECT_NE(parse_condition(text).message, "") << text;
}

TEST(Expectations, OfOneRunAreDecidedByItsNumbers) {
  const ResultSet set = two_variants({0.1}, {0.2});
  const std::vector<Judgement> judged =
      judge({expect("ttft_ms.mean < 150", "old"), expect("ttft_ms.mean < 150", "new"),
             expect("ttft_ms.mean <= 200", "new"), expect("ttft_ms.mean < 50% of new", "old"),
             expect("ttft_ms.mean <= 50% of new", "old"), expect("itl_ms.mean < 5", "old")},
            set);
  std::string decisions;
  for (const Judgement& j : judged) decisions += decision_text(j.decision) + " ";
  EXPECT_EQ(decisions, "holds fails holds fails holds fails ");
  EXPECT_EQ(judged[5].detail, "no value: no request counts towards it");
}

/// A run whose stage sent nothing, which counts nothing as good either, and one that failed whole.
sim::RunResult run_without(std::uint64_t seed, std::int64_t failures) {
  sim::RunResult result;
  result.seed = seed;
  sim::StageResult s;
  s.requests = s.failures = failures;
  s.good_requests = 0;
  s.info.name = "4";
  result.stages = {s};
  result.summary = s;
  return result;
}

TEST(Expectations, WithoutARequestHaveNoValueAndFail) {
  const MetricName goodput = metric("goodput");
  ResultSetBuilder builder({"old", "new"}, metrics_with({&goodput, 1}));
  builder.add(0, 0, run_without(1, 0));
  builder.add(1, 0, run_without(1, 10));
  builder.add(0, 1, run_without(2, 10));
  builder.add(1, 1, run_without(2, 10));
  const ResultSet set = builder.take(2);
  const std::vector<Judgement> judged =
      judge({expect("goodput > 0.9", "old"), expect("goodput > 0.9", "new"),
             expect("goodput >= 0", "new"), expect("ttft_ms.mean < 500", "new"),
             expect("goodput > 90% of old", "new"), expect("kv_cache_usage.mean < 1", "new")},
            set);
  std::string decisions;
  for (const Judgement& j : judged) decisions += decision_text(j.decision) + " ";
  EXPECT_EQ(decisions, "fails fails holds fails fails fails ");
  EXPECT_EQ(judged[0].detail, "no value in 1 of 2 runs: no request counts towards it");
  EXPECT_EQ(judged[1].detail, "0 ± 0");
  EXPECT_EQ(judged[3].detail, "no value: no request counts towards it");
  EXPECT_EQ(judged[4].detail, "old: no value in 1 of 2 runs: no request counts towards it");
  EXPECT_EQ(judged[5].detail, "no such number in the results");
}

TEST(Expectations, OfReplicationsAreDecidedByTheInterval) {
  // Mean 100 ms, half width 4.303 * 10 / sqrt 3 = 24.8 ms.
  const ResultSet set = two_variants({0.09, 0.1, 0.11}, {0.18, 0.2, 0.22});
  const std::vector<Judgement> judged =
      judge({expect("ttft_ms.mean < 130", "old"), expect("ttft_ms.mean < 110", "old"),
             expect("ttft_ms.mean < 70", "old"), expect("ttft_ms.mean > 70", "old"),
             expect("ttft_ms.mean <= 50% of new", "old")},
            set);
  EXPECT_EQ(judged[0].decision, Decision::kHolds);
  EXPECT_EQ(judged[1].decision, Decision::kUndecided);
  EXPECT_EQ(judged[2].decision, Decision::kFails);
  EXPECT_EQ(judged[3].decision, Decision::kHolds);
  EXPECT_EQ(judged[4].decision, Decision::kHolds) << "exactly half, seed by seed";
  EXPECT_EQ(judged[0].detail, "100 ± 25");
  EXPECT_EQ(overall({judged[0], judged[1]}), Decision::kUndecided);
  EXPECT_EQ(overall({judged[1], judged[2]}), Decision::kFails);
  EXPECT_EQ(overall({}), Decision::kHolds);
}

/// One seed of two stages: `growth_s` is how fast the queue of the second grows.
ResultSet ladder(double growth_s) {
  ResultSetBuilder builder({"old"}, standard_metrics());
  sim::RunResult run = run_of(1, 0.1);
  run.stages.push_back(run.stages.front());
  run.stages.back().info.name = "5";
  run.stages.back().queue_growth = growth_s;
  run.summary.queue_growth = growth_s;
  builder.add(0, 0, run);
  return builder.take(1);
}

TEST(Overload, NoVerdictPoolsOverloadedAndHealthyStages) {
  const ResultSet healthy = ladder(0);
  const ResultSet mixed = ladder(0.5);
  EXPECT_EQ(pooled_overload(healthy.variants[0], ""), "");
  EXPECT_EQ(pooled_overload(mixed.variants[0], ""),
            "the whole run of old pools 1 overloaded and 1 healthy stages");
  EXPECT_EQ(pooled_overload(mixed.variants[0], "5"), "") << "a stage by itself pools nothing";
  EXPECT_FALSE(find_stage(mixed.variants[0], "4")->overloaded);
  EXPECT_TRUE(find_stage(mixed.variants[0], "5")->overloaded);
  EXPECT_TRUE(find_stage(mixed.variants[0], "")->overloaded);

  Expectation whole = expect("ttft_ms.mean < 150", "old");
  Expectation stage = whole;
  stage.stage = "5";
  const std::vector<Judgement> judged = judge({whole, stage}, mixed);
  EXPECT_EQ(judged[0].decision, Decision::kUndecided);
  EXPECT_NE(judged[0].detail.find("pools 1 overloaded and 1 healthy stages: give a stage"),
            std::string::npos)
      << judged[0].detail;
  EXPECT_EQ(judged[1].decision, Decision::kHolds);
  // More time in an overloaded stage lets no broken bound hold again.
  EXPECT_EQ(judge({expect("ttft_ms.mean < 50", "old")}, mixed)[0].decision, Decision::kFails);
  EXPECT_EQ(judge({expect("ttft_ms.mean > 150", "old")}, mixed)[0].decision, Decision::kUndecided);
  EXPECT_EQ(judge({expect("output_tokens_per_s > 1e9", "old")}, mixed)[0].decision,
            Decision::kUndecided);
  EXPECT_EQ(judge({whole}, healthy)[0].decision, Decision::kHolds);

  const ResultFile base{.path = "a.json", .set = healthy, .resolved = {}};
  const ResultFile changed{.path = "b.json", .set = mixed, .resolved = {}};
  const std::vector<Gate> gates = {*parse_gate("ttft_ms.mean>+5%").value};
  Diagnostics d;
  const Comparison c =
      compare_results(base, changed, {.variants = {}, .stage = "", .gates = gates}, d);
  ASSERT_EQ(c.gates.size(), 1U) << messages_of(d);
  EXPECT_EQ(c.gates[0].decision, Decision::kUndecided) << c.gates[0].detail;
  EXPECT_NE(text_of(c).find("not judged"), std::string::npos) << text_of(c);
  const Comparison one =
      compare_results(base, changed, {.variants = {}, .stage = "4", .gates = gates}, d);
  EXPECT_EQ(one.gates[0].decision, Decision::kHolds);
  EXPECT_EQ(text_of(one).find("not judged"), std::string::npos);
  // The page is about the stage, and the data has that stage alone.
  const std::string json = json_of(one);
  const auto pair = nlohmann::json::parse(json)["pairs"][0];
  EXPECT_EQ(pair["stage"], "4");
  EXPECT_EQ(pair["stages"].size(), 1U);
  const std::string page = page_of(json);
  EXPECT_NE(page.find(": before and after, stage 4</h1>"), std::string::npos);
  EXPECT_NE(page.find(", stage 4<"), std::string::npos);
  EXPECT_EQ(page.find(", whole run<"), std::string::npos);
  EXPECT_NE(page_of(json_of(c)).find(", whole run<"), std::string::npos);
}

TEST(Gates, AreReadStrictly) {
  const Gate relative = *parse_gate("ttft_ms.p99>+5%").value;
  EXPECT_TRUE(relative.greater);
  EXPECT_EQ(relative.kind, Gate::Kind::kRelative);
  EXPECT_EQ(relative.bound, 5);
  EXPECT_EQ(parse_gate("ttft_ms.p99 > 5%").value->kind, Gate::Kind::kRelative);
  EXPECT_EQ(parse_gate("output_tokens_per_s<-2%").value->bound, -2);
  EXPECT_EQ(parse_gate("ttft_ms.p99>+20").value->kind, Gate::Kind::kAbsolute);
  EXPECT_EQ(parse_gate("ttft_ms.p99>500").value->kind, Gate::Kind::kValue);
  for (const std::string text : {"", "ttft_ms.p99", "ttft_ms.p99>", "ttft_ms.p99>=5%",
                                 "ttft_ms.p99>++5%", "ttft_ms.p99>5%%", "x>5%", "ttft_ms>5%"})
    EXPECT_NE(parse_gate(text).message, "") << text;
}

TEST(Gates, NeedTheWholeIntervalBeyondTheBound) {
  const std::vector<double> base = {100, 200, 300};
  const std::vector<double> ten_up = {110, 220, 330};
  const auto gate = [](const char* text) { return *parse_gate(text).value; };
  EXPECT_EQ(judge_gate(gate("ttft_ms.mean>+5%"), base, ten_up, true), Decision::kUndecided)
      << "5, 10, 15 above: mean 10, half width 12.4";
  const std::vector<double> flat = {120, 221, 320};  // 15, 11, 5 above 105 %.
  EXPECT_EQ(judge_gate(gate("ttft_ms.mean>+10"), base, flat, true), Decision::kFails);
  EXPECT_EQ(judge_gate(gate("ttft_ms.mean>+30"), base, flat, true), Decision::kHolds);
  EXPECT_EQ(judge_gate(gate("ttft_ms.mean>+10"), base, flat, false), Decision::kUndecided);
  EXPECT_EQ(judge_gate(gate("ttft_ms.mean<-5%"), base, base, true), Decision::kUndecided)
      << "5, 10, 15 from the bound: the interval holds zero";
  EXPECT_EQ(judge_gate(gate("ttft_ms.mean>+0%"), base, base, true), Decision::kHolds);
  EXPECT_EQ(judge_gate(gate("ttft_ms.mean>10"), base, base, true), Decision::kUndecided);
  const std::vector<double> one = {100};
  const std::vector<double> more = {106};
  EXPECT_EQ(judge_gate(gate("ttft_ms.mean>+5%"), one, more, true), Decision::kFails);
  EXPECT_EQ(judge_gate(gate("ttft_ms.mean>+7%"), one, more, true), Decision::kHolds);
}

TEST(Judgements, InTheFormsOfBuildServers) {
  const std::vector<Judgement> judged =
      judge({expect("ttft_ms.mean < 150", "old"), expect("ttft_ms.mean < 150", "new"),
             expect("ttft_ms.mean < 110", "old")},
            two_variants({0.09, 0.1, 0.11}, {0.2, 0.2, 0.2}));
  const std::string junit = render_junit("a <b> & \"c\"\n", judged);
  EXPECT_NE(junit.find("tests=\"3\" failures=\"1\" errors=\"1\""), std::string::npos) << junit;
  EXPECT_NE(junit.find("name=\"a &lt;b&gt; &amp; &quot;c&quot;&#10;\""), std::string::npos);
  EXPECT_NE(junit.find("<failure type=\"failed\" message=\"found 200.0 ± 0\">s.yaml:7</failure>"),
            std::string::npos)
      << junit;
  EXPECT_NE(junit.find("<error type=\"inconclusive\""), std::string::npos);
  EXPECT_NE(render_junit("s", {}).find("tests=\"1\" failures=\"0\""), std::string::npos);

  const std::string github = render_github("50%, s", judged);
  EXPECT_NE(github.find("::error file=s.yaml,line=7,col=3,title=50%25%2C s::ttft_ms.mean < 150 "
                        "(new): fails, found 200.0 ± 0\n"),
            std::string::npos)
      << github;
  EXPECT_NE(github.find("::warning file=s.yaml"), std::string::npos);
  EXPECT_NE(github.find("::1 hold, 1 fail, 1 undecided\n"), std::string::npos);

  const std::string markdown = judgements_markdown(judged);
  EXPECT_NE(markdown.find("| ❌ **fails** | ttft\\_ms.mean \\< 150 | new | 200.0 ± 0 |"),
            std::string::npos)
      << markdown;
}

/// A result file for compare.
class Files : public testing::FolderTest {
 protected:
  /// What `run --output json` writes for these TTFTs, one seed each.
  std::string result(const std::string& name, const std::vector<double>& ttfts,
                     const std::string& variant = "v", std::uint64_t seed = 1,
                     const std::string& workload = "{}") const {
    Report report;
    report.scenario = "s";
    report.seed = seed;
    report.version = "0";
    report.variants.push_back(
        {.name = variant,
         .result = run_of(seed, ttfts.front()),
         .measured = {},
         .resolved = {.path = "{\"workload\": " + workload + "}", .root = nullptr}});
    if (ttfts.size() > 1) {
      ResultSetBuilder builder({variant}, standard_metrics());
      for (std::size_t r = 0; r < ttfts.size(); ++r) builder.add(0, r, run_of(seed + r, ttfts[r]));
      report.replications = builder.take(builder.complete());
    }
    return write(name, render_json(report));
  }

  static ResultFile read(const std::string& path) {
    Diagnostics diagnostics;
    std::optional<ResultFile> file = read_result_file(path, {}, diagnostics);
    for (const Diagnostic& d : diagnostics.items()) ADD_FAILURE() << to_string(d);
    return file.value_or(ResultFile{});
  }

  static std::string errors(const std::string& path) {
    Diagnostics diagnostics;
    EXPECT_FALSE(read_result_file(path, {}, diagnostics).has_value());
    return messages_of(diagnostics);
  }
};

TEST_F(Files, ReadBackWhatWasWritten) {
  const ResultFile one = read(result("one.json", {0.25}));
  EXPECT_EQ(one.set.seeds, (std::vector<std::uint64_t>{1}));
  const StageValues& whole = one.set.variants.front().stages.back();
  const sim::RunResult truth = run_of(1, 0.25);
  std::size_t compared = 0;
  for (const MetricName& m : standard_metrics()) {
    const auto read_back = one.set.values(whole, m);
    const std::optional<double> value = metric_value(truth.summary, m);
    if (m.text == "requests_sent_per_s") continue;  // A summary has no rate of its own.
    ASSERT_EQ(read_back.has_value(), value.has_value()) << m.text;
    if (!value) continue;
    EXPECT_NEAR(read_back->front(), *value, 1e-9 * std::abs(*value)) << m.text;
    ++compared;
  }
  EXPECT_GE(compared, 12U);
  const ResultFile three = read(result("three.json", {0.1, 0.2, 0.3}, "v", 7));
  EXPECT_EQ(three.set.seeds, (std::vector<std::uint64_t>{7, 8, 9}));
  const auto tail =
      three.set.values(three.set.variants.front().stages.front(), metric("ttft_ms.p99"));
  ASSERT_TRUE(tail.has_value());
  ASSERT_EQ(tail->size(), 3U);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_NEAR((*tail)[i], 100.0 * static_cast<double>(i + 1), 1e-9);
}

TEST_F(Files, ErrorsHavePlaces) {
  EXPECT_NE(errors(write("a.json", "{\"scenario\": \"s\",\n \"seed\": -1,\n \"variants\": 5}"))
                .find("a.json:2:10: error: seed: must be at least 0 (got -1)"),
            std::string::npos)
      << errors(path("a.json"));
  EXPECT_NE(errors(path("a.json")).find("a.json:3:14: error: variants: must be a"),
            std::string::npos);
  EXPECT_NE(errors(write("b.json", "[1]")).find("b.json:1:1: error: must be a map"),
            std::string::npos);
  EXPECT_NE(errors(write("c.json", "{\"scenario\"")).find("c.json:"), std::string::npos);
  EXPECT_NE(errors(path("none.json")).find("cannot"), std::string::npos);
  Report empty;
  empty.scenario = "s";
  empty.version = "0";
  EXPECT_NE(errors(write("d.json", render_json(empty))).find("has no variant"), std::string::npos);
  std::ifstream file(result("e.json", {0.1, 0.2}));
  std::string text((std::istreambuf_iterator<char>(file)), {});
  const std::size_t at = text.rfind("\"ttft_ms.mean\"", text.find("\"differences\""));
  text[at + 1] = 'q';
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<int>(at), '\n');
  const std::string said = errors(write("e.json", text));
  EXPECT_NE(said.find("e.json:" + std::to_string(line) + ":"), std::string::npos) << said;
  EXPECT_NE(said.find("is not a metric (got qtft_ms.mean)"), std::string::npos) << said;
}

TEST_F(Files, ReplicatedFilesAreComparedSeedBySeed) {
  const ResultFile base = read(result("base.json", {0.1, 0.2, 0.3}));
  const ResultFile worse = read(result("worse.json", {0.111, 0.209, 0.310}));
  Diagnostics diagnostics;
  const Comparison c = compare_results(
      base, worse, {.variants = {}, .stage = {}, .gates = {*parse_gate("ttft_ms.mean>+1").value}},
      diagnostics);
  ASSERT_EQ(c.pairs.size(), 1U);
  EXPECT_TRUE(c.pairs.front().paired);
  EXPECT_EQ(overall(c.gates), Decision::kFails);
  const std::string text = text_of(c);
  EXPECT_NE(text.find("worse"), std::string::npos) << text;
  EXPECT_NE(text.find("3 pairs of runs"), std::string::npos);
  const auto json = nlohmann::json::parse(json_of(c));
  EXPECT_EQ(json["result"], "fails");
  EXPECT_EQ(json["pairs"][0]["summary"]["metrics"]["ttft_ms.mean"]["verdict"], "worse");
  EXPECT_NEAR(json["pairs"][0]["stages"][0]["metrics"]["ttft_ms.mean"]["difference"]["mean"], 10,
              1e-6);
  EXPECT_NE(markdown_of(c).find("| `ttft_ms.mean` |"), std::string::npos);
}

TEST_F(Files, OtherSeedsOrWorkloadsAreNotPaired) {
  const ResultFile base = read(result("base.json", {0.1, 0.2, 0.3}));
  const ResultFile seeds = read(result("seeds.json", {0.111, 0.209, 0.310}, "v", 50));
  const ResultFile load = read(result("load.json", {0.111, 0.209, 0.310}, "v", 1, "{\"rate\": 2}"));
  for (const ResultFile* other : {&seeds, &load}) {
    Diagnostics diagnostics;
    const Comparison c = compare_results(base, *other, {}, diagnostics);
    ASSERT_EQ(c.pairs.size(), 1U);
    EXPECT_FALSE(c.pairs.front().paired);
    EXPECT_NE(text_of(c).find("not distinguishable"), std::string::npos);
    EXPECT_NE(text_of(c).find("differ, so the difference"), std::string::npos);
  }
}

TEST_F(Files, VariantsMustBelongTogether) {
  const ResultFile base = read(result("base.json", {0.1}, "x"));
  const ResultFile other = read(result("other.json", {0.1}, "y"));
  Diagnostics diagnostics;
  EXPECT_EQ(compare_results(base, other, {}, diagnostics).pairs.size(), 1U) << "the only ones";
  EXPECT_FALSE(diagnostics.has_errors());
  (void)compare_results(base, other, {.variants = {"x"}, .stage = {}, .gates = {}}, diagnostics);
  EXPECT_TRUE(diagnostics.has_errors());
  Diagnostics stage;
  (void)compare_results(base, other, {.variants = {}, .stage = "77", .gates = {}}, stage);
  EXPECT_EQ(stage.items().size(), 2U);
  ResultFile many = base;
  many.set = two_variants({0.1}, {0.2});
  Diagnostics once;
  (void)compare_results(many, many, {.variants = {}, .stage = "77", .gates = {}}, once);
  ASSERT_EQ(once.items().size(), 2U) << "one for each file, not for each variant";
  EXPECT_EQ(once.items()[0].hint, "stages: 4");
  Diagnostics gate;
  const ResultFile replicated = read(result("more.json", {0.1, 0.2}, "x"));
  (void)compare_results(
      base, replicated,
      {.variants = {}, .stage = {}, .gates = {*parse_gate("ttft_ms.p97>+1%").value}}, gate);
  EXPECT_EQ(gate.items().size(), 2U) << "neither file lists a p97";
}

TEST_F(Files, AMissingVariantDecidesNoGate) {
  const ResultFile one = read(result("one.json", {0.1}, "x"));
  ResultFile base = read(result("base.json", {0.1}, "x"));
  base.set.variants.push_back(base.set.variants.front());
  base.set.variants.back().name = "gone";
  base.resolved.push_back(nullptr);
  Diagnostics diagnostics;
  ComparisonRequest request{
      .variants = {}, .stage = {}, .gates = {*parse_gate("ttft_ms.mean>+5%").value}};
  const Comparison c = compare_results(base, one, request, diagnostics);
  EXPECT_EQ(overall(c.gates), Decision::kUndecided);
  ASSERT_EQ(c.gates.size(), 2U);
  for (const std::string& text :
       {text_of(c), markdown_of(c), json_of(c), drawn(c, "junit"), drawn(c, "github")})
    EXPECT_NE(text.find("NEW has no variant gone"), std::string::npos) << text;
  request.variants = {"x"};
  EXPECT_EQ(overall(compare_results(base, one, request, diagnostics).gates), Decision::kHolds);
  EXPECT_FALSE(diagnostics.has_errors());
}

TEST_F(Files, ChangesInsideFilesAreNamed) {
  const auto with = [](const std::string& weight) {
    return R"({}, "files": {"routing.endpoint_picker": {"profiles": [{"name": "p", "plugins":
      [{"pluginRef": "prefix-cache-scorer", "weight": )" +
           weight + "}]}]}}";
  };
  const ResultFile base = read(result("base.json", {0.1}, "x", 1, with("3")));
  const ResultFile other = read(result("other.json", {0.1}, "x", 1, with("0.1")));
  Diagnostics diagnostics;
  const std::vector<Change> changes = changes_of(compare_results(base, other, {}, diagnostics));
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].path,
            "routing.endpoint_picker.profiles[p].plugins[prefix-cache-scorer].weight");
  EXPECT_EQ(changes[0].base, "3");
  EXPECT_EQ(changes[0].changed, "0.1");
  const Comparison c = compare_results(base, other, {}, diagnostics);
  for (const std::string& text : {drawn(c, "junit"), drawn(c, "github")})
    EXPECT_NE(text.find("plugins[prefix-cache-scorer].weight: 3 became 0.1"), std::string::npos)
        << text;
  for (const std::string& text : {text_of(c), markdown_of(c), page_of(json_of(c))})
    EXPECT_NE(text.find("plugins[prefix-cache-scorer].weight"), std::string::npos) << text;
  EXPECT_EQ(nlohmann::json::parse(json_of(c))["changes"][0]["new"], "0.1");
  const Comparison same = compare_results(base, base, {}, diagnostics);
  for (const std::string& text : {text_of(same), markdown_of(same)})
    EXPECT_NE(text.find("are the same in base and new"), std::string::npos) << text;
  EXPECT_NE(drawn(same, "junit").find("what changed: nothing"), std::string::npos);
}

/// A result whose router's document stands where `routing` says, beside `files`.
class RouterDocuments : public Files {
 protected:
  std::vector<std::string> changed(const std::string& before, const std::string& after) {
    const ResultFile base = read(result("base.json", {0.1}, "x", 1, "{}, " + before));
    const ResultFile other = read(result("other.json", {0.1}, "x", 1, "{}, " + after));
    Diagnostics diagnostics;
    const Comparison c = compare_results(base, other, {}, diagnostics);
    std::vector<std::string> out;
    for (const Change& change : changes_of(c))
      out.push_back(change.path + ": " + change_text(change));
    for (const std::string& sentence : untold_of(c)) out.push_back(sentence);
    return out;
  }
  static std::string file(const std::string& contents, const std::string& name = "epp.yaml") {
    return R"("routing": {"endpoint_picker": ")" + name +
           R"("}, "files": {"routing.endpoint_picker": )" + contents + "}";
  }
};

TEST_F(RouterDocuments, AreComparedWhereverTheyStand) {
  using Lines = std::vector<std::string>;
  const std::string queue = R"({"plugins": [{"type": "queue-scorer", "weight": 3}]})";
  EXPECT_EQ(changed(file(queue), file(queue)), Lines{});
  EXPECT_EQ(changed(file(queue), file(queue, "other.yaml")),
            Lines{"routing.endpoint_picker: epp.yaml became other.yaml"});
  // `--set` lays the document into the scenario.
  EXPECT_EQ(changed(file(queue), R"("routing": {"endpoint_picker": {"plugins":
                [{"type": "queue-scorer", "weight": 5}]}})"),
            (Lines{"routing.endpoint_picker: epp.yaml became nothing",
                   "routing.endpoint_picker.plugins[queue-scorer].weight: 3 became 5"}));
  EXPECT_EQ(changed(file(queue), R"("routing": {"balancer": "random"})"),
            (Lines{"routing.endpoint_picker: epp.yaml became nothing",
                   "routing.balancer: nothing became random"}))
      << "the keys of a document that is gone are no changes";
  // Two scorers of one type are told apart by their places.
  const auto two = [](const std::string& weight) {
    return file(R"({"plugins": [{"type": "q", "weight": 1}, {"type": "q", "weight": )" + weight +
                "}]}");
  };
  EXPECT_EQ(changed(two("2"), two("4")),
            Lines{"routing.endpoint_picker.plugins[1].weight: 2 became 4"});
}

TEST_F(RouterDocuments, InHelmValuesAreComparedInside) {
  const auto values = [](const std::string& weight) {
    return file(R"({"config": "plugins:\n- type: queue-scorer\n  weight: )" + weight +
                R"(\n", "script": "a\nb=)" + weight + R"("})");
  };
  EXPECT_EQ(changed(values("3"), values("0.5")),
            (std::vector<std::string>{
                "routing.endpoint_picker.config.plugins[queue-scorer].weight: 3 became 0.5",
                "routing.endpoint_picker.script (line 2): b=3 became b=0.5"}));
}

TEST_F(RouterDocuments, ThatAreNotThereCannotBeTold) {
  const std::string named = R"("routing": {"endpoint_picker": "epp.yaml"})";
  const std::string hash = file("\"sha256:aa\"");
  EXPECT_EQ(
      changed(named, file("{\"a\": 1}")),
      std::vector<std::string>{"routing.endpoint_picker may have changed: " + path("base.json") +
                               " does not hold the contents of epp.yaml"});
  EXPECT_EQ(
      changed(hash, file("\"sha256:bb\"")),
      std::vector<std::string>{"routing.endpoint_picker (contents): sha256:aa became sha256:bb"});
  EXPECT_EQ(
      changed(hash, file("{\"a\": 1}")),
      std::vector<std::string>{"routing.endpoint_picker (contents): sha256:aa became a document"});
  ResultFile base = read(result("base.json", {0.1}, "x"));
  const ResultFile other = read(result("other.json", {0.1}, "x"));
  base.resolved.front() = nullptr;
  base.set.version = "0.1";
  base.commit = "abc";
  Diagnostics diagnostics;
  const Comparison c = compare_results(base, other, {}, diagnostics);
  for (const std::string& text :
       {text_of(c), markdown_of(c), json_of(c), drawn(c, "junit"), drawn(c, "github")}) {
    EXPECT_NE(text.find("does not hold its resolved scenario"), std::string::npos) << text;
    EXPECT_EQ(text.find("are the same"), std::string::npos) << text;
  }
  ASSERT_EQ(changes_of(c).size(), 2U);
  EXPECT_EQ(change_text(changes_of(c)[0]), "0.1 became 0");
  EXPECT_EQ(changes_of(c)[1].path, "commit");
}

TEST_F(Files, ALongListOfChangesEnds) {
  std::string many = "{";
  for (int i = 0; i < 50; ++i) many += (i > 0 ? ", " : "") + ("\"k" + std::to_string(i) + "\": 1");
  const ResultFile base = read(result("base.json", {0.1}, "x", 1, "{}"));
  const ResultFile other = read(result("other.json", {0.1}, "x", 1, many + "}"));
  Diagnostics diagnostics;
  const Comparison c = compare_results(base, other, {}, diagnostics);
  EXPECT_EQ(nlohmann::json::parse(json_of(c))["changes"].size(), 50U);
  for (const std::string& text :
       {text_of(c), markdown_of(c), drawn(c, "junit"), drawn(c, "github")}) {
    EXPECT_NE(text.find("and 10 more"), std::string::npos) << text;
    EXPECT_NE(text.find("workload.k39"), std::string::npos) << text;
    EXPECT_EQ(text.find("workload.k40"), std::string::npos) << text;
  }
  EXPECT_NE(page_of(json_of(c)).find("workload.k49"), std::string::npos);
}

TEST_F(Files, GatesTakeAnyUnit) {
  const ResultFile base = read(result("base.json", {0.1, 0.2, 0.3}));
  const ResultFile worse = read(result("worse.json", {0.111, 0.209, 0.310}));
  const auto judged = [&](const char* gate) {
    Diagnostics diagnostics;
    const Comparison c = compare_results(
        base, worse, {.variants = {}, .stage = {}, .gates = {*parse_gate(gate).value}},
        diagnostics);
    EXPECT_EQ(messages_of(diagnostics), "") << gate;
    return c.gates.empty() ? Judgement{} : c.gates.front();
  };
  // Replicated results list milliseconds. The mean rises from 0.2 s by 10 ms ± 2.5 ms.
  EXPECT_EQ(judged("ttft.mean>+0.001").decision, Decision::kFails);
  EXPECT_EQ(judged("ttft_s.mean>+0.02").decision, Decision::kHolds);
  EXPECT_EQ(judged("ttft_us.mean>+20000").decision, Decision::kHolds);
  EXPECT_EQ(judged("ttft.mean>+0.001").detail, "0.20 ± 0.25 to 0.21 ± 0.25, +5.0 %");
  EXPECT_EQ(judged("failure_rate_percent>1").decision, Decision::kHolds);
  EXPECT_EQ(judged("overloaded>0").decision, Decision::kHolds);
}

TEST_F(Files, AnInterruptedResultDecidesNoGate) {
  const ResultFile base = read(result("base.json", {0.1}));
  ResultFile part = read(result("part.json", {0.1}));
  part.interrupted = true;
  Diagnostics diagnostics;
  const ComparisonRequest request{
      .variants = {}, .stage = {}, .gates = {*parse_gate("ttft_ms.mean>+5%").value}};
  EXPECT_EQ(overall(compare_results(base, base, request, diagnostics).gates), Decision::kHolds);
  const Comparison c = compare_results(base, part, request, diagnostics);
  EXPECT_EQ(overall(c.gates), Decision::kUndecided);
  EXPECT_NE(text_of(c).find("new result was interrupted"), std::string::npos);
  EXPECT_NE(json_of(c).find("\"interrupted\": true"), std::string::npos);
}

/// What a table of `run` says about replications.
std::string replications_text(const ResultSet& set) {
  StudyDocument document;
  add_replications(set, document.blocks);
  return draw(document, "table");
}

TEST(Replications, VariantsWithSeedsOfTheirOwnAreNoPairs) {
  ResultSetBuilder builder({"old", "new"}, standard_metrics());
  for (std::size_t r = 0; r < 3; ++r) {
    builder.add(0, r, run_of(1 + r, 0.1 * static_cast<double>(r + 1)));
    builder.add(1, r, run_of(50 + r, 0.1 * static_cast<double>(r + 1) + 0.01));
  }
  const ResultSet set = builder.take(3);
  EXPECT_FALSE(set.all_paired());
  const std::string text = replications_text(set);
  EXPECT_NE(text.find("new is not paired with old: the seeds differ"), std::string::npos) << text;
  EXPECT_EQ(text.find("every variant faces"), std::string::npos);
  EXPECT_EQ(seeds_text(set), "old seeds 1 to 3; new seeds 50 to 52");
  JsonWriter writer;
  ReplicationsRecord record = replications_record(set);
  write_value(writer, record);
  const auto json = nlohmann::json::parse(writer.str());
  EXPECT_EQ(json["variants"][1]["seeds"], nlohmann::json({50, 51, 52}));
  EXPECT_EQ(json["differences"][0]["paired"], false);
  // As pairs they differ by 10 ms exactly; as independent runs nobody can tell.
  const auto& ttft = json["differences"][0]["summary"]["metrics"]["ttft_ms.mean"];
  EXPECT_EQ(ttft["verdict"], "not distinguishable");
  EXPECT_EQ(judge({expect("ttft_ms.mean < 108% of old", "new")}, set).front().decision,
            Decision::kUndecided);
}

TEST(Replications, InTextAndJson) {
  ResultSet set = two_variants({0.1, 0.2, 0.3}, {0.111, 0.209, 0.310});
  set.until = UntilOutcome{.rule = "ttft_ms.mean±2%", .reached = false, .reason = "too few"};
  const std::string text = replications_text(set);
  EXPECT_NE(text.find("3 replications"), std::string::npos);
  EXPECT_NE(text.find("ttft_ms.mean±2%: not reached, too few"), std::string::npos) << text;
  EXPECT_NE(text.find("worse"), std::string::npos);
  EXPECT_NE(text.find("not distinguishable"), std::string::npos);
  JsonWriter writer;
  ReplicationsRecord record = replications_record(set);
  write_value(writer, record);
  const auto json = nlohmann::json::parse(writer.str());
  EXPECT_EQ(json["count"], 3);
  EXPECT_EQ(json["seeds"], nlohmann::json({1, 2, 3}));
  const auto& ttft = json["variants"][0]["summary"]["metrics"]["ttft_ms.mean"];
  EXPECT_NEAR(ttft["mean"], 200, 1e-9);
  EXPECT_NEAR(ttft["half_width"], 4.30265 * 100 / std::sqrt(3.0), 1e-3);
  EXPECT_EQ(ttft["values"].size(), 3U);
  EXPECT_FALSE(ttft.contains("median")) << "three runs have no rank interval";
  EXPECT_TRUE(json["variants"][0]["summary"]["metrics"]["itl_ms.mean"].is_null());
  const auto& d = json["differences"][0]["summary"]["metrics"]["ttft_ms.mean"];
  EXPECT_EQ(d["verdict"], "worse");
  EXPECT_NEAR(d["mean"], 10, 1e-9);
  Report report;
  report.replications = set;
  EXPECT_EQ(render_csv(report).substr(0, 9), "scenario,");
}

}  // namespace
}  // namespace routesim::tools
