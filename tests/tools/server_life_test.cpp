// What manifests say about the life of servers: autoscalers, disruption budgets, hooks, probes and
// roll-outs, as a pool gets them through `vllm_serve` and `init`.
#include "tools/ingest/scalers/server_life.h"

#include <gtest/gtest.h>

#include "sim/scaling/autoscaler_config.h"
#include "tests/base/messages.h"
#include "tests/tools/command_fixture.h"
#include "tools/cli/cli.h"
#include "tools/ingest/scenario/scenario_yaml.h"
#include "tools/ingest/tree/ledger.h"

namespace routesim::tools {
namespace {

/// Lines 1 to 13 of a file; `pod` are keys of the pod, `container` of its container.
std::string deployment(const std::string& spec, const std::string& pod = {},
                       const std::string& container = {}) {
  return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  " + spec +
         "\n  template:\n    metadata: {labels: {app: web, tier: a}}\n    spec:\n      " +
         (pod.empty() ? "restartPolicy: Always" : pod) +
         "\n      containers:\n      - name: vllm\n        args: [vllm, serve, Qwen/Qwen3-8B" +
         "]\n        " + (container.empty() ? "tty: false" : container) + "\n";
}

/// A ScaledObject of 11 lines after `---`.
std::string scaled(const std::string& bounds, const std::string& target = "{name: web}") {
  return "---\napiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: so}\nspec:\n"
         "  scaleTargetRef: " +
         target + "\n  " + bounds +
         "\n  triggers:\n  - type: prometheus\n    metadata: {serverAddress: x, threshold: '5', "
         "query: \"sum(vllm:num_requests_waiting)\"}\n";
}

std::string hpa(const std::string& bounds, const std::string& metrics,
                const std::string& target = "{kind: Deployment, name: web}") {
  return "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: h}\n"
         "spec:\n  scaleTargetRef: " +
         target + "\n  " + bounds + "\n  metrics: [" + metrics + "]\n";
}

constexpr const char* kWaiting =
    "{type: Pods, pods: {metric: {name: vllm_num_requests_waiting}, target: {type: AverageValue, "
    "averageValue: 5}}}";
constexpr const char* kCpu =
    "{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}";

std::string budget(const std::string& bound, const std::string& selector) {
  return "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: b}\nspec:\n  " +
         bound + "\n  selector: " + selector + "\n";
}
constexpr const char* kOfWeb = "{matchLabels: {app: web}}";

class ServerLifeTest : public testing::FolderTest {
 protected:
  LoadedScenario load(const std::string& file, const std::string& pool = {},
                      const std::string& more = {}) {
    write("servers.yaml", file);
    const std::string scenario = write(
        "s.yaml",
        "name: s\nworkload: {groups: {requests: 1, rate: 1}}\ncluster: {pools: [{name: m, "
        "accelerator: H100-SXM" +
            std::string(pool.starts_with(", vllm_serve") ? "" : ", vllm_serve: servers.yaml") +
            pool + "}]}\n" + more);
    found = {};
    return load_scenario({.path = scenario, .sets = {}, .variants = {}, .seed = {}}, found);
  }

  sim::PoolConfig pool(const std::string& file, const std::string& keys = {}) {
    const LoadedScenario loaded = load(file, keys);
    EXPECT_FALSE(found.has_errors()) << said();
    return loaded.variants.empty() ? sim::PoolConfig{}
                                   : loaded.variants.front().scenario.cluster.pools.front();
  }

  /// What was said, without the folder's name.
  std::string said() const {
    std::string text = messages_of(found);
    const std::string folder = folder_.string() + "/";
    for (std::size_t at = 0; (at = text.find(folder, at)) != std::string::npos;)
      text.erase(at, folder.size());
    return text;
  }

  /// What is said about a file that is refused.
  std::string refused(const std::string& file, const std::string& keys = {}) {
    (void)load(file, keys);
    EXPECT_TRUE(found.has_errors());
    return said();
  }

  Diagnostics found;
};

TEST_F(ServerLifeTest, AScaledObjectIsThePoolsAutoscaler) {
  const sim::PoolConfig p =
      pool(deployment("replicas: 9") + scaled("minReplicaCount: 2\n  maxReplicaCount: 6"));
  ASSERT_TRUE(p.autoscaler);
  EXPECT_EQ(p.autoscaler->kind, sim::AutoscalerKind::kKeda);
  EXPECT_EQ(p.autoscaler->min_replica_count, 2);
  EXPECT_EQ(p.autoscaler->max_replica_count, 6);
  EXPECT_EQ(p.autoscaler->triggers.at(0).query, "sum(vllm:num_requests_waiting)");
  EXPECT_EQ(p.autoscaler->triggers.at(0).threshold, 5);
  EXPECT_EQ(p.replicas, 6) << "more than the maximum";
  EXPECT_EQ(said(), "");
  EXPECT_EQ(pool(deployment("replicas: 1") + scaled("minReplicaCount: 2")).replicas, 2);
  EXPECT_EQ(pool(deployment("replicas: 3") + scaled("minReplicaCount: 2")).replicas, 3);
  EXPECT_EQ(pool(deployment("replicas: 300") + scaled("minReplicaCount: 2")).replicas, 100)
      << "KEDA's default";
  EXPECT_EQ(pool(deployment("paused: false") + scaled("maxReplicaCount: 4")).replicas, 1);
  EXPECT_EQ(pool(deployment("replicas: 0") + scaled("minReplicaCount: 2")).replicas, 2);
}

// RequestScale of KEDA 2.21: an inactive object with an idle number that is not above it is left
// alone, and so is a paused one. Its HPA raises any other number to the minimum.
TEST_F(ServerLifeTest, KedaLeavesIdleAndPausedServersAlone) {
  const auto with = [&](const std::string& replicas, const std::string& bounds,
                        const std::string& annotations = "{}") {
    std::string object = scaled(bounds);
    object.replace(object.find("{name: so}"), 10, "{name: so, annotations: " + annotations + "}");
    return pool(deployment("replicas: " + replicas) + object).replicas;
  };
  EXPECT_EQ(with("0", "idleReplicaCount: 0\n  minReplicaCount: 2"), 0);
  EXPECT_EQ(with("1", "idleReplicaCount: 0\n  minReplicaCount: 2"), 2);
  EXPECT_EQ(with("0", "minReplicaCount: 2"), 2);
  EXPECT_EQ(with("0", "minReplicaCount: 2", "{autoscaling.keda.sh/paused: 'true'}"), 0);
  EXPECT_EQ(with("0", "minReplicaCount: 2", "{autoscaling.keda.sh/paused: 'False'}"), 2);
  EXPECT_EQ(with("9", "maxReplicaCount: 4", "{autoscaling.keda.sh/paused: '1'}"), 9);
  EXPECT_EQ(with("9", "maxReplicaCount: 4", "{autoscaling.keda.sh/paused-replicas: '3'}"), 3);
}

TEST_F(ServerLifeTest, AHorizontalPodAutoscalerBoundsTheReplicas) {
  const auto with = [&](const std::string& replicas, const std::string& bounds) {
    return pool(deployment("replicas: " + replicas) + hpa(bounds, kWaiting));
  };
  const sim::PoolConfig p = with("2", "minReplicas: 3\n  maxReplicas: 5");
  ASSERT_TRUE(p.autoscaler);
  EXPECT_EQ(p.autoscaler->kind, sim::AutoscalerKind::kHpa);
  EXPECT_EQ(p.autoscaler->metrics.at(0).query, "vllm:num_requests_waiting");
  EXPECT_EQ(p.replicas, 3);
  EXPECT_EQ(with("8", "maxReplicas: 5").replicas, 5);
  EXPECT_EQ(with("4", "maxReplicas: 5").replicas, 4);
}

TEST_F(ServerLifeTest, ThePoolsOwnWordsComeFirst) {
  const std::string file = deployment("replicas: 9", "terminationGracePeriodSeconds: 90") +
                           scaled("maxReplicaCount: 6") + budget("maxUnavailable: 3", kOfWeb);
  const sim::PoolConfig p =
      pool(file,
           ", replicas: 7, autoscaler: null, most_evicted: 2, termination: {grace: 40, "
           "pre_stop: 5}");
  EXPECT_FALSE(p.autoscaler);
  EXPECT_EQ(p.replicas, 7);
  EXPECT_EQ(p.most_evicted, "2");
  EXPECT_EQ(p.termination.grace, Duration::seconds(40));
  EXPECT_EQ(p.termination.pre_stop, Duration::seconds(5));
  // What it leaves open comes from the file.
  EXPECT_EQ(pool(file, ", termination: {pre_stop: 5}").termination.grace, Duration::seconds(90));
}

TEST_F(ServerLifeTest, AScalerOfNoneOfTheServersIsNamed) {
  EXPECT_FALSE(pool(deployment("replicas: 2") +
                    hpa("maxReplicas: 5", kCpu, "{kind: StatefulSet, name: web}"))
                   .autoscaler);
  EXPECT_EQ(said(),
            "servers.yaml:19:45: warning: cluster.pools[0].vllm_serve: is not used: no StatefulSet "
            "called web starts any of the servers in this file (HorizontalPodAutoscaler)\n");
  (void)pool(deployment("replicas: 2") + scaled("maxReplicaCount: 5", "{name: gateway}"));
  EXPECT_EQ(said(),
            "servers.yaml:19:26: warning: cluster.pools[0].vllm_serve: is not used: no Deployment "
            "called gateway starts any of the servers in this file (ScaledObject)\n");
  EXPECT_EQ(pool(deployment("replicas: 2") + budget("maxUnavailable: 2", "{matchLabels: {a: b}}"))
                .most_evicted,
            "");
  EXPECT_EQ(said(),
            "servers.yaml:20:13: warning: cluster.pools[0].vllm_serve: is not used: it selects the "
            "pods of none of the servers in this file (PodDisruptionBudget)\n");
}

TEST_F(ServerLifeTest, AnotherNamespaceIsNamed) {
  const auto in_other = [](std::string object, const std::string& name) {
    object.replace(object.find("{name: " + name), 7, "{namespace: other, name: ");
    return object;
  };
  std::string file = deployment("replicas: 2");
  file.replace(file.find("{name: web}"), 11, "{name: web, namespace: here}");
  (void)pool(file + in_other(hpa("maxReplicas: 5", kWaiting), "h") +
             in_other(budget("maxUnavailable: 2", kOfWeb), "b"));
  EXPECT_EQ(said(),
            "servers.yaml:19:44: warning: cluster.pools[0].vllm_serve: is not used: its namespace "
            "is other, and that of Deployment web is here (HorizontalPodAutoscaler)\n"
            "servers.yaml:28:13: warning: cluster.pools[0].vllm_serve: is not used: its namespace "
            "is other, and that of the pods that it selects is here (PodDisruptionBudget)\n");
}

TEST_F(ServerLifeTest, ScalersThatCannotWorkAreErrorsAtTheirPlace) {
  EXPECT_EQ(refused(deployment("replicas: 2") + scaled("maxReplicaCount: 5") +
                    hpa("maxReplicas: 5", kWaiting)),
            "servers.yaml:25:1: error: cluster.pools[0].vllm_serve: HorizontalPodAutoscaler h "
            "scales web, which ScaledObject so scales too: they would undo each other's work\n"
            "  hint: keep one of the two\n");
  EXPECT_EQ(refused(deployment("replicas: 2") + hpa("minReplicas: 6\n  maxReplicas: 5", kWaiting)),
            "servers.yaml:21:16: error: cluster.pools[0].vllm_serve.max_replicas: max_replicas is "
            "below min_replicas\n"
            "  hint: `autoscaler: null` in the pool simulates servers whose number stays\n");
  const std::string cpu = refused(deployment("replicas: 2") + hpa("maxReplicas: 5", kCpu));
  EXPECT_NE(cpu.find("servers.yaml:21:13: warning: cluster.pools[0].vllm_serve: is not modelled: "
                     "CPU and memory of model servers are not simulated"),
            std::string::npos)
      << cpu;
  EXPECT_NE(cpu.find("error: cluster.pools[0].vllm_serve.metrics: without metrics Kubernetes "
                     "scales by CPU, which is not simulated\n"),
            std::string::npos)
      << cpu;
  // Without it, the same file is a fleet whose number of servers stays.
  EXPECT_EQ(
      pool(deployment("replicas: 2") + hpa("maxReplicas: 5", kCpu), ", autoscaler: null").replicas,
      2);
}

// The budget keeps its own words: the servers that are wanted may change.
TEST_F(ServerLifeTest, ABudgetSaysHowManyMayBeEvicted) {
  const auto with = [&](const std::string& bound, const std::string& selector = kOfWeb) {
    const sim::PoolConfig p = pool(deployment("replicas: 7") + budget(bound, selector));
    return p.most_evicted + "/" + p.min_available;
  };
  EXPECT_EQ(with("maxUnavailable: 2"), "2/");
  EXPECT_EQ(with("maxUnavailable: 30%"), "30%/");
  EXPECT_EQ(with("minAvailable: 5"), "/5");
  EXPECT_EQ(with("minAvailable: 30%"), "/30%");
  EXPECT_EQ(with("maxUnavailable: 3", "{}"), "3/") << "an empty selector selects all";
  EXPECT_EQ(with("maxUnavailable: 3",
                 "{matchExpressions: [{key: app, operator: In, values: [x, "
                 "web]}, {key: z, operator: DoesNotExist}]}"),
            "3/");
  EXPECT_EQ(with("maxUnavailable: 3",
                 "{matchExpressions: [{key: app, operator: NotIn, values: "
                 "[web]}]}"),
            "/");
  EXPECT_EQ(with("maxUnavailable: 3", "{matchLabels: {app: web, tier: b}}"), "/");
  const std::string least = deployment("replicas: 7") + budget("minAvailable: 50%", kOfWeb);
  EXPECT_EQ(pool(least, ", most_evicted: 3").min_available, "")
      << "the pool's own words come first";
  EXPECT_EQ(pool(least, ", min_available: 25%").min_available, "25%");
}

TEST_F(ServerLifeTest, BudgetsThatKubernetesRefusesAreErrors) {
  const std::string web = deployment("replicas: 2");
  EXPECT_EQ(refused(web + budget("maxUnavailable: 101%", kOfWeb)),
            "servers.yaml:19:19: error: cluster.pools[0].vllm_serve: maxUnavailable must be at "
            "most 100% (got 101%)\n");
  EXPECT_NE(
      refused(web + budget("minAvailable: -1", kOfWeb))
          .find("servers.yaml:19:17: error: cluster.pools[0].vllm_serve: minAvailable must be "
                "a number or a percentage (got -1)\n"),
      std::string::npos);
  EXPECT_NE(refused(web + budget("minAvailable: 1\n  maxUnavailable: 1", kOfWeb))
                .find("servers.yaml:19:17: error: cluster.pools[0].vllm_serve: minAvailable stands "
                      "beside maxUnavailable\n"),
            std::string::npos);
  EXPECT_NE(refused(web + budget("minAvailable: 1", kOfWeb) + budget("minAvailable: 1", "{}"))
                .find("Kubernetes evicts no pod that has two"),
            std::string::npos);
}

TEST_F(ServerLifeTest, HooksProbesAndGraceAreThePoolsTermination) {
  const auto hook = [&](const std::string& text) {
    return pool(deployment("replicas: 1", "terminationGracePeriodSeconds: 120",
                           "lifecycle: {preStop: " + text + "}"))
        .termination;
  };
  EXPECT_EQ(hook("{sleep: {seconds: 15}}").pre_stop, Duration::seconds(15));
  EXPECT_EQ(hook("{sleep: {seconds: 15}}").grace, Duration::seconds(120));
  EXPECT_EQ(hook("{exec: {command: [/bin/sleep, '20']}}").pre_stop, Duration::seconds(20));
  EXPECT_EQ(hook("{exec: {command: [/bin/sh, -c, 'sleep 1.5m']}}").pre_stop, Duration::seconds(90));
  EXPECT_EQ(hook("{exec: {command: [bash, -lc, 'exec sleep 30s;']}}").pre_stop,
            Duration::seconds(30));
  EXPECT_EQ(said(), "");
  for (const char* other : {"{httpGet: {path: /drain, port: 8000}}",
                            "{exec: {command: [sh, -c, 'sleep 5; curl localhost/drain']}}",
                            "{exec: {command: [sleep, forever]}}"}) {
    EXPECT_EQ(hook(other).pre_stop, Duration::zero()) << other;
    EXPECT_NE(said().find("servers.yaml:13:30: warning: cluster.pools[0].vllm_serve: the preStop "
                          "hook is not understood"),
              std::string::npos)
        << said();
  }
  EXPECT_NE(refused(deployment("replicas: 1", "terminationGracePeriodSeconds: 2m"))
                .find("servers.yaml:9:38: error: cluster.pools[0].vllm_serve: "
                      "terminationGracePeriodSeconds must be a whole number of seconds"),
            std::string::npos);
  const auto probed = [&](const std::string& probes) {
    return pool(deployment("replicas: 1", {}, probes)).start_up.probe_period;
  };
  EXPECT_EQ(probed("readinessProbe: {periodSeconds: 2, httpGet: {path: /health}}"),
            Duration::seconds(2));
  EXPECT_EQ(probed("readinessProbe: {httpGet: {path: /health}}"), Duration::seconds(10))
      << "Kubernetes' default";
  EXPECT_EQ(probed("startupProbe: {periodSeconds: 7}"), Duration::seconds(7));
  EXPECT_EQ(probed("tty: false"), Duration::seconds(5));
}

TEST_F(ServerLifeTest, ProbesSayWhenTheyLook) {
  const auto probed = [&](const std::string& probes, const std::string& own = {}) {
    const sim::StartUpConfig c = pool(deployment("replicas: 1", {}, probes), own).start_up;
    constexpr std::int64_t kSecond = 1'000'000'000;
    return std::vector{c.probe_period.ns() / kSecond, c.probe_delay.ns() / kSecond,
                       c.probe_repeats.ns() / kSecond};
  };
  using Seconds = std::vector<std::int64_t>;
  EXPECT_EQ(probed("readinessProbe: {initialDelaySeconds: 200, periodSeconds: 7, "
                   "successThreshold: 4}"),
            (Seconds{7, 200, 21}));
  // The readiness probe begins as soon as the startup probe has succeeded.
  const std::string both =
      "readinessProbe: {initialDelaySeconds: 200, periodSeconds: 7, successThreshold: 2}\n"
      "        startupProbe: {periodSeconds: 30, initialDelaySeconds: 300}";
  EXPECT_EQ(probed(both), (Seconds{30, 300, 7}));
  EXPECT_EQ(probed(both, ", start_up: {probe_delay: 5}"), (Seconds{30, 5, 7}));
  EXPECT_EQ(probed("startupProbe: {initialDelaySeconds: 9}"), (Seconds{10, 9, 0}));
  EXPECT_EQ(probed("readinessProbe: {initialDelaySeconds: 0, periodSeconds: 0, successThreshold: "
                   "0}"),
            (Seconds{10, 0, 0}))
      << "Kubernetes' defaults";
  EXPECT_NE(refused(deployment("replicas: 1", {}, "readinessProbe: {initialDelaySeconds: soon}"))
                .find("servers.yaml:13:47: error: cluster.pools[0].vllm_serve: initialDelaySeconds "
                      "must be a whole number of seconds (got soon)"),
            std::string::npos)
      << said();
}

TEST_F(ServerLifeTest, APausedDeploymentIsNamed) {
  (void)pool(deployment("paused: true"));
  EXPECT_EQ(
      said(),
      "servers.yaml:5:3: warning: cluster.pools[0].vllm_serve.spec.paused: is not modelled: a "
      "roll-out of a paused Deployment goes on\n");
  (void)pool(deployment("paused: false"));
  EXPECT_EQ(said(), "");
}

TEST_F(ServerLifeTest, CrashesThatEndAGroupAreNamed) {
  const auto with = [&](const std::string& policy, const std::string& events) {
    (void)load(
        "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {name: web}\n"
        "spec:\n  replicas: 2\n  leaderWorkerTemplate:\n    size: 2\n    " +
            policy +
            "\n    workerTemplate:\n"
            "      spec: {containers: [{name: v, args: [vllm, serve, Qwen/Qwen3-8B]}]}\n",
        {}, "events: [" + events + "]\n");
    return said();
  };
  const std::string crashes =
      "{kind: crash, at: 1s, servers: [0]}, {kind: crash, at: 9s, servers: [0]}";
  const auto warning = [](const std::string& place, const std::string& policy) {
    return "servers.yaml:" + place + ": warning: cluster.pools[0].vllm_serve: restartPolicy " +
           policy +
           " is not simulated: after a crash the process starts again in its pod, and waits for "
           "longer each time\n";
  };
  EXPECT_EQ(with("restartPolicy: RecreateGroupOnPodRestart", crashes),
            warning("8:20", "RecreateGroupOnPodRestart"));
  EXPECT_EQ(with("restartPolicy: RecreateGroupAfterStart", crashes),
            warning("8:20", "RecreateGroupAfterStart"));
  EXPECT_EQ(with("networkConfig: {}", crashes).substr(0, 17), "servers.yaml:1:1:") << "the default";
  EXPECT_EQ(with("restartPolicy: None", crashes), "");
  EXPECT_EQ(with("restartPolicy: RecreateGroupOnPodRestart", "{kind: drain, at: 1s}"), "");
}

TEST_F(ServerLifeTest, ShutdownTimeoutIsOfTheCommand) {
  EXPECT_EQ(pool("kind: Deployment\nmetadata: {name: web}\nspec: {template: {spec: {containers: "
                 "[{name: c, args: [vllm, serve, Qwen/Qwen3-8B, --shutdown-timeout, '60']}]}}}\n")
                .termination.shutdown_timeout,
            Duration::seconds(60));
}

TEST_F(ServerLifeTest, RollOutsHaveTheBoundsOfTheDeployment) {
  const auto bounds = [&](const std::string& strategy, const std::string& event = {}) {
    const LoadedScenario loaded = load(deployment("replicas: 4\n  " + strategy), {},
                                       "events: [{kind: roll-out, at: 1s" + event + "}]\n");
    EXPECT_FALSE(found.has_errors()) << said();
    if (loaded.variants.empty()) return std::string();
    const sim::FleetEventConfig& e = loaded.variants.front().scenario.events.at(0);
    const Duration least = e.min_ready_seconds;
    return e.max_surge + " " + e.max_unavailable + (e.recreate ? "recreate" : "") +
           (least > Duration::zero() ? " " + std::to_string(least.ns() / 1'000'000'000) : "");
  };
  EXPECT_EQ(bounds("strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: "
                   "0}}"),
            "1 0");
  EXPECT_EQ(bounds("strategy: {rollingUpdate: {maxSurge: 150%}}"), "150% 25%");
  EXPECT_EQ(bounds("strategy: {type: Recreate}"), " recreate");
  EXPECT_EQ(bounds("strategy: {type: RollingUpdate}"), " ");
  EXPECT_EQ(bounds("minReadySeconds: 30"), "  30");
  EXPECT_EQ(bounds("strategy: {type: Recreate}\n  minReadySeconds: 5"), " recreate 5");
  EXPECT_NE(refused(deployment("minReadySeconds: half"))
                .find("servers.yaml:5:20: error: cluster.pools[0].vllm_serve: minReadySeconds must "
                      "be a whole number of seconds"),
            std::string::npos);
  EXPECT_EQ(bounds("strategy: {rollingUpdate: {maxSurge: 1}}", ", max_surge: 3"), "3 25%");
  EXPECT_NE(refused(deployment("strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 0}}"))
                .find("servers.yaml:5:29: error: cluster.pools[0].vllm_serve: maxSurge and "
                      "maxUnavailable are both 0"),
            std::string::npos);
}

// A service of KServe makes a Deployment for each role, and each may have a scaler of its own.
TEST_F(ServerLifeTest, EachRoleOfAServiceHasItsScaler) {
  const std::string service =
      "apiVersion: serving.kserve.io/v1alpha1\nkind: LLMInferenceService\nmetadata: {name: s}\n"
      "spec:\n  model: {uri: 'hf://Qwen/Qwen3-8B'}\n  replicas: 2\n"
      "  template: {terminationGracePeriodSeconds: 45, containers: [{name: main}]}\n"
      "  prefill: {replicas: 9, template: {containers: [{name: main}]}}\n";
  const std::string file =
      service + scaled("maxReplicaCount: 6", "{name: s-kserve}") +
      hpa("maxReplicas: 4", kWaiting, "{kind: Deployment, name: s-kserve-prefill}");
  const sim::PoolConfig decode = pool(file, ", role: decode");
  ASSERT_TRUE(decode.autoscaler);
  EXPECT_EQ(decode.autoscaler->max_replica_count, 6);
  EXPECT_EQ(decode.replicas, 2);
  EXPECT_EQ(decode.termination.grace, Duration::seconds(45));
  const sim::PoolConfig prefill = pool(file, ", role: prefill");
  ASSERT_TRUE(prefill.autoscaler);
  EXPECT_EQ(prefill.autoscaler->max_replicas, 4);
  EXPECT_EQ(prefill.replicas, 4);
  EXPECT_EQ(prefill.termination.grace, Duration::seconds(30));
}

TEST_F(ServerLifeTest, ABudgetOfPodsIsNoneOfServersOfSeveral) {
  const std::string group =
      "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {name: web}\n"
      "spec:\n  replicas: 2\n  leaderWorkerTemplate:\n    size: 4\n    workerTemplate:\n"
      "      metadata: {labels: {app: web}}\n"
      "      spec: {containers: [{name: v, args: [vllm, serve, Qwen/Qwen3-8B]}]}\n";
  const sim::PoolConfig p =
      pool(group + budget("maxUnavailable: 3", kOfWeb) +
           scaled("maxReplicaCount: 6", "{kind: LeaderWorkerSet, name: web}"));
  EXPECT_EQ(p.most_evicted, "");
  EXPECT_TRUE(p.autoscaler);
  EXPECT_EQ(said(),
            "servers.yaml:12:1: warning: cluster.pools[0].vllm_serve: PodDisruptionBudget b is not "
            "used: it counts pods, and a server has 4\n");
}

TEST_F(ServerLifeTest, TheProductionStacksChartHasKedaAndABudget) {
  const sim::PoolConfig p = pool(
      "servingEngineSpec:\n  modelSpec:\n  - name: m\n    modelURL: Qwen/Qwen3-8B\n"
      "    replicaCount: 1\n    keda: {enabled: true, minReplicaCount: 2, maxReplicaCount: 4,\n"
      "           triggers: [{type: prometheus, metadata: {serverAddress: x, query: "
      "'sum(vllm:num_requests_waiting)', threshold: '3'}}]}\n"
      "    pdb: {enabled: true, maxUnavailable: 50%}\n");
  ASSERT_TRUE(p.autoscaler);
  EXPECT_EQ(p.autoscaler->triggers.at(0).threshold, 3);
  EXPECT_EQ(p.replicas, 2);
  EXPECT_EQ(p.most_evicted, "50%");
  const sim::PoolConfig off = pool(
      "servingEngineSpec: {modelSpec: [{name: m, modelURL: Qwen/Qwen3-8B, keda: {enabled: "
      "false, maxReplicaCount: 4}, pdb: {enabled: false, maxUnavailable: 9}}]}\n");
  EXPECT_FALSE(off.autoscaler);
  EXPECT_EQ(off.most_evicted, "");
}

// Keys that the values leave out are the chart's own: 15 s for both probes.
TEST_F(ServerLifeTest, TheProductionStacksChartHasProbes) {
  const auto with = [&](const std::string& probes) {
    return pool("servingEngineSpec:\n  " + probes +
                "\n  modelSpec: [{name: m, modelURL: Qwen/Qwen3-8B}]\n")
        .start_up;
  };
  const sim::StartUpConfig one = with("startupProbe: {periodSeconds: 30}");
  EXPECT_EQ(one.probe_period, Duration::seconds(30));
  EXPECT_EQ(one.probe_delay, Duration::seconds(15));
  EXPECT_EQ(with("readinessProbe: {initialDelaySeconds: 240}").probe_delay, Duration::seconds(240));
  EXPECT_EQ(with("readinessProbe: {initialDelaySeconds: 240}").probe_period, Duration::seconds(5));
}

// api/internal/konfig/builtinpluginconsts/namereference.go of kustomize: references of built-in
// kinds follow a new name, that of a ScaledObject stays.
TEST_F(ServerLifeTest, NamesOfAKustomizeFolderReachItsScalers) {
  const auto with = [&](const std::string& scaler) {
    write("k/all.yaml", deployment("replicas: 2") + scaler);
    write("k/kustomization.yaml", "resources: [all.yaml]\nnamePrefix: a-\n");
    return pool("unused: 1\n", ", vllm_serve: k").autoscaler.has_value();
  };
  EXPECT_TRUE(with(hpa("maxReplicas: 5", kWaiting)));
  EXPECT_FALSE(with(scaled("maxReplicaCount: 5")));
  EXPECT_TRUE(with(scaled("maxReplicaCount: 5", "{name: a-web}")));
}

TEST_F(ServerLifeTest, EveryKeyHasItsFate) {
  (void)pool(deployment("replicas: 2") + scaled("maxReplicaCount: 5") +
             budget("maxUnavailable: 1", kOfWeb));
  const std::vector<KeyUse> keys = ledger(found);
  const auto fate = [&](int line, int column) {
    for (const KeyUse& use : keys)
      if (use.where.file.ends_with("servers.yaml") && use.where.line == line &&
          use.where.column == column)
        return std::string(fate_name(use.fate));
    return std::string("none");
  };
  EXPECT_EQ(fate(19, 20), "used") << "scaleTargetRef.name";
  EXPECT_EQ(fate(20, 3), "used") << "maxReplicaCount";
  EXPECT_EQ(fate(23, 16), "no effect") << "serverAddress";
  EXPECT_EQ(fate(23, 34), "used") << "threshold";
  EXPECT_EQ(fate(29, 3), "used") << "maxUnavailable";
}

TEST_F(ServerLifeTest, TheAdaptersConfigMapIsUsed) {
  (void)pool(deployment("replicas: 2") + hpa("maxReplicas: 5", kWaiting) +
             "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: adapter}\ndata:\n"
             "  config.yaml: |\n    rules:\n"
             "    - seriesQuery: '{__name__=~\"^vllm:.*\"}'\n"
             "      name: {matches: '^vllm:(.*)$', as: 'vllm_${1}'}\n"
             "      metricsQuery: 'avg_over_time(<<.Series>>{<<.LabelMatchers>>}[10m])'\n");
  EXPECT_EQ(said(), "");
  bool is_used = false;
  for (const KeyUse& use : ledger(found))
    is_used |= use.path.ends_with("data.config.yaml") && use.fate == Fate::kUsed;
  EXPECT_TRUE(is_used);
}

// A folder as a user has it, each object in a file of its own.
TEST_F(ServerLifeTest, InitWritesWhatOtherFilesSayAndTheScenarioRuns) {
  write("k8s/deployment.yaml", deployment("replicas: 1", "terminationGracePeriodSeconds: 90",
                                          "lifecycle: {preStop: {sleep: {seconds: 10}}}"));
  write("k8s/pdb.yaml", budget("minAvailable: 50%", kOfWeb).substr(4));
  write("k8s/scaledobject.yaml", scaled("minReplicaCount: 3\n  maxReplicaCount: 6").substr(4));
  const auto run = [](const std::vector<std::string>& arguments, std::string& out) {
    testing::TestConsole console;
    const ExitCode code = run_command_line(arguments, console);
    out = console.output() + console.errors;
    return code;
  };
  std::string out;
  ASSERT_EQ(run({"init", "-o", path("scenario.yaml"), path("k8s")}, out), ExitCode::kSuccess)
      << out;
  std::ifstream in(path("scenario.yaml"));
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  EXPECT_NE(text.find("    vllm_serve: k8s/deployment.yaml\n"
                      "    # It says termination, too.\n"
                      "    replicas: 3   # within k8s/scaledobject.yaml:6:20\n"
                      "    # k8s/scaledobject.yaml:5:3\n"
                      "    autoscaler:\n"
                      "      kind: keda\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("    # k8s/pdb.yaml:5:17\n    min_available: 50%\n"), std::string::npos)
      << text;
  found = {};
  const LoadedScenario loaded =
      load_scenario({.path = path("scenario.yaml"), .sets = {}, .variants = {}, .seed = {}}, found);
  ASSERT_FALSE(found.has_errors()) << said();
  const sim::PoolConfig& p = loaded.variants.front().scenario.cluster.pools.front();
  ASSERT_TRUE(p.autoscaler);
  EXPECT_EQ(p.autoscaler->max_replica_count, 6);
  EXPECT_EQ(p.autoscaler->triggers.at(0).query, "sum(vllm:num_requests_waiting)");
  EXPECT_EQ(p.replicas, 3);
  EXPECT_EQ(p.min_available, "50%");
  EXPECT_EQ(p.termination.grace, Duration::seconds(90));
  EXPECT_EQ(p.termination.pre_stop, Duration::seconds(10));
  EXPECT_EQ(run({"run", path("scenario.yaml"), "--quiet", "--no-capacity"}, out),
            ExitCode::kSuccess)
      << out;
}

}  // namespace
}  // namespace routesim::tools
