// Goodput: which requests count, and how goals are written.
#include "tools/results/goodput.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tools/render/document.h"
#include "tools/results/metric_name.h"
#include "tools/results/report.h"
#include "tools/study/run/render_run.h"

namespace routesim::tools {
namespace {

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

}  // namespace
}  // namespace routesim::tools
