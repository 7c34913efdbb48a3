// GuideLLM's scenario files: what they become. The texts are profiles of llm-d-benchmark
// (workload/profiles/guidellm at 8bc9f1dd) and of its tutorials.
#include <gtest/gtest.h>

#include "tests/base/messages.h"
#include "tests/tools/command_fixture.h"
#include "tools/ingest/loads/guidellm_yaml.h"
#include "tools/ingest/scenario/prepare.h"

namespace routesim::tools {
namespace {

using workloads::guidellm::Config;
using workloads::guidellm::ProfileKind;

class GuidellmFiles : public testing::FolderTest {
 protected:
  /// A scenario whose load is the file `profile.yaml.in` with this text.
  Config load(const std::string& profile, const std::vector<std::string>& sets = {}) {
    write("profile.yaml.in", profile);
    const std::string file =
        write("s.yaml",
              "name: s\nworkload: {guidellm: profile.yaml.in}\n"
              "cluster: {pools: [{name: a, accelerator: H100-SXM, model: Qwen3-8B}]}\n");
    found = {};
    const LoadedScenario loaded =
        load_scenario({.path = file, .sets = sets, .variants = {}, .seed = {}}, found);
    plan.reset();
    if (!found.has_errors()) plan = prepare(loaded.variants.at(0), found);
    said = messages_of(found);
    const auto* config = loaded.variants.at(0).scenario.workload.load.get<Config>();
    return config != nullptr ? *config : Config();
  }
  /// `path fate` of the file's keys.
  std::map<std::string, std::string> keys() const {
    std::map<std::string, std::string> out;
    for (const KeyUse& key : found.keys())
      if (key.format == kGuidellmFormat)
        out[key.path.substr(key.path.find("guidellm.") + 9)] = std::string(fate_name(key.fate));
    return out;
  }
  std::string names() const {
    Diagnostics d;
    std::string out;
    if (!plan) return said;
    const auto made = plan->make_load(1, d);
    for (const workloads::StageInfo& stage : made->stages()) out += stage.name + " ";
    return out;
  }

  Diagnostics found;
  std::string said;
  std::optional<sim::RunPlan> plan;
};

constexpr const char* kBackend =
    "  backend:\n    kind: openai_http\n"
    "    target: REPLACE_ENV_LLMDBENCH_HARNESS_STACK_ENDPOINT_URL\n"
    "    model: REPLACE_ENV_LLMDBENCH_DEPLOY_CURRENT_MODEL\n"
    "    request_format: ";

TEST_F(GuidellmFiles, BenchmarksChangeStreamsAndLimits) {
  const Config c =
      load(std::string("metadata:\n  labels:\n    name: multi-turn\nspec:\n") + kBackend +
           "\"/v1/chat/completions\"\n"
           "  profile:\n    kind: concurrent\n"
           "  data:\n  - kind: synthetic_text\n    prompt_tokens: 128\n"
           "    output_tokens: 128\n    turns: 5\n    prefix_buckets:\n"
           "    - prefix_tokens: 10000\n      prefix_count: 1024\n"
           "  constraints:\n  - kind: max_requests\n"
           "benchmarks:\n- profile.streams: 32\n  constraints[0].count: 320\n"
           "- profile.streams: 64\n  constraints[0].count: 640");
  EXPECT_EQ(said, "");
  EXPECT_EQ(c.profile.kind, ProfileKind::kConcurrent);
  EXPECT_EQ(c.profile.streams, (std::vector<std::int64_t>{32, 64}));
  EXPECT_EQ(c.max_requests, (std::vector<std::int64_t>{320, 640}));
  EXPECT_EQ(c.data.turns, 5);
  ASSERT_EQ(c.data.prefix_buckets.size(), 1U);
  EXPECT_EQ(c.data.prefix_buckets[0].prefix_count, 1024);
  EXPECT_TRUE(c.chat);
  EXPECT_EQ(names(), "concurrent@32 concurrent@64 ");
  EXPECT_EQ(keys().at("backend.target"), "no effect");
  EXPECT_EQ(keys().at("backend.request_format"), "used");
  EXPECT_EQ(keys().at("data[0].turns"), "used");
  EXPECT_EQ(keys().at("metadata.labels.name"), "no effect");
}

TEST_F(GuidellmFiles, RatesAndSamples) {
  const Config c = load(
      std::string("\nspec:\n") + kBackend +
          "/v1/completions\n  profile:\n    kind: constant\n    rate: [1,2,4,8]\n"
          "  constraints:\n    - kind: max_duration\n      seconds: 120\n"
          "  data:\n    - kind: synthetic_text\n      prompt_tokens_min: 10\n"
          "      prompt_tokens_max: 4096\n      prompt_tokens: 2048\n"
          "      prompt_tokens_stdev: 1024\n      output_tokens_min: 10\n"
          "      output_tokens_max: 256\n      output_tokens: 128\n      output_tokens_stdev: 64\n"
          "  data_loader:\n    kind: pytorch\n    samples: 1000",
      {"workload.guidellm.spec.profile.rate=[1,3]"});
  EXPECT_EQ(said, "");
  EXPECT_EQ(c.profile.rate, (std::vector<double>{1, 3})) << "--set reaches into the file";
  EXPECT_EQ(c.max_seconds, std::vector<double>{120});
  EXPECT_EQ(c.samples, 1000);
  EXPECT_FALSE(c.chat);
  EXPECT_EQ(c.data.prompt.stdev, 1024);
  EXPECT_EQ(c.data.output.max, 256);
  EXPECT_EQ(names(), "constant@1.00 constant@3.00 ");
}

TEST_F(GuidellmFiles, FlatFilesOfEarlierReleases) {
  const Config c = load(
      "target: REPLACE_ENV_LLMDBENCH_HARNESS_STACK_ENDPOINT_URL\n"
      "model: REPLACE_ENV_LLMDBENCH_DEPLOY_CURRENT_MODEL\n"
      "data_request_formatter: text_completions\nprofile: concurrent\nrate: [1, 5, 25]\n"
      "max_seconds: 300\ndata:\n  prompt_tokens: 256\n  output_tokens: 256\n");
  EXPECT_EQ(said, "");
  EXPECT_EQ(c.profile.streams, (std::vector<std::int64_t>{1, 5, 25}));
  EXPECT_EQ(c.max_seconds, std::vector<double>{300});
  EXPECT_FALSE(c.chat);
  // The command line's own spellings.
  const Config sweep = load(
      "rate_type: sweep\nrate: 5\nmax_requests: 40\ndata: \"prompt_tokens=256, "
      "output_tokens=128\"\n");
  EXPECT_EQ(said, "");
  EXPECT_EQ(sweep.profile.kind, ProfileKind::kSweep);
  EXPECT_EQ(sweep.profile.sweep_size, 5);
  EXPECT_EQ(sweep.data.prompt.average, 256);
  EXPECT_EQ(names(), "synchronous throughput constant constant constant ");
}

// As vllm-project/guidellm ships its own scenarios (concurrent-512-2ki-norm.json).
TEST_F(GuidellmFiles, KeysMayHaveHyphens) {
  const Config c = load(
      "description: a closed loop\nprofile: concurrent\nrequest-type: text_completions\n"
      "data: {prompt-tokens: 400, prompt-tokens-stdev: 40, output-tokens: 80}\n"
      "rate: [2, 6]\nmax-seconds: 30\n");
  EXPECT_EQ(said, "");
  EXPECT_EQ(c.profile.streams, (std::vector<std::int64_t>{2, 6}));
  EXPECT_EQ(c.max_seconds, std::vector<double>{30});
  EXPECT_EQ(c.data.prompt.stdev, 40);
  EXPECT_FALSE(c.chat);
  EXPECT_EQ(keys().at("description"), "no effect");
  EXPECT_EQ(keys().at("max_seconds"), "used");
}

// llm-d/llm-d-benchmark, run-only form.
TEST_F(GuidellmFiles, TheWorkloadOfABenchmarkTemplate) {
  const std::string head =
      "endpoint: {model: Qwen/Qwen3-8B, base_url: http://gateway}\nharness: {name: guidellm}\n"
      "workload:\n";
  const std::string rates =
      "    profile: constant\n    rate: [1, 3]\n    max_seconds: 30\n"
      "    data: {prompt_tokens: 300, output_tokens: 60}\n";
  const Config c = load(head + "  small:\n" + rates);
  EXPECT_EQ(said, "");
  EXPECT_EQ(c.profile.rate, (std::vector<double>{1, 3}));
  (void)load(head + "  small:\n" + rates + "  large:\n" + rates);
  EXPECT_NE(said.find("is a second workload in the file: small, large"), std::string::npos) << said;
}

TEST_F(GuidellmFiles, TheirOwnSettingsMayStandInTheScenario) {
  const std::string file =
      write("s.yaml",
            "name: s\nworkload:\n  guidellm: {profile: {kind: synchronous}, max_requests: 3,\n"
            "             data: {prompt_tokens: 10, output_tokens: 2}}\n"
            "cluster: {pools: [{name: a, accelerator: H100-SXM, model: Qwen3-8B}]}\n");
  Diagnostics d;
  const LoadedScenario loaded =
      load_scenario({.path = file, .sets = {}, .variants = {}, .seed = {}}, d);
  EXPECT_EQ(messages_of(d), "");
  const auto& c = *loaded.variants.at(0).scenario.workload.load.get<Config>();
  EXPECT_EQ(c.max_requests, std::vector<std::int64_t>{3});
}

TEST_F(GuidellmFiles, SaysWhatItDoesNotRead) {
  const auto expect = [&](const std::string& text, const std::string& message) {
    load(text);
    EXPECT_NE(said.find(message), std::string::npos) << text << said;
  };
  const std::string data = "data: [{prompt_tokens: 5, output_tokens: 5}]";
  expect("spec:\n  profile: {kind: synchronous}\n  " + data + "\n  max_request: 5\n",
         "profile.yaml.in:4:3: error: workload.guidellm.max_request: unknown key");
  expect("spec: {profile: {kind: replay}, " + data + "}\n", "profile.kind: must be one of");
  expect("spec: {data: [{kind: huggingface, source: x}]}\n",
         "profile.yaml.in:1:16: error: workload.guidellm.kind: is not simulated (got huggingface)");
  expect("spec: {profile: {kind: synchronous}, " + data +
             ", constraints: [{kind: max_errors, count: 5}]}\n",
         "warning: workload.guidellm.constraints: is not simulated (got max_errors)");
  expect("spec: {profile: {kind: concurrent, warmup: 0.1}, " + data + "}\n",
         "all requests of a strategy are reported");
  expect("spec: {profile: {kind: concurrent, streams: REPLACE_ENV_X}, " + data + "}\n",
         "(got REPLACE_ENV_X)\n  hint: a placeholder of llm-d-benchmark");
  expect("spec: {profile: {kind: concurrent}, " + data +
             "}\nbenchmarks: [{profile.streams: 1}, {backend.model: x}]\n",
         "profile.yaml.in:2:15: error: workload.guidellm.profile.streams: stands in some of the");
  expect("spec: {" + data + "}\nbenchmark: []\n",
         "profile.yaml.in:2:1: error: workload.guidellm.benchmark: unknown key beside spec");
}

}  // namespace
}  // namespace routesim::tools
