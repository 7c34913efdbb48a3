// Files and commands of load tools as people keep them: what they become.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/base/messages.h"
#include "tests/tools/command_fixture.h"
#include "tools/ingest/loads/guidellm_yaml.h"
#include "tools/ingest/scenario/prepare.h"

namespace routesim::tools {
namespace {

// GuideLLM's scenario files: what they become. The texts are profiles of llm-d-benchmark
// (workload/profiles/guidellm at 8bc9f1dd) and of its tutorials.

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

// `vllm bench serve` as people keep it: what its flags become.

class VllmBenchFiles : public testing::FolderTest {
 protected:
  /// A scenario with these flags, in YAML, and a server of this release.
  LoadedScenario load(const std::string& flags, Diagnostics& d, const char* preset = "2026-H1") {
    const std::string file =
        write("s.yaml", "name: s\nworkload:\n  vllm_bench: " + flags +
                            "\ncluster: {pools: [{name: a, accelerator: H100-SXM, model: Qwen3-8B,"
                            " engine: {preset: " +
                            preset + "}}]}\n");
    return load_scenario({.path = file, .sets = {}, .variants = {}, .seed = {}}, d);
  }

  /// Names of the stages of the load, or what is wrong with it.
  std::string stages(const std::string& flags, const char* preset) {
    Diagnostics d;
    const LoadedScenario loaded = load(flags, d, preset);
    std::optional<sim::RunPlan> plan;
    if (!d.has_errors()) plan = prepare(loaded.variants.at(0), d);
    if (!plan) return messages_of(d);
    std::string names;
    const auto made = plan->make_load(1, d);
    for (const workloads::StageInfo& stage : made->stages())
      names += (names.empty() ? "" : " ") + stage.name;
    return names;
  }
};

TEST_F(VllmBenchFiles, TheReadyCheckIsOfTheServersRelease) {
  EXPECT_EQ(stages("{num-prompts: 5}", "2025-H2"), "test main");
  EXPECT_EQ(stages("{num-prompts: 5}", "2026-H1"), "main");
  EXPECT_EQ(stages("{num-prompts: 5}", "2026-H2"), "main");
  EXPECT_EQ(stages("{num-prompts: 5, ready-check-timeout-sec: 600}", "2026-H1"), "test main");
  EXPECT_EQ(stages("{num-prompts: 5, ready_check_timeout_sec: 0}", "2025-H2"), "main");
  EXPECT_EQ(stages("{ready-check-timeout-sec: 600, initial_test_request: false}", "2025-H2"),
            "main");
  EXPECT_EQ(stages("{initial_test_request: true, num-warmups: 2}", "2026-H2"), "test warmup main");
  EXPECT_NE(stages("{ready-check-timeout-sec: soon}", "2026-H2")
                .find("s.yaml:3:41: error: workload.vllm_bench.ready_check_timeout_sec: must be a"),
            std::string::npos);
}

TEST_F(VllmBenchFiles, TakesTheFlagsAsItsFilesWriteThem) {
  write("bench.yaml.in",
        "executable: benchmark_serving.py\nmodel: m\nbase-url: http://x\nbackend: openai-chat\n"
        "endpoint: /v1/chat/completions\nmax-concurrency: 32\nnum-prompts: 500\n"
        "request-rate: inf\ndataset-name: random\nrandom-input-len: 700\n"
        "random-output-len: 70\npercentile-metrics: ttft\nignore-eos: none\n");
  const std::string path =
      write("s.yaml",
            "name: s\nworkload: {vllm_bench: bench.yaml.in}\n"
            "cluster: {pools: [{name: a, accelerator: H100-SXM, model: Qwen3-32B}]}\n");
  Diagnostics d;
  const LoadedScenario loaded = load_scenario(
      {.path = path, .sets = {"workload.vllm_bench.num-prompts=600"}, .variants = {}, .seed = {}},
      d);
  ASSERT_EQ(messages_of(d), "");
  const auto& bench =
      *loaded.variants.at(0).scenario.workload.load.get<workloads::vllm_bench::Config>();
  EXPECT_EQ(bench.num_prompts, 600);
  EXPECT_EQ(bench.max_concurrency, 32);
  EXPECT_EQ(bench.random.input_len, 700);
  EXPECT_EQ(bench.random.output_len, 70);
  EXPECT_TRUE(bench.chat);
  EXPECT_TRUE(bench.ignore_eos);
  write("bench.yaml.in", "num-prompts: 5\nnum-promts: 6\n");
  Diagnostics wrong;
  (void)load_scenario({.path = path, .sets = {}, .variants = {}, .seed = {}}, wrong);
  EXPECT_NE(messages_of(wrong).find(
                "bench.yaml.in:2:1: error: workload.vllm_bench.num_promts: unknown key"),
            std::string::npos)
      << messages_of(wrong);
}

// workload/profiles/vllm-benchmark of llm-d-benchmark at 8bc9f1dd.
TEST_F(VllmBenchFiles, ReadsTheProfilesOfLlmDBenchmark) {
  const std::string head =
      "executable: benchmark_serving.py\nmodel: REPLACE_ENV_LLMDBENCH_DEPLOY_CURRENT_MODEL\n"
      "base-url: REPLACE_ENV_LLMDBENCH_HARNESS_STACK_ENDPOINT_URL\n";
  const std::string tail =
      "percentile-metrics: \"ttft,tpot,itl,e2el\"\nmetric-percentiles: \"99,100\"\n";
  write("fixed_dataset.yaml.in",
        head +
            "dataset-name: custom\ndataset-path: REPLACE_ENV_LLMDBENCH_RUN_DATASET_DIR/"
            "REPLACE_ENV_LLMDBENCH_RUN_DATASET_FILE\nmax-concurrency: 4\nnum-prompts: 2\n" +
            tail + "ignore-eos: none\ncustom-output-len: -1\n");
  EXPECT_NE(stages("fixed_dataset.yaml.in", "2026-H1")
                .find("REPLACE_ENV_LLMDBENCH_RUN_DATASET_DIR/REPLACE_ENV_"
                      "LLMDBENCH_RUN_DATASET_FILE: No such file or directory\n"
                      "  hint: a placeholder of llm-d-benchmark"),
            std::string::npos)
      << stages("fixed_dataset.yaml.in", "2026-H1");
  write("random_concurrent.yaml.in",
        head +
            "dataset-name: random\nrandom-input-len: 10000\nrandom-output-len: 1000\n"
            "max-concurrency: 1\nnum-prompts: 32\n" +
            tail + "ignore-eos: none\n");
  EXPECT_EQ(stages("random_concurrent.yaml.in", "2026-H1"), "main");
  write("sonnet_concurrent.yaml.in",
        head +
            "max-concurrency: 32\nnum-prompts: 500\nrequest-rate: 20\nbackend: openai-chat\n"
            "endpoint: /v1/chat/completions\ndataset-name: sonnet\n"
            "dataset-path: /workspace/vllm/benchmarks/sonnet.txt\nsonnet-input-len: 8192\n"
            "sonnet-output-len: 512\nsonnet-prefix-len: 6144\n" +
            tail + "ignore-eos: none\n");
  EXPECT_EQ(stages("sonnet_concurrent.yaml.in", "2026-H1"), "main");
}

TEST_F(VllmBenchFiles, RefusesAFlagInBothSpellings) {
  write("bench.yaml.in",
        "num-prompts: 5\nrequest-rate: 1\nrandom_input_len: 10\n"
        "request_rate: 2\nrandom-input-len: 20\n");
  const std::string path =
      write("s.yaml",
            "name: s\nworkload: {vllm_bench: bench.yaml.in}\n"
            "cluster: {pools: [{name: a, accelerator: H100-SXM, model: Qwen3-32B}]}\n");
  Diagnostics wrong;
  (void)load_scenario({.path = path, .sets = {}, .variants = {}, .seed = {}}, wrong);
  EXPECT_NE(messages_of(wrong).find(
                "bench.yaml.in:4:1: error: duplicate flag 'request_rate', first set as "
                "'request-rate' on line 2"),
            std::string::npos)
      << messages_of(wrong);
  EXPECT_NE(messages_of(wrong).find("bench.yaml.in:5:1: error: duplicate flag 'random-input-len'"),
            std::string::npos)
      << messages_of(wrong);
  // The command line may spell a flag its own way.
  write("bench.yaml.in", "num-prompts: 5\nrequest-rate: 1\n");
  Diagnostics fine;
  const LoadedScenario loaded = load_scenario(
      {.path = path, .sets = {"workload.vllm_bench.request_rate=7"}, .variants = {}, .seed = {}},
      fine);
  ASSERT_EQ(messages_of(fine), "");
  EXPECT_EQ(loaded.variants.at(0)
                .scenario.workload.load.get<workloads::vllm_bench::Config>()
                ->request_rate,
            7.0);
}

TEST_F(VllmBenchFiles, SonnetMayNameItsText) {
  const std::string path =
      write("s.yaml",
            "name: s\nworkload: {vllm_bench: {dataset-name: sonnet, dataset-path: /x/sonnet.txt,\n"
            "  sonnet-input-len: 512, sonnet-output-len: 64, sonnet-prefix-len: 100}}\n"
            "cluster: {pools: [{name: a, accelerator: H100-SXM, model: Qwen3-8B}]}\n");
  Diagnostics d;
  const LoadedScenario loaded =
      load_scenario({.path = path, .sets = {}, .variants = {}, .seed = {}}, d);
  EXPECT_TRUE(prepare(loaded.variants.at(0), d).has_value());
  EXPECT_EQ(messages_of(d), "");
}

TEST_F(VllmBenchFiles, ACommandLineIsItsFlags) {
  Diagnostics d;
  const LoadedScenario loaded = load(
      "|\n"
      "    # as run on the client\n"
      "    export RATE=12\n"
      "    vllm bench serve --backend vllm --model Qwen/Qwen3-8B \\\n"
      "      --dataset-name random --random-input-len=700 --random-output-len 70 \\\n"
      "      --random-range-ratio '{\"input\": 0.2, \"output\": 0.1}' --ignore-eos \\\n"
      "      --num-prompts 20 --request-rate $RATE --percentile-metrics ttft,tpot \\\n"
      "      --header a=b c=d --top-p 0.9 --extra-body '{\"a\": 1}' --no-oversample \\\n"
      "      --goodput ttft:500 tpot:50 --result-dir $RESULTS --num-prompts 30\n",
      d);
  EXPECT_EQ(messages_of(d), "");
  const sim::Scenario& s = loaded.variants.at(0).scenario;
  const auto& bench = *s.workload.load.get<workloads::vllm_bench::Config>();
  EXPECT_EQ(bench.random.input_len, 700);
  EXPECT_EQ(bench.random.output_len, 70);
  EXPECT_EQ(bench.random.input_range_ratio, 0.2);
  EXPECT_EQ(bench.random.output_range_ratio, 0.1);
  EXPECT_TRUE(bench.ignore_eos);
  EXPECT_FALSE(bench.sharegpt.oversample);
  EXPECT_EQ(bench.num_prompts, 30) << "the last of two counts";
  EXPECT_EQ(bench.request_rate, 12);
  EXPECT_EQ(s.goodput, (std::vector<std::string>{"ttft:500ms", "tpot:50ms"}));
}

TEST_F(VllmBenchFiles, ACommandLineMayStandInAScript) {
  write("bench.yaml", "num-prompts: 40\nrequest-rate: 3\ndataset-path: x.txt\n");
  write(
      "run.sh",
      "#!/bin/bash\nset -e\nvllm serve Qwen/Qwen3-8B &\n"
      "python3 -m vllm.entrypoints.cli.main bench serve --request-rate inf --config bench.yaml \\\n"
      "  --dataset-name timed_trace --dataset-path trace.jsonl --no-self-timed\n");
  Diagnostics d;
  const LoadedScenario loaded = load("run.sh", d);
  EXPECT_EQ(messages_of(d), "");
  const LoadedVariant& variant = loaded.variants.at(0);
  const auto& bench = *variant.scenario.workload.load.get<workloads::vllm_bench::Config>();
  EXPECT_EQ(bench.num_prompts, 40);
  EXPECT_TRUE(std::isinf(bench.request_rate)) << "the command line goes before the file";
  EXPECT_EQ(bench.dataset_path, "trace.jsonl");
  EXPECT_FALSE(bench.timed_trace.self_timed);
  EXPECT_EQ(variant.provenance.nearest("workload.vllm_bench.dataset_path").file, path("run.sh"));
}

TEST_F(VllmBenchFiles, APathMayHoldBlanks) {
  write("my bench.yaml", "num-prompts: 40\n");
  write("my run.sh", "vllm bench serve --num-prompts 41\n");
  for (const char* name : {"my bench.yaml", "my run.sh"}) {
    Diagnostics d;
    EXPECT_GE(load(name, d)
                  .variants.at(0)
                  .scenario.workload.load.get<workloads::vllm_bench::Config>()
                  ->num_prompts,
              40);
    EXPECT_EQ(messages_of(d), "") << name;
  }
}

TEST_F(VllmBenchFiles, SaysWhatACommandLineLacks) {
  const auto said = [&](const std::string& flags) {
    Diagnostics d;
    (void)load(flags, d);
    return messages_of(d);
  };
  const auto expect = [&](const std::string& flags, const std::string& message) {
    EXPECT_NE(said(flags).find(message), std::string::npos) << said(flags);
  };
  expect("vllm bench latency --x 1", "s.yaml:3:15: error: workload.vllm_bench: runs no vllm bench");
  expect("|\n    vllm bench serve --num-prompts 3\n    vllm bench serve --num-prompts 4\n",
         "s.yaml:5:5: error: workload.vllm_bench: is a second run, after the one on line 4");
  expect("vllm bench serve --num-prompts $N", "the value of --num-prompts is not known here");
  expect("vllm bench serve 5", "stands without a flag (got '5')");
  expect("vllm bench serve --num-promts 5", "workload.vllm_bench.num_promts: unknown key");
  expect("vllm bench serve --num-prompts 3 4", "workload.vllm_bench.num_prompts: must be");
  EXPECT_EQ(said("--num-prompts 5 --max-concurrency 2"), "") << "flags alone will do";
}

TEST_F(VllmBenchFiles, ReadsAdapters) {
  for (const char* flags :
       {"{lora-modules: [a, b], lora-assignment: round-robin}",
        "vllm bench serve --lora-modules a b --lora-assignment round-robin --num-prompts 5"}) {
    Diagnostics d;
    const LoadedScenario loaded = load(flags, d);
    ASSERT_FALSE(d.has_errors()) << messages_of(d);
    const auto& bench =
        *loaded.variants.at(0).scenario.workload.load.get<workloads::vllm_bench::Config>();
    EXPECT_EQ(bench.lora_modules, (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(bench.lora_assignment, workloads::LoraAssignment::kRoundRobin);
  }
  Diagnostics d;
  const LoadedScenario one = load("{lora-modules: a}", d);
  ASSERT_FALSE(d.has_errors()) << messages_of(d);
  EXPECT_EQ(
      one.variants.at(0).scenario.workload.load.get<workloads::vllm_bench::Config>()->lora_modules,
      (std::vector<std::string>{"a"}));
}

TEST_F(VllmBenchFiles, WarnsOfWhatIsLeftOut) {
  Diagnostics d;
  (void)load("{probe-request-rate: 1, endpoint-type: openai-chat}", d);
  EXPECT_FALSE(d.has_errors());
  EXPECT_NE(messages_of(d).find("probe requests are not simulated"), std::string::npos);
  Diagnostics body;
  (void)load("{extra-body: '{\"ignore_eos\": true}'}", body);
  EXPECT_NE(messages_of(body).find("what it says of the length of answers is not read"),
            std::string::npos)
      << messages_of(body);
  Diagnostics none;
  EXPECT_TRUE(load("{probe-request-rate: 0, endpoint-type: openai-chat}", none)
                  .variants.at(0)
                  .scenario.workload.load.get<workloads::vllm_bench::Config>()
                  ->chat);
  EXPECT_EQ(messages_of(none), "");
}

TEST_F(VllmBenchFiles, SetReachesIntoACommandLine) {
  const std::string file =
      write("s.yaml",
            "name: s\nworkload: {vllm_bench: vllm bench serve --num-prompts 5 --seed 3}\n"
            "cluster: {pools: [{name: a, accelerator: H100-SXM, model: Qwen3-8B}]}\n");
  Diagnostics d;
  const LoadedScenario loaded = load_scenario(
      {.path = file, .sets = {"workload.vllm_bench.num-prompts=6"}, .variants = {}, .seed = {}}, d);
  EXPECT_EQ(messages_of(d), "");
  EXPECT_EQ(loaded.variants.at(0)
                .scenario.workload.load.get<workloads::vllm_bench::Config>()
                ->num_prompts,
            6);
  EXPECT_EQ(loaded.variants.at(0).scenario.workload.load.get<workloads::vllm_bench::Config>()->seed,
            3);
}

}  // namespace
}  // namespace routesim::tools
