// Numbers out: metrics, measured tables, renderers, descriptions.
#include <gtest/gtest.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/plan/scenario.h"
#include "tests/base/messages.h"
#include "tools/ingest/scenario/schema_json.h"
#include "tools/ingest/traces/measured_file.h"
#include "tools/ingest/tree/description.h"
#include "tools/ingest/tree/parse_config.h"
#include "tools/render/document.h"
#include "tools/results/described_json.h"
#include "tools/results/metrics.h"
#include "tools/results/report.h"
#include "tools/results/text_table.h"
#include "tools/study/run/render_run.h"

namespace routesim::tools {
namespace {

using nlohmann::json;

constexpr char kHeader[] = "experiment,policy,stage,rate,metric,statistic,unit,value,source\n";

/// A stage of `n` requests whose TTFTs are 1, 2, ... n seconds, over 10 s, 100 output tokens each.
sim::StageResult stage(const std::string& name, double rate, std::int64_t n) {
  sim::StageResult s;
  s.info.name = name;
  s.info.requested_rate = rate;
  s.requests = s.successes = n;
  s.first_send = SimTime::zero();
  s.last_send = SimTime::zero() + Duration::seconds(5);
  s.last_end = SimTime::zero() + Duration::seconds(10);
  for (std::int64_t i = 1; i <= n; ++i) s.time_to_first_token.add(static_cast<double>(i));
  s.output_tokens_total = 100 * n;
  s.prompt_tokens_total = 1000 * n;
  s.cached_tokens_total = 250 * n;
  return s;
}

VariantReport variant(const std::string& name, std::int64_t n) {
  VariantReport v;
  v.name = name;
  v.result.stages = {stage("0", 5, n), stage("1", 7, 2 * n)};
  v.result.stages[0].info.reported = false;
  v.result.summary = stage("summary", 0, 3 * n);
  v.result.fingerprint = 0xfedcba9876543210U;
  return v;
}

TEST(Metrics, NamesStatisticsAndUnits) {
  const sim::StageResult s = stage("1", 3, 5);
  EXPECT_DOUBLE_EQ(*metric_value(s, "ttft", "mean", "s"), 3);
  EXPECT_DOUBLE_EQ(*metric_value(s, "time_to_first_token", "mean(comparison table)", "ms"), 3000);
  EXPECT_EQ(metric_value(s, "ttft", "median", ""), 3);
  EXPECT_EQ(metric_value(s, "ttft", "p50", ""), 3);
  EXPECT_NEAR(*metric_value(s, "ttft", "p99p9", ""), 4.996, 1e-9);
  EXPECT_EQ(metric_value(s, "output_throughput", "mean", "tok/s"), 50);
  EXPECT_EQ(metric_value(s, "requests_per_sec_sent", "mean", "req/s"), 1);
  EXPECT_EQ(metric_value(s, "prefix_cache_hit_rate", "mean", "%"), 25);
  EXPECT_FALSE(metric_value(s, "ttft", "p101", "").has_value());
  EXPECT_FALSE(metric_value(s, "ttft", "mean", "furlongs").has_value());
  EXPECT_FALSE(metric_value(s, "nonsense", "mean", "").has_value());
  EXPECT_FALSE(metric_value(s, "itl", "mean", "").has_value()) << "no samples, no number";
}

TEST(Metrics, LadderSummaries) {
  const sim::StageResult a = stage("1", 3, 1);   // TTFT 1, 10 tok/s, 1 request
  const sim::StageResult b = stage("2", 10, 3);  // mean TTFT 2, 30 tok/s, 3 requests
  const std::vector<const sim::StageResult*> stages = {&a, &b};
  EXPECT_DOUBLE_EQ(*ladder_value(stages, "output_throughput", "simple_mean_of_16_stages", "tok/s"),
                   20);
  EXPECT_DOUBLE_EQ(*ladder_value(stages, "ttft", "request_weighted_mean_of_16_stage_means", "s"),
                   1.75);
  EXPECT_NEAR(*ladder_value(stages, "ttft", "request_weighted_mean_of_16_stage_p90s", "s"),
              (1 + 3 * 2.8) / 4, 1e-12);
  EXPECT_DOUBLE_EQ(*ladder_value(stages, "ttft", "mean_over_ladder (by analogy)", "s"), 1.75);
  EXPECT_FALSE(ladder_value(stages, "ttft", "mean", "s").has_value());
}

TEST(MeasuredCsv, ReadsQuotedFieldsAndSelects) {
  Diagnostics d;
  const auto table = parse_measured_csv(std::string(kHeader) +
                                            "e,p,1,3,ttft,mean,s,0.415,\"a, \"\"b\"\"\nc\"\r\n"
                                            "e,q,1,3,ttft,mean,s,1e-3,x\n",
                                        "m.csv", d);
  ASSERT_TRUE(table.has_value()) << messages_of(d);
  ASSERT_EQ(table->rows.size(), 2U);
  EXPECT_EQ(table->rows[0].source, "a, \"b\"\nc");
  EXPECT_EQ(table->rows[0].value, 0.415);
  EXPECT_EQ(table->rows[1].line, 4);
  EXPECT_EQ(select_rows(*table, "e", "q").rows.size(), 1U);
  EXPECT_EQ(select_rows(*table, "other", "q").rows.size(), 0U);
}

TEST(MeasuredCsv, ReportsEveryBadRow) {
  Diagnostics d;
  const std::string row = "e,p,1,3,ttft,mean,s,";
  EXPECT_FALSE(parse_measured_csv(std::string(kHeader) + row + "nan,x\n" + row + "1\n" + row +
                                      "2,x\n" + row + "3,x\n" + row + "4,\"open",
                                  "m.csv", d)
                   .has_value());
  EXPECT_EQ(messages_of(d),
            "m.csv:2:21: error: value: must be a number (got nan)\n"
            "m.csv:3:22: error: must have 9 fields (got 8)\n"
            "m.csv:5:1: error: repeats an earlier row of the same stage, metric and statistic\n"
            "m.csv:6:23: error: a quoted field is never closed\n");
  Diagnostics header;
  EXPECT_FALSE(parse_measured_csv("a,b\n1,2\n", "m.csv", header).has_value());
  EXPECT_EQ(header.items().size(), 1U) << messages_of(header);
  // The place is that of the cell, whatever stands before it.
  Diagnostics quoted;
  EXPECT_FALSE(parse_measured_csv(std::string(kHeader) + "\"a\nb\",p,1,3,ttft,mean,s,x,y\n" +
                                      "\"e\"e,p\n" + row + "1,x,more,\n",
                                  "m.csv", quoted)
                   .has_value());
  EXPECT_EQ(messages_of(quoted),
            "m.csv:3:22: error: value: must be a number (got x)\n"
            "m.csv:4:4: error: unexpected text after a closing quote\n"
            "m.csv:4:4: error: must have 9 fields (got 1)\n"
            "m.csv:5:25: error: must have 9 fields (got 11)\n");
  Diagnostics third;
  EXPECT_FALSE(parse_measured_csv("experiment,policy,stag\n", "m.csv", third).has_value());
  EXPECT_TRUE(messages_of(third).starts_with("m.csv:1:19: error: the header must be"))
      << messages_of(third);
}

Report sample_report() {
  Report report;
  report.scenario = "demo";
  report.question = "Why?";
  report.seed = 4;
  report.version = "9.9";
  report.variants.push_back(variant("base", 4));
  report.variants.push_back(variant("new", 8));
  Diagnostics d;
  const auto table =
      parse_measured_csv(std::string(kHeader) +
                             "e,p,1,7,ttft,mean,ms,5000,x\n"
                             "e,p,all,,ttft,request_weighted_mean_of_x_means,s,4,x\n",
                         "m.csv", d);
  report.variants[0].measured = select_rows(*table, "", "p");
  return report;
}

TEST(RenderJson, IsALifecycleReportPerStage) {
  const json doc = json::parse(render_json(sample_report()));
  EXPECT_EQ(doc["scenario"], "demo");
  EXPECT_EQ(doc["seed"], 4);
  EXPECT_EQ(doc["version"], "9.9");
  ASSERT_EQ(doc["variants"].size(), 2U);
  const json& v = doc["variants"][0];
  EXPECT_EQ(v["name"], "base");
  EXPECT_EQ(v["fingerprint"], "fedcba9876543210");
  const json& s = v["stages"][1];
  EXPECT_EQ(s["name"], "1");
  EXPECT_EQ(s["load_summary"]["count"], 8);
  EXPECT_EQ(s["load_summary"]["requested_rate"], 7);
  EXPECT_EQ(s["load_summary"]["achieved_rate"], 1.6);
  EXPECT_EQ(s["successes"]["latency"]["time_to_first_token"]["median"], 4.5);
  EXPECT_TRUE(s["successes"]["latency"]["inter_token_latency"].is_null());
  EXPECT_EQ(s["successes"]["throughput"]["output_tokens_per_sec"], 80);
  EXPECT_EQ(s["successes"]["prompt_tokens"]["cached"], 2000);
  EXPECT_TRUE(s["successes"].contains("prompt_len"));
  EXPECT_EQ(s["failures"]["count"], 0);
  EXPECT_EQ(s["prefix_hit_ratio"], 0.25);
  EXPECT_FALSE(v["summary"]["load_summary"].contains("requested_rate"));
  EXPECT_EQ(v["summary"]["load_summary"]["count"], 12);
}

// The contract of tests/cli/contract_test.cpp has no router that refuses, foresees hits or splits.
TEST(RenderJson, SaysWhatTheRouterDid) {
  Report report = sample_report();
  report.variants[0].result.routing = {.decisions = 7,
                                       .rejected = 1,
                                       .predicted_hit_tokens = 64,
                                       .disaggregated = 2,
                                       .prompt_tokens = 160,
                                       .hit_tokens = 40};
  EXPECT_EQ(json::parse(render_json(report))["variants"][0]["routing"],
            json::parse(R"({"prefix_hit_ratio": 0.25, "decisions": 7, "rejected": 1,
                            "predicted_hit_tokens": 64, "hit_tokens": 40, "prompt_tokens": 160,
                            "disaggregated": 2})"));
}

TEST(RenderJson, SaysWhatDecisionsCostAndHowLongTheyWaited) {
  Report report = sample_report();
  sim::RoutingResult& routing = report.variants[0].result.routing;
  routing = {.decisions = 8};
  EXPECT_FALSE(
      json::parse(render_json(report))["variants"][0]["routing"].contains("mean_regret_s"));
  routing.priced = true;
  routing.regret_s = 12;
  routing.mean_wait_s = 0.25;
  routing.longest_wait_s = 0.75;
  const json written = json::parse(render_json(report))["variants"][0]["routing"];
  EXPECT_EQ(written["mean_regret_s"], 1.5);
  EXPECT_EQ(written["mean_wait_s"], 0.25);
  EXPECT_EQ(written["max_wait_s"], 0.75);
}

TEST(Render, SaysWhatTheGatewayDid) {
  Report report = sample_report();
  EXPECT_EQ(render_text(report).find("gateway"), std::string::npos);
  sim::RoutingResult& routing = report.variants[0].result.routing;
  routing.gateway = {.refused = 3,
                     .retries = 5,
                     .retries_refused = 2,
                     .waited = 7,
                     .longest_wait = Duration::milliseconds(1500),
                     .most_in_flight = 1024,
                     .most_waiting = 4};
  EXPECT_EQ(json::parse(render_json(report))["variants"][0]["routing"]["gateway"],
            json::parse(R"({"refused": 3, "retries": 5, "retries_refused": 2, "waited": 7,
                            "max_wait_s": 1.5, "max_in_flight": 1024, "max_waiting": 4})"));
  const std::string text = render_text(report);
  for (const char* row :
       {"refused by the gateway", "retried by the gateway", "most in flight at the gateway"})
    EXPECT_NE(text.find(row), std::string::npos) << row;
}

TEST(Render, TellsTrafficClassesApart) {
  Report report = sample_report();
  EXPECT_FALSE(json::parse(render_json(report))["variants"][0].contains("classes"));
  EXPECT_EQ(render_text(report).find("traffic class"), std::string::npos);
  sim::StageResult chat;
  chat.info.name = "chat";
  chat.requests = 3;
  chat.successes = 2;
  chat.failures = 1;
  chat.failures_by_label["TimeoutError"] = 1;
  chat.first_send = SimTime::zero();
  chat.last_end = SimTime::zero() + Duration::seconds(4);
  for (const double ttft : {0.25, 0.75}) chat.time_to_first_token.add(ttft);
  chat.prompt_tokens_total = 800;
  chat.cached_tokens_total = 200;
  chat.output_tokens_total = 40;
  chat.preemptions = 5;
  report.variants[0].result.classes = {chat};
  const json written = json::parse(render_json(report))["variants"][0]["classes"];
  ASSERT_EQ(written.size(), 1U);
  const json& c = written[0];
  EXPECT_EQ(c["name"], "chat");
  EXPECT_EQ(c["benchmark_time_seconds"], 4);
  EXPECT_EQ(c["load_summary"]["count"], 3);
  EXPECT_EQ(c["successes"]["count"], 2);
  EXPECT_EQ(c["failures"]["by_label"]["TimeoutError"]["count"], 1);
  EXPECT_NEAR(c["successes"]["latency"]["time_to_first_token"]["mean"].get<double>(), 0.5, 1e-9);
  EXPECT_EQ(c["successes"]["throughput"]["output_tokens_per_sec"], 10);
  EXPECT_EQ(c["prefix_hit_ratio"], 0.25);
  EXPECT_EQ(c["preemptions"], 5);
  EXPECT_FALSE(c.contains("kv_cache_usage")) << "servers have it, not requests";
  std::string row;
  std::istringstream lines(render_text(report, {.width = 200}));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("chat ")) row = line;
  std::istringstream words(row);
  const std::vector<std::string> cells{std::istream_iterator<std::string>(words), {}};
  ASSERT_EQ(cells.size(), 9U) << row;
  EXPECT_EQ(std::vector(cells.begin(), cells.begin() + 6),
            (std::vector<std::string>{"chat", "base", "3", "1", "10", "0.500"}));
}

TEST(Render, WhatAToolSendsBeforeItsRunIsNoStage) {
  Report report = sample_report();
  report.variants[0].result.stages[0].info.is_preparation = true;
  const json doc = json::parse(render_json(report));
  const json& prepared = doc["variants"][0];
  ASSERT_EQ(prepared["stages"].size(), 1U);
  EXPECT_EQ(prepared["stages"][0]["name"], "1");
  ASSERT_EQ(prepared["preparation"].size(), 1U);
  EXPECT_EQ(prepared["preparation"][0]["name"], "0");
  EXPECT_FALSE(doc["variants"][1].contains("preparation"));
  const std::string csv = render_csv(report);
  EXPECT_EQ(csv.find("demo,base,0,"), std::string::npos);
  EXPECT_NE(csv.find("demo,new,0,"), std::string::npos) << "a warm-up stage is one";
}

TEST(Render, AKneeThatTheBlocksDoNotMoveIsNotOneFromItselfToItself) {
  VariantReport variant;
  variant.name = "v";
  const StageSide side{.ttft_mean_s = 89.72, .overloaded = true};
  variant.capacity_band = {{.stage = "0", .as_is = side, .fewer = side, .more = side}};
  EXPECT_EQ(capacity_text(variant),
            "3 % of the KV blocks, fewer or more, move the mean TTFT of no stage by 1 %");
  variant.capacity_band[0].fewer.ttft_mean_s = 91;
  EXPECT_NE(capacity_text(variant).find("from 89.72 s to 91.00 s (fewer)"), std::string::npos);
  variant.capacity_band[0].as_is.ttft_mean_s = 0;
  EXPECT_EQ(capacity_text(variant), "") << "the client sees no first token";
}

TEST(Render, AStageWhoseQueueGrowsIsMarkedEverywhere) {
  Report report = sample_report();
  sim::StageResult& stage = report.variants[1].result.stages[1];
  stage.queue_growth = 0.3;
  report.variants[1].result.summary.queue_growth = 0.3;
  const json doc = json::parse(render_json(report));
  EXPECT_EQ(doc["variants"][0]["stages"][1]["overloaded"], false);
  EXPECT_EQ(doc["variants"][1]["stages"][1]["overloaded"], true);
  EXPECT_EQ(doc["variants"][1]["summary"]["overloaded"], true);
  const std::string csv = render_csv(report);
  EXPECT_NE(csv.find("\ndemo,base,1,7,overloaded,count,count,0,,\n"), std::string::npos) << csv;
  EXPECT_NE(csv.find("\ndemo,new,1,7,overloaded,count,count,1,,\n"), std::string::npos) << csv;
  const std::string text = render_text(report);
  EXPECT_NE(text.find("! 8.500"), std::string::npos) << text;
  EXPECT_NE(text.find("\n! overloaded: the stage is asked for more than it answers"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("! 4.500"), std::string::npos) << text;
  EXPECT_NE(text.find("overloaded stages"), std::string::npos) << text;
  EXPECT_EQ(render_text(sample_report()).find("overloaded"), std::string::npos);
}

TEST(RenderText, PutsSimulatedBesideMeasured) {
  const std::string text = render_text(sample_report());
  EXPECT_NE(text.find("demo, seed 4, routesim 9.9\nWhy?\n"), std::string::npos) << text;
  // base: mean of 1..8 = 4.5 s beside 5 s; new: mean of 1..16 = 8.5 s, +88.9 % on base.
  EXPECT_NE(text.find("1              7      4.500     5.000  -10.0      8.500       +88.9\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("\n0 "), std::string::npos) << "warm-up stages are not shown\n" << text;
  EXPECT_NE(text.find("4.500     4.000  +12.5"), std::string::npos) << text;
}

TEST(RenderCsv, IsTidy) {
  const std::string csv = render_csv(sample_report());
  EXPECT_EQ(csv.find("scenario,variant,stage,rate,metric,statistic,unit,value,measured,"), 0U);
  EXPECT_NE(csv.find("\ndemo,base,1,7,ttft,mean,s,4.5,5,-10\n"), std::string::npos) << csv;
  EXPECT_NE(csv.find("\ndemo,new,all,,successful_requests,count,count,24,,\n"), std::string::npos);
}

TEST(JsonWriter, EscapesAndNests) {
  JsonWriter writer(0);
  writer.begin_object().member("a\"\n", 0.1).key("b").begin_array().value(true).null();
  writer.begin_object().end_object().value(1.0 / 0.0).end_array().end_object();
  EXPECT_EQ(writer.str(), "{\"a\\\"\\n\":0.1,\"b\":[true,null,{},null]}");
}

TEST(TextTable, AlignsByCodePoints) {
  TextTable table(1);
  table.add_row({"é", "1"});
  table.add_row({"ab", "23"});
  EXPECT_EQ(table.str(), "é    1\nab  23\n");
}

TEST(Description, EchoReadsBackToTheSameScenario) {
  sim::Scenario scenario;
  scenario.name = "x: y";
  scenario.question = "5";
  scenario.cluster.pools.resize(2);
  scenario.cluster.pools[1].name = "null";
  scenario.cluster.pools[1].labels = {"a=b", "- c", ""};
  scenario.cluster.pools[1].engine.gpu_memory_utilization = 0.1 + 0.2;
  scenario.routing.kv_event_delay = Duration::nanoseconds(1'234'567);
  const auto echo = [](sim::Scenario& s) {
    return to_node(describe_values([&s](Describer& d) { describe(d, s); }));
  };
  const std::string yaml = to_yaml(*echo(scenario));
  for (const std::string& text : {yaml, to_json(*echo(scenario))}) {
    Diagnostics d;
    const ConfigNode::Ptr root = parse_config(text, {.file = "echo"}, d);
    ASSERT_NE(root, nullptr) << messages_of(d) << text;
    sim::Scenario back;
    read_struct(*root, back, d);
    EXPECT_EQ(messages_of(d), "") << text;
    EXPECT_EQ(to_yaml(*echo(back)), yaml);
  }
}

TEST(Schema, DescribesEveryKeyStrictly) {
  sim::Scenario scenario;
  const FieldDescription types =
      describe_types([&scenario](Describer& d) { describe(d, scenario); });
  const json schema = json::parse(
      schema_json(types, {.id = {},
                          .title = "t",
                          .description = "d",
                          .partial = false,
                          .integer_shorthand = [](std::string_view k) { return k == "prefix_len"; },
                          .text_shorthand = {},
                          .other_name = {},
                          .flags = {},
                          .variants_key = "variants"}));
  EXPECT_EQ(schema["additionalProperties"], false);
  const json& pool = schema["properties"]["cluster"]["properties"]["pools"]["items"];
  EXPECT_EQ(pool["additionalProperties"], false);
  EXPECT_EQ(pool["properties"]["replicas"]["minimum"], 0);
  EXPECT_EQ(pool["properties"]["replicas"]["default"], 1);
  EXPECT_EQ(pool["properties"]["role"]["enum"], json::array({"both", "prefill", "decode"}));
  EXPECT_EQ(pool["required"], json::array({"accelerator", "model"}));
  EXPECT_EQ(
      schema["properties"]["workload"]["properties"]["groups"]["properties"]["prefix_len"]["type"],
      json::array({"object", "integer"}));
  EXPECT_TRUE(schema["properties"]["variants"]["items"]["properties"].contains("routing"));
  const std::string page = reference_markdown(types, "Keys");
  EXPECT_NE(page.find("## `cluster.pools[].engine`"), std::string::npos);
  EXPECT_NE(page.find("| `replicas` | integer | `1` | 0 to 65536 |"), std::string::npos) << page;
}

TEST(Csv, NoCellOfTextIsAFormula) {
  // OWASP, CSV injection: a quote before what a spreadsheet would run, inside a quoted cell.
  EXPECT_EQ(csv_field("=HYPERLINK(\"x\")"), "\"'=HYPERLINK(\"\"x\"\")\"");
  for (const char* text : {"=1+1", "+cmd", "-x", "@SUM(A1)", "\t=1", "\r=1"})
    EXPECT_EQ(csv_field(text), "\"'" + std::string(text) + "\"");
  // Numbers and all other text stay.
  for (const char* text : {"-1.5", "-3", "a=b", "x", ""}) EXPECT_EQ(csv_field(text), text);
}

// On a terminal, columns that do not fit follow below, with the left ones again and headings whole.
TEST(TextTable, IsAsWideAsTheTerminal) {
  TextTable table(1);
  table.add_row({"stage", "now", "then", "now", "then"});
  table.add_heading(1, 2, "one");
  table.add_heading(3, 2, "other");
  table.add_row({"0", "1", "2", "3", "4"});
  EXPECT_EQ(table.str(),
            "       -- one --  - other -\n"
            "stage  now  then  now  then\n"
            "0        1     2    3     4\n");
  EXPECT_EQ(table.str(27), table.str());
  EXPECT_EQ(table.str(26),
            "       -- one --\n"
            "stage  now  then\n"
            "0        1     2\n"
            "\n"
            "       - other -\n"
            "stage  now  then\n"
            "0        3     4\n");
}

TEST(WrappedText, BreaksAtSpacesAndNowhereElse) {
  EXPECT_EQ(wrapped("one two three", 2, "- ", 9), "- one two\n  three");
  EXPECT_EQ(wrapped("one 12\u00a0ms", 2, "", 6), "one\n  12 ms") << "a number keeps its unit";
  EXPECT_EQ(wrapped("a word-that-is-too-long", 0, "", 8), "a\nword-that-is-too-long");
}

}  // namespace
}  // namespace routesim::tools
