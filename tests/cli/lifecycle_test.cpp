// Lifecycle reports, as results and as inference-perf's own files.
#include <nlohmann/json.hpp>

#include "tests/cli/cli_fixture.h"

namespace routesim::tools::testing {
namespace {

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

}  // namespace
}  // namespace routesim::tools::testing
