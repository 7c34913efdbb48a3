// Published numbers beside simulated ones, and the table of errors that results carry.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/describe.h"
#include "sim/simulation.h"
#include "tests/base/messages.h"
#include "tests/base/slurp.h"
#include "tests/tools/command_fixture.h"
#include "tools/cli/cli.h"
#include "tools/ingest/scenario/prepare.h"
#include "tools/ingest/servers/catalogue_file.h"
#include "tools/results/trust_errors.h"
#include "tools/study/validate/validation_record.h"
#include "tools/study/validate/validation_run.h"

namespace routesim::tools {
namespace {

// Published numbers beside simulated ones: every error here can be redone by hand.

namespace fs = std::filesystem;
using nlohmann::json;

/// A stage of 10 s with these TTFTs, 100 output tokens per request.
sim::StageResult stage(const std::string& name, double rate, const std::vector<double>& ttft) {
  sim::StageResult s;
  s.info.name = name;
  s.info.requested_rate = rate;
  s.requests = s.successes = static_cast<std::int64_t>(ttft.size());
  s.first_send = SimTime::zero() + Duration::seconds(3);
  s.last_send = SimTime::zero() + Duration::seconds(8);
  s.last_end = SimTime::zero() + Duration::seconds(13);
  for (const double t : ttft) {
    s.time_to_first_token.add(t);
    s.time_per_output_token.add(t / 10);
    s.normalized_time_per_output_token.add(t / 8);
    s.inter_token_latency.add(t / 20);
    s.request_latency.add(t * 2);
    s.prompt_tokens.add(1000);
    s.output_tokens.add(100);
  }
  s.output_tokens_total = 100 * s.requests;
  s.prompt_tokens_total = 1000 * s.requests;
  s.cached_tokens_total = 250 * s.requests;
  s.kv_cache_usage_mean = 0.4;
  return s;
}

sim::RunResult run_of(const std::vector<double>& ttft) {
  sim::RunResult result;
  result.stages = {stage("0", 5, {9}), stage("1", 7, ttft)};
  result.stages[0].info.reported = false;
  result.stages[0].first_send = SimTime::zero() + Duration::seconds(1);
  return result;
}

MeasuredTable table(const std::string& rows) {
  Diagnostics d;
  const auto parsed = parse_measured_csv(
      "experiment,policy,stage,rate,metric,statistic,unit,value,source\n" + rows, "t.csv", d);
  EXPECT_TRUE(parsed.has_value()) << messages_of(d);
  return parsed.value_or(MeasuredTable{});
}

ValidationVariant variant(const std::string& name, const std::string& policy,
                          const MeasuredTable& rows) {
  ValidationVariant v;
  v.plan.scenario.variant = name;
  v.plan.scenario.measured.policy = policy;
  v.plan.pools.resize(1);
  v.plan.pools[0].config.replicas = 4;
  v.table = rows;
  return v;
}

constexpr char kRows[] =
    "e,smart,1,7,ttft,mean,s,1,src\n"
    "e,rr,1,7,ttft,mean,ms,2000,src\n"
    "e,rr,1,7,time_to_first_token,mean(comparison table),s,2,src\n"
    "e,rr,1,7,ttft,p90,s,4,src\n"
    "e,smart,1,7,ttft,p90,s,4,src\n"
    "e,rr,1,7,failed_requests,count,count,0,src\n"
    "e,rr,1,7,waiting_requests,approx,count,180,src\n"
    "e,smart/rr,1,7,ttft_speedup,mean,x,2,src\n"
    "e,smart/rr,1,7,output_throughput_speedup,mean,x,1,src\n"
    "e,smart_vs_rr,1,7,ttft_reduction,relative (as stated),%,50,src\n"
    "e,other,1,7,ttft,mean,s,5,src\n";

/// Two seeds: rr has TTFTs 1, 2, 3 then 2, 3, 4; smart always 1, 1, 1.
ScenarioValidation by_hand(const std::vector<UnscoredRule>& unscored = {}) {
  const MeasuredTable rows = table(kRows);
  const ValidationInput input{.scenario = "hand",
                              .variants = {variant("a", "rr", rows), variant("b", "smart", rows)},
                              .unscored = unscored};
  ValidationBook book(input, 2);
  book.add(1, 1, run_of({1, 1, 1}));
  book.add(0, 1, run_of({2, 3, 4}));
  book.add(0, 0, run_of({1, 2, 3}));
  book.add(1, 0, run_of({1, 1, 1}));
  return book.finish();
}

TEST(Validation, CellsByHand) {
  const ScenarioValidation v = by_hand();
  ASSERT_EQ(v.cells.size(), 11U) << "every row of the CSV is a cell";
  const ValidationCell& rr = v.cells[1];
  EXPECT_EQ(rr.variant, "a");
  EXPECT_DOUBLE_EQ(rr.mean(), 2500);  // (2 s + 3 s) / 2, in the row's ms.
  EXPECT_NEAR(rr.seed_deviation(), 1000 * std::sqrt(0.5), 1e-9);
  EXPECT_DOUBLE_EQ(*rr.error(), 25);
  EXPECT_EQ(rr.status, CellStatus::kScored);
  EXPECT_DOUBLE_EQ(*v.cells[0].error(), 0);
  // The same measurement in another column of the publication.
  EXPECT_EQ(v.cells[2].status, CellStatus::kShown);
  EXPECT_EQ(v.cells[2].reason, "repeats line 3");
  // p90 of 1, 2, 3 is 2.8; of 2, 3, 4 it is 3.8.
  EXPECT_NEAR(*v.cells[3].error(), 100 * (3.3 - 4) / 4, 1e-9);
  EXPECT_EQ(v.cells[5].status, CellStatus::kShown) << "no per cent of 0";
  EXPECT_FALSE(v.cells[5].error());
  EXPECT_EQ(v.cells[6].status, CellStatus::kNotSimulated);
  EXPECT_EQ(v.cells[6].reason, "a run has no waiting_requests, approx");
  EXPECT_EQ(v.cells[10].reason, "no variant of the scenario has this policy");
}

TEST(Validation, RowsThatCompareTwoPolicies) {
  const ScenarioValidation v = by_hand();
  EXPECT_DOUBLE_EQ(v.cells[7].mean(), 2.5);  // 2/1 and 3/1 times faster.
  EXPECT_DOUBLE_EQ(*v.cells[7].error(), 25);
  EXPECT_DOUBLE_EQ(v.cells[8].mean(), 1);
  EXPECT_NEAR(v.cells[9].mean(), 100 * ((1 - 1.0 / 2) + (1 - 1.0 / 3)) / 2, 1e-9);
}

TEST(Validation, SummariesByHand) {
  const ScenarioValidation v = by_hand();
  ASSERT_GE(v.errors.size(), 2U);
  EXPECT_EQ(v.errors[1].policy, "rr");
  EXPECT_EQ(v.errors[1].metric, "ttft");
  EXPECT_EQ(v.errors[1].cells, 1U) << "the repeated row counts once";
  EXPECT_DOUBLE_EQ(v.errors[1].mape, 25);
  EXPECT_DOUBLE_EQ(v.errors[1].bias, 25);
  EXPECT_NEAR(v.errors[1].seed_deviation, 100 * std::sqrt(0.5) / 2, 1e-9);
  // The p90 pair only: the mean rows are in different units, and nothing pairs those.
  ASSERT_EQ(v.differences.size(), 1U);
  EXPECT_EQ(v.differences[0].policy, "smart");
  EXPECT_DOUBLE_EQ(v.differences[0].measured, 0);
  EXPECT_NEAR(v.differences[0].simulated, 100 * (1 / 3.3 - 1), 1e-9);
}

TEST(Validation, DifferenceOfPoliciesByHand) {
  const MeasuredTable rows = table(
      "e,rr,1,7,ttft,mean,s,2,src\n"
      "e,smart,1,7,ttft,mean,s,1,src\n"
      "e,rr,1,7,output_throughput,mean,tok/s,30,src\n"
      "e,smart,1,7,output_throughput,mean,tok/s,60,src\n");
  const ValidationInput input{.scenario = "hand",
                              .variants = {variant("a", "rr", rows), variant("b", "smart", rows)},
                              .unscored = {}};
  ValidationBook book(input, 1);
  book.add(0, 0, run_of({2, 3}));     // Mean 2.5 s; 200 tokens in 10 s.
  book.add(1, 0, run_of({1, 1, 1}));  // Mean 1 s; 300 tokens in 10 s.
  const ScenarioValidation v = book.finish();
  ASSERT_EQ(v.differences.size(), 2U);
  EXPECT_DOUBLE_EQ(v.differences[0].measured, -50);
  EXPECT_DOUBLE_EQ(v.differences[0].simulated, -60);
  EXPECT_DOUBLE_EQ(v.differences[0].error_points(), -10);
  EXPECT_NEAR(v.differences[0].ratio_error(), -20, 1e-9);
  EXPECT_TRUE(v.differences[0].sign_agrees());
  ASSERT_EQ(v.difference_errors.size(), 2U);
  EXPECT_DOUBLE_EQ(v.difference_errors[1].mean_points, 50);  // +100 % measured, +50 % simulated.
  EXPECT_EQ(v.difference_errors[1].signs_agree, 1U);
  EXPECT_NEAR(v.difference_errors[1].mean_ratio_error, 25, 1e-9);
}

TEST(Validation, NoiseIsShownButNotScored) {
  Diagnostics d;
  const auto rules = parse_unscored_csv(
      "experiment,policy,stage,metric,statistic,reason\n"
      "e,rr,*,time_to_first_token,p90,noise, a few outliers\n",
      "unscored.csv", d);
  EXPECT_EQ(messages_of(d), "");
  const ScenarioValidation v = by_hand(rules);
  EXPECT_EQ(v.cells[3].status, CellStatus::kShown);
  EXPECT_EQ(v.cells[3].reason, "noise, a few outliers");
  EXPECT_TRUE(v.cells[3].error());
  EXPECT_EQ(v.cells[4].status, CellStatus::kScored) << "another policy";
  for (const ErrorSummary& s : v.errors) EXPECT_FALSE(s.policy == "rr" && s.statistic == "p90");
  EXPECT_FALSE(v.differences.at(0).scored);
  EXPECT_TRUE(v.difference_errors.empty());
  (void)parse_unscored_csv("experiment,policy\nx\n", "bad.csv", d);
  EXPECT_EQ(d.items().size(), 2U) << messages_of(d);
}

TEST(Validation, WhatIsLeftOutSaysWhatItWouldScore) {
  Diagnostics d;
  const auto rules = parse_unscored_csv(
      "experiment,policy,stage,metric,statistic,reason\n"
      "e,rr,8,ttft,mean,noise\n"
      "e,rr,7,ttft,p90,a guess\n",
      "unscored.csv", d);
  const MeasuredTable rows = table(
      "e,rr,7,7,ttft,mean,s,2,src\n"
      "e,rr,7,7,ttft,mean(comparison table),s,4,src\n"
      "e,rr,8,8,ttft,mean,s,4,src\n"
      "e,rr,7,7,ttft,p90,s,4.2,src\n");
  const ValidationInput input{
      .scenario = "hand", .variants = {variant("a", "rr", rows)}, .unscored = rules};
  ValidationBook book(input, 1);
  sim::RunResult result;
  result.stages = {stage("7", 7, {1, 2}), stage("8", 8, {2, 2})};  // p90 of 1 and 2 is 1.9.
  book.add(0, 0, result);
  const ScenarioValidation v = book.finish();
  ASSERT_EQ(v.left_out.size(), 2U) << "a repeated number is no measurement of its own";
  EXPECT_EQ(v.left_out[0].reason, "noise");
  EXPECT_EQ(v.left_out[0].would.cells, 1U);
  EXPECT_DOUBLE_EQ(v.left_out[0].would.mape, 50);  // 2 s, measured 4 s.
  EXPECT_DOUBLE_EQ(v.left_out[0].would.worst, -50);
  EXPECT_EQ(v.left_out[0].cells_with, 2U);
  EXPECT_DOUBLE_EQ(v.left_out[0].mape_with, 37.5);  // 1.5 s for 2 s is 25 % off.
  EXPECT_EQ(v.left_out[1].cells_with, 1U) << "no scored row of this name";
  EXPECT_NEAR(v.left_out[1].would.bias, 100 * (1.9 - 4.2) / 4.2, 1e-9);
  const std::string text =
      draw(validation_document(validation_record({v}, {}, "1"), false), "markdown");
  EXPECT_NE(
      text.find("| e | rr | ttft | mean | 1 | 50.0 | -50.0 | -50.0 | 8 | 37.5 of 2 | noise |"),
      std::string::npos)
      << text;
}

TEST(Validation, WordsOfPublications) {
  const sim::RunResult run = run_of({1, 2, 3});
  const auto value = [&](const std::string& row) {
    std::string why;
    return simulated_value(run, 4, table("e,p," + row + ",1,src\n").rows.at(0), why);
  };
  EXPECT_DOUBLE_EQ(*value("1,7,output_throughput_per_node,mean,tok/s/node"), 30.0 / 4);
  EXPECT_DOUBLE_EQ(*value("1,7,output_tokens_per_sec,value,1/s"), 30);
  EXPECT_DOUBLE_EQ(*value("main,closed loop,time_per_token,mean over requests of x/y,ms"), 250);
  EXPECT_DOUBLE_EQ(*value("rate7,7,request_throughput,mean,req/s"), 0.3);
  EXPECT_DOUBLE_EQ(*value("0,5,stage_wall_time,start_to_completion (log),s"), 12);
  EXPECT_DOUBLE_EQ(*value("1,7,stage_start_offset,log,s"), 2);
  EXPECT_DOUBLE_EQ(*value("1,7,gpu_kv_cache_usage,approx_low,%"), 40);
  EXPECT_DOUBLE_EQ(*value("1,7,prefix_cache_hit_rate,approx,%"), 25);
  EXPECT_DOUBLE_EQ(*value("1,7,requests_failures,count,count"), 0);
  EXPECT_DOUBLE_EQ(*value("all,3-60,ttft,request_weighted_mean_of_1_stage_means,s"), 2);
  EXPECT_FALSE(value("log line 1,inf,gpu_kv_cache_usage,instant,%"));
  EXPECT_FALSE(value("1,7,ttft,mean,furlongs"));
}

TEST(Validation, WhatIsImpossibleIsNotScored) {
  const sim::RunResult run = run_of({1, 2, 3});
  const auto why = [&](const std::string& row) {
    std::string reason;
    EXPECT_FALSE(simulated_value(run, 4, table("e,p," + row + ",src\n").rows.at(0), reason)) << row;
    return reason;
  };
  EXPECT_EQ(why("1,7,ttft,mean,tok/s,1"), "tok/s is no unit of ttft");
  EXPECT_EQ(why("1,7,time_per_token,mean,%,1"), "% is no unit of time_per_token");
  EXPECT_EQ(why("1,7,output_throughput,mean,ms,1"), "ms is no unit of output_throughput");
  EXPECT_EQ(why("1,7,output_throughput,mean,req/s,1"), "req/s is no unit of output_throughput");
  EXPECT_EQ(why("all,3-60,ttft,request_weighted_mean_of_1_stage_means,%,1"),
            "% is no unit of ttft");
  EXPECT_EQ(why("1,7,ttft,mean,s,-1"), "the published value is impossible (-1 s)");
  EXPECT_EQ(why("1,7,prefix_cache_hit_rate,mean,%,101"),
            "the published value is impossible (101 %)");
}

/// Of all numbers in the published files, only these have no counterpart in a run. A new name in a
/// CSV must be mapped, or be added here.
TEST(Validation, NothingPublishedIsDroppedSilently) {
  const std::set<std::string> kOnlyThese = {"waiting_requests", "running_requests",
                                            "prefill_instances_saved"};
  std::size_t rows = 0;
  const fs::path scenarios = fs::path(ROUTESIM_SOURCE_DIR) / "scenarios";
  std::vector<fs::path> files;
  for (const fs::path& folder : {scenarios / "measured", scenarios / "holdout" / "measured"})
    for (const auto& file : fs::directory_iterator(folder))
      if (file.path().extension() == ".csv" && file.path().filename() != "unscored.csv")
        files.push_back(file.path());
  Diagnostics none;
  const fs::path unscored = scenarios / "measured" / "unscored.csv";
  const auto rules = parse_unscored_csv(slurp(unscored), unscored.string(), none);
  for (const fs::path& file : files) {
    Diagnostics d;
    const auto parsed = parse_measured_csv(slurp(file), file.string(), d);
    ASSERT_TRUE(parsed) << messages_of(d);
    for (const MeasuredRow& row : parsed->rows) {
      if (row.stage.starts_with("log line")) continue;  // A moment of one server's warm-up.
      const bool pooled = row.stage == "all" && unscored_reason(rules, row) != nullptr;
      if (pooled) continue;  // No stage of this run means it.
      if (row.metric.ends_with("_speedup") || row.metric.ends_with("_reduction")) continue;
      sim::RunResult run;
      run.stages = {stage(row.stage, 1, {1, 2})};
      std::string why;
      const bool simulated = simulated_value(run, 2, row, why).has_value();
      EXPECT_EQ(simulated, !kOnlyThese.contains(row.metric))
          << file.filename() << ":" << row.line << " " << row.metric << " " << why;
      ++rows;
    }
  }
  EXPECT_GT(rows, 500U);
}

/// A folder with a scenario of two variants and the numbers "published" for it.
class ValidateCommand : public testing::FolderTest {
 protected:
  void SetUp() override {
    write("tiny.yaml",
          "name: tiny\n"
          "workload:\n"
          "  groups: {requests: 40, rate: 20, groups: 4, prefix_len: 512, suffix_len: 64,\n"
          "           output_len: 16}\n"
          "cluster:\n"
          "  pools:\n"
          "  - {name: a, replicas: 2, accelerator: H100-SXM, model: Qwen3-32B,\n"
          "     tensor_parallel: 2}\n"
          "variants:\n"
          "- {name: rotation, routing: {balancer: round-robin}, measured: {policy: rr}}\n"
          "- {name: chance, routing: {balancer: random}, measured: {policy: random}}\n"
          "measured: {csv: tiny.csv, experiment: e}\n");
    write("tiny.csv",
          "experiment,policy,stage,rate,metric,statistic,unit,value,source\n"
          "e,rr,main,20,ttft,mean,ms,100,made\n"
          "e,random,main,20,ttft,mean,ms,100,made\n"
          "other,rr,main,20,ttft,mean,ms,1,made\n");
    write("unscored.csv",
          "experiment,policy,stage,metric,statistic,reason\n"
          "e,random,main,ttft,mean,made up\n");
  }

  /// TTFT of the first variant in ms with this seed, straight from the simulation.
  double ttft_ms(std::uint64_t seed) const {
    Diagnostics d;
    const LoadedScenario scenario =
        load_scenario({.path = path("tiny.yaml"), .sets = {}, .variants = {}, .seed = {}}, d);
    const auto plan = prepare(scenario.variants.at(0), d);
    EXPECT_TRUE(plan) << messages_of(d);
    sim::Simulation simulation(*plan, {.seed = seed, .check = true, .observers = {}}, d);
    return 1e3 * simulation.run().summary.time_to_first_token.mean();
  }
};

TEST_F(ValidateCommand, ComparesTheMeanOverSeedsWhateverTheJobs) {
  std::vector<std::string> outputs;
  for (const std::string& jobs : {std::string("1"), std::string("3")}) {
    testing::TestConsole console;
    EXPECT_EQ(run_command_line({"validate", path("tiny.yaml"), "--seeds", "3", "--jobs", jobs,
                                "--output", "json", "-q"},
                               console),
              ExitCode::kSuccess)
        << console.errors;
    outputs.push_back(console.output());
  }
  EXPECT_EQ(outputs[0], outputs[1]);
  const json cells = json::parse(outputs[0])["scenarios"][0]["cells"];
  ASSERT_EQ(cells.size(), 2U) << "rows of other experiments are no concern of this scenario";
  const double mean = (ttft_ms(1) + ttft_ms(2) + ttft_ms(3)) / 3;
  EXPECT_NEAR(cells[0]["simulated"].get<double>(), mean, 1e-9 * mean);
  EXPECT_NEAR(cells[0]["error_percent"].get<double>(), mean - 100, 1e-9 * mean);
  EXPECT_EQ(cells[0]["status"], "scored");
  EXPECT_EQ(cells[1]["status"], "not scored");
  EXPECT_EQ(cells[1]["reason"], "made up");
}

TEST_F(ValidateCommand, FindsTheScenariosOfAFolderAndWritesEveryFormat) {
  write("plain.yaml", "name: plain\nworkload: {groups: {requests: 1}}\n");  // Compares nothing.
  for (const std::string& format :
       {std::string("table"), std::string("csv"), std::string("markdown")}) {
    testing::TestConsole console;
    EXPECT_EQ(run_command_line(
                  {"validate", "--folder", folder_.string(), "--seeds", "1", "--output", format},
                  console),
              ExitCode::kSuccess)
        << console.errors;
    EXPECT_NE(console.output().find("made up"), std::string::npos) << console.output();
    EXPECT_NE(console.errors.find("tiny, rotation, seed 1"), std::string::npos);
  }
}

TEST_F(ValidateCommand, RefusesBadInput) {
  const std::string plain =
      write("plain.yaml",
            "name: plain\nworkload: {groups: {requests: 1}}\ncluster:\n  pools:\n"
            "  - {accelerator: H100-SXM, model: Qwen3-32B, tensor_parallel: 2}\n");
  const std::string s = path("tiny.yaml");
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{"validate", plain},
                                             {"validate", s, "--seeds", "0"},
                                             {"validate", s, "--jobs", "two"},
                                             {"validate", s, "--output", "jsn"},
                                             {"validate", path("missing.yaml")},
                                             {"validate", "--folder", path("missing")},
                                             {"validate", s, "--set", "measured.policy=nobody"}}) {
    testing::TestConsole console;
    EXPECT_EQ(run_command_line(wrong, console), ExitCode::kInvalid) << wrong.back();
    EXPECT_EQ(console.output(), "");
    EXPECT_NE(console.errors, "");
  }
}

/// The step times of the first pool of a shipped scenario without the curves it must be blind to;
/// empty where nothing was fitted.
std::string blind(const std::string& scenario, BlindTo what) {
  const std::string path = std::string(ROUTESIM_SOURCE_DIR) + "/scenarios/" + scenario + ".yaml";
  Diagnostics d;
  const ValidationInput input = load_validation_input(path, {}, {}, false, d);
  EXPECT_FALSE(d.has_errors()) << messages_of(d);
  const ValidationInput left = leave_out(input, path, {}, what);
  if (left.variants.empty()) return {};
  EXPECT_EQ(left.variants.size(), input.variants.size());
  return left.variants.front().plan.pools.front().latency->provenance();
}

TEST(LeaveOut, TakesWhatIsKnownBestOfTheRest) {
  // The report of January 2026 had a part in the curve of 2025-H2, not in that of 2026-H1.
  EXPECT_TRUE(blind("llm-d-qwen3-32b-16xh100-rate60", BlindTo::kExperiment)
                  .starts_with("cost curve H100-SXM / Qwen3-32B tp2 (2026-H1)"));
  EXPECT_TRUE(blind("llm-d-qwen3-32b-16xh100-tiers", BlindTo::kExperiment)
                  .starts_with("cost curve H100-SXM / Qwen3-32B tp2 (2025-H2)"));
  const std::string kernels = "measured kernels of H100-SXM with vLLM 0.24: Qwen3-32B tp2";
  EXPECT_EQ(blind("llm-d-qwen3-32b-16xh100", BlindTo::kExperiment), kernels);
  for (const BlindTo what : {BlindTo::kModel, BlindTo::kHardware})
    EXPECT_EQ(blind("llm-d-qwen3-32b-16xh100-rate60", what), kernels);
  EXPECT_TRUE(blind("qwen2.5-7b-8xa10g", BlindTo::kHardware).starts_with("roofline, unfitted"));
  EXPECT_EQ(blind("llm-d-gpt-oss-120b-docqa-8xh200", BlindTo::kModel), "");
}

TEST(LeaveOut, EveryShippedCurveSaysWhatHadAPartInIt) {
  std::set<std::string> known;
  for (const auto& entry : fs::directory_iterator(std::string(ROUTESIM_SOURCE_DIR) + "/scenarios"))
    if (entry.path().extension() == ".yaml") {
      Diagnostics d;
      const LoadedScenario loaded = load_scenario({.path = entry.path().string()}, d);
      for (const LoadedVariant& v : loaded.variants) known.insert(v.scenario.measured.experiment);
    }
  for (const models::FittedCurve& curve : builtin_catalogue().curves()) {
    EXPECT_FALSE(curve.fitted_to.empty()) << curve.accelerator << " " << curve.model;
    for (const std::string& name : curve.fitted_to)
      EXPECT_TRUE(known.contains(name) ||
                  fs::exists(std::string(ROUTESIM_SOURCE_DIR) + "/scenarios/measured/" + name))
          << name;
  }
}

// The measurements that results rest on, and the table of errors that they carry.

using models::Trust;

ValidationCell cell(Trust trust, const std::string& metric, const std::string& statistic,
                    double measured, double simulated) {
  ValidationCell c;
  c.row.metric = metric;
  c.row.statistic = statistic;
  c.row.stage = "1";
  c.row.value = measured;
  c.variant = "a";
  c.status = CellStatus::kScored;
  c.samples = {simulated};
  c.trust = trust;
  return c;
}

TEST(Trust, CellsArePooledByClassAndQuantity) {
  ScenarioValidation v;
  v.cells = {cell(Trust::kFitted, "output_tokens_per_sec", "mean", 100, 90),   // -10 %
             cell(Trust::kFitted, "output_tokens_per_sec", "mean", 100, 104),  // +4 %
             cell(Trust::kRoofline, "output_tokens_per_sec", "mean", 100, 150),
             cell(Trust::kRoofline, "time_per_token", "mean", 200, 150),  // -25 %
             cell(Trust::kRoofline, "itl", "mean", 200, 190),             // -5 %
             cell(Trust::kRoofline, "ttft", "p99", 10, 12),
             cell(Trust::kRoofline, "ttft", "p50", 10, 20)};
  v.cells.push_back(cell(Trust::kFitted, "output_tokens_per_sec", "mean", 100, 900));
  v.cells.back().status = CellStatus::kShown;
  v.cells.push_back(cell(Trust::kFitted, "output_tokens_per_sec", "mean", 100, 900));
  v.cells.back().row.stage = "all";
  v.cells.push_back(cell(Trust::kFitted, "output_tokens_per_sec", "mean", 100, 900));
  v.cells.back().variant.clear();
  EXPECT_EQ(render_trust_csv(trust_table({v})),
            std::string(kTrustHeader) +
                "\nfitted,output tokens/s,2,7.0,-10.0\n"
                "roofline,output tokens/s,1,50.0,50.0\n"
                "roofline,TTFT p90 and above,1,20.0,20.0\n"
                "roofline,time per output token,2,15.0,-25.0\n");
}

TEST(Trust, TheTableOfTheProgramReadsBack) {
  EXPECT_EQ(parse_trust_errors(render_trust_csv(trust_errors())).size(), trust_errors().size());
  EXPECT_FALSE(trust_errors().empty());
  for (const TrustError& e : trust_errors()) {
    EXPECT_GT(e.cells, 0U);
    EXPECT_LE(e.mean, std::abs(e.worst)) << e.quantity;
  }
}

// Less known step times are further off; else the classes would say nothing.
TEST(Trust, TheBandWidensFromClassToClass) {
  EXPECT_GT(step_time_band(Trust::kFitted), 0);
  EXPECT_LT(step_time_band(Trust::kFitted), step_time_band(Trust::kExtrapolated));
  EXPECT_LT(step_time_band(Trust::kExtrapolated), step_time_band(Trust::kRoofline));
  EXPECT_LT(step_time_band(Trust::kRoofline), step_time_band(Trust::kDataSheet));
}

TEST(Trust, ARunIsAsKnownAsItsLeastKnownPool) {
  sim::RunResult result;
  result.step_times = {{.pool = "p", .trust = Trust::kFitted, .busy_s = 10},
                       {.pool = "d", .trust = Trust::kRoofline, .busy_s = 10}};
  EXPECT_EQ(result.trust(), Trust::kRoofline);
  EXPECT_NE(trust_text(result).find("rests on a roofline that was not fitted"), std::string::npos);
  EXPECT_EQ(trust_text(result).find("fitted to (how many"), std::string::npos);
  result.step_times = {
      {.pool = "p", .trust = Trust::kExtrapolated, .busy_s = 10, .extrapolated_s = 4}};
  EXPECT_NE(trust_text(result).find("p was outside it for 40 % of its time"), std::string::npos)
      << trust_text(result);
}

TEST(Trust, ATwentiethOfTheTimeOutsideTheRangePassesAsFitted) {
  EXPECT_EQ(sim::kMostExtrapolated, 0.05);
}

TEST(Trust, TheClassesHaveTheirNames) {
  EXPECT_EQ(enum_name(Trust::kFitted), "fitted");
  EXPECT_EQ(enum_name(Trust::kExtrapolated), "outside the fitted range");
  EXPECT_EQ(enum_name(Trust::kRoofline), "roofline");
  EXPECT_EQ(enum_name(Trust::kDataSheet), "data sheet");
}

}  // namespace
}  // namespace routesim::tools
