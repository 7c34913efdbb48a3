// Configurations of routers: of other products, and Helm values around a document.
#include "tools/ingest/routers/router_config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <utility>

#include "sim/plan/resolve.h"
#include "tests/base/messages.h"
#include "tests/policies/yaml_text.h"
#include "tests/tools/scenario_fixture.h"
#include "tools/ingest/tree/description.h"
#include "tools/ingest/tree/ledger.h"
#include "tools/study/explain/decision_study.h"

namespace routesim::tools {
namespace {

// Configurations of other products' routers, as `routing.config` reads them.

/// The keys of `routing` that a configuration becomes, as JSON; messages go to `messages`.
std::string routing_of(const std::string& config, std::string& messages) {
  Diagnostics diagnostics;
  const ConfigNode::Ptr root =
      with_router_config(policies::parse_yaml("routing:\n  config: " + config + "\n"), diagnostics);
  messages = messages_of(diagnostics);
  std::string keys = to_json(*root->find("routing")->value);
  std::erase_if(keys, [](char c) { return c == ' ' || c == '\n'; });
  return keys;
}

std::string routing_of(const std::string& config) {
  std::string messages;
  std::string keys = routing_of(config, messages);
  EXPECT_EQ(messages, "");
  return keys;
}

TEST(RouterConfig, VariablesCountLikeFlags) {
  EXPECT_EQ(routing_of("export DYN_ROUTER_MODE=kv && python3 -m dynamo.frontend"),
            R"({"balancer":"dynamo-kv"})");
  EXPECT_EQ(routing_of("env DYN_ROUTER_MODE=kv python3 -m dynamo.frontend --router-temp 0.3"),
            R"({"balancer":"dynamo-kv","dynamo":{"router_temperature":0.3}})");
}

TEST(RouterConfig, ReleasesAndSecondNames) {
  EXPECT_EQ(routing_of("pip install vllm-router==0.1.15 && vllm-router --policy cache_aware"),
            R"({"balancer":"vllm-router-cache-aware","vllm_router":{"release":"0.1.15"}})");
  EXPECT_EQ(routing_of("pip install ray==2.40.0 vllm==0.11.0 && vllm-router --policy random"),
            R"({"balancer":"vllm-router-random"})")
      << "the release of another package";
  EXPECT_EQ(routing_of("smg launch --cache-match-threshold 0.4 --spill-abs-threshold 8"),
            R"({"balancer":"smg-cache-aware","smg":{"cache_threshold":0.4,)"
            R"("balance_abs_threshold":8}})");
}

TEST(RouterConfig, StartCommandsNamePolicyAndSettings) {
  EXPECT_EQ(routing_of("smg launch --policy power_of_two"), R"({"balancer":"smg-power-of-two"})");
  EXPECT_EQ(routing_of("python3 -m sglang_router.launch_router --cache-threshold 0.5"),
            R"({"balancer":"smg-cache-aware","smg":{"release":"0.3.2","eviction_interval":"60s",)"
            R"("cache_threshold":0.5}})");
  EXPECT_EQ(routing_of("vllm-router --policy=round_robin"),
            R"({"balancer":"vllm-router-round-robin"})");
  EXPECT_EQ(routing_of("vllm-router --cb-failure-threshold 5 --cb-timeout-duration-secs 30 "
                       "--disable-circuit-breaker"),
            R"({"balancer":"vllm-router-cache-aware","vllm_router":{"cb_failure_threshold":5,)"
            R"("cb_timeout_duration":30,"disable_circuit_breaker":true}})");
  EXPECT_EQ(routing_of("vllm-router --routing-logic session --session-key x-user-id"),
            R"({"balancer":"production-stack-session",)"
            R"("production_stack":{"session_key":"x-user-id"}})");
  EXPECT_EQ(routing_of("python -m dynamo.frontend --router-mode kv --router-temperature 0.5"),
            R"({"balancer":"dynamo-kv","dynamo":{"router_temperature":0.5}})");
}

// The flag counts tries, of which there is always one.
TEST(RouterConfig, RetriesCanBeFewerOrNone) {
  EXPECT_EQ(routing_of("smg launch --disable-retries --retry-max-retries 3"),
            R"({"balancer":"smg-cache-aware","retries":0})");
  EXPECT_EQ(routing_of("vllm-router --policy random --retry-max-retries 3"),
            R"({"balancer":"vllm-router-random","retries":2})");
  EXPECT_EQ(routing_of("vllm-router --policy random --retry-max-retries 0"),
            R"({"balancer":"vllm-router-random","retries":0})");
  std::string messages;
  (void)routing_of("smg launch --retry-max-retries few", messages);
  EXPECT_NE(messages.find("--retry-max-retries must be a whole number"), std::string::npos)
      << messages;
}

TEST(RouterConfig, AListOfServersIsApproximated) {
  for (const auto& [flags, approximated] :
       {std::pair{"--worker-urls a", 1}, std::pair{"--service-discovery static", 1},
        std::pair{"--service-discovery k8s", 0}}) {
    Diagnostics found;
    (void)with_router_config(
        policies::parse_yaml("routing: {config: 'vllm-router --routing-logic roundrobin " +
                             std::string(flags) + "'}\n"),
        found);
    EXPECT_EQ(std::ranges::count(ledger(found), Fate::kApproximated, &KeyUse::fate), approximated)
        << flags;
  }
}

// Keys of one text are told apart.
TEST(RouterConfig, EveryFlagOfACommandIsInTheLedger) {
  Diagnostics found;
  (void)with_router_config(
      policies::parse_yaml("routing: {config: 'smg launch --retry-initial-backoff-ms 5 "
                           "--retry-max-backoff-ms 6 --retry-jitter-factor 1'}\n"),
      found);
  EXPECT_EQ(std::ranges::count(ledger(found), Fate::kNotModelled, &KeyUse::fate), 3);
}

TEST(RouterConfig, ANegatedFlagIsFalse) {
  EXPECT_EQ(routing_of("python -m dynamo.frontend --router-mode kv --no-router-kv-events"),
            R"({"balancer":"dynamo-kv","dynamo":{"router_kv_events":false}})");
}

TEST(RouterConfig, WhatIsNotSimulatedIsNamed) {
  std::string messages;
  routing_of("smg launch --policy random --max-concurrent-requests 64", messages);
  EXPECT_NE(messages.find("is not simulated: --max-concurrent-requests"), std::string::npos)
      << messages;
  routing_of(
      "{lb_policy: RANDOM, outlier_detection: {}, circuit_breakers: {thresholds: "
      "[{max_connection_pools: 9}], per_host_thresholds: []}}",
      messages);
  EXPECT_NE(messages.find("is not simulated: outlier_detection, per_host_thresholds, "
                          "max_connection_pools"),
            std::string::npos)
      << messages;
  routing_of("{lb_policy: LEAST_REQUEST, least_request_lb_config: {slow_start_config: {}}}",
             messages);
  EXPECT_NE(messages.find("is not simulated: slow_start_config"), std::string::npos) << messages;
}

TEST(RouterConfig, FlagsWithoutEffectAreNamed) {
  std::string messages;
  routing_of("smg launch --host 0.0.0.0 --policy random --port 8000", messages);
  EXPECT_NE(messages.find("has no effect on results: --host, --port"), std::string::npos)
      << messages;
}

TEST(RouterConfig, UnknownPoliciesAndProgramsAreErrors) {
  std::string messages;
  routing_of("smg launch --policy fastest", messages);
  EXPECT_NE(messages.find("names a policy that is not simulated (got fastest)"), std::string::npos)
      << messages;
  routing_of("nginx -g daemon", messages);
  EXPECT_NE(messages.find("starts no router that is simulated"), std::string::npos) << messages;
}

TEST(RouterConfig, EnvoyClusters) {
  EXPECT_EQ(routing_of("{name: c, lb_policy: LEAST_REQUEST, least_request_lb_config: "
                       "{choice_count: 3}}"),
            R"({"balancer":"envoy-least-request","envoy":{"choice_count":3},"gateway":{}})");
  EXPECT_EQ(routing_of("{static_resources: {clusters: [{lb_policy: RING_HASH, ring_hash_lb_config: "
                       "{minimum_ring_size: 64}}], listeners: [{route: {hash_policy: [{header: "
                       "{header_name: x-user}, terminal: true}]}}]}}"),
            R"({"balancer":"envoy-ring-hash","envoy":{"minimum_ring_size":64,)"
            R"("hash_policy":[{"header":"x-user","terminal":true}]},"gateway":{}})");
  std::string messages;
  routing_of("{lb_policy: CLUSTER_PROVIDED}", messages);
  EXPECT_NE(messages.find("not simulated (got CLUSTER_PROVIDED)"), std::string::npos) << messages;
}

// config.endpoint.v3.LbEndpoint: health_status, and the hash key in the metadata of a ring.
TEST(RouterConfig, EnvoyHostsHaveHealthAndHashKeys) {
  EXPECT_EQ(routing_of("{lb_policy: RING_HASH, load_assignment: {cluster_name: c, endpoints: "
                       "[{lb_endpoints: [{endpoint: {}, health_status: UNHEALTHY}, {endpoint: {}, "
                       "metadata: {filter_metadata: {envoy.lb: {hash_key: alpha}}}}]}]}}"),
            R"({"balancer":"envoy-ring-hash","envoy":{"health_status":["UNHEALTHY","UNKNOWN"],)"
            R"("hash_keys":["","alpha"]},"gateway":{}})");
  std::string messages;
  routing_of(
      "{lb_policy: RANDOM, load_assignment: {policy: {overprovisioning_factor: 100}, endpoints: "
      "[{priority: 1, load_balancing_weight: 3, lb_endpoints: [{endpoint: {}, extra: 1}]}]}}",
      messages);
  EXPECT_NE(messages.find("is not simulated: policy, priority, load_balancing_weight, extra"),
            std::string::npos)
      << messages;
}

TEST(RouterConfig, EnvoyValuesOfTheWrongKindAreErrors) {
  const auto said = [](const std::string& config) {
    std::string messages;
    routing_of(config, messages);
    return messages;
  };
  EXPECT_NE(said("{lb_policy: RING_HASH, ring_hash_lb_config: x}")
                .find("error: routing.config: ring_hash_lb_config must be a map (got x)"),
            std::string::npos);
  EXPECT_NE(said("{lb_policy: RANDOM, circuit_breakers: {thresholds: {max_requests: 9}}}")
                .find("error: routing.config: circuit_breakers.thresholds must be a list"),
            std::string::npos);
}

TEST(RouterConfig, EnvoyGatewayAndHelmValues) {
  EXPECT_EQ(routing_of("{kind: BackendTrafficPolicy, spec: {loadBalancer: {type: ConsistentHash, "
                       "consistentHash: {type: Header, header: {name: x-s}}}}}"),
            R"({"balancer":"envoy-maglev","envoy":{"hash_policy":[{"header":"x-s"}]},)"
            R"("gateway":{"max_retries":1024}})");
  EXPECT_EQ(routing_of("{routerSpec: {routingLogic: prefixaware}}"),
            R"({"balancer":"production-stack-prefixaware"})");
}

TEST(RouterConfig, AibrixVariablesAndHeaders) {
  const std::string prefix_cache = R"({"balancer":"aibrix-prefix-cache",)"
                                   R"("aibrix":{"prefix_cache_block_size":16}})";
  EXPECT_EQ(routing_of("export ROUTING_ALGORITHM=prefix-cache AIBRIX_PREFIX_CACHE_BLOCK_SIZE=16"),
            prefix_cache);
  EXPECT_EQ(routing_of("{kind: Deployment, spec: {containers: [{name: gateway-plugin, env: ["
                       "{name: ROUTING_ALGORITHM, value: prefix-cache}, "
                       "{name: AIBRIX_PREFIX_CACHE_BLOCK_SIZE, value: '16'}]}]}}"),
            prefix_cache);
  EXPECT_EQ(routing_of("{gatewayPlugin: {container: {envs: {ROUTING_ALGORITHM: prefix-cache, "
                       "AIBRIX_PREFIX_CACHE_BLOCK_SIZE: 16}}}}"),
            prefix_cache);
  EXPECT_EQ(routing_of("\"curl -H 'routing-strategy: least-request' http://gateway/v1/chat\""),
            R"({"balancer":"aibrix-least-request"})");
  std::string messages;
  routing_of("{envs: {ROUTING_ALGORITHM: random, AIBRIX_PREFILL_REQUEST_TIMEOUT: 30}}", messages);
  EXPECT_NE(messages.find("is not simulated: AIBRIX_PREFILL_REQUEST_TIMEOUT"), std::string::npos)
      << messages;
  routing_of("{envs: {ROUTING_ALGORITHM: fastest}}", messages);
  EXPECT_NE(messages.find("names a policy that is not simulated (got fastest)"), std::string::npos)
      << messages;
}

TEST(RouterConfig, RayServeLlm) {
  // As in the guide to PrefixCacheAffinityRouter, in a Serve config and without an explicit router.
  std::string messages;
  EXPECT_EQ(
      routing_of("{applications: [{args: {llm_configs: [{model_loading_config: {model_id: m}, "
                 "deployment_config: {max_ongoing_requests: 64, max_queued_requests: 9, "
                 "request_router_config: {request_router_class: "
                 "ray.serve.llm.request_router.PrefixCacheAffinityRouter, request_router_kwargs: "
                 "{imbalanced_threshold: 5, match_rate_threshold: 0.15, do_eviction: true, "
                 "tree_actor: x}, initial_backoff_s: 0.1}}}]}}]}",
                 messages),
      R"({"balancer":"ray-prefix-cache-affinity","ray":{"max_ongoing_requests":64,)"
      R"("imbalanced_threshold":5,"match_rate_threshold":0.15,"do_eviction":true,)"
      R"("initial_backoff_s":0.1}})");
  EXPECT_NE(messages.find("is not simulated: max_queued_requests, tree_actor"), std::string::npos)
      << messages;
  EXPECT_EQ(routing_of("{model_loading_config: {model_id: m}, deployment_config: "
                       "{max_ongoing_requests: 100}}",
                       messages),
            R"({"balancer":"ray-power-of-two","ray":{"max_ongoing_requests":100}})");
  routing_of("{request_router_config: {request_router_class: my.module:Mine}}", messages);
  EXPECT_NE(messages.find("names a policy that is not simulated (got Mine)"), std::string::npos)
      << messages;
  routing_of("{prefill_config: {model_loading_config: {}}, decode_config: {}}", messages);
  EXPECT_NE(messages.find("has prefill and decode deployments"), std::string::npos) << messages;
}

TEST(RouterConfig, MooncakeProxy) {
  std::string messages;
  EXPECT_EQ(routing_of("{conductor: {address: 'http://127.0.0.1:13333'}, prefill: {config: "
                       "{modelname: m, block_size: 16}, instances: []}, decode: {instances: []}}",
                       messages),
            R"({"balancer":"mooncake-proxy"})");
  EXPECT_NE(messages.find("has no effect on results: conductor, prefill, decode"),
            std::string::npos)
      << messages;
  EXPECT_EQ(routing_of("python cache_aware_disagg_proxy.py --prefiller-hosts a b", messages),
            R"({"balancer":"mooncake-proxy"})");
}

TEST(RouterConfig, EnvoysLimitsAndRetries) {
  EXPECT_EQ(routing_of("{clusters: [{lb_policy: RANDOM, http2_protocol_options: {}, "
                       "circuit_breakers: {thresholds: [{priority: HIGH, max_requests: 9}, "
                       "{max_requests: 64, max_retries: 5, retry_budget: {budget_percent: {value: "
                       "30}, min_retry_concurrency: 4}}]}}], routes: [{route: {retry_policy: "
                       "{retry_on: '5xx,retriable-status-codes', num_retries: 3, "
                       "retriable_status_codes: [429], retry_back_off: {base_interval: 0.01s, "
                       "max_interval: 1s}}}}]}"),
            R"({"balancer":"envoy-random","gateway":{"protocol":"http2","max_requests":64,)"
            R"("max_retries":5,"retry_budget":{"budget_percent":30,"min_retry_concurrency":4},)"
            R"("retry":{"retry_on":["5xx","retriable-status-codes"],"num_retries":3,)"
            R"("retriable_status_codes":[429],"base_interval":"0.01s","max_interval":"1s"}}})");
}

TEST(RouterConfig, AClusterThatAHeaderLeadsIsThatOfAnEndpointPicker) {
  // As in llm-d-router's standalone chart.
  EXPECT_EQ(routing_of("{name: original_destination_cluster, type: ORIGINAL_DST, lb_policy: "
                       "CLUSTER_PROVIDED, original_dst_lb_config: {use_http_header: true}, "
                       "circuit_breakers: {thresholds: [{max_connections: 40000, "
                       "max_pending_requests: 40000, max_requests: 40000}]}}"),
            R"({"balancer":"endpoint-picker","gateway":{"max_connections":40000,)"
            R"("max_pending_requests":40000,"max_requests":40000}})");
}

TEST(RouterConfig, EnvoyGatewaysLimitsAndRetries) {
  std::string messages;
  EXPECT_EQ(routing_of("{kind: BackendTrafficPolicy, spec: {circuitBreaker: {maxConnections: 10, "
                       "maxPendingRequests: 0, maxParallelRequests: 20, perEndpoint: {}}, retry: "
                       "{retryOn: {triggers: [5xx, cancelled]}, perRetry: {timeout: 1s, backOff: "
                       "{baseInterval: 50ms}}}}}",
                       messages),
            R"({"gateway":{"max_connections":10,"max_pending_requests":0,"max_requests":20,)"
            R"("max_retries":1024,"retry":{"retry_on":["5xx"],"num_retries":2,)"
            R"("base_interval":"50ms"}}})");
  EXPECT_NE(messages.find("has no effect on results: cancelled"), std::string::npos) << messages;
  EXPECT_NE(messages.find("is not simulated: perEndpoint, timeout"), std::string::npos) << messages;
  EXPECT_EQ(routing_of("{kind: BackendTrafficPolicy, spec: {retry: {}}}"),
            R"({"gateway":{"max_retries":1024,"retry":{"retry_on":["connect-failure",)"
            R"("refused-stream","retriable-status-codes"],"retriable_status_codes":[503],)"
            R"("num_retries":2}}})");
}

TEST(RouterConfig, AibrixProfiles) {
  EXPECT_EQ(routing_of("{gpu: a10, tputs: [[2, 1]], indexes: [[4], [8, 16]], e2e: [[1, 2]], slos: "
                       "{e2e: 5}}"),
            R"({"balancer":"aibrix-slo","aibrix":{"profiles":[{"gpu":"a10","tputs":[[2,1]],)"
            R"("indexes":[[4],[8,16]],"e2e":[[1,2]],"slos":{"e2e":5}}]}})");
  EXPECT_EQ(routing_of("[{tputs: [], indexes: []}, {}]"),
            R"({"balancer":"aibrix-slo","aibrix":{"profiles":[{"tputs":[],"indexes":[]},{}]}})");
}

TEST(RouterConfig, SeveralDeploymentsOrClustersAreNamed) {
  std::string messages;
  routing_of(
      "{llm_configs: [{model_loading_config: {model_id: a}, deployment_config: "
      "{max_ongoing_requests: 3}}, {model_loading_config: {model_id: b}}]}",
      messages);
  EXPECT_NE(messages.find("holds several deployments of Ray Serve"), std::string::npos) << messages;
  EXPECT_EQ(routing_of("{clusters: [{lb_policy: RANDOM}, {lb_policy: MAGLEV}]}", messages),
            R"({"balancer":"envoy-random","gateway":{}})");
  EXPECT_NE(messages.find("first of 2 clusters with a load balancer"), std::string::npos)
      << messages;
}

TEST(RouterConfig, AnEndpointPickerConfigIsThePickers) {
  const std::string file =
      ROUTESIM_SOURCE_DIR "/scenarios/inputs/llm-d-precise.endpoint-picker.yaml";
  EXPECT_EQ(routing_of(file), R"({"endpoint_picker":")" + file + R"("})");
}

TEST(RouterConfig, KeysBesideItWin) {
  EXPECT_EQ(routing_of("smg launch --policy random\n  router_replicas: 2\n  balancer: smg-bucket"),
            R"({"balancer":"smg-bucket","router_replicas":2})");
}

// What Helm values say of the router besides its document: the release, the replicas, the default.

/// A scenario file and the values it names, in a folder of their own.
class RouterValues : public testing::ScenarioTest {
 protected:
  /// The scenario behind the router of `v.yaml`, with more keys of `routing`.
  LoadedScenario load_routed(const std::string& more, Diagnostics& diagnostics) const {
    return load("routing: {balancer: endpoint-picker, endpoint_picker: v.yaml" + more + "}\n",
                diagnostics);
  }
};

/// Helm values around a document that no shape dates.
std::string values(const std::string& epp) {
  return "router:\n  epp:\n" + epp +
         "    pluginsCustomConfig:\n"
         "      a.yaml: |\n"
         "        apiVersion: llm-d.ai/v1alpha1\n"
         "        kind: EndpointPickerConfig\n"
         "        plugins: [{type: queue-scorer}]\n";
}

TEST_F(RouterValues, TheImageTagDatesTheDocument) {
  const auto origin = [&](const std::string& epp, const std::string& era) {
    write("v.yaml", values(epp));
    Diagnostics d;
    const LoadedScenario loaded = load_routed(era, d);
    EXPECT_EQ(messages_of(d), "");
    const auto& config = loaded.variants.at(0).endpoint_picker;
    return config ? std::string(name(config->era)) + ", " + config->era_origin : std::string();
  };
  const std::string tag = "    image: {repository: llm-d-router-endpoint-picker, tag: ";
  EXPECT_EQ(origin(tag + "v0.8.0-rc.1}\n", ""),
            "v0.7.0, image tag v0.8.0-rc.1 decides like v0.7.0");
  EXPECT_EQ(origin(tag + "v0.7.0}\n", ""), "v0.7.0, image tag v0.7.0");
  EXPECT_EQ(origin(tag + "main}\n", ""),
            "2026-08, default: the head of August 2026; later ones differ in pulls and tiers");
  EXPECT_EQ(origin(tag + "v0.7.0}\n", ", era: v0.10.0"),
            "2026-08, set: v0.10.0 decides like 2026-08");
}

TEST_F(RouterValues, ADocumentAloneMakesTheRouterTheBalancer) {
  write("v.yaml", values(""));
  const auto balancer = [&](const std::string& routing) {
    Diagnostics d;
    const LoadedScenario loaded = load(routing, d);
    EXPECT_EQ(messages_of(d), "");
    return loaded.variants.at(0).scenario.routing.balancer;
  };
  EXPECT_EQ(balancer("routing: {endpoint_picker: v.yaml}\n"), sim::BalancerKind::kEndpointPicker);
  EXPECT_EQ(balancer("routing: {endpoint_picker: v.yaml, balancer: least-load}\n"),
            sim::BalancerKind::kLeastLoad)
      << "as a variant does to go without the router";
  EXPECT_EQ(balancer(""), sim::BalancerKind::kK8sService);
}

TEST_F(RouterValues, CostsOfADecisionAreDefaultsUntilTheyAreWritten) {
  write("v.yaml", values(""));
  const auto costs = [&](const std::string& routing) {
    Diagnostics d;
    const LoadedScenario loaded = load("routing: {" + routing + "}\n", d);
    EXPECT_EQ(messages_of(d), "");
    sim::Scenario scenario = loaded.variants.at(0).scenario;
    const FieldDescription values =
        describe_values([&](Describer& describer) { describe(describer, scenario); });
    std::string out;
    for (const ResolvedValue& value : resolved_values(values, loaded.variants[0].provenance))
      if (value.path == "routing.decision_latency" || value.path == "routing.service_time")
        out += value.value + (value.origin == "default" ? " (default) " : " ");
    return out;
  };
  EXPECT_EQ(costs("endpoint_picker: v.yaml"), "2ms (default) 2800us (default) ");
  EXPECT_EQ(costs("endpoint_picker: v.yaml, decision_latency: 0s"), "0s 2800us (default) ");
  EXPECT_EQ(costs("endpoint_picker: v.yaml, decision_latency: 0s, service_time: 0s"), "0s 0s ");
  EXPECT_EQ(costs("balancer: k8s-service"), "0s (default) 0s (default) ");
  EXPECT_EQ(costs("balancer: envoy-random"), "500us (default) 0s (default) ");
}

TEST_F(RouterValues, TheReplicasOfTheRouterAreTakenWhereAllOfThemServe) {
  const auto routers = [&](const std::string& epp, const std::string& more, std::string& said) {
    write("v.yaml", values(epp));
    Diagnostics d;
    const LoadedScenario loaded = load_routed(more, d);
    said = messages_of(d);
    return loaded.variants.at(0).scenario.routing.router_replicas;
  };
  const std::string all = "    flags: {ha-enable-leader-election: false}\n    replicas: 2\n";
  std::string said;
  EXPECT_EQ(routers(all, "", said), 2);
  EXPECT_NE(said.find("v.yaml:4:15: warning: routing.router_replicas: is 2, taken from"),
            std::string::npos)
      << said;
  EXPECT_EQ(routers(all, ", router_replicas: 3", said), 3);
  EXPECT_EQ(said, "");
  EXPECT_EQ(routers("    replicas: 2\n", "", said), 1) << "the charts elect a leader";
  EXPECT_NE(said.find("stays 1: of 2 replicas the elected leader routes"), std::string::npos);
  EXPECT_EQ(routers("    replicas: 1\n", "", said), 1);
  EXPECT_EQ(said, "");
  // Where the leader ends, those that wait count.
  write("v.yaml", values("    replicas: 2\n"));
  Diagnostics d;
  const LoadedScenario loaded =
      load("routing: {endpoint_picker: v.yaml}\nevents: [{kind: router-restart, at: 1s}]\n", d);
  EXPECT_EQ(loaded.variants.at(0).scenario.routing.router_replicas, 2) << messages_of(d);
  EXPECT_TRUE(loaded.variants[0].scenario.routing.leader_election);
}

TEST_F(RouterValues, ValuesThatLeaveThePluginsToTheChartGetItsDefault) {
  write("v.yaml", "router:\n  latencyPredictor: {enabled: false}\n  epp: {replicas: 1}\n");
  Diagnostics d;
  const LoadedScenario loaded = load_routed("", d);
  ASSERT_TRUE(loaded.variants.at(0).endpoint_picker.has_value()) << messages_of(d);
  EXPECT_EQ(loaded.variants[0].endpoint_picker->profiles.front().plugins[2].weight, 3.0);
  for (const char* part : {"v.yaml:1:1: warning: routing.endpoint_picker: holds no",
                           "the chart's default is used: queue-scorer 2"})
    EXPECT_NE(messages_of(d).find(part), std::string::npos) << messages_of(d);
}

// config/charts/routerlib of llm-d-router at ebab6879: values.yaml, templates/_config.yaml.
TEST_F(RouterValues, ThePredictorOfTheChartTrainsAsItsValuesSay) {
  write("v.yaml",
        "router:\n  latencyPredictor:\n    enabled: true\n    trainingServer:\n"
        "      port: 8000\n      config:\n"
        "        LATENCY_RETRAINING_INTERVAL_SEC: \"5\"\n"
        "        LATENCY_MIN_SAMPLES_FOR_RETRAIN: \"100\"\n"
        "        LATENCY_TTFT_MODEL_PATH: /models/ttft.joblib\n"
        "        LATENCY_MODEL_TYPE: xgboost\n"
        "        LATENCY_MAX_TRAINING_DATA_SIZE_PER_BUCKET: \"250\"\n"
        "        LATENCY_OBJECTIVE_TYPE: quantile\n        LATENCY_QUANTILE_ALPHA: 0.5\n"
        "    predictionServers:\n      count: 2\n      config:\n"
        "        MODEL_SYNC_INTERVAL_SEC: \"7\"\n    eppEnv: {LATENCY_MAX_SAMPLE_SIZE: \"9\"}\n"
        "  epp: {replicas: 1}\n");
  Diagnostics d;
  const LoadedScenario loaded = load_routed("", d);
  const auto& config = loaded.variants.at(0).endpoint_picker;
  ASSERT_TRUE(config.has_value()) << messages_of(d);
  std::string profile;
  for (const auto& plugin : config->profiles.front().plugins) profile += plugin.name + " ";
  EXPECT_EQ(profile,
            "strict-affinity-filter slo-headroom-tier-filter "
            "loose-affinity-filter latency-scorer weighted-random-picker ");
  const auto settings = sim::deciding_predictor({}, *config);
  ASSERT_TRUE(settings.has_value());
  EXPECT_EQ(settings->retraining_interval, Duration::seconds(5));
  EXPECT_EQ(settings->model_sync_interval, Duration::seconds(7));
  EXPECT_EQ(settings->bucket_size, 250);
  EXPECT_EQ(settings->objective, sim::PredictionObjective::kQuantile);
  EXPECT_EQ(settings->quantile, 0.5);
  EXPECT_EQ(settings->min_samples, 10) << "the default";
  std::map<std::string, std::string> fates;
  for (const KeyUse& use : d.keys())
    if (const auto at = use.path.find("latencyPredictor."); at != std::string::npos)
      fates[use.path.substr(at + 17)] = fate_name(use.fate);
  EXPECT_EQ(fates, (std::map<std::string, std::string>{
                       {"enabled", "used"},
                       {"eppEnv.LATENCY_MAX_SAMPLE_SIZE", "not modelled"},
                       {"predictionServers.config.MODEL_SYNC_INTERVAL_SEC", "used"},
                       {"predictionServers.count", "not modelled"},
                       {"trainingServer.config.LATENCY_MAX_TRAINING_DATA_SIZE_PER_BUCKET", "used"},
                       {"trainingServer.config.LATENCY_MIN_SAMPLES_FOR_RETRAIN", "no effect"},
                       {"trainingServer.config.LATENCY_MODEL_TYPE", "approximated"},
                       {"trainingServer.config.LATENCY_OBJECTIVE_TYPE", "used"},
                       {"trainingServer.config.LATENCY_QUANTILE_ALPHA", "used"},
                       {"trainingServer.config.LATENCY_RETRAINING_INTERVAL_SEC", "used"},
                       {"trainingServer.config.LATENCY_TTFT_MODEL_PATH", "no effect"},
                       {"trainingServer.port", "no effect"}}));
}

TEST_F(RouterValues, AVariableOfThePredictorThatIsNoNumberIsAnError) {
  write("v.yaml",
        "router:\n  latencyPredictor:\n    enabled: true\n    trainingServer:\n      config:\n"
        "        LATENCY_RETRAINING_INTERVAL_SEC: soon\n  epp: {replicas: 1}\n");
  Diagnostics d;
  (void)load_routed("", d);
  EXPECT_NE(messages_of(d).find("v.yaml:6:42: error: "), std::string::npos) << messages_of(d);
}

// What an observer of latencies lacks.
TEST_F(RouterValues, AnObserverThatNobodyAsksIsNamed) {
  const std::string document =
      "apiVersion: llm-d.ai/v1\nkind: EndpointPickerConfig\nplugins:\n"
      "- type: latency-observation-scorer-hub\n";
  const auto said = [&](const std::string& more) {
    write("v.yaml", document + more);
    Diagnostics d;
    (void)load_routed("", d);
    return messages_of(d);
  };
  EXPECT_NE(said("").find("'latency-observer-producer-hub' observes nothing, so every endpoint"),
            std::string::npos);
  EXPECT_EQ(said("- type: latency-observer-producer-hub\n"
                 "dataLayer:\n  sources:\n  - pluginRef: latency-observer-producer-hub\n"),
            "");
}

TEST_F(RouterValues, ExplainShowsWhatDecides) {
  const std::string epp = write("e.yaml",
                                "apiVersion: llm-d.ai/v1alpha1\n"
                                "kind: EndpointPickerConfig\n"
                                "featureGates: [flowControl]\n"
                                "plugins:\n"
                                "- type: queue-scorer\n"
                                "- type: prefix-cache-scorer\n"
                                "- {type: concurrency-detector, parameters: {maxConcurrency: 7}}\n"
                                "- type: prefix-based-pd-decider\n"
                                "- type: disagg-profile-handler\n"
                                "  parameters: {deciders: {prefill: prefix-based-pd-decider}}\n"
                                "schedulingProfiles:\n"
                                "- {name: prefill, plugins: [{pluginRef: queue-scorer}]}\n"
                                "- {name: decode, plugins: [{pluginRef: queue-scorer}]}\n"
                                "flowControl:\n"
                                "  maxRequests: 9\n"
                                "  defaultRequestTTL: 30s\n"
                                "  saturationDetector: {pluginRef: concurrency-detector}\n");
  Diagnostics d;
  const LoadedScenario loaded = load(
      "routing: {balancer: endpoint-picker, "
      "endpoint_picker: e.yaml, era: 2026-08}\n",
      d);
  ASSERT_TRUE(loaded.variants.at(0).endpoint_picker.has_value()) << messages_of(d);
  const std::string text = router_text(*loaded.variants[0].endpoint_picker);
  for (const std::string part :
       {"router: llm-d, era 2026-08 (set)", "profile handler: disagg-profile-handler",
        "flow control: on, detector concurrency-detector, 9 requests, unlimited bytes",
        "other priorities: 5000 requests, 1000000000 bytes, TTL 30.000 s, "
        "global-strict-fairness-policy, fcfs-ordering-policy",
        "deciders.prefill", "data producer approx-prefix-cache-producer"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  const auto row = [&](const std::string& key) {
    const std::size_t at = text.find("    " + key + " ");
    return at == std::string::npos ? std::string() : text.substr(at, text.find('\n', at) - at);
  };
  EXPECT_NE(row("maxConcurrency").find("e.yaml:7:"), std::string::npos) << text;
  EXPECT_NE(row("maxTokenConcurrency").find("1000000"), std::string::npos) << text;
  EXPECT_NE(row("maxTokenConcurrency").find("default"), std::string::npos) << text;
}

// llm-d-router pull requests 1547 and 1639 (June 2026) changed keys and defaults.
TEST_F(RouterValues, ExplainShowsWhatTheReleaseReadsOfTheAffinityFilter) {
  const auto rows = [&](const std::string& era, const std::string& parameters) {
    write("e.yaml",
          "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\nplugins:\n"
          "- type: prefix-cache-affinity-filter\n" +
              parameters +
              "schedulingProfiles:\n- name: default\n"
              "  plugins: [{pluginRef: prefix-cache-affinity-filter}]\n");
    Diagnostics d;
    const LoadedScenario loaded = load(
        "routing: {balancer: endpoint-picker, endpoint_picker: e.yaml, era: " + era + "}\n", d);
    EXPECT_TRUE(loaded.variants.at(0).endpoint_picker.has_value()) << messages_of(d);
    std::istringstream text(router_text(*loaded.variants[0].endpoint_picker));
    std::map<std::string, std::string> found;
    bool inside = false;
    for (std::string line; std::getline(text, line);) {
      if (line.compare(0, 4, "    ") != 0)
        inside = line.find("filter prefix-cache-affinity-filter") != std::string::npos;
      std::string key, value;
      if (inside && std::istringstream(line.substr(4)) >> key >> value) found[key] = value;
    }
    found.erase("prefix-cache-affinity-filter");
    return found;
  };
  using Rows = std::map<std::string, std::string>;
  Rows august = rows("2026-08", "");
  EXPECT_EQ(august["maxTTFTPenaltyMs"], "18000");
  EXPECT_EQ(august["explorationProbability"], "0");
  EXPECT_EQ(august["peakPrefillThroughput"], "15928");
  EXPECT_EQ(august.count("maxTokensInFlightPenalty"), 0U) << "it is gone since June 2026";
  Rows may = rows("2026-05", "");
  EXPECT_EQ(may["maxTTFTPenaltyMs"], "5000");
  EXPECT_EQ(may["explorationProbability"], "0.01");
  EXPECT_EQ(may["maxTokensInFlightPenalty"], "0");
  EXPECT_EQ(may.count("ttftSource") + may.count("peakPrefillThroughput"), 0U);
  Rows predictor = rows("2026-08", "  parameters: {ttftSource: latencyPredictor}\n");
  EXPECT_EQ(predictor["ttftSource"], "latencyPredictor");
  EXPECT_EQ(predictor.count("peakPrefillThroughput"), 0U);
}

// llm-d-router ebab6879 pkg/epp/config/loader/configloader.go; gateway-api-inference-extension has
// a default since 1.4.0.
TEST_F(RouterValues, AnEmptyDocumentIsTheRoutersDefault) {
  const auto loaded = [&](const std::string& text, const std::string& more, Diagnostics& d) {
    write("v.yaml", text);
    return load_routed(more, d).variants.at(0).endpoint_picker;
  };
  for (const std::string text :
       {"", "router:\n  epp:\n    pluginsCustomConfig: {a.yaml: \"\"}\n"}) {
    Diagnostics d;
    const auto config = loaded(text, "", d);
    ASSERT_TRUE(config.has_value()) << messages_of(d);
    EXPECT_NE(messages_of(d).find("is empty, so the router's default is used"), std::string::npos);
    ASSERT_EQ(config->profiles.size(), 1U);
    EXPECT_EQ(config->profiles[0].plugins[0].name, "queue-scorer");
    EXPECT_EQ(config->profiles[0].plugins[0].weight, 2.0);
    EXPECT_EQ(config->profiles[0].plugins[2].name, "prefix-cache-scorer");
    EXPECT_EQ(config->profiles[0].plugins[2].weight, 3.0);
    EXPECT_EQ(name(config->era), "2026-08");
  }
  Diagnostics old;
  EXPECT_FALSE(loaded("", ", era: v0.5.0", old).has_value());
  EXPECT_NE(messages_of(old).find("is empty: routers of era v0.5.0 do not start"),
            std::string::npos)
      << messages_of(old);
  Diagnostics comment;
  EXPECT_FALSE(loaded("# later\n", "", comment).has_value());
}

}  // namespace
}  // namespace routesim::tools
