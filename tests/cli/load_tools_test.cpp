// Loads of load tools: lifecycle reports, and rates that a load finds while it runs.
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/cli/cli_fixture.h"

namespace routesim::tools::testing {
namespace {

// Lifecycle reports, as results and as inference-perf's own files.

using Json = nlohmann::json;

class Lifecycle : public Cli {
 protected:
  std::string scenario(const std::string& more) const {
    return write("s.yaml",
                 "name: s\n"
                 "workload:\n"
                 "  inference_perf:\n"
                 "    load: {type: constant, stages: [{rate: 5, duration: 4}]}\n"
                 "    data:\n"
                 "      type: random\n"
                 "      input_distribution: {type: fixed, mean: 100}\n"
                 "      output_distribution: {type: fixed, mean: 20}\n" +
                     more +
                     "cluster:\n"
                     "  pools: [{name: a, replicas: 1, accelerator: H100-SXM, model: Qwen3-8B}]\n"
                     "routing: {balancer: round-robin}\n");
  }
  Json stage(const std::string& file) const {
    const Result run = this->run({"run", file, "--quiet", "--check", "-o", "json"});
    EXPECT_EQ(run.code, 0) << run.err;
    return Json::parse(run.out)["variants"][0]["stages"][0];
  }
  Json file(const std::string& file) const {
    const std::string folder = (folder_ / "files").string();
    const Result run = this->run({"run", file, "--quiet", "--output", "inference-perf=" + folder});
    EXPECT_EQ(run.code, 0) << run.err;
    return Json::parse(slurp(folder + "/default/stage_0_lifecycle_metrics.json"));
  }
};

TEST_F(Lifecycle, WithoutStreamingThereAreNoTokenTimes) {
  const std::string off =
      scenario("    report: {goodput: {constraints: {ttft: 10, request_latency: 10}}}\n");
  for (const Json& made : {stage(off), file(off)}) {
    const Json& latency = made["successes"]["latency"];
    for (const char* key : {"time_to_first_token", "time_per_output_token", "inter_token_latency"})
      EXPECT_TRUE(latency[key].is_null()) << key << " " << latency[key];
    EXPECT_GT(latency["request_latency"]["mean"], 0);
    EXPECT_GT(latency["normalized_time_per_output_token"]["mean"], 0);
    const Json& goodput = made["successes"]["goodput_metrics"];
    EXPECT_EQ(goodput["good_requests"], 0) << "no TTFT meets no bound";
    EXPECT_EQ(goodput["ttft_attainment_percentage"], 0.0);
    EXPECT_EQ(goodput["request_latency_attainment_percentage"], 100.0);
  }
  const Result table = run({"run", off, "--quiet", "--explain"});
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_NE(table.out.find("does not stream (api.streaming)"), std::string::npos) << table.out;
  EXPECT_EQ(run({"run", off, "--quiet", "-o", "csv"}).out.find(",ttft,"), std::string::npos);
}

TEST_F(Lifecycle, HasTheListedPercentilesAndTheToolsGoodput) {
  const std::string on = scenario(
      "    api: {streaming: true}\n"
      "    report:\n"
      "      request_lifecycle: {percentiles: [50, 99.5]}\n"
      "      goodput: {constraints: {ttft: 10}}\n");
  for (const Json& made : {stage(on), file(on)}) {
    const Json& ttft = made["successes"]["latency"]["time_to_first_token"];
    EXPECT_EQ(ttft.size(), 5U) << ttft;
    EXPECT_TRUE(ttft.contains("median") && ttft.contains("p99.5")) << ttft;
    const Json& goodput = made["successes"]["goodput_metrics"];
    EXPECT_EQ(goodput["good_requests"], 20);
    EXPECT_EQ(goodput["goodput_percentage"], 100.0);
    EXPECT_NEAR(goodput["token_goodput"].get<double>(),
                120 * goodput["request_goodput"].get<double>(), 1e-6);
  }
}

// The tool sleeps for the tool call before it takes the end time, and holds the next turn back.
TEST_F(Lifecycle, LatenciesOfConversationsIncludeToolCalls) {
  const Json made = stage(write(
      "conversations.yaml",
      "name: tools\nworkload:\n  inference_perf:\n    api: {streaming: true}\n"
      "    server: {ignore_eos: true}\n"
      "    load: {type: concurrent, num_workers: 1, stages: [{num_requests: 4, concurrency_level: "
      "1}]}\n"
      "    data:\n      type: conversation_replay\n"
      "      conversation_replay:\n        num_conversations: 1\n"
      "        turns_per_conversation: {type: fixed, mean: 4}\n"
      "        input_tokens_per_turn: {type: fixed, mean: 100}\n"
      "        output_tokens_per_turn: {type: fixed, mean: 20}\n"
      "        tool_call_latency_sec: {type: fixed, mean: 5}\n"
      "cluster:\n  pools: [{name: a, replicas: 1, accelerator: H100-SXM, model: Qwen3-8B}]\n"
      "routing: {balancer: round-robin}\n"));
  const Json& latency = made["successes"]["latency"];
  const double ttft = latency["time_to_first_token"]["mean"];
  const double tpot = latency["time_per_output_token"]["mean"];
  const double whole = latency["request_latency"]["mean"];
  EXPECT_LT(tpot, 0.05);
  EXPECT_NEAR(whole, ttft + 19 * tpot + 5, 1e-6);
  EXPECT_NEAR(latency["normalized_time_per_output_token"]["mean"], whole / 20, 1e-6);
}

// Loads that find their rates while they run: what every command says about them.

using Json = nlohmann::json;

class LoadSweep : public Cli {
 protected:
  /// One server, and the same beside three others: four times the rate.
  std::string scenario() const {
    return write("rates.yaml",
                 "name: rates\n"
                 "workload:\n"
                 "  inference_perf:\n"
                 "    load: {type: constant, interval: 1, sweep: {type: linear, num_requests: 400, "
                 "num_stages: 3, stage_duration: 20}}\n"
                 "    data:\n"
                 "      type: random\n"
                 "      input_distribution: {type: fixed, mean: 1000}\n"
                 "      output_distribution: {type: fixed, mean: 50}\n"
                 "cluster:\n"
                 "  pools:\n"
                 "  - {name: a, replicas: 1, accelerator: H100-SXM, model: Qwen3-32B, "
                 "tensor_parallel: 2}\n"
                 "routing: {balancer: round-robin}\n"
                 "variants:\n"
                 "- name: one\n"
                 "- name: four\n"
                 "  cluster: {pools: [{name: a, replicas: 4, accelerator: H100-SXM, model: "
                 "Qwen3-32B, tensor_parallel: 2}]}\n");
  }

  Json result(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"run", scenario(), "--quiet", "--check", "-o", "json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Result run = this->run(arguments);
    EXPECT_EQ(run.code, 0) << run.err;
    return Json::parse(run.out);
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  static double rate(const Json& stage) {
    return stage["load_summary"]["requested_rate"].get<double>();
  }
};

TEST_F(LoadSweep, ReportsTheRatesThatWereFound) {
  const Json variants = result()["variants"];
  ASSERT_EQ(variants.size(), 2U);
  std::vector<double> top;
  for (const Json& v : variants) {
    ASSERT_EQ(v["stages"].size(), 3U);
    EXPECT_EQ(v["preparation"].size(), 1U);
    EXPECT_EQ(rate(v["stages"][0]), 1);
    top.push_back(rate(v["stages"][2]));
    EXPECT_NEAR(rate(v["stages"][1]), (1 + top.back()) / 2, 0.0051);
    for (const Json& stage : v["stages"]) {
      const auto sent = stage["load_summary"]["count"].get<double>();
      EXPECT_EQ(sent, std::floor(rate(stage) * 20));
    }
    EXPECT_NE(v["notes"].dump().find("load.sweep: its probe drained at up to"), std::string::npos);
  }
  EXPECT_GT(top[0], 2);
  EXPECT_GT(top[1], 2 * top[0]);
}

TEST_F(LoadSweep, ShowsTheRatesOfEveryVariant) {
  const Json variants = result()["variants"];
  const Result run = this->run({"run", scenario(), "--quiet", "--tables"});
  std::ostringstream pair;
  pair << rate(variants[0]["stages"][2]) << " / " << rate(variants[1]["stages"][2]);
  EXPECT_NE(run.out.find("\n2  "), std::string::npos) << run.out;
  EXPECT_NE(run.out.find(pair.str()), std::string::npos) << pair.str() << "\n" << run.out;
}

TEST_F(LoadSweep, IsTheSameAgain) { EXPECT_EQ(result(), result()); }

TEST_F(LoadSweep, HasNoRateWhereRunsDiffer) {
  const Result run = this->run({"run", scenario(), "--quiet", "--tables", "--replications", "2"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.out.find("\n2         -  "), std::string::npos) << run.out;
  write("grid.yaml",
        "name: grid\nscenario: rates.yaml\nreplications: 2\naxes: [{path: "
        "'cluster.pools[a].replicas', values: [1]}]\nmetrics: [ttft_ms.p90]\n");
  const Result sweep = this->run({"sweep", path("grid.yaml"), "--quiet", "--output", "jsonl"});
  EXPECT_EQ(sweep.code, 0) << sweep.err;
  // The first stage is at one request/s for all seeds; later ones have no rate in common.
  const Json stages = Json::parse(sweep.out.substr(0, sweep.out.find('\n')))["stages"];
  EXPECT_EQ(stages[1]["requested_rate"], 1);
  EXPECT_EQ(stages[3]["requested_rate"], 0);
}

TEST_F(LoadSweep, IsDrawnByTheNumberOfItsStages) {
  const std::string stored = path("r.json");
  ASSERT_EQ(run({"run", scenario(), "--quiet", "--output", "json=" + stored}).code, 0);
  const Result page = this->run({"report", stored, "--output", path("r.html")});
  EXPECT_EQ(page.code, 0) << page.err;
  const std::string text = slurp(path("r.html"));
  EXPECT_EQ(text.find("requests/s asked for"), std::string::npos);
  EXPECT_NE(text.find("<th>stage</th>"), std::string::npos);
}

TEST_F(LoadSweep, ThatFindsNothingSaysSo) {
  const Result run = this->run(
      {"run", scenario(), "--quiet", "--set", "workload.inference_perf.load.sweep.num_requests=1"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.out.find("no stage was run"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("No stage had a request, so there is nothing to compare."),
            std::string::npos)
      << run.out;
}

}  // namespace
}  // namespace routesim::tools::testing
