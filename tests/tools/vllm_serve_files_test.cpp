// Server starts inside manifests, Helm values, KubeAI models and compose files.
#include "tools/ingest/vllm_serve_files.h"

#include <gtest/gtest.h>

#include "tests/base/messages.h"
#include "tests/tools/command_fixture.h"
#include "tools/ingest/config_file.h"
#include "tools/ingest/scenario_yaml.h"

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
            "llama/ x2: model=a/b | --max-model-len=4096\n");
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

TEST(ServeFiles, OtherServersArePassedOver) {
  EXPECT_EQ(starts("spec: {containers: [{name: s, command: [python3, -m, sglang.launch_server], "
                   "args: [--model-path, a/b]}]}"),
            "");
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
