// The report page: what it says, that its tables are its data, and that it asks nobody for
// anything.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "tests/base/messages.h"
#include "tools/render/chart/chart.h"
#include "tools/render/chart/numbers.h"
#include "tools/render/chart/svg.h"
#include "tools/render/document.h"
#include "tools/render/page/html_page.h"
#include "tools/results/result_record.h"
#include "tools/study/report/read_results.h"
#include "tools/study/run/render_run.h"
#include "tools/study/verdict/run_verdict.h"

namespace routesim::tools {
namespace {

using nlohmann::json;

sim::StageResult stage(const std::string& name, double rate, double slowness) {
  sim::StageResult s;
  s.info.name = name;
  s.info.requested_rate = rate;
  s.requests = s.successes = 200;
  s.first_send = SimTime::zero();
  s.last_send = SimTime::zero() + Duration::seconds(20);
  s.last_end = SimTime::zero() + Duration::seconds(25);
  for (int i = 1; i <= 200; ++i) {
    s.time_to_first_token.add(0.001 * slowness * i);
    s.inter_token_latency.add(0.0001 * slowness * i);
    s.request_latency.add(0.02 * slowness * i);
  }
  s.prompt_tokens_total = 100'000;
  s.cached_tokens_total = static_cast<std::int64_t>(60'000 / slowness);
  s.output_tokens_total = 20'000;
  s.kv_cache_usage_mean = 0.4;
  s.kv_cache_usage_max = 0.8;
  return s;
}

VariantReport report_variant(const std::string& name, double slowness) {
  VariantReport v;
  v.name = name;
  v.result.stages = {stage("0", 2, slowness), stage("1", 8, 2 * slowness)};
  v.result.summary = stage("summary", 0, 1.5 * slowness);
  v.result.replicas.resize(2);
  v.result.replicas[0].name = "a-0";
  v.result.replicas[0].requests = 150;
  v.result.replicas[1].name = "a-1";
  v.result.replicas[1].requests = 50;
  v.result.notes = {"a <note> & more"};
  v.measured.rows = {{"e", name, "1", "8", "ttft", "mean", "ms", 190, "somewhere", 2}};
  v.resolved.path = R"({"name": "x", "routing": {"balancer": ")" + name + R"("}})";
  v.resolved.root = tree::map(
      {{"name", tree::text("x")}, {"routing", tree::map({{"balancer", tree::text(name)}})}});
  return v;
}

Report report() {
  Report r;
  r.scenario = "x";
  r.question = "Is </script> \"fast\" faster?";
  r.seed = 7;
  r.version = "9.9.9";
  r.commit = "abc";
  r.scenario_hash = "00ff";
  r.variants.push_back(report_variant("slow", 3));
  r.variants.push_back(report_variant("fast", 1));
  return r;
}

json block_of(const std::string& page) {
  const std::optional<std::string> block = data_block(page);
  EXPECT_TRUE(block.has_value());
  return json::parse(block.value_or("null"));
}

/// The number a reader takes from a cell such as `212 ms` or `12.5 k`.
double read_number(const std::string& text) {
  std::size_t used = 0;
  const double value = std::stod(text, &used);
  const std::string unit = text.substr(used);
  const std::vector<std::pair<std::string, double>> units = {
      {"µs", 1e-6}, {"ms", 1e-3}, {"min", 60}, {"s", 1},   {"h", 3600},
      {"k", 1e3},   {"M", 1e6},   {"G", 1e9},  {"%", 0.01}};
  for (const auto& [suffix, factor] : units)
    if (unit.size() >= suffix.size() && unit.ends_with(suffix)) return value * factor;
  return value;
}

TEST(ReportPage, TablesAreItsData) {
  const std::string page = render_html(report());
  const json data = block_of(page);
  const std::regex cell("<td data-path=\"([^\"]*)\" data-value=\"([^\"]*)\">([^<]*)");
  int cells = 0;
  for (std::sregex_iterator it(page.begin(), page.end(), cell), end; it != end; ++it) {
    const json& number = data.at(json::json_pointer((*it)[1].str()));
    ASSERT_TRUE(number.is_number()) << (*it)[1];
    const double value = std::stod((*it)[2].str());
    EXPECT_EQ(number.get<double>(), value) << (*it)[1];
    EXPECT_NEAR(read_number((*it)[3].str()), value, 0.006 * std::abs(value)) << (*it)[0];
    ++cells;
  }
  EXPECT_GT(cells, 60);
}

TEST(ReportPage, IsAResultItself) {
  const std::string page = render_html(report());
  EXPECT_EQ(block_of(page), json::parse(render_json(report()))) << "nothing lost, nothing added";
  Diagnostics diagnostics;
  const PageData again = read_results({{.file = "p.html", .text = page}}, diagnostics);
  EXPECT_FALSE(diagnostics.has_errors());
  EXPECT_EQ(render_page(again), page);
  const PageData both =
      read_results({{"a.html", page}, {"b.json", render_json(report())}}, diagnostics);
  ASSERT_EQ(both.runs.size(), 2U);
  const std::string pair = render_page(both);
  const json data = block_of(pair);
  EXPECT_EQ(data["results"].size(), 2U);
  EXPECT_NE(pair.find("data-path=\"/results/1/variants/0/summary"), std::string::npos);
  EXPECT_EQ(render_page(read_results({{"c.html", pair}}, diagnostics)), pair);
}

TEST(ReportPage, MakesNoRequestAndEscapesWhatItShows) {
  const std::string page = render_html(report());
  for (const char* reference : {"https:", "src=", "@import", "fetch(", "XMLHttp", "<img", "<iframe",
                                "<link rel=\"stylesheet\"", "import("})
    EXPECT_EQ(page.find(reference), std::string::npos) << reference;
  // The name of SVG's namespace is no address, and url(# points into the page.
  for (const char* elsewhere : {"http:(?!//www\\.w3\\.org/2000/svg')", "url\\((?!#)"})
    EXPECT_FALSE(std::regex_search(page, std::regex(elsewhere))) << elsewhere;
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  EXPECT_NE(page.find("Is &lt;/script&gt; &quot;fast&quot; faster?"), std::string::npos);
  EXPECT_NE(page.find("a &lt;note&gt; &amp; more"), std::string::npos);
  // One data block and one script, each closed once: no text of the result closed them early.
  std::size_t scripts = 0;
  for (std::size_t at = page.find("</script>"); at != std::string::npos;
       at = page.find("</script>", at + 1))
    ++scripts;
  EXPECT_EQ(scripts, 2U);
}

TEST(ReportPage, VerdictFirst) {
  Diagnostics diagnostics;
  const PageData data = read_results({{"r.json", render_json(report())}}, diagnostics);
  ASSERT_EQ(data.runs.size(), 1U);
  const Verdict verdict = verdict_of(data.runs[0]);
  EXPECT_EQ(verdict.headline.rfind(
                "fast wins against the base slow: its requests finish 3 times sooner", 0),
            0U)
      << verdict.headline;
  ASSERT_FALSE(verdict.lines.empty());
  EXPECT_TRUE(verdict.lines[0].better);
  const std::string page = render_page(data);
  EXPECT_LT(page.find("fast wins"), page.find("Key numbers"));
  EXPECT_LT(page.find("Key numbers"), page.find("<figure>"));
  EXPECT_LT(page.rfind("</figure>"), page.find(">Manifest</a></h2>"));
}

// A limit of requests in flight keeps the queue in the load tool, where no server sees it.
TEST(ReportPage, AStageThatTheLoadToolCannotSendIsOverloaded) {
  const auto is_overloaded = [](double sent, double delay) {
    RunRecord run;
    run.variants.resize(1);
    LoadRecord& load = run.variants[0].stages.emplace_back().lifecycle.load;
    load.stage->requested_rate = 50;
    load.stage->achieved_rate = sent;
    load.schedule_delay = SamplesRecord{.mean = delay};
    return page_run(run, "").variants.at(0).stages.at(0).overloaded;
  };
  EXPECT_TRUE(is_overloaded(18, 73));
  EXPECT_FALSE(is_overloaded(40, 73)) << "late, but as fast as asked for in the end";
  EXPECT_FALSE(is_overloaded(18, 0)) << "a short stage may ask for more than chance gives";
}

TEST(ReportPage, SaysThatTheRunWasInterrupted) {
  Report part = report();
  EXPECT_EQ(render_html(part).find("was interrupted"), std::string::npos);
  part.interrupted = true;
  EXPECT_NE(render_html(part).find("The run was interrupted, so its numbers are partial."),
            std::string::npos);
}

TEST(ReportPage, EqualVariantsHaveNoWinner) {
  Report r = report();
  r.variants[1] = report_variant("fast", 3);
  Diagnostics diagnostics;
  const PageData data = read_results({{"r.json", render_json(r)}}, diagnostics);
  const Verdict verdict = verdict_of(data.runs[0]);
  EXPECT_EQ(verdict.headline,
            "The base slow and fast are within 1 % of each other in mean request latency.");
  EXPECT_TRUE(verdict.lines.empty());
}

TEST(ReportPage, AVariantThatFailsDoesNotWin) {
  Report r = report();
  r.variants[1].result.summary.failures = 50;
  Diagnostics diagnostics;
  const PageData data = read_results({{"r.json", render_json(r)}}, diagnostics);
  EXPECT_EQ(verdict_of(data.runs[0]).headline.rfind("The base slow wins against fast", 0), 0U);
}

/// The report with what replications add: the mean latencies of two seeds by variant.
std::string replicated(const std::vector<double>& slow, const std::vector<double>& fast) {
  json data = json::parse(render_json(report()));
  const auto metrics = [](const std::vector<double>& values) {
    const double mean = (values[0] + values[1]) / 2;
    return json{{"request_latency_ms.mean",
                 {{"mean", mean}, {"low", mean - 50}, {"high", mean + 50}, {"values", values}}}};
  };
  data["replications"] = {
      {"count", 2},
      {"seeds", {1, 2}},
      {"variants",
       {{{"name", "slow"}, {"summary", {{"metrics", metrics(slow)}}}, {"stages", json::array()}},
        {{"name", "fast"}, {"summary", {{"metrics", metrics(fast)}}}, {"stages", json::array()}}}},
      {"differences",
       {{{"base", "slow"},
         {"variant", "fast"},
         {"summary",
          {{"metrics",
            {{"request_latency_ms.mean",
              {{"percent", {{"mean", -66.7}, {"low", -70}, {"high", -60}}},
               {"verdict", "better"}}}}}}}}}}};
  data["expectations"] = {{{"expected", "ttft_ms.p99 < 500"},
                           {"of", "fast"},
                           {"decision", "holds"},
                           {"found", "212 <b>"}}};
  return data.dump();
}

TEST(ReportPage, ReplicationsGiveMeansIntervalsAndJudgements) {
  Diagnostics diagnostics;
  const PageData data =
      read_results({{"r.json", replicated({2999, 3001}, {999, 1001})}}, diagnostics);
  const PageRun& run = data.runs.at(0);
  EXPECT_EQ(run.replications, 2);
  const Datum* mean = run.variants[1].summary.find("request_latency.mean");
  ASSERT_NE(mean, nullptr);
  EXPECT_DOUBLE_EQ(mean->value, 1.0);
  EXPECT_DOUBLE_EQ(*mean->low, 0.95);
  const std::string page = render_page(data);
  EXPECT_NE(page.find("data-path=\"/replications/variants/1/summary/metrics/"
                      "request_latency_ms.mean/mean\" data-value=\"1000\">1\u00a0s <small>"
                      "950\u00a0ms … 1.05\u00a0s</small>"),
            std::string::npos);
  EXPECT_NE(page.find("<b class=\"good\">holds</b> ttft_ms.p99 &lt; 500 (fast): 212 &lt;b&gt;"),
            std::string::npos);
  EXPECT_NE(verdict_of(run).headline.find("fast wins"), std::string::npos);
}

TEST(ReportPage, ReplicationsSpeakOfAllSeeds) {
  Diagnostics diagnostics;
  const std::string page =
      render_page(read_results({{"r.json", replicated({2999, 3001}, {999, 1001})}}, diagnostics));
  EXPECT_NE(page.find(" · seeds 7 to 8</div>"), std::string::npos);
  EXPECT_NE(page.find(" (seed 7, one of 2)</strong>"), std::string::npos)
      << "what only one run has";
}

/// The part of a page that is the picture of its verdict.
std::string picture_of(const std::string& page) {
  const std::size_t at = page.find("<figure");
  return at < page.find("</section>") ? page.substr(at, page.find("</figure>") - at) : "";
}

TEST(ReportPage, TheRateThatEachSustainsIsItsFirstPicture) {
  Report r = report();
  EXPECT_NE(picture_of(render_html(r)).find("Output peaks at"), std::string::npos);
  r.variants[0].capacity = {.rate = 5, .low = 4, .high = 6, .limit = "KV blocks"};
  r.variants[1].capacity = {.rate = 20, .low = 20, .high = 21, .limit = "decode step"};
  const std::string page = render_html(r), picture = picture_of(page);
  EXPECT_NE(picture.find("The most load without a queue that grows: 5\u00a0req/s with slow, "
                         "20\u00a0req/s with fast"),
            std::string::npos)
      << picture;
  // The bar of 20 reaches four times as far as that of 5, whose interval is a fifth of it wide.
  const std::regex bar("width=\"([0-9.]+)\" height=\"14\""),
      whisker("class=\"interval\" x1=\"([0-9.]+)\" y1=\"[0-9.]+\" x2=\"([0-9.]+)\"");
  std::vector<double> bars;
  for (std::sregex_iterator it(picture.begin(), picture.end(), bar), end; it != end; ++it)
    bars.push_back(std::stod((*it)[1]));
  ASSERT_EQ(bars.size(), 2U);
  EXPECT_NEAR(bars[1], 4 * bars[0], 0.5);
  std::smatch found;
  ASSERT_TRUE(std::regex_search(picture, found, whisker));
  EXPECT_NEAR(std::stod(found[2]) - std::stod(found[1]), bars[0] * 2 / 5, 0.5);
  // Curves from 2 to 8 req/s mark 5, but cannot mark 20.
  const std::size_t curves = page.find("class=\"plot\"");
  const std::string plot = page.substr(curves, page.find("</svg>", curves) - curves);
  EXPECT_NE(plot.find("slow sustains 5\u00a0req/s"), std::string::npos);
  EXPECT_EQ(plot.find("fast sustains"), std::string::npos);
}

TEST(ReportPage, AScanOfRatesIsOneCurveOverAllOfThem) {
  Report r = report();
  r.variants.clear();
  for (const double factor : {1.0, 3.0}) {
    VariantReport v = report_variant("only @ " + std::to_string(factor), factor);
    v.scan_of = "only";
    for (sim::StageResult& s : v.result.stages) s.info.requested_rate *= factor;
    r.variants.push_back(std::move(v));
  }
  const std::string picture = picture_of(render_html(r));
  EXPECT_NE(picture.find("data-name=\"only\" data-points=\"2 "), std::string::npos) << picture;
  const std::size_t at = picture.find("data-points=\"") + 13;
  const std::string points = picture.substr(at, picture.find('"', at) - at);
  std::vector<double> rates;
  std::istringstream words(points);
  for (std::string point; std::getline(words, point, ';');) rates.push_back(std::stod(point));
  EXPECT_EQ(rates, (std::vector<double>{2, 6, 8, 24}));
  EXPECT_EQ(picture.find("only @"), std::string::npos);
}

TEST(ReportPage, WhatCannotBeToldApartHasNoWinner) {
  Diagnostics diagnostics;
  const PageData data =
      read_results({{"r.json", replicated({3000, 3000}, {1000, 4900})}}, diagnostics);
  EXPECT_EQ(verdict_of(data.runs.at(0)).headline,
            "fast and the base slow are not distinguishable over 2 replications in mean request "
            "latency.");
}

TEST(ReportPage, RefusesWhatIsNoResult) {
  const std::string deep(100'000, '[');
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[1, 2]"), std::string("{\"a\": 1}"),
        std::string("<html></html>"), std::string("3\n4\n"), std::string(R"({"variants": []})"),
        std::string(R"({"scenario": "s", "variants": [3, null, {}]})"),
        std::string(R"({"scenario": "s", "variants": [{"name": 5, "stages": {"a": 1}}]})"),
        std::string(R"({"scenario": "s", "variants": [{"name": "a", "summary": {},
                        "stages": [{"load_summary": null}]}]})"),
        std::string(R"({"scenarios": [], "pairs": [3], "gates": 1})"), deep,
        "{\"variants\":" + deep + std::string(100'000, ']') + "}"}) {
    Diagnostics diagnostics;
    (void)read_results({{"f.json", text}}, diagnostics);
    EXPECT_TRUE(diagnostics.has_errors()) << text.substr(0, 200);
  }
}

TEST(ReportPage, AnErrorNamesWhatARunLacks) {
  Diagnostics diagnostics;
  (void)read_results({{"f.json", R"({"scenario": "s", "variants": [{"name": "a", "stages": [],
      "summary": {"load_summary": {"count": "many"}}}]})"}},
                     diagnostics);
  const std::string said = messages_of(diagnostics);
  for (const char* part :
       {"variants[0].summary.load_summary.count: must be",
        "variants[0].summary.successes: is missing", "variants[0].summary.failures: is missing"})
    EXPECT_NE(said.find(part), std::string::npos) << part << " in " << said;
}

TEST(ReportPage, AnUnknownOrMistypedKeyOfARunIsAnError) {
  Diagnostics diagnostics;
  (void)read_results({{"f.json", R"({"scenario": "s", "variants": [{"name": "a", "replicas": 7,
      "sumary": {}, "stages": [{"name": 5}], "summary": {"goodput": 3}}]})"}},
                     diagnostics);
  const std::string said = messages_of(diagnostics);
  for (const char* part :
       {"variants[0].replicas: must be a list", "variants[0].sumary: unknown key",
        "variants[0].stages[0].name: must be", "summary.goodput: must be a map"})
    EXPECT_NE(said.find(part), std::string::npos) << part << " in " << said;
}

TEST(ReportPage, SurvivesRowsOfASweepWithMissingParts) {
  Diagnostics diagnostics;
  const PageData data = read_results(
      {{"f.json",
        "{\"key\": \"1\"}\n{\"cell\": {\"a\": 1}, \"summary\": {\"metrics\": {\"m\": {\"mean\": "
        "1}}}}\n"}},
      diagnostics);
  EXPECT_FALSE(diagnostics.has_errors()) << messages_of(diagnostics);
  EXPECT_NE(render_page(data).find("</html>"), std::string::npos);
}

std::string sweep_lines() {
  std::string text;
  for (const char* variant : {"a", "b"})
    for (const int rate : {5, 10, 20})
      for (const int replicas : {2, 4})
        text += "{\"sweep\":\"grid\",\"cell\":{\"rate\":" + std::to_string(rate) +
                ",\"replicas\":" + std::to_string(replicas) + "},\"variant\":\"" + variant +
                "\",\"replications\":3,\"version\":\"1\",\"summary\":{\"metrics\":{\"ttft_ms.p99\":"
                "{\"mean\":" +
                std::to_string(rate * 100 / replicas) + ",\"half_width\":10,\"values\":[]}}}}\n";
  return text;
}

TEST(ReportPage, DrawsASweepAsMaps) {
  Diagnostics diagnostics;
  const PageData data = read_results({{"s.jsonl", sweep_lines()}}, diagnostics);
  ASSERT_EQ(data.bodies.size(), 1U);
  const std::string page = render_page(data);
  std::size_t cells = 0;
  for (std::size_t at = page.find("class=\"goal-cell\""); at != std::string::npos;
       at = page.find("class=\"goal-cell\"", at + 1))
    ++cells;
  EXPECT_EQ(cells, 12U) << "one per row of the sweep";
  EXPECT_EQ(block_of(page)["sweep_rows"].size(), 12U);
}

constexpr char kPlan[] =
    R"({"plan": "fleet", "question": "What is cheapest?", "version": "1", "met": true,
    "planned_rate": 12.5, "confidence": 0.95, "goals": ["ttft_ms.p99 < 500"],
    "plans": [{"hardware": "H100", "policy": "precise", "replicas": {"vllm": 2}, "gpus": 4,
               "price_per_hour": 9.2, "price_per_million_output_tokens": 0.41,
               "output_tokens_per_s": 6200, "knee_requests_per_s": 14.2,
               "binding": {"resource": "KV blocks"},
               "goals": [{"goal": "ttft_ms.p99 < 500", "verdict": "meets", "mean": 412,
                          "half_width": 20}]}],
    "families": [{"hardware": "H100", "policy": "precise", "method": "doubling", "sizes": 64,
                  "sizes_tried": 7, "replicas": {"vllm": 2}, "price_per_hour": 9.2},
                 {"hardware": "A10G", "policy": "random", "method": "scan", "sizes": 64,
                  "sizes_tried": 64, "near_miss": {"replicas": {"vllm": 64}}}]})";

TEST(ReportPage, AnswersAPlan) {
  Diagnostics diagnostics;
  const PageData data = read_results({{"p.json", kPlan}}, diagnostics);
  ASSERT_EQ(data.bodies.size(), 1U) << messages_of(diagnostics);
  const std::string page = render_page(data);
  EXPECT_NE(page.find("The cheapest fleet that meets the goals is 2 vllm of H100, precise, "
                      "$9.20 an hour and $0.41 per million output tokens."),
            std::string::npos);
  EXPECT_NE(page.find("over 14.2"), std::string::npos) << "no rate fails";
  EXPECT_NE(page.find("none; nearest 64 vllm"), std::string::npos);
  EXPECT_EQ(block_of(page), json::parse(kPlan));
  std::string none = kPlan;
  const std::size_t plans = none.find("\"plans\": [");
  none.replace(plans, none.find("\"families\"") - plans, "\"plans\": [], ");
  const PageData unmet = read_results({{"p.json", none}}, diagnostics);
  EXPECT_NE(render_page(unmet).find("No fleet in this space meets the goals."), std::string::npos);
}

TEST(ReportPage, ExportsEveryNumberItShows) {
  Diagnostics diagnostics;
  const PageData data =
      read_results({{"r.json", render_json(report())}, {"s.jsonl", sweep_lines()}}, diagnostics);
  std::map<std::string, std::string> files;
  for (const FolderFile& file : export_tables(data)) files[file.name] = file.text;
  for (const char* name : {"summary.csv", "stages.csv", "quantiles.csv", "servers.csv", "sweep.csv",
                           "summary.jsonl", "sweep.jsonl"})
    EXPECT_TRUE(files.contains(name)) << name;
  EXPECT_FALSE(files.contains("series.csv")) << "nothing was sampled";
  std::istringstream lines(files["stages.jsonl"]);
  std::map<std::string, double> exported;
  double measured = 0;
  for (std::string line; std::getline(lines, line);) {
    const json row = json::parse(line);
    exported[row["variant"].get<std::string>() + row["stage"].get<std::string>() +
             row["metric"].get<std::string>()] = row["value"].get<double>();
    if (row["measured"].is_number()) measured = row["measured"].get<double>();
  }
  for (const VariantView& v : data.runs[0].variants)
    for (const StageView& s : v.stages)
      for (const auto& [key, datum] : s.values)
        EXPECT_EQ(exported[v.name + s.name + key], datum.value) << key;
  EXPECT_DOUBLE_EQ(measured, 0.19);
}

TEST(ReportPage, ExportsCurvesThatStandOnTheirOwn) {
  Diagnostics diagnostics;
  const PageData one = read_results({{"r.json", render_json(report())}}, diagnostics);
  std::map<std::string, std::string> files;
  for (const FolderFile& file : export_charts(one)) files[file.name] = file.text;
  ASSERT_TRUE(files.contains("ttft.mean.svg"));
  for (const auto& [name, svg] : files) {
    SCOPED_TRACE(name);
    EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
    EXPECT_TRUE(svg.ends_with("</svg>\n"));
    EXPECT_EQ(svg.find("var("), std::string::npos) << "a colour the page would have to give";
    EXPECT_EQ(svg.find("<li>"), std::string::npos) << "HTML";
    for (const VariantView& v : one.runs[0].variants)
      EXPECT_NE(svg.find(">" + v.name + "<"), std::string::npos) << "not in the legend: " << v.name;
  }
  const PageData two = read_results(
      {{"a.json", render_json(report())}, {"b.json", render_json(report())}}, diagnostics);
  EXPECT_EQ(export_charts(two).size(), 2 * files.size());
  EXPECT_EQ(export_charts(two).back().name.substr(0, 2), "2-");
}

TEST(ReportNumbers, ReadAsPeopleWriteThem) {
  EXPECT_EQ(human(0.2127, Unit::kSeconds), "213\u00a0ms");
  EXPECT_EQ(human(55.54, Unit::kSeconds), "55.5\u00a0s");
  EXPECT_EQ(human(0.9997, Unit::kSeconds), "1\u00a0s") << "not 1000 ms";
  EXPECT_EQ(human(1.5e-5, Unit::kSeconds), "15\u00a0µs");
  EXPECT_EQ(human(4'000, Unit::kSeconds), "66.7\u00a0min");
  EXPECT_EQ(human(12'489, Unit::kTokensPerSecond), "12.5\u00a0k\u00a0tok/s");
  EXPECT_EQ(human(9'746.6, Unit::kTokensPerSecond, false), "9747");
  EXPECT_EQ(human(0.986, Unit::kRatio), "98.6\u00a0%");
  EXPECT_EQ(human(0, Unit::kCount), "0");
  EXPECT_EQ(human(NAN, Unit::kSeconds), "–");
  EXPECT_EQ(times(100, 4.7), "21 times");
  EXPECT_EQ(times(21, 10), "2.1 times");
  EXPECT_EQ(html("a<b>&\"'\x01"), "a&lt;b&gt;&amp;&quot;&#39;");
}

TEST(SvgChart, TicksAreRoundAndInside) {
  EXPECT_EQ(linear_ticks(0, 100, 5), (std::vector<double>{0, 20, 40, 60, 80, 100}));
  EXPECT_EQ(log_ticks(0.1, 200), (std::vector<double>{0.1, 1, 10, 100}));
  EXPECT_EQ(time_ticks(0, 1500, 6), (std::vector<double>{0, 300, 600, 900, 1200, 1500}));
  for (double span = 1e-6; span < 1e9; span *= 3.7) {
    const std::vector<double> ticks = linear_ticks(span, 3 * span, 6);
    ASSERT_GE(ticks.size(), 3U) << span;
    EXPECT_LE(ticks.size(), 7U);
    EXPECT_GE(ticks.front(), span * (1 - 1e-9));
    EXPECT_LE(ticks.back(), 3 * span * (1 + 1e-9));
  }
}

/// Relative luminance of `#rgb` or `#rrggbb` (WCAG 2.2).
double luminance(const std::string& colour) {
  const std::string hex = colour.size() == 4 ? std::string("#") + colour[1] + colour[1] +
                                                   colour[2] + colour[2] + colour[3] + colour[3]
                                             : colour;
  const auto channel = [&](std::size_t at) {
    const double c = std::stoi(hex.substr(at, 2), nullptr, 16) / 255.0;
    return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5);
}

double contrast(const std::string& a, const std::string& b) {
  const double x = luminance(a), y = luminance(b);
  return (std::max(x, y) + 0.05) / (std::min(x, y) + 0.05);
}

TEST(ReportPage, ColoursStandOutInBothThemes) {
  EXPECT_NEAR(contrast("#fff", "#000000"), 21, 1e-9);
  const std::string style(page_style());
  const std::size_t dark = style.find("prefers-color-scheme:dark");
  for (const std::size_t theme : {std::size_t{0}, dark}) {
    const auto colour = [&](const std::string& name) {
      const std::size_t at = style.find("--" + name + ":", theme) + name.size() + 3;
      return style.substr(at, style.find_first_of(";}", at) - at);
    };
    for (const char* text : {"ink", "mute", "good", "bad", "accent"})
      for (const char* paper : {"bg", "card"})
        EXPECT_GE(contrast(colour(text), colour(paper)), 4.5) << text << " on " << paper;
    for (std::size_t s = 0; s < kColours; ++s)
      EXPECT_GE(contrast(colour("s" + std::to_string(s)), colour("card")), 3) << "series " << s;
  }
}

TEST(SvgChart, MapsStandOutFromADarkPageAndInGrey) {
  const std::string style(page_style());
  const std::size_t at = style.find("--card:", style.find("prefers-color-scheme:dark")) + 7;
  const std::string card = style.substr(at, style.find(';', at) - at);
  HeatMap map{.title = "t", .rows = {"r"}};
  for (int c = 0; c < 16; ++c) map.columns.push_back(std::to_string(c));
  map.cells = {{}};
  for (int c = 0; c < 16; ++c) map.cells[0].emplace_back(c);
  const std::string svg = draw(map);
  const std::regex cell("class=\"cell\"[^>]* fill=\"rgb\\(([0-9]+),([0-9]+),([0-9]+)\\)\"");
  double last = 0;
  int cells = 0;
  for (std::sregex_iterator it(svg.begin(), svg.end(), cell), end; it != end; ++it, ++cells) {
    std::string hex = "#";
    for (std::size_t i = 1; i <= 3; ++i) {
      const int v = std::stoi((*it)[i]);
      hex += "0123456789abcdef"[v / 16];
      hex += "0123456789abcdef"[v % 16];
    }
    EXPECT_GE(contrast(hex, card), 2) << hex;
    EXPECT_GT(luminance(hex), last) << hex;
    last = luminance(hex);
  }
  EXPECT_EQ(cells, 16);
}

TEST(SvgChart, FirstPointsStayOffTheLabelsAndServersAreWhole) {
  LineChart chart{.title = "t"};
  chart.x = {.title = "rate"};
  chart.y = {.title = "servers", .unit = Unit::kCount, .from_zero = true};
  chart.series = {{.name = "s", .points = {{.x = 4, .y = 2}, {.x = 12, .y = 3}}}};
  const std::string svg = draw(chart);
  // Labels of the second axis end 6 left of it; a diamond is 5.5 wide on each side.
  const std::regex label("<text x=\"([0-9.]+)\" y=\"[0-9.]+\" text-anchor=\"end\">([0-9.]+)<");
  std::vector<std::string> labels;
  double right = 0;
  for (std::sregex_iterator it(svg.begin(), svg.end(), label), end; it != end; ++it) {
    right = std::stod((*it)[1]);
    labels.push_back((*it)[2]);
  }
  EXPECT_EQ(labels, (std::vector<std::string>{"0", "1", "2", "3"}));
  std::smatch mark;
  ASSERT_TRUE(
      std::regex_search(svg, mark, std::regex("class=\"mark\" transform=\"translate\\(([0-9.]+)")));
  EXPECT_GT(std::stod(mark[1]) - 5.5, right + 6);
}

TEST(SvgChart, EightSeriesDifferWithoutColour) {
  std::set<std::string> shapes, dashes;
  for (std::size_t s = 0; s < kColours; ++s) {
    const std::string key = svg_key(s, false, true);
    shapes.insert(key.substr(key.find("translate(14 7)")));
    dashes.insert(key.substr(key.find("line d"), 7));
    if (s > 0) {
      EXPECT_NE(page_style().find(".d" + std::to_string(s) + "{stroke-dasharray"),
                std::string_view::npos);
    }
  }
  EXPECT_EQ(shapes.size(), kColours);
  EXPECT_EQ(dashes.size(), kColours);
}

TEST(SvgChart, OverloadFadesTheLineOnBothSidesOfThePoint) {
  LineChart chart;
  chart.title = "t";
  ChartSeries series;
  series.name = "s";
  for (const double x : {1.0, 2.0, 3.0, 4.0, 5.0})
    series.points.push_back({.x = x, .y = x, .overloaded = x == 3});
  chart.series = {series};
  const std::string figure = draw(chart);
  const std::string svg = figure.substr(figure.find("class=\"plot\""));
  const std::regex line("class=\"line d0( past)?\" d=\"([^\"]*)\"");
  std::vector<std::pair<bool, std::size_t>> parts;  // Faded, segments.
  for (std::sregex_iterator it(svg.begin(), svg.end(), line), end; it != end; ++it) {
    const std::string path = (*it)[2];
    parts.emplace_back((*it)[1].matched, std::count(path.begin(), path.end(), 'L'));
  }
  EXPECT_EQ(parts, (std::vector<std::pair<bool, std::size_t>>{{false, 1}, {true, 2}, {false, 1}}));
  EXPECT_NE(svg.find("data-points=\"1 1;2 2;3 3!;4 4;5 5\""), std::string::npos);
  EXPECT_NE(figure.find("faded: overloaded"), std::string::npos) << "in the legend";
}

TEST(SvgChart, LargeMapsAreBandsWithEveryValue) {
  HeatMap map;
  map.title = "t";
  for (int r = 0; r < 32; ++r) map.rows.push_back("server-" + std::to_string(r));
  for (int c = 0; c < 60; ++c) map.columns.push_back(std::to_string(c));
  map.cells.assign(32, std::vector<std::optional<double>>(60, 1.5));
  map.cells[31][59] = 7;
  map.cells[0][0] = std::nullopt;
  const std::string svg = draw(map);
  EXPECT_EQ(svg.find("class=\"cell\""), std::string::npos);
  const std::regex band("<path fill=\"[^\"]*\" d=\"([^\"]*)\"");
  std::size_t boxes = 0, paths = 0;
  for (std::sregex_iterator it(svg.begin(), svg.end(), band), end; it != end; ++it, ++paths) {
    const std::string path = (*it)[1];
    boxes += static_cast<std::size_t>(std::count(path.begin(), path.end(), 'Z'));
  }
  EXPECT_EQ(paths, 2U) << "two shades";
  EXPECT_EQ(boxes, 33U) << "one run per row, and the last cell";
  const std::size_t grid = svg.find("data-grid=\"") + 11;
  const std::string text = svg.substr(grid, svg.find('"', grid) - grid);
  EXPECT_TRUE(text.ends_with("1.5 7")) << text.substr(text.size() - 20);
  EXPECT_EQ(std::count(text.begin(), text.end(), ';'), 31);
}

TEST(SvgChart, StripsMarkTheMean) {
  StripChart chart;
  chart.title = "t";
  chart.groups = {{.name = "a", .note = "+100 %", .points = {{"x", 30}, {"y", 10}, {"z", 5}}}};
  const std::string svg = draw(chart);
  EXPECT_NE(svg.find("data-row=\"a\tx\t30\""), std::string::npos) << svg;
  // 15 of 30 is half of the way between the first tick and the last.
  const std::regex tick("<line class=\"(?:axis|grid)\" x1=\"([0-9.]+)\"");
  std::vector<double> ticks;
  for (std::sregex_iterator it(svg.begin(), svg.end(), tick), end; it != end; ++it)
    ticks.push_back(std::stod((*it)[1]));
  std::smatch mean;
  ASSERT_TRUE(std::regex_search(svg, mean, std::regex("class=\"mean\" x1=\"([0-9.]+)\"")));
  EXPECT_NEAR(std::stod(mean[1]), (ticks.front() + ticks.back()) / 2, 0.11);
}

TEST(SvgChart, NothingToDrawIsNothing) {
  EXPECT_EQ(draw(LineChart{}), "");
  EXPECT_EQ(draw(BarChart{}), "");
  EXPECT_EQ(draw(HeatMap{}), "");
  EXPECT_EQ(draw(StripChart{}), "");
  LineChart one;
  one.title = "one";
  one.series.push_back({.name = "s", .points = {{.x = 1, .y = 1, .low = {}, .high = {}}}});
  const std::string svg = draw(one);
  EXPECT_NE(svg.find("class=\"mark\""), std::string::npos) << "a single point is still a point";
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

}  // namespace
}  // namespace routesim::tools
