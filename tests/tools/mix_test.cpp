// `workload.mix`: several loads in one run, as a scenario has them and as results show them.
#include <gtest/gtest.h>

#include <cstdio>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/tools/command_fixture.h"
#include "tools/cli/cli.h"
#include "tools/results/goodput.h"

namespace routesim::tools {
namespace {

using Json = nlohmann::json;

constexpr const char* kServers =
    "cluster:\n"
    "  pools: [{name: a, accelerator: H100-SXM, model: Qwen3-32B, tensor_parallel: 2}]\n"
    "routing: {balancer: round-robin}\n";

class MixFile : public testing::FolderTest {
 protected:
  std::string scenario(const std::string& workload) const {
    return write("s.yaml", "name: s\nworkload:\n" + workload + kServers);
  }

  /// What `check` says of a scenario with this workload, without the folder.
  std::string check(const std::string& workload, ExitCode code = ExitCode::kInvalid) const {
    testing::TestConsole console;
    EXPECT_EQ(run_command_line({"check", scenario(workload)}, console), code) << console.errors;
    std::string text = console.errors;
    for (std::size_t p = text.find(path("")); p != std::string::npos; p = text.find(path("")))
      text.erase(p, path("").size());
    return text;
  }

  static void expect_said(const std::string& text, const std::vector<std::string>& lines) {
    for (const std::string& line : lines)
      EXPECT_NE(text.find(line), std::string::npos) << line << "\nis not in\n" << text;
  }

  Json run(const std::string& workload, const std::vector<std::string>& more = {}) const {
    testing::TestConsole console;
    std::vector<std::string> command = {"run",           scenario(workload), "--quiet", "--check",
                                        "--no-capacity", "--no-kv-band",     "-o",      "json"};
    command.insert(command.end(), more.begin(), more.end());
    EXPECT_EQ(run_command_line(command, console), ExitCode::kSuccess) << console.errors;
    return Json::parse(console.output())["variants"][0];
  }
};

const std::string kChat =
    "  mix:\n"
    "  - name: chat\n"
    "    groups: {requests: 40, rate: 2, groups: 4, prefix_len: 600, suffix_len: 50, "
    "output_len: 20}\n"
    "    goodput: [ttft:10s]\n";
const std::string kBatch =
    "  - name: batch\n"
    "    vllm_bench: {dataset_name: random, num_prompts: 20, max_concurrency: 2,\n"
    "                 random_input_len: 900, random_output_len: 30, goodput: 'ttft:1'}\n"
    "    priority: 4\n";

TEST_F(MixFile, EveryLoadHasItsStagesItsClassAndItsGoals) {
  const Json v = run(kChat + kBatch);
  std::vector<std::string> stages;
  for (const Json& stage : v["stages"]) stages.push_back(stage["name"]);
  EXPECT_EQ(stages, (std::vector<std::string>{"chat/0", "batch/main"}));
  ASSERT_EQ(v["classes"].size(), 2U);
  const Json& chat = v["classes"][0];
  const Json& batch = v["classes"][1];
  EXPECT_EQ(chat["name"], "chat");
  EXPECT_EQ(chat["successes"]["count"], 40);
  EXPECT_EQ(batch["successes"]["count"], 20);
  EXPECT_EQ(chat["goodput_goals"], (Json{{"ttft", 10.0}}));
  EXPECT_EQ(batch["goodput_goals"], (Json{{"ttft", 0.001}})) << "the flag of vllm bench";
  // No answer of these begins within a millisecond, and none takes ten seconds.
  EXPECT_EQ(chat["goodput"]["good_requests"], 40);
  EXPECT_EQ(batch["goodput"]["good_requests"], 0);
  EXPECT_EQ(v["stages"][0]["goodput"]["good_requests"], 40);
  EXPECT_EQ(v["summary"]["goodput"]["good_requests"], 40);
  EXPECT_EQ(v["summary"]["goodput"]["sent_requests"], 60);
  EXPECT_NEAR(v["summary"]["goodput"]["percentage"].get<double>(), 100 * 40 / 60.0, 1e-9);
  EXPECT_TRUE(v["stages"][0]["successes"]["latency"]["inter_token_latency"].is_null());
  EXPECT_FALSE(v["summary"]["successes"]["latency"]["inter_token_latency"].is_null());
}

TEST_F(MixFile, GoalsOfTheCommandLineHoldForAllLoads) {
  const Json v = run(kChat + kBatch, {"--goodput", "ttft:10s"});
  EXPECT_EQ(v["summary"]["goodput"]["good_requests"], 60);
  EXPECT_EQ(v["goodput_goals"], (Json{{"ttft", 10.0}}));
}

TEST_F(MixFile, DemandMakesStagesOfItsLoadAlone) {
  const Json v = run(kChat +
                     "    demand: {profile: [{at: 0h, rate: 0.05}], days: 0.0833333333, "
                     "report_every: 1h}\n" +
                     kBatch);
  std::vector<std::string> stages;
  for (const Json& stage : v["stages"]) stages.push_back(stage["name"]);
  EXPECT_EQ(stages, (std::vector<std::string>{"chat/00:00", "chat/01:00", "batch/main"}));
  // Poisson with a mean of 0.05/s in 7,200 s: 360, give or take four deviations.
  EXPECT_NEAR(v["classes"][0]["successes"]["count"].get<double>(), 360, 4 * 19);
}

TEST_F(MixFile, RatesOfAllLoadsAreScaled) {
  const std::string two =
      "  rate_scale: 2\n"
      "  mix:\n"
      "  - {name: a, rate_scale: 3, groups: {requests: 20, rate: 1}}\n"
      "  - {name: b, groups: {requests: 20, rate: 2}}\n";
  const Json v = run(two);
  EXPECT_EQ(v["stages"][0]["load_summary"]["requested_rate"], 6.0);
  EXPECT_EQ(v["stages"][1]["load_summary"]["requested_rate"], 4.0);
}

// Mean rates of 2 and 1 requests/s share 6 requests/s as 4 and 2.
TEST_F(MixFile, LoadsAreHeldTogether) {
  const std::string two =
      "  hold: {rate: 6, duration: 60s, warm_up: 10s}\n"
      "  mix:\n"
      "  - {name: a, groups: {requests: 20, rate: 2}}\n"
      "  - {name: b, groups: {requests: 20, rate: 1}, demand: {profile: [{at: 0h, rate: 1}]}}\n";
  const Json v = run(two);
  for (const Json& stage : v["stages"]) {
    const bool of_a = stage["name"].get<std::string>().starts_with("a");
    EXPECT_EQ(stage["load_summary"]["requested_rate"], of_a ? 4.0 : 2.0);
  }
  EXPECT_NEAR(v["summary"]["load_summary"]["count"].get<double>(), 50 * 6, 5) << "random gaps";
  expect_said(check(two + "  options: {warmup_stages: 1}\n", ExitCode::kSuccess),
              {"workload.mix[1].demand: has no effect: workload.hold takes its place",
               "workload.options.warmup_stages: has no effect"});
  expect_said(check("  hold: {rate: 6, duration: 10s, warm_up: 10s}\n" + kChat),
              {"error: workload.hold.warm_up: leaves nothing to report"});
}

TEST_F(MixFile, WarmUpStagesBesideADemandAreNamed) {
  expect_said(check("  groups: {}\n  demand: {profile: [{at: 0h, rate: 1}]}\n"
                    "  options: {warmup_stages: 1}\n",
                    ExitCode::kSuccess),
              {"s.yaml:5:28: warning: workload.options.warmup_stages: has no effect"});
}

TEST_F(MixFile, KeysForOneLoadAreRefusedBesideAMix) {
  const std::string text = check(
      "  groups: {requests: 5}\n"
      "  classes: [{name: x, share: 1}]\n"
      "  demand: {profile: [{at: 0h, rate: 1}]}\n"
      "  lora_traffic_split: [{name: x, split: 1}]\n"
      "  sheddable_fraction: 0.5\n" +
      kChat);
  expect_said(text, {"s.yaml:3:11: error: workload.groups: stands beside workload.mix",
                     "s.yaml:4:12: error: workload.classes: stands beside workload.mix",
                     "s.yaml:5:11: error: workload.demand: stands beside workload.mix",
                     "s.yaml:6:23: error: workload.lora_traffic_split: stands beside",
                     "s.yaml:7:23: error: workload.sheddable_fraction: stands beside"});
}

TEST_F(MixFile, FaultsOfALoadStandAtItsKeys) {
  const std::string shape = check(
      "  mix:\n"
      "  - name: chat\n"
      "    groups: {requests: 5, prefix_len: {type: uniform, min: 9, max: 3}}\n"
      "    headers: [x]\n"
      "  - {name: chat, vllm_bench: {nmu_prompts: 3}}\n"
      "  - {name: goals, groups: {requests: 5}, goodput: [ttft:1]}\n");
  expect_said(shape, {"s.yaml:6:14: error: workload.mix[0].headers: must be a map",
                      "s.yaml:7:12: error: workload.mix[1].name: is listed twice",
                      "s.yaml:7:31: error: workload.mix[1].vllm_bench.nmu_prompts: unknown key",
                      "error: workload.mix[2].goodput[0]: needs a bound with its unit"});
  const std::string meaning = check(
      "  mix:\n"
      "  - {name: once, groups: {requests: 5, rate: .inf}, rate_scale: 2}\n"
      "  - {name: lengths, groups: {requests: 5, prefix_len: {type: uniform, min: 9, max: 3}}}\n"
      "  - {name: none}\n"
      "  - {name: two, groups: {requests: 5}, conversations: {}}\n"
      "  - {name: hours, groups: {requests: 5}, demand: {profile: [{at: 5h, rate: 1}, {at: 1h, "
      "rate: 2}]}}\n"
      "  - {name: loop, conversations: {}, demand: {profile: [{at: 5h, rate: 1}]}}\n");
  expect_said(meaning, {"s.yaml:4:65: error: workload.mix[0].rate_scale: has no rate to multiply",
                        "error: workload.mix[1].groups.prefix_len",
                        "error: workload.mix[2]: exactly one source of load must be given (got 0)",
                        "error: workload.mix[3]: exactly one source of load must be given (got 2)",
                        "error: workload.mix[4].demand.profile",
                        "error: workload.mix[5].demand: has no rates to take the place of"});
}

TEST_F(MixFile, LoadsStreamAllOrNone) {
  write("no.yaml",
        "api: {type: completion, streaming: false}\n"
        "data: {type: random, input_distribution: {min: 100, max: 100, mean: 100, std_dev: 0},\n"
        "       output_distribution: {min: 9, max: 9, mean: 9, std_dev: 0}}\n"
        "load: {type: constant, stages: [{rate: 1, duration: 10}]}\n");
  const std::string text = check(kChat + "  - {name: silent, inference_perf: no.yaml}\n");
  expect_said(text, {"error: workload.mix[1]: of the loads chat and silent only one streams"});
}

TEST_F(MixFile, AdaptersAreCountedOverAllLoads) {
  const std::string workload = kChat +
                               "    lora_traffic_split: [{name: x, split: 1}]\n"
                               "  - name: other\n"
                               "    groups: {requests: 10, rate: 1}\n"
                               "    lora_traffic_split: [{name: y, split: 0.5}, {name: x, split: "
                               "0.5}]\n";
  expect_said(check(workload), {"error: cluster.pools[0].engine.max_loras: is missing"});
  const Json v = run(workload, {"--set", "cluster.pools[0].engine.max_loras=2"});
  EXPECT_EQ(v["summary"]["successes"]["count"], 50);
}

TEST(MixShipped, TheReadmeSaysWhatChatsLose) {
  const std::string folder = std::string(ROUTESIM_SOURCE_DIR) + "/scenarios/";
  testing::TestConsole console;
  EXPECT_EQ(run_command_line({"run", folder + "mix-chat-and-batch-2xh100.yaml", "--quiet",
                              "--check", "--no-capacity", "--no-kv-band", "-o", "json"},
                             console),
            ExitCode::kSuccess);
  EXPECT_EQ(console.errors, "");
  std::string text;
  const Json found = Json::parse(console.output());
  for (const Json& variant : found["variants"]) {
    char share[16];
    std::snprintf(share, sizeof share, "%.1f",
                  variant["classes"][0]["goodput"]["percentage"].get<double>());
    text += (text.empty()                    ? ""
             : variant["name"] == "priority" ? " and "
                                             : ", ") +
            std::string(share);
  }
  std::ifstream in(folder + "README.md");
  const std::string readme((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  EXPECT_NE(readme.find("with priority, " + text + " % have their first\ntoken within 500 ms."),
            std::string::npos)
      << text;
}

TEST(MixGoals, TakeThePlaceOfTheScenarios) {
  sim::Scenario s;
  s.goodput = {"ttft:2s"};
  for (const char* name : {"a", "b"}) {
    s.workload.mix.emplace_back().name = name;
    s.workload.mix.back().load.emplace<workloads::GroupLoadConfig>();
  }
  s.workload.mix[1].goodput = {"tpot:50ms"};
  const GoodputGoals goals = goals_of(s);
  EXPECT_EQ(goals.ttft, 2.0);
  EXPECT_EQ(goals.of(0).ttft, 2.0);
  EXPECT_EQ(goals.of(1).ttft, std::nullopt);
  EXPECT_EQ(goals.of(1).tpot, 0.05);

  // One request of each load: TTFT 3 s, TPOT 10 ms.
  GoodputObserver observer(goals, 1.0);
  sim::RequestRecord r;
  r.first_token = r.sent + Duration::seconds(3);
  r.end = r.first_token + Duration::milliseconds(100);
  r.output_tokens = 11;
  observer.on_done(r);
  r.stage = 1;
  r.traffic_class = 1;
  observer.on_done(r);
  sim::RunResult run;
  run.classes.resize(2);
  run.stages.resize(2);
  run.stages[0].info.part = 0;
  run.stages[1].info.part = 1;
  const GoodputResult result = observer.result(run);
  ASSERT_EQ(result.parts.size(), 2U);
  EXPECT_EQ(result.parts[0].good, 0);
  EXPECT_EQ(result.parts[1].good, 1);
  EXPECT_EQ(result.summary.good, 1);
}

}  // namespace
}  // namespace routesim::tools
