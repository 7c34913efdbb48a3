// Metrics: their names, goodput, and measured numbers that are read back.
#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>

#include "tests/base/messages.h"
#include "tests/tools/command_fixture.h"
#include "tools/cli/cli.h"
#include "tools/ingest/traces/measured_file.h"
#include "tools/render/document.h"
#include "tools/results/goodput.h"
#include "tools/results/metric_name.h"
#include "tools/results/report.h"
#include "tools/study/run/render_run.h"

namespace routesim::tools {
namespace {

// Names of metrics: every spelling users bring from their tools, and what is said about the others.

/// Two requests over ten seconds: TTFTs of 0.1 and 0.3 s, one failure beside them.
sim::StageResult small_stage() {
  sim::StageResult s;
  s.requests = 4;
  s.successes = 3;
  s.failures = 1;
  s.first_send = SimTime::zero();
  s.last_send = SimTime::zero() + Duration::seconds(5);
  s.last_end = SimTime::zero() + Duration::seconds(10);
  s.time_to_first_token.add(0.1);
  s.time_to_first_token.add(0.3);
  s.output_tokens_total = 500;
  s.prompt_tokens_total = 1000;
  s.cached_tokens_total = 250;
  s.preemptions = 7;
  s.kv_cache_usage_mean = 0.5;
  s.kv_cache_usage_max = 0.75;
  return s;
}

TEST(MetricName, EverySpellingMeansTheSame) {
  struct Row {
    std::string_view written;
    std::string_view text;
    double value;
  };
  constexpr std::array<Row, 18> kRows = {{
      {"ttft_ms.mean", "ttft_ms.mean", 200},
      {"ttft.mean", "ttft_s.mean", 0.2},
      {"ttft_us.max", "ttft_us.max", 300'000},
      {"mean_ttft_ms", "ttft_ms.mean", 200},
      {"p50_ttft_ms", "ttft_ms.median", 200},
      {"time_to_first_token.p75", "ttft_s.p75", 0.25},
      {"ttft_ms.p99.9", "ttft_ms.p99.9", 299.8},
      {"ttft_ms.p99p9", "ttft_ms.p99.9", 299.8},
      {"output_tokens_per_s", "output_tokens_per_s", 50},
      {"output_tokens_per_s.mean", "output_tokens_per_s", 50},
      {"output_throughput", "output_tokens_per_s", 50},
      {"requests_per_sec", "requests_per_s", 0.3},
      {"benchmark_duration_ms", "benchmark_duration_ms", 10'000},
      {"failed", "failed_requests", 1},
      {"failure_rate_percent", "failure_rate_percent", 25},
      {"prefix_hit_ratio", "prefix_cache_hit_rate", 0.25},
      {"preemptions", "preemptions", 7},
      {"kv_cache_usage_percent.max", "kv_cache_usage_percent.max", 75},
  }};
  for (const Row& row : kRows) {
    const Parsed<MetricName> name = parse_metric_name(row.written);
    ASSERT_TRUE(name.value.has_value()) << row.written << " " << name.message;
    EXPECT_EQ(name.value->text, row.text) << row.written;
    EXPECT_NEAR(metric_value(small_stage(), *name.value).value_or(-1), row.value, 1e-6)
        << row.written;
    EXPECT_EQ(parse_metric_name(name.value->text).value, name.value) << row.written;
  }
}

TEST(MetricName, SaysWhatIsWrong) {
  struct Row {
    std::string_view written;
    std::string_view message;
    std::string_view hint;
  };
  constexpr std::array<Row, 12> kRows = {{
      {"tttf_ms.p99", "is not a metric (got tttf_ms.p99)", "did you mean ttft_ms.p99?"},
      {"ttft_p99", "is not a metric (got ttft_p99)", "did you mean ttft_ms.p99?"},
      {"latency_s_p99", "is not a metric", "did you mean request_latency_s.p99?"},
      {"mean_itl.ms", "is not a metric", "did you mean itl_ms.mean?"},
      {"median.goodput", "is not a metric", "did you mean goodput?"},
      {"", "is not a metric", "metrics: ttft, tpot"},
      {"ttft_ms", "needs a statistic", "for example ttft_ms.p99"},
      {"ttft_ms.", "needs a statistic", "for example ttft_ms.p99"},
      {"ttft_ms.p101", "unknown statistic p101", ""},
      {"ttft_ms.q99", "unknown statistic q99", ""},
      {"requests_per_s.p99", "has one value per stage, so there is no p99", ""},
      {"requests_per_s.", "ends in a dot", ""},
  }};
  for (const Row& row : kRows) {
    const Parsed<MetricName> name = parse_metric_name(row.written);
    EXPECT_FALSE(name.value.has_value()) << row.written;
    EXPECT_NE(name.message.find(row.message), std::string::npos) << name.message;
    EXPECT_NE(name.hint.find(row.hint), std::string::npos) << name.hint;
  }
}

TEST(MetricName, KnowsWhichWayIsBetter) {
  EXPECT_EQ(parse_metric_name("ttft_ms.p99").value->direction, sim::Direction::kSmallerIsBetter);
  EXPECT_EQ(parse_metric_name("output_tokens_per_s").value->direction,
            sim::Direction::kLargerIsBetter);
  EXPECT_EQ(parse_metric_name("prefix_cache_hit_rate").value->direction,
            sim::Direction::kLargerIsBetter);
  EXPECT_TRUE(parse_metric_name("failure_rate").value->has_direction);
  EXPECT_FALSE(parse_metric_name("input_length.mean").value->has_direction);
  EXPECT_FALSE(parse_metric_name("ttft_ms.std").value->has_direction);
}

TEST(MetricName, EmptyStagesHaveNoValues) {
  const sim::StageResult empty;
  for (const MetricName& name : standard_metrics())
    EXPECT_FALSE(metric_value(empty, name).has_value()) << name.text;
}

// Goodput: which requests count, and how goals are written.

sim::RequestRecord record(std::int32_t stage, double ttft, double tpot, std::int64_t tokens) {
  sim::RequestRecord r;
  r.stage = stage;
  r.sent = SimTime::zero() + Duration::seconds(3);
  r.first_token = r.sent + Duration::from_seconds(ttft);
  r.end = r.first_token + Duration::from_seconds(tpot * static_cast<double>(tokens - 1));
  r.output_tokens = tokens;
  return r;
}

TEST(Goodput, CountsRequestsThatMeetEveryGoal) {
  GoodputGoals goals;
  EXPECT_EQ(read_goal("ttft:500ms", goals), "");
  EXPECT_EQ(read_goal("tpot:0.05s", goals), "");
  GoodputObserver observer(goals, 1.0);
  observer.on_done(record(0, 0.4, 0.04, 11));  // good
  observer.on_done(record(0, 0.6, 0.04, 11));  // late
  observer.on_done(record(1, 0.4, 0.06, 11));  // slow
  observer.on_done(record(1, 0.5, 0.05, 21));  // good, exactly at both bounds
  sim::RequestRecord failed = record(1, 0.1, 0.01, 11);
  failed.outcome = workloads::Outcome::kError;
  observer.on_done(failed);
  sim::RunResult run;
  run.stages.resize(3);
  run.stages[0].info.reported = false;
  const GoodputResult result = observer.result(run);
  ASSERT_EQ(result.stages.size(), 3U);
  EXPECT_EQ(result.stages[0].good, 1);
  EXPECT_EQ(result.stages[1].good, 1);
  EXPECT_EQ(result.stages[1].good_tokens, 21);
  EXPECT_EQ(result.stages[2].good, 0) << "a stage nobody asked";
  EXPECT_EQ(result.summary.good, 1) << "the warm-up stage is not reported";
}

TEST(Goodput, IsAlsoCountedAsInferencePerfDoes) {
  GoodputGoals goals;
  EXPECT_EQ(read_goal("ttft:500ms", goals), "");
  EXPECT_EQ(read_goal("request_latency:2s", goals), "");
  GoodputObserver observer(goals, 1.0);
  sim::RequestRecord good = record(0, 0.4, 0.04, 11);
  good.prompt_tokens = 100;
  observer.on_done(good);
  observer.on_done(record(0, 0.4, 0.0, 1));   // One token: it has no TTFT there.
  observer.on_done(record(0, 0.4, 0.4, 11));  // Too long.
  sim::RequestRecord failed = record(0, 0.1, 0.01, 11);
  failed.sent = SimTime::zero();
  failed.outcome = workloads::Outcome::kError;
  observer.on_done(failed);
  sim::RunResult run;
  run.stages.resize(1);
  const GoodputResult result = observer.result(run);
  EXPECT_EQ(result.stages[0].good, 2);
  const ToolGoodput& tool = result.summary.tool;
  EXPECT_EQ(tool.good, 1);
  EXPECT_EQ(tool.good_tokens, 111);
  EXPECT_EQ(tool.attained[goal_index("ttft")], 2);
  EXPECT_EQ(tool.attained[goal_index("request_latency")], 2);
  EXPECT_EQ(tool.first_send, SimTime::zero() + Duration::seconds(3)) << "failures do not count";
}

TEST(Goodput, BecomesAMetricOfTheRun) {
  GoodputGoals goals;
  EXPECT_EQ(read_goal("ttft:500ms", goals), "");
  GoodputObserver observer(goals, 1.0);
  observer.on_done(record(0, 0.4, 0.04, 11));
  observer.on_done(record(0, 0.6, 0.04, 11));
  sim::RunResult run;
  run.stages.resize(1);
  run.stages[0].requests = run.summary.requests = 4;
  run.summary.first_send = SimTime::zero();
  run.summary.last_end = SimTime::zero() + Duration::seconds(2);
  const auto share = [&run] { return metric_value(run.summary, goodput_metric()); };
  EXPECT_EQ(share(), std::nullopt) << "nobody has counted yet";
  observer.complete(run);
  EXPECT_EQ(share(), 0.25);
  EXPECT_EQ(metric_value(run.stages[0], goodput_metric()), 0.25);
  const MetricName rate = *parse_metric_name("request_goodput").value;
  EXPECT_EQ(rate.text, "good_requests_per_s");
  EXPECT_EQ(rate.direction, sim::Direction::kLargerIsBetter);
  EXPECT_EQ(metric_value(run.summary, rate), 0.5);
  EXPECT_TRUE(needs_goals(rate));
  EXPECT_FALSE(needs_goals(*parse_metric_name("failure_rate").value));
}

TEST(Goodput, ScenariosStateTheirGoals) {
  sim::Scenario scenario;
  EXPECT_TRUE(goals_of(scenario).empty());
  scenario.workload.load.emplace<workloads::inference_perf::Workload>()
      .config.emplace()
      .report.goodput.constraints.ttft = 2;
  EXPECT_EQ(goals_of(scenario).ttft, 2);
  scenario.goodput = {"tpot:50ms"};
  EXPECT_EQ(goals_of(scenario).ttft, std::nullopt) << "the scenario's own goals replace the tool's";
  EXPECT_EQ(goals_of(scenario).tpot, 0.05);
}

TEST(Goodput, RefusesWhatItCannotMean) {
  for (const char* bad : {"ttft", "ttft:", "ttft:500", "latency:1s", "ttft:-5ms", "ttft:0s", ":"}) {
    GoodputGoals goals;
    EXPECT_NE(read_goal(bad, goals), "") << bad;
    EXPECT_TRUE(goals.empty()) << bad;
  }
}

TEST(Goodput, JsonCarriesQuantilesGoalsAndMeasuredValues) {
  VariantReport variant;
  variant.name = "a";
  sim::StageResult stage;
  stage.info.name = "0";
  stage.info.requested_rate = 2;
  stage.requests = 110;
  stage.successes = 101;
  stage.failures = 9;
  stage.first_send = SimTime::zero();
  stage.last_end = SimTime::zero() + Duration::seconds(10);
  for (int i = 0; i <= 100; ++i) stage.time_to_first_token.add(i);
  variant.result.stages = {stage};
  variant.result.summary = stage;
  variant.measured.rows = {{"e", "a", "0", "2", "ttft", "mean", "ms", 40'000, "s", 2},
                           {"e", "a", "9", "9", "ttft", "mean", "ms", 1, "s", 3}};
  variant.goodput = GoodputResult{
      .goals = {.ttft = 0.5, .tpot = {}, .itl = {}, .ntpot = {}, .request_latency = {}},
      .stages = {{.good = 20,
                  .good_tokens = 500,
                  .tool = {.good = 19,
                           .good_tokens = 2000,
                           .attained = {19},
                           .first_send = SimTime::zero() + Duration::seconds(1),
                           .last_end = SimTime::zero() + Duration::seconds(6)}}},
      .summary = {}};
  Report report{.scenario = "s",
                .question = "q",
                .seed = 1,
                .version = "v",
                .commit = {},
                .scenario_hash = "h",
                .variants = {}};
  report.variants.push_back(variant);
  const auto parsed = nlohmann::json::parse(render_json(report));
  EXPECT_EQ(parsed["question"], "q");
  EXPECT_FALSE(parsed.contains("commit")) << "unknown facts are left out";
  const auto& made = parsed["variants"][0]["stages"][0];
  const auto levels = parsed["quantile_levels"];
  ASSERT_EQ(made["quantiles"]["time_to_first_token"].size(), levels.size());
  for (std::size_t i = 0; i < levels.size(); ++i)
    EXPECT_DOUBLE_EQ(made["quantiles"]["time_to_first_token"][i].get<double>(), levels[i]);
  EXPECT_TRUE(made["quantiles"]["request_latency"].is_null());
  EXPECT_EQ(made["goodput"]["requests_per_sec"], 2);
  EXPECT_EQ(made["goodput"]["output_tokens_per_sec"], 50);
  EXPECT_FALSE(made.contains("goodput_metrics")) << "the tool's block stands among the successes";
  const auto& tools_own = made["successes"]["goodput_metrics"];
  EXPECT_EQ(tools_own["total_requests"], 101);
  EXPECT_EQ(tools_own["good_requests"], 19);
  EXPECT_EQ(tools_own["token_goodput"], 400) << "prompt and output, over the span of successes";
  EXPECT_NEAR(tools_own["goodput_percentage"].get<double>(), 100.0 * 19 / 101, 1e-9)
      << "failures are not counted";
  EXPECT_NEAR(tools_own["ttft_attainment_percentage"].get<double>(), 100.0 * 19 / 101, 1e-9);
  EXPECT_FALSE(tools_own.contains("tpot_attainment_percentage"));
  ASSERT_EQ(made["measured"].size(), 1U) << "only this stage's rows";
  EXPECT_EQ(made["measured"][0]["value"], 40);
  EXPECT_EQ(parsed["variants"][0]["goodput_goals"]["ttft"], 0.5);
}

// What load tools write, read back as measured numbers: a run compared with its own files is exact.

class MeasuredFile : public testing::FolderTest {
 protected:
  /// The command's standard output; the test fails when it does.
  std::string run(const std::vector<std::string>& arguments) const {
    testing::TestConsole console;
    EXPECT_EQ(run_command_line(arguments, console), ExitCode::kSuccess) << console.errors;
    return console.output();
  }
  MeasuredTable read(const std::string& path, std::string& said,
                     const std::string& policy = "mine") const {
    Diagnostics d;
    MeasuredTable table = read_measured(path, policy, {.file = "s.yaml"}, "measured.csv", d);
    said += messages_of(d);
    return table;
  }
};

constexpr const char* kCluster = "cluster: {pools: [{accelerator: H100-SXM, model: Qwen3-0.6B}]}\n";

TEST_F(MeasuredFile, ARunIsExactlyItsOwnInferencePerfFiles) {
  const std::string base =
      std::string(
          "name: s\nworkload: {inference_perf: {api: {streaming: true}, load: {interval: 1, ") +
      "stages: [{rate: 5, duration: 2}, {rate: 9, duration: 2}]}, data: {type: "
      "shared_prefix, shared_prefix: {num_groups: 3, output_len: 9}}}}\n" +
      kCluster;
  run({"run", write("s.yaml", base), "-q", "-o", "inference-perf=" + path("out")});
  const std::string again =
      write("again.yaml", base + "measured: {csv: out/default, policy: mine}\n");
  const std::string text = run({"validate", again, "-q", "--seeds", "1", "-o", "csv"});
  std::size_t exact = 0;
  std::size_t lines = 0;
  for (std::size_t at = text.find('\n'); at + 1 < text.size(); at = text.find('\n', at + 1)) {
    const std::string line = text.substr(at + 1, text.find('\n', at + 1) - at - 1);
    exact += line.find(",0,scored,") != std::string::npos ? 1 : 0;
    ++lines;
  }
  EXPECT_EQ(lines, 44U) << "two stages of five latencies and two throughputs\n" << text;
  EXPECT_EQ(exact, lines) << text;
}

TEST_F(MeasuredFile, AResultOfAnotherLoadIsRefusedWithEveryDifference) {
  write("r.json",
        "{\"mean_ttft_ms\": 12.5,\n\"model_id\": \"Qwen/Qwen3-32B\",\n\"num_prompts\": 100,\n"
        "\"request_rate\": 8.0,\n\"max_concurrency\": 64,\n\"completed\": 100,\n"
        "\"total_input_tokens\": 409600,\n\"total_output_tokens\": 12800}");
  const auto scenario = [&](const std::string& bench) {
    return write("s.yaml", std::string("name: s\nworkload: {vllm_bench: {") + bench + "}}\n" +
                               kCluster + "measured: {csv: r.json, policy: mine}\n");
  };
  const std::string other = scenario("num_prompts: 20, request_rate: 2, max_concurrency: 8");
  testing::TestConsole console;
  EXPECT_EQ(run_command_line({"validate", other, "--seeds", "1"}, console), ExitCode::kInvalid);
  const char* const theirs[] = {
      "r.json:2:13: error: model_id: is of another load than the scenario's (got Qwen/Qwen3-32B, "
      "the scenario has Qwen3-0.6B)",
      "r.json:3:16: error: num_prompts: is of another load than the scenario's (got 100, the "
      "scenario has 20)",
      "r.json:4:17: error: request_rate: is of another load than the scenario's (got 8, the "
      "scenario has 2)",
      "r.json:5:20: error: max_concurrency: is of another load than the scenario's (got 64, the "
      "scenario has 8)",
      "r.json:7:23: error: total_input_tokens: is of another load than the scenario's (got 4096 "
      "per request, the scenario has 1024)"};
  for (const char* difference : theirs)
    EXPECT_NE(console.errors.find(difference), std::string::npos) << difference << "\n"
                                                                  << console.errors;
  EXPECT_EQ(console.errors.find("total_output_tokens"), std::string::npos) << "128 of both";

  testing::TestConsole forced;
  EXPECT_EQ(run_command_line({"validate", other, "--seeds", "1", "--force"}, forced),
            ExitCode::kSuccess)
      << forced.errors;
  EXPECT_NE(forced.errors.find("r.json:4:17: warning: request_rate: is of another load"),
            std::string::npos)
      << forced.errors;

  const std::string calibrate = scenario("num_prompts: 100, request_rate: 4");
  testing::TestConsole fitted;
  EXPECT_EQ(
      run_command_line({"calibrate", "--scenario", calibrate, "--free", "step_ms=1..9"}, fitted),
      ExitCode::kInvalid);
  EXPECT_NE(fitted.errors.find("request_rate: is of another load"), std::string::npos)
      << fitted.errors;
}

TEST_F(MeasuredFile, AResultOfVllmBenchIsItsMainStage) {
  std::string said;
  const MeasuredTable table =
      read(write("r.json",
                 "{\"completed\": 3, \"mean_ttft_ms\": 12.5, \"median_ttft_ms\": 12, "
                 "\"p99_ttft_ms\": 20, \"mean_e2el_ms\": 0, \"output_throughput\": 100.5, "
                 "\"request_rate\": \"inf\", \"max_concurrency\": null}"),
           said);
  EXPECT_EQ(said, "");
  ASSERT_EQ(table.rows.size(), 4U);
  EXPECT_EQ(table.rows[1].stage, "main");
  EXPECT_EQ(table.rows[1].policy, "mine");
  EXPECT_EQ(table.rows[1].metric, "ttft");
  EXPECT_EQ(table.rows[1].statistic, "p50");
  EXPECT_EQ(table.rows[1].unit, "ms");
  EXPECT_EQ(table.rows[1].value, 12);
  EXPECT_EQ(table.rows[3].metric, "output_throughput");
  EXPECT_EQ(table.rows[3].source, "r.json");
}

TEST_F(MeasuredFile, WhatCannotBeReadIsSaid) {
  std::string said;
  read(write("x.json", "{\"a\": 1}"), said);
  EXPECT_NE(said.find("x.json:1:1: error: is neither inference-perf's"), std::string::npos) << said;
  EXPECT_EQ(said.find("hint"), std::string::npos) << said;
  said.clear();
  read(write("summary_lifecycle_metrics.json", "{\"successes\": {\"latency\": {}}}"), said);
  EXPECT_NE(said.find("hint: it sums up all stages: name the folder"), std::string::npos) << said;
  said.clear();
  read(write("report.yaml", "metrics: {}\nscenario:\n  load: {}\nversion: '0.1'\n"), said);
  EXPECT_NE(said.find("report.yaml:1:1: error: is a Benchmark Report"), std::string::npos) << said;
  said.clear();
  std::filesystem::create_directories(folder_ / "empty");
  read(path("empty"), said);
  EXPECT_NE(said.find("measured.csv: no stage_<i>_lifecycle_metrics.json is in"), std::string::npos)
      << said;
  said.clear();
  read(path("x.json"), said, "");
  EXPECT_NE(said.find("measured.policy: is missing"), std::string::npos) << said;
  said.clear();
  read(write("t.json", "{\"mean_ttft_ms\": \"12\", \"p99_ttft_ms\": [1], \"p90_ttft_ms\": null}"),
       said);
  EXPECT_NE(said.find("t.json:1:18: error: ttft must be a number (got text \"12\")"),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("t.json:1:39: error: ttft must be a number (got a list)"), std::string::npos)
      << said;
  said.clear();
  read(write("n.json", "{\"mean_ttft_ms\": -5, \"p99_ttft_ms\": NaN, \"p90_ttft_ms\": 0}"), said);
  EXPECT_EQ(said, path("n.json") + ":1:18: error: ttft must be at least 0 (got -5)\n");
  said.clear();
  read(path("gone.json"), said);
  EXPECT_NE(said.find("cannot open"), std::string::npos) << said;
}

}  // namespace
}  // namespace routesim::tools
