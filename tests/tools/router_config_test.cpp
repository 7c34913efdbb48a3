// Configurations of other products' routers, as `routing.config` reads them.
#include "tools/ingest/routers/router_config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "tests/base/messages.h"
#include "tests/policies/yaml_text.h"
#include "tools/ingest/tree/description.h"
#include "tools/ingest/tree/ledger.h"

namespace routesim::tools {
namespace {

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

}  // namespace
}  // namespace routesim::tools
