// routesim init: scenarios from the files that users have. Each one that is written must check.
#include <set>

#include "tests/tools/command_fixture.h"
#include "tools/cli/cli.h"
#include "tools/ingest/servers/catalogue_file.h"
#include "tools/ingest/tree/parse_config.h"

namespace routesim::tools {
namespace {

constexpr const char* kLoad =
    "load: {type: constant, stages: [{rate: 2, duration: 5}]}\n"
    "api: {type: completion, streaming: true}\n"
    "server: {type: vllm, model_name: Qwen/Qwen3-8B, base_url: \"http://a\", ignore_eos: true}\n"
    "data: {type: shared_prefix, shared_prefix: {num_groups: 4, num_prompts_per_group: 4, "
    "system_prompt_len: 256, question_len: 32, output_len: 16}}\n";

constexpr const char* kPicker =
    "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\n"
    "plugins: [{type: queue-scorer}, {type: max-score-picker}]\n"
    "schedulingProfiles: [{name: default, plugins: [{pluginRef: queue-scorer, weight: 1}, "
    "{pluginRef: max-score-picker}]}]\n";

/// A Deployment whose pods are chosen by `pod_keys`, keys of the pod's `spec`.
std::string deployment(const std::string& pod_keys = {}, const std::string& name = "qwen",
                       const std::string& device = "nvidia.com/gpu") {
  return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: " + name +
         "}\nspec:\n  replicas: 2\n  template:\n    spec:\n" + pod_keys +
         "      containers:\n      - name: vllm\n        image: vllm/vllm-openai:v0.19.1\n"
         "        args: [--model, Qwen/Qwen3-8B]\n        resources: {limits: {" +
         device + ": 1}}\n";
}

class Init : public testing::FolderTest {
 protected:
  struct Result {
    ExitCode code;
    std::string out, errors;
  };

  Result run(const std::vector<std::string>& arguments) const {
    testing::TestConsole console;
    const ExitCode code = run_command_line(arguments, console);
    return {code, console.output(), without_folder(console.errors)};
  }

  /// Writes a scenario from files of the folder and returns what was said.
  Result init(const std::vector<std::string>& files,
              const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"init", "-o", path("scenario.yaml")};
    for (const std::string& file : files) arguments.push_back(path(file));
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }

  std::string scenario() const {
    std::ifstream in(path("scenario.yaml"));
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::string without_folder(std::string text) const {
    const std::string folder = folder_.string() + "/";
    for (std::size_t at = 0; (at = text.find(folder, at)) != std::string::npos;)
      text.erase(at, folder.size());
    return text;
  }

  /// What `list` of resolved values says a key is, and where that was written.
  std::string origin(const std::string& key) const {
    const Result explained = run({"explain", path("scenario.yaml"), "--variant", "k8s-service"});
    EXPECT_EQ(explained.code, ExitCode::kSuccess) << explained.errors;
    const std::string out = without_folder(explained.out);
    const std::size_t at = out.find("\n" + key + " ") + 1;
    std::string line = out.substr(at, out.find('\n', at) - at);
    std::string words;
    for (const char c : line)
      if (c != ' ' || (!words.empty() && words.back() != ' ')) words += c;
    return words;
  }
};

TEST_F(Init, NamesTheUsersFilesAndMarksWhatItAssumes) {
  write("servers/deployment.yaml", deployment());
  write("epp.yaml", kPicker);
  write("load.yaml", kLoad);
  const Result made = init({"servers/deployment.yaml", "epp.yaml", "load.yaml"});
  ASSERT_EQ(made.code, ExitCode::kSuccess) << made.errors;
  EXPECT_EQ(
      scenario(),
      "# Written by `routesim init`. The files are read again at every run.\n"
      "# Lines with \"assumed\" say what no file does: correct them.\n"
      "name: qwen\n"
      "question: Which router answers this load faster on these servers?\n"
      "\n"
      "workload:\n"
      "  inference_perf: load.yaml\n"
      "\n"
      "cluster:\n"
      "  pools:\n"
      "  - name: qwen\n"
      "    vllm_serve: servers/deployment.yaml\n"
      "    accelerator: H100-SXM   # assumed: no file names one\n"
      "\n"
      "variants:\n"
      "- name: k8s-service\n"
      "  routing: {balancer: k8s-service}\n"
      "- name: epp\n"
      "  routing:\n"
      "    balancer: endpoint-picker\n"
      "    endpoint_picker: epp.yaml\n"
      "\n"
      "# What must hold after a change of the files: otherwise `routesim run` ends with code 1.\n"
      "# expect:\n"
      "# - ttft_ms.p99 < 500\n");
  EXPECT_EQ(made.out, "");
  EXPECT_NE(made.errors.find("  accelerator: H100-SXM   # assumed: no file names one\n"),
            std::string::npos)
      << made.errors;
  const Result ran = run({"run", path("scenario.yaml"), "--quiet"});
  EXPECT_EQ(ran.code, ExitCode::kSuccess) << ran.errors;
  EXPECT_NE(ran.out.find("output tokens/s"), std::string::npos);
}

TEST_F(Init, TheSuggestedExpectationsAreRead) {
  write("deployment.yaml", deployment());
  write("load.yaml", kLoad);
  ASSERT_EQ(init({"deployment.yaml", "load.yaml"}).code, ExitCode::kSuccess);
  std::string text = scenario();
  for (const char* line : {"# expect:", "# - ttft"}) text.replace(text.find(line), 2, "");
  write("expecting.yaml", text);
  const Result checked = run({"check", path("expecting.yaml")});
  EXPECT_EQ(checked.code, ExitCode::kSuccess) << checked.errors;
}

TEST_F(Init, AFileIsReplacedOnlyByForce) {
  write("deployment.yaml", deployment());
  write("scenario.yaml", "mine\n");
  const Result refused = init({"deployment.yaml"});
  EXPECT_EQ(refused.code, ExitCode::kInvalid);
  EXPECT_EQ(refused.errors,
            "routesim: error: scenario.yaml exists already; --force replaces it, -o names another\n"
            "  hint: see `routesim init --help`\n");
  EXPECT_EQ(scenario(), "mine\n");
  EXPECT_EQ(init({"deployment.yaml"}, {"--force", "--name", "other"}).code, ExitCode::kSuccess);
  EXPECT_NE(scenario().find("\nname: other\n"), std::string::npos);
}

TEST_F(Init, NodeSelectorsAffinitiesAndProfilesNameTheAccelerator) {
  write("load.yaml", kLoad);
  const std::string affinity =
      "      affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
      "{nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/arch, operator: NotIn, values: "
      "[t4]}, {key: node.kubernetes.io/instance-type, operator: In, values: "
      "[p5en.48xlarge]}]}]}}}\n";
  for (const auto& [keys, accelerator] : std::vector<std::pair<std::string, std::string>>{
           {"      nodeSelector: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}\n", "H100-SXM"},
           {"      nodeSelector: {cloud.google.com/gke-accelerator: nvidia-l4}\n", "L4"},
           {"      nodeSelector: {node.kubernetes.io/instance-type: Standard_ND96isr_MI300X_v5}\n",
            "MI300X"},
           {"      nodeSelector: {amd.com/gpu.product-name: AMD_Instinct_MI300X_OAM}\n", "MI300X"},
           {affinity, "H200"}}) {
    write("deployment.yaml", deployment(keys));
    const Result made = init({"deployment.yaml", "load.yaml"}, {"--force"});
    ASSERT_EQ(made.code, ExitCode::kSuccess) << made.errors;
    EXPECT_EQ(scenario().find("accelerator:"), std::string::npos);
    const std::string said = origin("cluster.pools[0].accelerator");
    EXPECT_TRUE(
        said.starts_with("cluster.pools[0].accelerator " + accelerator + " deployment.yaml:"))
        << said;
  }
}

TEST_F(Init, TheAcceleratorOfAmdIsAssumedAndAnUnknownDeviceIsRefused) {
  write("load.yaml", kLoad);
  write("amd.yaml", deployment({}, "qwen", "amd.com/gpu"));
  const Result amd = init({"amd.yaml", "load.yaml"});
  ASSERT_EQ(amd.code, ExitCode::kSuccess) << amd.errors;
  EXPECT_NE(scenario().find("    accelerator: MI300X   # assumed: the servers ask for amd.com/gpu, "
                            "no file says which\n"),
            std::string::npos);
  std::string labelled = deployment({}, "qwen", "cpu");
  labelled.replace(labelled.find("    spec:\n"), 0,
                   "    metadata: {labels: {llm-d.ai/accelerator-vendor: intel}}\n");
  write("xpu.yaml", labelled);
  const Result xpu = init({"xpu.yaml", "load.yaml"}, {"--force"});
  EXPECT_TRUE(xpu.errors.starts_with("xpu.yaml:7:25: error: asks for intel, ")) << xpu.errors;
  write("tpu.yaml", deployment({}, "qwen", "google.com/tpu"));
  const Result tpu = init({"tpu.yaml", "load.yaml"}, {"--force"});
  EXPECT_EQ(tpu.code, ExitCode::kInvalid);
  EXPECT_TRUE(
      tpu.errors.starts_with("tpu.yaml:12:30: error: asks for google.com/tpu, and no file "
                             "names an accelerator that the catalogue has\n"))
      << tpu.errors;
}

// The weights of DeepSeek-R1 in FP8 take 671 GB: 8 GPUs of 85 GB have 684 GB, without room for
// anything else, and 8 of 150 GB have.
TEST_F(Init, TheAssumedAcceleratorHoldsTheWeights) {
  std::string text = deployment();
  text.replace(text.find("Qwen/Qwen3-8B]"), 14, "deepseek-ai/DeepSeek-R1, -tp, \"8\"]");
  write("deployment.yaml", text);
  write("load.yaml", kLoad);
  const Result made = init({"deployment.yaml", "load.yaml"});
  ASSERT_EQ(made.code, ExitCode::kSuccess) << made.errors;
  EXPECT_NE(scenario().find("    accelerator: H200   # assumed: no file names one, and the weights "
                            "do not fit on less\n"),
            std::string::npos)
      << scenario();
}

TEST_F(Init, TwoPossibleAcceleratorsAreSaid) {
  write("deployment.yaml",
        deployment("      affinity: {nodeAffinity: {x: [{matchExpressions: [{key: k, operator: In, "
                   "values: [NVIDIA-L4, NVIDIA-A10G]}]}]}}\n"));
  write("load.yaml", kLoad);
  const Result made = init({"deployment.yaml", "load.yaml"});
  ASSERT_EQ(made.code, ExitCode::kSuccess) << made.errors;
  EXPECT_NE(made.errors.find("the servers may run on L4 or on A10G; the first is used"),
            std::string::npos)
      << made.errors;
}

TEST_F(Init, ChartsBringTheirRouter) {
  write("model.yaml",
        "apiVersion: kubeai.org/v1\nkind: Model\nmetadata: {name: qwen}\nspec:\n  engine: VLLM\n"
        "  url: hf://Qwen/Qwen3-8B\n  resourceProfile: nvidia-gpu-l4:1\n  minReplicas: 3\n"
        "  loadBalancing: {strategy: PrefixHash}\n");
  write("load.yaml", kLoad);
  const Result made = init({"model.yaml", "load.yaml"});
  ASSERT_EQ(made.code, ExitCode::kSuccess) << made.errors;
  EXPECT_NE(scenario().find("- name: own   # the router in model.yaml\n"), std::string::npos);
  EXPECT_TRUE(origin("cluster.pools[0].accelerator").ends_with("L4 model.yaml:7:20"));
  const Result explained = run({"explain", path("scenario.yaml"), "--variant", "own"});
  EXPECT_NE(explained.out.find("prefix-hash"), std::string::npos);
}

TEST_F(Init, WithoutALoadOrARouterBothAreAssumed) {
  write("deployment.yaml", deployment());
  const Result made = init({"deployment.yaml"});
  ASSERT_EQ(made.code, ExitCode::kSuccess) << made.errors;
  EXPECT_NE(scenario().find("stages: [{rate: 1, duration: 60}, {rate: 2, duration: 60}, "
                            "{rate: 4, duration: 60}]"),
            std::string::npos)
      << scenario();
  EXPECT_NE(
      scenario().find("- name: prefix-aware   # assumed: no file configures a router; this is "
                      "llm-d's default\n"),
      std::string::npos);
}

TEST_F(Init, WithoutServersTheLoadNamesTheModel) {
  write("load.yaml", kLoad);
  write("epp.yaml", kPicker);
  const Result made = init({"load.yaml", "epp.yaml"});
  ASSERT_EQ(made.code, ExitCode::kSuccess) << made.errors;
  EXPECT_NE(scenario().find("    model: Qwen/Qwen3-8B   # assumed: the load names it\n"),
            std::string::npos)
      << scenario();
}

TEST_F(Init, EveryKindOfLoadIsTold) {
  write("deployment.yaml", deployment());
  const std::vector<std::array<std::string, 3>> loads = {
      {"g.yaml.in",
       "spec: {profile: {kind: constant, rate: [1]}, constraints: [{kind: max_duration, seconds: "
       "5}], data: [{kind: synthetic_text, prompt_tokens: 64, output_tokens: 16}]}\n",
       "  guidellm: g.yaml.in\n"},
      {"bench.sh",
       "vllm bench serve --dataset-name random --random-input-len 64 --random-output-len 8 "
       "--num-prompts 20 --request-rate 2\n",
       "  vllm_bench: bench.sh\n"},
      {"bench.yaml",
       "dataset-name: random\nrandom-input-len: 64\nrandom-output-len: 8\nnum-prompts: 20\n",
       "  vllm_bench: bench.yaml\n"},
      {"t.csv", "timestamp,input_length,output_length\n0,100,10\n1,100,10\n",
       "  trace:\n    file: t.csv\n"},
      {"t.jsonl", "{\"timestamp\": 0, \"input_length\": 64, \"output_length\": 8}\n",
       "  trace:\n    file: t.jsonl\n"},
      {"r.json",
       "{\"completed\": 10, \"num_prompts\": 10, \"request_rate\": \"inf\", \"burstiness\": 0.5, "
       "\"max_concurrency\": 4, "
       "\"total_input_tokens\": 1000, \"total_output_tokens\": 200, \"mean_ttft_ms\": 40}\n",
       "    request_rate: .inf\n    burstiness: 0.5\n    max_concurrency: 4\n    dataset_name: "
       "random   # assumed: the "
       "file does not name it\n    random: {input_len: 100, output_len: 20}   # assumed: "}};
  for (const auto& [name, text, expected] : loads) {
    write(name, text);
    const Result made = init({"deployment.yaml", name}, {"--force"});
    EXPECT_EQ(made.code, ExitCode::kSuccess) << name << "\n" << made.errors;
    EXPECT_NE(scenario().find(expected), std::string::npos) << scenario();
  }
}

// 1000 and 200 tokens of 10 requests.
constexpr const char* kBenchResult =
    "{\"completed\": 10, \"num_prompts\": 10, \"request_rate\": 4, \"model_id\": "
    "\"Qwen/Qwen3-8B\", \"total_input_tokens\": 1000, \"total_output_tokens\": 200, "
    "\"mean_ttft_ms\": 40}\n";

TEST_F(Init, AResultNamesTheModelAndNothingInventedIsMeasured) {
  write("r.json", kBenchResult);
  const Result alone = init({"r.json"});
  ASSERT_EQ(alone.code, ExitCode::kSuccess) << alone.errors;
  EXPECT_NE(scenario().find("    assumed: no file starts servers of vLLM\n"
                            "    replicas: 4   # assumed: no file starts servers of vLLM\n"),
            std::string::npos);
  EXPECT_NE(scenario().find("    model: Qwen/Qwen3-8B   # assumed: the load names it\n"),
            std::string::npos);
  EXPECT_EQ(scenario().find("measured:"), std::string::npos) << scenario();
  EXPECT_NE(alone.errors.find("not used: r.json: its latencies. The files do not tell"),
            std::string::npos)
      << alone.errors;
  // The user's servers behind the only router of the files can be what was measured.
  write("deployment.yaml", deployment());
  write("epp.yaml", kPicker);
  write("other.yaml", kPicker);
  ASSERT_EQ(init({"deployment.yaml", "epp.yaml", "r.json"}, {"--force"}).code, ExitCode::kSuccess);
  EXPECT_NE(scenario().find("    endpoint_picker: epp.yaml\n  measured:\n    csv: r.json\n"
                            "    policy: epp   # assumed: "),
            std::string::npos)
      << scenario();
  const Result validated = run({"validate", path("scenario.yaml")});
  EXPECT_EQ(validated.code, ExitCode::kSuccess) << validated.errors;
  for (const std::vector<std::string>& files : std::vector<std::vector<std::string>>{
           {"deployment.yaml", "r.json"},
           {"deployment.yaml", "epp.yaml", "other.yaml", "r.json"}}) {
    const Result made = init(files, {"--force"});
    ASSERT_EQ(made.code, ExitCode::kSuccess) << made.errors;
    EXPECT_EQ(scenario().find("measured:"), std::string::npos) << scenario();
    EXPECT_NE(made.errors.find("not used: r.json: its latencies"), std::string::npos);
  }
  std::string unknown = kBenchResult;
  unknown.replace(unknown.find("Qwen/Qwen3-8B"), 13, "acme/secret");
  write("r.json", unknown);
  ASSERT_EQ(init({"r.json"}, {"--force"}).code, ExitCode::kSuccess);
  EXPECT_NE(scenario().find("    model: Qwen3-32B   # assumed: the catalogue has no acme/secret\n"),
            std::string::npos)
      << scenario();
}

TEST_F(Init, AResultOfAnotherModelIsNotMeasured) {
  std::string other = kBenchResult;
  other.replace(other.find("Qwen3-8B"), 8, "Qwen3-32B");
  write("r.json", other);
  write("deployment.yaml", deployment());
  write("epp.yaml", kPicker);
  const Result made = init({"deployment.yaml", "epp.yaml", "r.json"});
  ASSERT_EQ(made.code, ExitCode::kSuccess) << made.errors;
  EXPECT_EQ(scenario().find("measured:"), std::string::npos) << scenario();
  EXPECT_NE(made.errors.find("not used: r.json: its latencies. It measured Qwen/Qwen3-32B, and the "
                             "servers run Qwen/Qwen3-8B\n"),
            std::string::npos)
      << made.errors;
}

TEST_F(Init, ErrorsOfAResultPointAtTheResult) {
  write("deployment.yaml", deployment());
  write("r.json",
        "{\"completed\": 0, \"request_rate\": \"fast\",\n \"total_input_tokens\": 1000, "
        "\"total_output_tokens\": 200}\n");
  const Result made = init({"deployment.yaml", "r.json"});
  EXPECT_EQ(made.code, ExitCode::kInvalid);
  EXPECT_EQ(made.errors,
            "r.json:1:1: error: num_prompts: is missing from the result\n"
            "  hint: write the load as a file of vllm bench serve, and name that\n"
            "r.json:1:15: error: completed: must be a number above 0 (got 0)\n"
            "r.json:1:34: error: request_rate: must be a number above 0 (got text \"fast\")\n");
}

TEST_F(Init, TheAssumedLoadIsForTheAssumedServers) {
  write("epp.yaml", kPicker);
  ASSERT_EQ(init({"epp.yaml"}).code, ExitCode::kSuccess);
  EXPECT_NE(scenario().find("half, one and two requests/s per server"), std::string::npos);
  EXPECT_NE(scenario().find("    replicas: 4 "), std::string::npos);
  EXPECT_NE(scenario().find("stages: [{rate: 2, duration: 60}, {rate: 4, duration: 60}, "
                            "{rate: 8, duration: 60}]"),
            std::string::npos)
      << scenario();
}

// Both repeat the configuration of the assumed router.
TEST_F(Init, ResultsAndTheReplacedScenarioAreNoInputs) {
  write("deployment.yaml", deployment());
  write("load.yaml", kLoad);
  const std::string folder = path("");
  ASSERT_EQ(run({"init", folder, "-o", path("scenario.yaml")}).code, ExitCode::kSuccess);
  const std::string first = scenario();
  ASSERT_NE(first.find("EndpointPickerConfig"), std::string::npos);
  ASSERT_EQ(run({"run", path("scenario.yaml"), "-q", "-o", "json=" + path("run.json")}).code,
            ExitCode::kSuccess);
  const Result again = run({"init", folder, "-o", path("scenario.yaml"), "--force"});
  ASSERT_EQ(again.code, ExitCode::kSuccess) << again.errors;
  EXPECT_EQ(scenario(), first);
  EXPECT_NE(again.errors.find("not used: run.json: routesim's own result\n"), std::string::npos)
      << again.errors;
  write("mine.yaml", first.substr(first.find("name:")));
  write("sweep.yaml", "scenario: scenario.yaml\naxes: {replicas: [1, 2]}\n");
  for (const auto& [file, kind, command] : std::vector<std::array<std::string, 3>>{
           {"run.json", "result", "report run.json --output PAGE.html"},
           {"sweep.yaml", "sweep", "sweep sweep.yaml"},
           {"mine.yaml", "scenario", "run mine.yaml"}}) {
    EXPECT_EQ(init({file}, {"--force"}).errors,
              file + ":1:1: error: is a " + kind +
                  ", not a configuration of a router\n  hint: " + "routesim " + command + "\n");
  }
}

/// A worker of Dynamo beside its frontend.
std::string graph(const std::string& module) {
  return "apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraphDeployment\nmetadata: {name: quay}\n"
         "spec:\n  services:\n    Frontend:\n      componentType: frontend\n"
         "      extraPodSpec: {mainContainer: {command: [python3, -m, dynamo.frontend], "
         "args: [--router-mode, kv]}}\n"
         "    Worker:\n      componentType: worker\n      replicas: 5\n"
         "      resources: {limits: {gpu: \"2\"}}\n"
         "      extraPodSpec: {mainContainer: {command: [python3, -m, " +
         module + "], args: [--model, Qwen/Qwen3-8B, --tp-size, \"2\"]}}\n";
}

TEST_F(Init, ServersThatAreNotReadAreAssumedWithAWarningWhereverTheScenarioIsUsed) {
  write("graph.yaml", graph("dynamo.trtllm"));
  const Result made = init({"graph.yaml"});
  ASSERT_EQ(made.code, ExitCode::kSuccess) << made.errors;
  const std::string warning =
      "scenario.yaml:17:14: warning: cluster.pools[0].assumed: the servers are assumed: Worker "
      "starts TensorRT-LLM, which is not simulated\n"
      "  hint: write the pool that you have, and leave this key out\n";
  EXPECT_NE(
      scenario().find("  - name: Worker   # assumed: starts TensorRT-LLM, which is not simulated\n"
                      "    assumed: Worker starts TensorRT-LLM, which is not simulated\n"
                      "    replicas: 5   # assumed: "),
      std::string::npos)
      << scenario();
  EXPECT_NE(scenario().find("    model: Qwen/Qwen3-8B   # assumed: the servers name it\n"
                            "    tensor_parallel: 2   # assumed: the servers say it\n"),
            std::string::npos);
  EXPECT_NE(made.errors.find(warning), std::string::npos) << made.errors;
  for (const char* command : {"check", "explain", "run"}) {
    const Result used = run({command, path("scenario.yaml")});
    EXPECT_EQ(used.code, ExitCode::kSuccess) << command << used.errors;
    EXPECT_NE((used.errors + used.out).find("the servers are assumed: Worker starts TensorRT-LLM"),
              std::string::npos)
        << command << used.errors;
  }
  // Servers of vLLM are read: nothing is assumed about them.
  write("vllm.yaml",
        "apiVersion: nvidia.com/v1beta1\nkind: DynamoGraphDeployment\n"
        "metadata: {name: quay}\nspec:\n  components:\n  - name: Worker\n"
        "    replicas: 5\n    podTemplate: {spec: {containers: [{name: main, command: "
        "[python3, -m, dynamo.vllm], args: [--model, Qwen/Qwen3-8B]}]}}\n");
  const Result read = init({"vllm.yaml"}, {"--force"});
  ASSERT_EQ(read.code, ExitCode::kSuccess) << read.errors;
  EXPECT_EQ(read.errors.find("the servers are assumed"), std::string::npos) << read.errors;
  EXPECT_EQ(origin("cluster.pools[0].replicas"), "cluster.pools[0].replicas 5 vllm.yaml:7:15");
}

TEST_F(Init, ServersOfAnotherEngineAloneAreAnErrorThatBeginsThePool) {
  write("trt.yaml",
        "kind: Deployment\napiVersion: apps/v1\nmetadata: {name: skiff}\nspec:\n"
        "  replicas: 2\n  template: {spec: {containers: [{name: server, command: "
        "[trtllm-serve], args: [serve, Qwen/Qwen3-8B, --tp_size, \"2\"]}]}}\n");
  const std::string said =
      "trt.yaml:6:34: error: starts TensorRT-LLM, which is not simulated\n"
      "  hint: write the pool by hand, to begin with: {name: skiff, replicas: 2, model: "
      "Qwen/Qwen3-8B, tensor_parallel: 2}\n";
  EXPECT_EQ(init({"trt.yaml"}).errors, said);
  write("s.yaml",
        "name: s\nworkload: {groups: {requests: 1, rate: 1}}\n"
        "cluster: {pools: [{accelerator: H100-SXM, vllm_serve: trt.yaml}]}\n");
  EXPECT_NE(
      run({"run", path("s.yaml")})
          .errors.find("cluster.pools[0].vllm_serve: starts TensorRT-LLM, which is not simulated"),
      std::string::npos);
  write("other.yaml",
        "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: r}\n---\n"
        "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: s}\n");
  EXPECT_TRUE(
      init({"other.yaml"})
          .errors.starts_with("other.yaml: error: holds no servers, no router and no load\n"))
      << "an autoscaler alone has nothing to scale";
}

TEST_F(Init, AProfileOfAnotherDeviceIsRefused) {
  const auto model = [](const std::string& profile) {
    return "apiVersion: kubeai.org/v1\nkind: Model\nmetadata: {name: skiff}\nspec:\n"
           "  url: hf://Qwen/Qwen3-0.6B\n  engine: VLLM\n  resourceProfile: " +
           profile + "\n  minReplicas: 2\n";
  };
  for (const char* profile : {"cpu:6", "google-tpu-v5e-1x1:1", "intel-gaudi2:1", "aws-neuron:2"}) {
    write("model.yaml", model(profile));
    EXPECT_TRUE(init({"model.yaml"}, {"--force"})
                    .errors.starts_with("model.yaml:7:20: error: asks for " + std::string(profile) +
                                        ", and no file names an accelerator"))
        << profile;
  }
  for (const auto& [profile, accelerator] :
       std::vector<std::pair<std::string, std::string>>{{"nvidia-gpu-h100:1", "H100-SXM"},
                                                        {"nvidia-gpu-own:1", "H100-SXM"},
                                                        {"amd-gpu-own:1", "MI300X"}}) {
    write("model.yaml", model(profile));
    ASSERT_EQ(init({"model.yaml"}, {"--force"}).code, ExitCode::kSuccess) << profile;
    EXPECT_TRUE(origin("cluster.pools[0].accelerator").find(" " + accelerator + " ") !=
                std::string::npos)
        << origin("cluster.pools[0].accelerator");
  }
}

// llm-d/llm-d-benchmark, config/scenarios/cicd: the list `scenario` is no key of a study then.
TEST_F(Init, AScenarioOfABenchmarkWithoutARouterIsItsServers) {
  write("stack.yaml",
        "scenario:\n- name: lagoon\n  common: {model: {huggingfaceId: Qwen/Qwen3-8B}}\n"
        "  modelservice: {decode: {enabled: true, replicas: 3}}\n");
  const Result made = init({"stack.yaml"});
  ASSERT_EQ(made.code, ExitCode::kSuccess) << made.errors;
  EXPECT_EQ(origin("cluster.pools[0].replicas"), "cluster.pools[0].replicas 3 stack.yaml:4:52");
}

TEST_F(Init, ADeviceIsReadToItsLimitOnly) {
  write("kustomization.yaml", "resources: [/dev/zero]\n");
  EXPECT_NE(run({"init", path(".")}).errors.find("/dev/zero is larger than the limit of 16 MiB"),
            std::string::npos);
  const auto said = [&](const std::string& lines) {
    write("s.yaml", "name: s\n" + lines);
    return run({"check", path("s.yaml")}).errors;
  };
  const std::string pool = "cluster: {pools: [{accelerator: H100-SXM, model: Qwen3-8B}]}\n";
  const std::string load = "workload: {groups: {requests: 1, rate: 1}}\n";
  EXPECT_NE(said(load + pool + "routing: {config: /dev/zero}\n")
                .find("routing.config: /dev/zero is larger than the limit of 16 MiB"),
            std::string::npos);
  EXPECT_NE(said(load + "cluster: {pools: [{accelerator: H100-SXM, vllm_serve: "
                        "{config: /dev/zero, model: Qwen3-8B}}]}\n")
                .find("s.yaml:3:56: error: cluster.pools[0].vllm_serve: names a second file, which "
                      "vLLM does not read"),
            std::string::npos);
  EXPECT_NE(said("workload: {trace: {file: /dev/zero, format: mooncake}}\n" + pool)
                .find("/dev/zero is a device, and the file is read more than once"),
            std::string::npos);
}

TEST_F(Init, AManifestWhosePathHasABlankIsAManifest) {
  write("my servers/the deployment.yaml", deployment());
  const Result made = init({"my servers/the deployment.yaml"});
  ASSERT_EQ(made.code, ExitCode::kSuccess) << made.errors;
  EXPECT_EQ(origin("cluster.pools[0].replicas"),
            "cluster.pools[0].replicas 2 my servers/the deployment.yaml:5:13");
}

TEST_F(Init, NoInputIsReplacedByForce) {
  write("deployment.yaml", deployment());
  write("k8s/kustomization.yaml", "resources: [deployment.yaml]\n");
  write("k8s/deployment.yaml", deployment());
  std::filesystem::create_symlink(path("deployment.yaml"), path("link.yaml"));
  std::filesystem::create_symlink(path("k8s/deployment.yaml"), path("resource.yaml"));
  for (const auto& [input, output, named] : std::vector<std::array<std::string, 3>>{
           {"deployment.yaml", "deployment.yaml", "deployment.yaml"},
           {"deployment.yaml", "link.yaml", "deployment.yaml"},
           {"k8s", "resource.yaml", "k8s/deployment.yaml"},
           {"k8s", "k8s/kustomization.yaml", "k8s/kustomization.yaml"}}) {
    const Result made = run({"init", path(input), "-o", path(output), "--force"});
    EXPECT_EQ(made.code, ExitCode::kInvalid) << output;
    EXPECT_NE(made.errors.find("cannot write " + output + ": it would replace " + named +
                               ", which the scenario reads"),
              std::string::npos)
        << made.errors;
    EXPECT_EQ(run({"init", path("deployment.yaml"), "-o", "-"}).code, ExitCode::kSuccess);
  }
}

TEST_F(Init, ARouterThatIsNotTakenIsNamed) {
  const std::string model =
      "apiVersion: kubeai.org/v1\nkind: Model\nmetadata: {name: qwen}\nspec:\n  engine: VLLM\n"
      "  url: hf://Qwen/Qwen3-8B\n  resourceProfile: nvidia-gpu-l4:1\n  minReplicas: 3\n"
      "  loadBalancing: {strategy: PrefixHash}\n";
  write("a.yaml", model);
  write("b.yaml", model);
  write("load.yaml", kLoad);
  const Result made = init({"a.yaml", "b.yaml", "load.yaml"});
  ASSERT_EQ(made.code, ExitCode::kSuccess) << made.errors;
  EXPECT_NE(made.errors.find("not used: b.yaml: the router, because a.yaml has one\n"),
            std::string::npos)
      << made.errors;
  write("pd.yaml", deployment({}, "qwen-prefill") + "---\n" + deployment({}, "qwen-decode"));
  write("router.sh",
        "python3 -m sglang_router.launch_router --pd-disaggregation --policy round_robin "
        "--prefill http://p --decode http://d\n");
  const Result same = init({"pd.yaml", "router.sh", "load.yaml"}, {"--force"});
  ASSERT_EQ(same.code, ExitCode::kSuccess) << same.errors;
  EXPECT_NE(same.errors.find("not used: router.sh: smg-round-robin is the baseline already\n"),
            std::string::npos)
      << same.errors;
}

TEST_F(Init, ProseAndRecordedSessionsGetTheirHints) {
  write("README.md", "Start it with\n```\nvllm serve `cat model`\nvllm bench serve `x`\n```\n");
  EXPECT_TRUE(init({"README.md"})
                  .errors.starts_with(
                      "README.md: error: is nothing that a scenario can be written from\n"));
  const std::string session =
      "{\"id\": \"s\", \"block_size\": 64, \"requests\": [{\"t\": 0, \"type\": \"n\", "
      "\"in\": 64, \"out\": 2, \"hash_ids\": [1]}]}\n";
  for (const char* name : {"s.jsonl", "s.json"}) {
    write(name, session);
    EXPECT_EQ(init({name}).errors,
              std::string(name) +
                  ": error: holds recorded sessions, which a file of inference-perf replays\n"
                  "  hint: name a load file that has data.type: weka_trace_replay and lists it in "
                  "data.weka_trace_replay.trace_files\n");
  }
}

TEST_F(Init, PrefillAndDecodeBecomePoolsBehindABaselineThatReachesBoth) {
  write("pd.yaml", deployment({}, "qwen-prefill") + "---\n" + deployment({}, "qwen-decode"));
  write("load.yaml", kLoad);
  const Result made = init({"pd.yaml", "load.yaml"});
  ASSERT_EQ(made.code, ExitCode::kSuccess) << made.errors;
  EXPECT_NE(scenario().find("  - name: qwen-prefill\n    role: prefill\n    vllm_serve: pd.yaml\n"),
            std::string::npos);
  EXPECT_NE(scenario().find("  - name: qwen-decode\n    role: decode\n"), std::string::npos);
  EXPECT_NE(scenario().find("routing: {balancer: smg-round-robin}"), std::string::npos);
}

TEST_F(Init, AKustomizeFolderIsServersAndItsConfigMapTheRouter) {
  write("load.yaml", kLoad);
  write("base/deployment.yaml", deployment());
  write("base/kustomization.yaml", "resources: [deployment.yaml]\n");
  write("k8s/kustomization.yaml",
        "resources: [../base]\nreplicas: [{name: qwen, count: 5}]\n"
        "configMapGenerator: [{name: epp, files: [plugins.yaml]}]\n");
  write("k8s/plugins.yaml", kPicker);
  const Result made = init({"k8s", "load.yaml"});
  ASSERT_EQ(made.code, ExitCode::kSuccess) << made.errors;
  EXPECT_NE(scenario().find("    vllm_serve: k8s\n"), std::string::npos);
  EXPECT_NE(scenario().find("    endpoint_picker: k8s/plugins.yaml\n"), std::string::npos);
  EXPECT_EQ(origin("cluster.pools[0].replicas"),
            "cluster.pools[0].replicas 5 k8s/kustomization.yaml:2:32");
}

TEST_F(Init, WhatAKustomizationDoesNotListIsNamed) {
  write("k8s/kustomization.yaml", "resources: [deployment.yaml]\npatches: [{path: patch.yaml}]\n");
  write("k8s/deployment.yaml", deployment());
  write("k8s/patch.yaml", "kind: Deployment\nmetadata: {name: qwen}\nspec: {replicas: 3}\n");
  write("k8s/extra.yaml", deployment({}, "extra"));
  write("k8s/notes.txt", "Ask the team.\n");
  write("k8s/load.yaml", kLoad);
  const Result made = init({"k8s"});
  ASSERT_EQ(made.code, ExitCode::kSuccess) << made.errors;
  EXPECT_NE(scenario().find("  inference_perf: k8s/load.yaml\n"), std::string::npos);
  EXPECT_NE(made.errors.find(
                "not used: k8s/extra.yaml, k8s/notes.txt: not listed in kustomization.yaml\n"),
            std::string::npos)
      << made.errors;
}

TEST_F(Init, AFolderIsReadFileByFileAndWhatIsNotUsedIsNamed) {
  write("all/deployment.yaml", deployment());
  write("all/load.yaml", kLoad);
  write("all/notes.txt", "Measure with vllm bench serve; see the team's (long) page.\n");
  write("all/service.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n");
  const Result made = init({"all"});
  ASSERT_EQ(made.code, ExitCode::kSuccess) << made.errors;
  EXPECT_NE(made.errors.find("not used: all/notes.txt, all/service.yaml: neither"),
            std::string::npos)
      << made.errors;
  EXPECT_EQ(made.errors.find("folder"), std::string::npos) << made.errors;
  write("all/router/epp.yaml", kPicker);
  write("all/old/epp.yaml", kPicker);
  const Result nested = init({"all", "all/router/epp.yaml"}, {"--force"});
  ASSERT_EQ(nested.code, ExitCode::kSuccess) << nested.errors;
  EXPECT_NE(
      nested.errors.find("not used: all/old: inside another folder; read when it is named, too\n"),
      std::string::npos)
      << nested.errors;
}

TEST_F(Init, ErrorsComeAllAtOnce) {
  write("a.yaml", kLoad);
  write("b.yaml", kLoad);
  write("other.yaml", "some: thing\n");
  write("broken.yaml", "a: [1\n");
  const Result made = init({"a.yaml", "b.yaml", "other.yaml", "broken.yaml", "missing.yaml"});
  EXPECT_EQ(made.code, ExitCode::kInvalid);
  for (const char* error : {"b.yaml: error: is a second load, beside a.yaml\n",
                            "other.yaml: error: is nothing that a scenario can be written from\n",
                            "broken.yaml:2:1: error: ", "missing.yaml: error: is not there\n"})
    EXPECT_NE(made.errors.find(error), std::string::npos) << made.errors;
  EXPECT_FALSE(std::filesystem::exists(path("scenario.yaml")));
  write("c.yaml", kLoad);
  EXPECT_TRUE(init({"a.yaml", "b.yaml", "c.yaml"})
                  .errors.starts_with("b.yaml: error: is a second load, beside a.yaml, c.yaml\n"));
  const Result empty = init({"other.yaml"});
  EXPECT_EQ(empty.code, ExitCode::kInvalid);
}

TEST_F(Init, AModelThatIsNotKnownIsAnErrorInTheUsersFile) {
  std::string text = deployment();
  text.replace(text.find("Qwen/Qwen3-8B"), 13, "acme/secret-model");
  write("deployment.yaml", text);
  write("load.yaml", kLoad);
  const Result made = init({"deployment.yaml", "load.yaml"});
  EXPECT_EQ(made.code, ExitCode::kInvalid);
  EXPECT_NE(made.errors.find("deployment.yaml:11:"), std::string::npos) << made.errors;
  EXPECT_FALSE(std::filesystem::exists(path("scenario.yaml")));
}

TEST(NodeNames, CloudsAndDriversNamesLeadToTheCatalogue) {
  for (const auto& [name, accelerator] :
       std::vector<std::pair<std::string, std::string>>{{"p5.48xlarge", "H100-SXM"},
                                                        {"p5en.48xlarge", "H200"},
                                                        {"standard_nd96isr_h100_v5", "H100-SXM"},
                                                        {"nvidia-tesla-a100", "A100-40"},
                                                        {"NVIDIA-A100-SXM4-80GB", "A100-80"},
                                                        {"AMD_Instinct_MI300X_OAM", "MI300X"},
                                                        {"h100", "H100-SXM"},
                                                        {"linux", ""},
                                                        {"p5", ""},
                                                        {"", ""}})
    EXPECT_EQ(accelerator_of_node(name), accelerator) << name;
}

TEST(NodeNames, TheTableNamesAcceleratorsOfTheCatalogueAndEachNodeOnce) {
  Diagnostics d;
  const auto root =
      read_config_file(std::string(ROUTESIM_SOURCE_DIR) + "/scenarios/catalogs/nodes.yaml", d);
  ASSERT_NE(root, nullptr);
  std::set<std::string> seen;
  for (const ConfigNode::Ptr& row : root->child("nodes")->items()) {
    const std::string& accelerator = row->child("accelerator")->text();
    const auto* known = builtin_catalogue().find_accelerator(accelerator);
    ASSERT_NE(known, nullptr) << accelerator;
    EXPECT_EQ(known->name, accelerator);
    for (const ConfigNode::Ptr& name : row->child("names")->items()) {
      EXPECT_TRUE(seen.insert(name->text()).second) << name->text();
      // A name that stands for a rest is no beginning of another row's name.
      std::string node = name->text();
      if (node.ends_with('*')) node.back() = '9';
      EXPECT_EQ(accelerator_of_node(node), accelerator) << node;
    }
  }
}

}  // namespace
}  // namespace routesim::tools
