// What load tools write, read back as measured numbers: a run compared with its own files is exact.
#include "tools/ingest/traces/measured_file.h"

#include <gtest/gtest.h>

#include "tests/base/messages.h"
#include "tests/tools/command_fixture.h"
#include "tools/cli/cli.h"

namespace routesim::tools {
namespace {

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
