// Server starts inside manifests, Helm values, KubeAI models and compose files.
#include "tools/ingest/servers/vllm_serve_files.h"

#include <gtest/gtest.h>

#include "tests/base/messages.h"
#include "tests/tools/command_fixture.h"
#include "tools/ingest/scenario/scenario_yaml.h"
#include "tools/ingest/tree/parse_config.h"

namespace routesim::tools {
namespace {

/// `name/role xreplicas: flags | words` of every start in the text.
std::string starts(const std::string& text) {
  Diagnostics d;
  const ConfigNode::Ptr root = parse_manifest(text, {.file = "f.yaml"}, d);
  EXPECT_NE(root, nullptr) << messages_of(d);
  if (root == nullptr) return "unread";
  std::string out;
  for (const ServerStart& start : starts_in_tree(root, "key", d)) {
    out += start.name + "/" + start.role;
    if (!start.unread.empty()) out += " " + start.unread;
    if (start.engine == sim::EngineKind::kSglang) out += " sglang";
    if (start.replicas != nullptr) out += " x" + start.replicas->text();
    out += ":";
    for (const auto& flag : start.flags) out += " " + flag.key + "=" + flag.value->text();
    out += start.image.text.empty() ? " |" : " " + start.image.text + " |";
    for (const ShellWord& word : start.words)
      out += " " + std::string(word.unknown.empty() ? "" : "?") + word.text;
    out += "\n";
  }
  return out + messages_of(d);
}

TEST(ServeFiles, DeploymentWithCommandAndArgs) {
  EXPECT_EQ(starts(R"(
apiVersion: apps/v1
kind: Deployment
metadata: {name: qwen}
spec:
  replicas: 3
  template:
    spec:
      initContainers:
      - {name: proxy, image: sidecar, args: [--vllm-port=8200]}
      containers:
      - {name: metrics, image: exporter, args: [--port=9000]}
      - name: vllm
        image: vllm/vllm-openai:v0.11.0
        command: [python3, -m, vllm.entrypoints.openai.api_server]
        args: [--model, Qwen/Qwen3-32B, --port, $(PORT), --max-num-seqs=$(SEQS)]
        env:
        - {name: SEQS, value: "64"}
        - {name: SECRET, valueFrom: {secretKeyRef: {name: a, key: b}}}
---
apiVersion: v1
kind: Service
metadata: {name: qwen}
)"),
            "qwen/ x3: vllm/vllm-openai:v0.11.0 | --model Qwen/Qwen3-32B --port ?$(PORT) "
            "--max-num-seqs=64\n");
}

TEST(ServeFiles, ReplicasThatAreNoNumberAreKeptToBeRefused) {
  Diagnostics d;
  const auto root = parse_config(R"(
kind: Deployment
spec:
  replicas: []
  template: {spec: {containers: [{image: "vllm/vllm-openai:v0.11.0", args: [--model, m]}]}}
)",
                                 {.file = "f.yaml"}, d);
  const auto starts = starts_in_tree(root, "key", d);
  ASSERT_EQ(starts.size(), 1U) << messages_of(d);
  ASSERT_NE(starts[0].replicas, nullptr);
  EXPECT_TRUE(starts[0].replicas->is_sequence());
  EXPECT_EQ(starts[0].replicas->where().line, 4);
}

// Shortened from llm-d's guides/wide-ep-lws/modelserver/gpu/vllm/base/decode.yaml.
TEST(ServeFiles, ShellScriptInALeaderWorkerSet) {
  EXPECT_EQ(starts(R"(
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: wide, labels: {llm-d.ai/role: decode}}
spec:
  replicas: 2
  leaderWorkerTemplate:
    size: 4
    workerTemplate:
      spec:
        containers:
        - name: vllm
          command: [/bin/bash, -c]
          args:
          - |-
            START_RANK=$(( ${LWS_WORKER_INDEX:-0} * DP_SIZE_LOCAL ))
            exec vllm serve \
              org/model -dp $((LWS_GROUP_SIZE * DP_SIZE_LOCAL)) \
              --data-parallel-start-rank $START_RANK -dpa ${LWS_LEADER_ADDRESS} -tp $TP
          env: [{name: DP_SIZE_LOCAL, value: "8"}, {name: TP, value: "1"}]
)"),
            "wide/decode x2: | org/model -dp 32 --data-parallel-start-rank 0 -dpa "
            "?${LWS_LEADER_ADDRESS} -tp 1\n");
}

TEST(ServeFiles, TheLeaderHasTheFrontEnd) {
  EXPECT_EQ(starts(R"(
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: two}
spec:
  leaderWorkerTemplate:
    size: 2
    leaderTemplate: {spec: {containers: [{name: l, command: [vllm, serve, a/b, -tp, "8"]}]}}
    workerTemplate: {spec: {containers: [{name: w, command: [vllm, serve, a/b, --headless]}]}}
)"),
            "two/: | a/b -tp 8\n");
}

// The shape of llm-d's
// guides/wide-ep-lws/modelserver/gpu/vllm/disaggregatedset/base/disaggregatedset.yaml.
TEST(ServeFiles, RolesOfADisaggregatedSet) {
  EXPECT_EQ(starts(R"(
kind: DisaggregatedSet
apiVersion: disaggregatedset.x-k8s.io/v1
metadata: {name: pd}
spec:
  roles:
  - name: prefill
    spec:
      replicas: 4
      leaderWorkerTemplate:
        size: 1
        workerTemplate: {spec: {containers: [{name: m, command: [vllm, serve], args: [a/b]}]}}
  - name: decode
    spec:
      replicas: 1
      leaderWorkerTemplate:
        size: 1
        workerTemplate: {spec: {containers: [{name: m, command: [vllm, serve, a/b, -tp=4]}]}}
)"),
            "prefill/prefill x4: | a/b\n"
            "decode/decode x1: | a/b -tp=4\n");
}

TEST(ServeFiles, ValuesOfTheModelserviceChart) {
  EXPECT_EQ(starts(R"(
modelArtifacts: {uri: "hf://Qwen/Qwen3-32B", name: "Qwen/Qwen3-32B"}
routing: {proxy: {enabled: false}}
decode:
  create: true
  replicas: 8
  parallelism: {tensor: 2, data: 16, dataLocal: 8}
  containers:
  - {name: vllm, image: x, modelCommand: vllmServe, args: [-n, '$(LWS_GROUP_SIZE)']}
prefill:
  create: false
  containers:
  - {name: vllm, image: x, modelCommand: vllmServe}
)"),
            "decode/decode x8: model=Qwen/Qwen3-32B tensor-parallel-size=2 data-parallel-size=16 "
            "data-parallel-size-local=8 x | -n 2\n");
  EXPECT_EQ(starts(R"(
modelArtifacts: {uri: "pvc://claim/folder", name: x}
prefill:
  parallelism: {tensor: 4}
  containers:
  - name: vllm
    modelCommand: custom
    command: [/bin/sh, -c]
    args:
    - vllm serve other/model -tp ${TP_SIZE}
)"),
            "prefill/prefill: | other/model -tp 4\n")
      << "a command of its own has no flags from the chart, but its variables";
}

TEST(ServeFiles, OtherCharts) {
  EXPECT_EQ(starts(R"(
servingEngineSpec:
  modelSpec:
  - name: llama3
    repository: vllm/vllm-openai
    modelURL: meta-llama/Llama-3.1-8B-Instruct
    replicaCount: 2
    enableLoRA: true
    vllmConfig:
      v1: 1
      enablePrefixCaching: false
      tensorParallelSize: 2
      extraArgs: [--gpu-memory-utilization, "0.8"]
  - {name: other, modelURL: a/b, lmcacheConfig: {enabled: true}}
routerSpec: {extraArgs: [--model, x], image: vllm/vllm-openai}
)"),
            "llama3/ x2: model=meta-llama/Llama-3.1-8B-Instruct enable-lora=true "
            "enable-prefix-caching=false tensor-parallel-size=2 | --gpu-memory-utilization 0.8\n"
            "other/: model=a/b kv-transfer-config={\"kv_connector\": \"LMCacheConnectorV1\"} |\n");
  EXPECT_EQ(starts(R"(
apiVersion: kubeai.org/v1
kind: Model
metadata: {name: llama}
spec: {url: "hf://a/b", engine: VLLM, minReplicas: 2, args: [--max-model-len=4096]}
---
apiVersion: kubeai.org/v1
kind: Model
metadata: {name: other}
spec: {url: "ollama://a", engine: OLlama}
)"),
            "llama/ x2: model=a/b | --max-model-len=4096\n"
            "f.yaml:7:1: warning: key: other is of kind Model, whose servers are not read\n"
            "  hint: write the pool by hand, to begin with: {name: other}\n");
}

TEST(ServeFiles, TheProductionStacksChartDecidesOnPrefixCaching) {
  const auto stack = [](const std::string& config) {
    return starts("servingEngineSpec: {modelSpec: [{name: m, modelURL: a/b, vllmConfig: " + config +
                  "}]}\n");
  };
  EXPECT_EQ(stack("{maxNumSeqs: 8}"),
            "m/: model=a/b max-num-seqs=8 enable-prefix-caching=false |\n");
  EXPECT_EQ(stack("{enablePrefixCaching: true}"), "m/: model=a/b enable-prefix-caching=true |\n");
}

TEST(ServeFiles, ComposeFilesAndImagesThatStartTheServer) {
  EXPECT_EQ(starts(R"(
services:
  web: {image: nginx, command: [nginx]}
  vllm:
    image: vllm/vllm-openai:latest
    environment: [SEQS=32]
    command: >
      --model ${MODEL:-a/b}
      --max-num-seqs ${SEQS}
)"),
            "vllm/: vllm/vllm-openai:latest | --model a/b --max-num-seqs 32\n");
  EXPECT_EQ(starts("spec: {containers: [{name: m, image: vllm/vllm-openai:v1}]}"),
            "m/: vllm/vllm-openai:v1 |\n");
}

TEST(ServeFiles, OtherServersAreNamedAndSidecarsPassedOver) {
  EXPECT_EQ(starts("spec: {containers: [{name: s, command: [python3, -m, sglang.launch_server], "
                   "args: [--model-path, a/b]}]}"),
            "s/ sglang: | --model-path a/b\n");
  EXPECT_EQ(starts("spec: {containers: [{name: s, args: [--port=8000, --vllm-port=8200]}]}"), "");
  EXPECT_EQ(starts("a: [1, {b: null}]\nargs: 5\nenv: x\ncontainers: {}\nmodelSpec: [1]\n"), "");
}

TEST(ServeFiles, ThePodsLabelsAreTheServers) {
  const char* const manifest = R"(
kind: Deployment
metadata: {name: d, labels: {of: deployment}}
spec:
  template:
    metadata: {labels: {llm-d.ai/role: prefill, context: short}}
    spec: {containers: [{name: m, image: vllm/vllm-openai:v1, args: [a/b]}]}
)";
  Diagnostics d;
  const auto found = starts_in_tree(parse_manifest(manifest, {.file = "f.yaml"}, d), "key", d);
  ASSERT_EQ(found.size(), 1U);
  std::string labels;
  for (const ConfigNode::Ptr& label : found.front().labels) labels += label->text() + " ";
  EXPECT_EQ(labels, "llm-d.ai/role=prefill context=short ");
}

class ServeManifest : public testing::FolderTest {
 protected:
  /// The pool in a scenario that names `deploy.yaml`.
  sim::PoolConfig pool(const std::string& keys) {
    const std::string file = write("s.yaml",
                                   "name: s\nworkload: {groups: {requests: 10, rate: 5}}\n"
                                   "cluster:\n  pools:\n  - {accelerator: H200, " +
                                       keys + ", vllm_serve: deploy.yaml}\n");
    diagnostics_ = {};
    return load_scenario({.path = file, .sets = {}, .variants = {}, .seed = {}}, diagnostics_)
        .variants.at(0)
        .scenario.cluster.pools.at(0);
  }

  Diagnostics diagnostics_;
};

constexpr const char* kTwoServers = R"(
apiVersion: apps/v1
kind: Deployment
metadata: {name: ms-prefill}
spec:
  replicas: 4
  template: {spec: {containers: [{name: vllm, command: [vllm, serve, a/b, -tp, "1"]}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: ms-decode}
spec:
  replicas: 2
  template: {spec: {containers: [{name: vllm, command: [vllm, serve, a/b, -tp, "4"]}]}}
)";

TEST_F(ServeManifest, RoleOrNameChooseTheServer) {
  write("deploy.yaml", kTwoServers);
  EXPECT_EQ(pool("role: prefill").replicas, 4);
  EXPECT_EQ(pool("role: decode").tensor_parallel, 4);
  EXPECT_EQ(pool("name: ms-decode").replicas, 2);
  EXPECT_EQ(pool("name: prefill").tensor_parallel, 1);
  EXPECT_EQ(pool("role: decode, replicas: 7").replicas, 7);
  EXPECT_EQ(messages_of(diagnostics_), "");
  pool("name: other");
  EXPECT_NE(
      messages_of(diagnostics_).find("starts several servers: ms-prefill (prefill), ms-decode"),
      std::string::npos)
      << messages_of(diagnostics_);
}

// A value that changes nothing is no news.
TEST_F(ServeManifest, KeysOfALifeThatIsNotSimulatedAreNamed) {
  const auto said = [this](const std::string& keys) {
    write("deploy.yaml",
          "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: s}\nspec:\n  " + keys +
              "\n  template: {spec: {containers: [{name: vllm, command: [vllm, serve, a/b]}]}}\n");
    pool("name: s");
    return messages_of(diagnostics_);
  };
  EXPECT_EQ(said("minReadySeconds: 30\n  podManagementPolicy: Parallel\n  updateStrategy: {type: "
                 "RollingUpdate, rollingUpdate: {partition: 0}}"),
            "");
  const std::string all = said(
      "podManagementPolicy: OrderedReady\n  updateStrategy: {type: "
      "OnDelete, rollingUpdate: {partition: 2}}");
  for (const char* const part :
       {"podManagementPolicy OrderedReady is not simulated: pods start and end side by side",
        "updateStrategy OnDelete is not simulated: a roll-out replaces every pod",
        "partition 2 is not simulated: a roll-out replaces every pod"})
    EXPECT_NE(all.find(part), std::string::npos) << all;
}

// kserve/kserve, docs/samples/llmisvc: the controller writes the command.
TEST(ServeFiles, AServiceOfKServeIsItsServersWithTheFlagsOfItsController) {
  EXPECT_EQ(starts(R"(
apiVersion: serving.kserve.io/v1alpha2
kind: LLMInferenceService
metadata: {name: tern}
spec:
  model: {uri: "hf://Qwen/Qwen3-8B", name: tern-chat, lora: {adapters: [], maxAdapters: 4}}
  replicas: 3
  parallelism: {tensor: 2, expert: true}
  kvCacheOffloading: {cpu: 10Gi}
  router: {scheduler: {template: {containers: [{name: main, image: x/epp, args: [--v=2]}]}}}
  template:
    containers:
    - name: main
      image: vllm/vllm-openai:v0.19.1
      args: [--block-size, "64"]
      env: [{name: VLLM_ADDITIONAL_ARGS, value: "--max-model-len 8k --enforce-eager"}]
)"),
            "tern/ x3: model=Qwen/Qwen3-8B enable-lora=true max-loras=4 tensor-parallel-size=2 "
            "enable-expert-parallel=true kv-offloading-size=10 vllm/vllm-openai:v0.19.1 | "
            "--block-size 64 --max-model-len 8k --enforce-eager\n");
}

TEST(ServeFiles, PrefillAndConfigurationsOfKServe) {
  const std::string service = R"(
kind: LLMInferenceService
metadata: {name: tern}
spec:
  model: {uri: "pvc://disk/weights", name: Qwen/Qwen3-8B}
  baseRefs: [{name: shared}]
  prefill:
    replicas: 2
    template: {containers: [{name: main, env: [{name: VLLM_ADDITIONAL_ARGS, value: -tp 2}]}]}
)";
  EXPECT_EQ(starts(service + R"(---
kind: LLMInferenceServiceConfig
metadata: {name: shared}
spec: {replicas: 5, template: {containers: [{name: main, args: [--block-size=32]}]}}
)"),
            "tern/decode x5: model=Qwen/Qwen3-8B | --block-size=32\n"
            "tern-prefill/prefill x2: model=Qwen/Qwen3-8B | -tp 2\n");
  const std::string alone = starts(service);
  EXPECT_NE(alone.find("f.yaml:6:14: warning: key: names a configuration that this file does not "
                       "hold, so its settings are not known (got 'shared')"),
            std::string::npos)
      << alone;
}

// llm-d/llm-d-benchmark, config/scenarios: defaults come from config/templates.
TEST(ServeFiles, AStackOfABenchmarkIsItsModelServers) {
  const std::string stack = R"(
scenario:
- name: lagoon
  common:
    model: {name: Qwen/Qwen3-8B, huggingfaceId: Qwen/Qwen3-8B, maxModelLen: 4096, blockSize: 32}
    vllmCommon: {flags: {enforceEager: false}}
    images: {vllm: {repository: vllm/vllm-openai, tag: v0.19.1}}
  modelservice:
    decode:
      replicas: 6
      parallelism: {tensor: 2}
      vllm: {additionalFlags: ["--max-num-seqs 64"]}
    prefill:
      enabled: true
      replicas: 2
      vllm:
        customCommand: |
          ${accelerator.runtimePreamble}
          vllm serve /model-cache/$MODEL_PATH --served-model-name $MODEL_NAME \
            --block-size $VLLM_BLOCK_SIZE ${accelerator.dtypeArgs} --max-num-seq $VLLM_MAX_NUM_SEQ
)";
  EXPECT_EQ(starts(stack),
            "lagoon/prefill x2: vllm/vllm-openai:v0.19.1 | /model-cache/model "
            "--served-model-name Qwen/Qwen3-8B --block-size 32 --max-num-seq 256\n"
            "lagoon/decode x6: model=Qwen/Qwen3-8B block-size=32 max-model-len=4096 "
            "gpu-memory-utilization=0.95 tensor-parallel-size=2 vllm/vllm-openai:v0.19.1 | "
            "--max-num-seqs 64\n");
  EXPECT_NE(starts(stack + "- name: second\n").find("f.yaml:21:3: error: key: is one stack more"),
            std::string::npos);
  EXPECT_EQ(starts("scenario: [{name: a, kustomize: {enabled: true}}]\n"),
            "a/ is deployed by kustomize, so that its servers are not in this file: |\n");
}

// ai-dynamo/dynamo, recipes: both versions of the graph.
TEST(ServeFiles, WorkersOfDynamoAreServers) {
  EXPECT_EQ(starts(R"(
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: quay}
spec:
  services:
    Frontend:
      componentType: frontend
      replicas: 1
      extraPodSpec: {mainContainer: {command: [python3, -m, dynamo.frontend]}}
    First:
      componentType: worker
      subComponentType: prefill
      replicas: 3
      resources: {limits: {gpu: "1"}}
      envs: [{name: SIZE, value: "64"}]
      extraPodSpec:
        mainContainer:
          command: [python3, -m, dynamo.vllm]
          args: [--model, Qwen/Qwen3-8B, --is-prefill-worker, --block-size, $(SIZE)]
    Second:
      componentType: worker
      replicas: 1
      extraPodSpec:
        mainContainer:
          command: [bash, -lc]
          args: ["python3 -m dynamo.vllm --model Qwen/Qwen3-8B --disaggregation-mode decode -tp 2"]
)"),
            "First/prefill x3: | --model Qwen/Qwen3-8B --is-prefill-worker --block-size 64\n"
            "Second/decode x1: | --model Qwen/Qwen3-8B --disaggregation-mode decode -tp 2\n");
  EXPECT_EQ(starts(R"(
apiVersion: nvidia.com/v1beta1
kind: DynamoGraphDeployment
metadata: {name: quay}
spec:
  env: [{name: MODEL, value: Qwen/Qwen3-8B}]
  components:
  - name: Frontend
    type: frontend
    podTemplate: {spec: {containers: [{name: main, command: [python3, -m, dynamo.frontend]}]}}
  - name: Workers
    type: decode
    replicas: 5
    podTemplate:
      spec:
        containers:
        - {name: main, command: [python3, -m, dynamo.vllm], args: [--model, $(MODEL)]}
)"),
            "Workers/decode x5: | --model Qwen/Qwen3-8B\n");
}

TEST(ServeFiles, EveryMultiplierOfReplicasCounts) {
  const auto pods = [](const std::string& name, const std::string& replicas) {
    return "kind: Deployment\nmetadata: {name: " + name + "}\nspec: {" + replicas +
           "template: {spec: {containers: [{name: c, args: [vllm, serve, m]}]}}}\n---\n";
  };
  const auto set = [](const std::string& kind, const std::string& copies) {
    return "kind: " + kind + "\nmetadata: {name: s}\nspec:\n  " + copies +
           "\n  template: {spec: {roles: [{name: a, replicas: 2, template: {spec: {containers: "
           "[{name: c, args: [vllm, serve, m]}]}}}]}}\n";
  };
  EXPECT_EQ(starts(set("DisaggregatedSet", "slices: 3")), "a/ x6: | m\n");
  EXPECT_EQ(starts(set("StormService", "replicas: 4")), "a/ x8: | m\n");
  // kubernetes-sigs/lws, DisaggregatedSetRoleScaler: SET-ROLE is what an autoscaler scales.
  const std::string external =
      "kind: DisaggregatedSet\nmetadata: {name: s}\nspec: {roles: [{name: a, scaling: {mode: "
      "External}, spec: {replicas: 9, leaderWorkerTemplate: {workerTemplate: {spec: {containers: "
      "[{name: c, args: [vllm, serve, m]}]}}}}}]}\n";
  EXPECT_EQ(starts(external), "a/ x1: | m\n");
  EXPECT_EQ(starts(external + "---\nkind: HorizontalPodAutoscaler\nmetadata: {name: x}\n"
                              "spec: {scaleTargetRef: {name: s-a}, minReplicas: 4}\n"),
            "a/ x4: | m\n");
  const std::string scalers =
      "kind: HorizontalPodAutoscaler\nmetadata: {name: x}\n"
      "spec: {scaleTargetRef: {name: web}, minReplicas: 4, maxReplicas: 9}\n---\n"
      "kind: ScaledObject\nmetadata: {name: y}\n"
      "spec: {scaleTargetRef: {name: none}, minReplicaCount: 2}\n";
  EXPECT_EQ(starts(pods("web", "replicas: 2, ") + pods("big", "replicas: 9, ") + pods("none", "") +
                   scalers),
            "web/ x4: | m\nbig/ x9: | m\nnone/ x2: | m\n");
  EXPECT_EQ(
      starts("decode: {replicas: 1, autoscaling: {enabled: true, minReplicas: 3}, containers: "
             "[{name: c, args: [vllm, serve, m]}]}\n"),
      "decode/decode x3: | m\n");
}

TEST(ServeFiles, OtherEnginesAreNamedWithWhatTheirFlagsSay) {
  const auto pod = [](const std::string& name, const std::string& container) {
    return "kind: Deployment\nmetadata: {name: " + name +
           "}\nspec: {replicas: 2, template: {spec: {containers: [{name: c, " + container +
           "}]}}}\n---\n";
  };
  EXPECT_EQ(
      starts(pod("a",
                 "command: [python3, -m, sglang.launch_server], args: [--model-path, "
                 "Qwen/Qwen3-8B, --tp=2]") +
             pod("b", "command: [sh, -c, 'if x; then trtllm-serve serve m/x --tp_size 4; fi']") +
             pod("c", "image: 'lmsysorg/sglang:v0.5', args: [--model-path, x]")),
      "a/ sglang x2: | --model-path Qwen/Qwen3-8B --tp=2\n"
      "c/ sglang x2: lmsysorg/sglang:v0.5 | --model-path x\n"
      "f.yaml:7:52: warning: key: b starts TensorRT-LLM, which is not simulated\n"
      "  hint: write the pool by hand, to begin with: {name: b, replicas: 2, model: m/x, "
      "tensor_parallel: 4}\n");
  EXPECT_EQ(starts(pod("d", "command: [./go], resources: {limits: {nvidia.com/gpu: 1}}")),
            "d/ asks for nvidia.com/gpu and starts no program that is known x2: |\n");
  EXPECT_EQ(starts(pod("d", "command: [./go]")), "");
  EXPECT_EQ(starts("kind: RayService\nmetadata: {name: r}\nspec: {serveConfigV2: x}\n"),
            "r/ is of kind RayService, whose servers are not read: |\n");
  // Beside servers that are read, the others are warnings.
  EXPECT_EQ(starts(pod("a", "args: [vllm, serve, m]") + pod("b", "args: [ollama, serve]")),
            "a/ x2: | m\n"
            "f.yaml:7:52: warning: key: b starts Ollama, which is not simulated\n"
            "  hint: write the pool by hand, to begin with: {name: b, replicas: 2}\n");
}

// vllm-project/aibrix, samples/deepseek-r1: Ray's workers have the image of the head. Dynamo's
// frontend may have that of an engine, and llm-d renders prompts with vLLM's image.
TEST(ServeFiles, ProgramsBesideEnginesAreNoServers) {
  const auto pod = [](const std::string& name, const std::string& container) {
    return "kind: Deployment\nmetadata: {name: " + name +
           "}\nspec: {template: {spec: {containers: [{name: c, " + container + "}]}}}\n---\n";
  };
  EXPECT_EQ(starts(pod("head", "image: vllm/vllm-openai, command: [sh, -c, 'x; vllm serve m']") +
                   pod("ray", "image: vllm/vllm-openai, command: [sh, -c, $RAY_START_CMD]") +
                   pod("render", "image: vllm/vllm-openai-cpu, command: [vllm, launch, render]") +
                   pod("front",
                       "image: nvcr.io/x/sglang-runtime, command: [python3, -m, "
                       "dynamo.frontend]")),
            "head/: vllm/vllm-openai | m\n");
}

TEST(ServeFiles, AVariableOfDynamoSaysTheRole) {
  EXPECT_EQ(starts("kind: Deployment\nmetadata: {name: a}\nspec: {template: {spec: {containers: "
                   "[{name: c, args: [python3, -m, dynamo.vllm, --model, m], env: [{name: "
                   "DYN_VLLM_DISAGGREGATION_MODE, value: prefill}]}]}}}\n"),
            "a/prefill: | --model m\n");
}

// vllm-project/recipes: a strategy and a number of GPUs are chosen on its page.
TEST(ServeFiles, ARecipeIsNamedWithItsModel) {
  EXPECT_EQ(starts("model: {model_id: Qwen/Qwen3-8B}\nvariants: {default: {extra_args: "
                   "[--tensor-parallel-size, '8']}}\ncompatible_strategies: [single_node_tp]\n"),
            "/ is a recipe, which leaves the deployment open: model=Qwen/Qwen3-8B tp=8 |\n");
}

TEST(ServeFiles, MoreThanAThousandServersAreRefused) {
  std::string list = "items:\n";
  for (int i = 0; i < 1002; ++i)
    list += "- {kind: Pod, spec: {containers: [{name: c, args: [vllm, serve, m]}]}}\n";
  const std::string found = starts(list);
  EXPECT_NE(found.find("f.yaml:1002:52: error: key: is a server more than the 1000 that are read\n"
                       "  hint: name a file or a folder of fewer"),
            std::string::npos)
      << found.substr(found.find("f.yaml"));
}

/// The routing of a scenario whose only pool is started as `file` says, or what is wrong with it.
class ServeRouters : public testing::FolderTest {
 protected:
  LoadedScenario load(const std::string& file, const std::string& more, Diagnostics& d) const {
    write("servers.yaml", file);
    return load_scenario({.path = write("s.yaml",
                                        "name: s\n"
                                        "workload: {groups: {requests: 1, rate: 1}}\n"
                                        "cluster: {pools: [{name: m, accelerator: H100-SXM, "
                                        "vllm_serve: servers.yaml}]}\n" +
                                            more),
                          .sets = {},
                          .variants = {},
                          .seed = {}},
                         d);
  }
  std::string routing(const std::string& file, const std::string& more = {}) const {
    Diagnostics d;
    const LoadedScenario loaded = load(file, more, d);
    if (d.has_errors()) return messages_of(d);
    const sim::RoutingConfig& r = loaded.variants.front().scenario.routing;
    return std::string(enum_name(r.balancer)) + " " +
           std::to_string(r.balancing.kubeai.mean_load_factor) + " " +
           std::to_string(r.balancing.kubeai.hash_replication) + " " +
           std::to_string(r.balancing.kubeai.prefix_char_length);
  }

  static std::string model(const std::string& balancing) {
    return "apiVersion: kubeai.org/v1\nkind: Model\nmetadata: {name: m}\n"
           "spec: {url: 'hf://Qwen/Qwen3-8B', engine: VLLM" +
           balancing + "}\n";
  }

  static std::string stack(const std::string& router) {
    return "servingEngineSpec: {modelSpec: [{name: m, modelURL: Qwen/Qwen3-8B}]}\n" + router;
  }
};

TEST_F(ServeRouters, KubeAiBalancesByItsModelsStrategy) {
  EXPECT_EQ(routing(model("")), "least-load 125 256 100") << "the resource's default";
  EXPECT_EQ(routing(model(", loadBalancing: {strategy: PrefixHash, prefixHash: {meanLoadFactor: "
                          "150, replication: 20, prefixCharLength: 300}}")),
            "prefix-hash 150 20 300");
  EXPECT_NE(routing(model(", loadBalancing: {strategy: Telepathy}"))
                .find("vllm_serve: loadBalancing.strategy: Telepathy is a policy of KubeAI that is "
                      "not simulated"),
            std::string::npos);
}

TEST_F(ServeRouters, TheProductionStacksPoliciesAreUsedOrRefusedByName) {
  EXPECT_EQ(routing(stack("")), "round-robin 125 256 100") << "the chart's default";
  EXPECT_EQ(routing(stack("routerSpec: {routingLogic: roundrobin}\n")), "round-robin 125 256 100");
  EXPECT_EQ(routing(stack("routerSpec: {enableRouter: false, routingLogic: session}\n")),
            "k8s-service 125 256 100");
  for (const char* logic : {"session", "prefixaware", "kvaware", "loadaware"})
    EXPECT_EQ(routing(stack(std::string("routerSpec: {routingLogic: ") + logic + "}\n")),
              std::string("production-stack-") + logic + " 125 256 100");
  EXPECT_NE(routing(stack("routerSpec: {routingLogic: ttft}\n"))
                .find("servers.yaml:2:28: error: cluster.pools[0].vllm_serve: "
                      "routerSpec.routingLogic: ttft is a policy of the vLLM production stack that "
                      "is not simulated"),
            std::string::npos);
}

TEST_F(ServeRouters, TheProductionStacksSessionKeyIsItsBalancers) {
  Diagnostics d;
  const LoadedScenario loaded =
      load(stack("routerSpec: {routingLogic: session, sessionKey: x-user-id-of-mine}\n"), "", d);
  ASSERT_FALSE(d.has_errors()) << messages_of(d);
  const sim::RoutingConfig& made = loaded.variants.front().scenario.routing;
  ASSERT_TRUE(made.balancing.production_stack.has_value());
  EXPECT_EQ(made.balancing.production_stack->session_key, "x-user-id-of-mine");
}

TEST_F(ServeRouters, TheScenarioSaysWhatIsBeforeTheServers) {
  EXPECT_EQ(
      routing(stack("routerSpec: {routingLogic: session}\n"), "routing: {balancer: random}\n"),
      "random 125 256 100");
  EXPECT_EQ(routing(model(", loadBalancing: {strategy: PrefixHash}"),
                    "routing: {mean_load_factor: 200}\n"),
            "prefix-hash 200 256 100");
}

TEST_F(ServeRouters, TwoStrategiesCannotBalanceOnePool) {
  write("other.yaml", model(", loadBalancing: {strategy: PrefixHash}"));
  const std::string said =
      routing(model(""),
              "variants: [{name: v, cluster: {pools: [{name: n, accelerator: H100-SXM, "
              "vllm_serve: other.yaml}]}}]\n");
  EXPECT_NE(
      said.find("puts KubeAI's router before this pool, and cluster.pools[0] has another one"),
      std::string::npos)
      << said;
}

}  // namespace
}  // namespace routesim::tools
