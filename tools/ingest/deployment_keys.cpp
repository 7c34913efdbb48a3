#include "tools/ingest/deployment_keys.h"

#include <array>

namespace routesim::tools {

namespace {

constexpr Fate kNoEffect = Fate::kNoEffect;
constexpr Fate kApproximated = Fate::kApproximated;
constexpr Fate kNotModelled = Fate::kNotModelled;

constexpr std::string_view kPods = "it is about running the router, not about its decisions";
constexpr std::string_view kServers = "the servers are the scenario's";
constexpr std::string_view kGateway = "it is about the gateway before the router";
constexpr std::string_view kObserved = "it is about metrics and traces of the router itself";
constexpr std::string_view kScrape = "metrics reach the router as routing.scrape_interval says";

constexpr std::array kRouterRules = {
    KeyRule{"**", kNoEffect, kPods},
    KeyRule{"inferenceExtension.image.tag"},
    KeyRule{"inferenceExtension.image.name"},
    KeyRule{"inferenceExtension.image.repository"},
    KeyRule{"inferenceExtension.replicas"},
    KeyRule{"**.epp.image.tag"},
    KeyRule{"**.epp.image.name"},
    KeyRule{"**.epp.image.repository"},
    KeyRule{"**.epp.replicas"},
    KeyRule{"**.pluginsConfigFile"},
    KeyRule{"**.flags.ha-enable-leader-election"},
    KeyRule{"**.flags.ha-enable-leader-election=false"},
    KeyRule{"**.flags.refresh-metrics-interval", kApproximated, kScrape},
    KeyRule{"**.flags.metrics-staleness-threshold", kNotModelled,
            "metrics of a server never go stale here"},
    KeyRule{"**.latencyPredictor.enabled", kNotModelled, "latency predictions are not simulated"},
    KeyRule{"**.latencyPredictor.**", kNoEffect, "latency predictions are not simulated"},
    KeyRule{"**.monitoring.**", kNoEffect, kObserved},
    KeyRule{"**.tracing.**", kNoEffect, kObserved},
    KeyRule{"inferencePool.**", kNoEffect, kServers},
    KeyRule{"inferenceObjectives.**", kNotModelled, "requests have no objectives of their own"},
    KeyRule{"provider.**", kNoEffect, kGateway},
    KeyRule{"istio.**", kNoEffect, kGateway},
    KeyRule{"gateway.**", kNoEffect, kGateway},
    KeyRule{"httpRoute.**", kNoEffect, kGateway},
    KeyRule{"experimentalHttpRoute.**", kNoEffect, kGateway},
};

constexpr KeyTable kRouterTable = {
    .format = "router values",
    .source = "charts of llm-d-router, gateway-api-inference-extension and Heimdall",
    .rules = kRouterRules};

constexpr std::string_view kAround = "it is about running the pod, not about how it serves";
constexpr std::string_view kStarts = "the simulation begins with servers that are ready";
constexpr std::string_view kFixedFleet = "the fleet does not change during a run";

constexpr std::array kServerRules = {
    KeyRule{"**", kNoEffect, kAround},
    KeyRule{"**.name"},
    KeyRule{"**.image"},
    KeyRule{"**.image.tag"},
    KeyRule{"**.image.repository"},
    KeyRule{"**.command"},
    KeyRule{"**.args"},
    KeyRule{"**.entrypoint"},
    KeyRule{"**.env[].name"},
    KeyRule{"**.env[].value"},
    KeyRule{"**.environment.*"},
    KeyRule{"**.modelCommand"},
    KeyRule{"**.replicas"},
    KeyRule{"**.labels.*"},
    KeyRule{"**.parallelism.tensor"},
    KeyRule{"**.parallelism.data"},
    KeyRule{"**.parallelism.dataLocal"},
    KeyRule{"**.parallelism.workers"},
    KeyRule{"**.leaderWorkerTemplate.size"},
    KeyRule{"modelArtifacts.uri"},
    KeyRule{"modelArtifacts.name"},
    KeyRule{"spec.url"},
    KeyRule{"spec.engine"},
    KeyRule{"spec.minReplicas"},
    KeyRule{"spec.loadBalancing.**"},
    KeyRule{"routerSpec.enableRouter"},
    KeyRule{"routerSpec.routingLogic"},
    KeyRule{"routerSpec.**", kNoEffect, kPods},
    KeyRule{"spec.maxReplicas", kNotModelled, kFixedFleet},
    KeyRule{"spec.targetRequests", kNoEffect, kFixedFleet},
    KeyRule{"**.modelSpec[].modelURL"},
    KeyRule{"**.modelSpec[].replicaCount"},
    KeyRule{"**.modelSpec[].repository"},
    KeyRule{"**.modelSpec[].tag"},
    KeyRule{"**.modelSpec[].enableLoRA"},
    KeyRule{"**.modelSpec[].lmcacheConfig.enabled"},
    KeyRule{"**.modelSpec[].lmcacheConfig.*", kNoEffect,
            "KV outside the GPU's memory is not simulated; enabled: true is refused"},
    KeyRule{"**.modelSpec[].vllmConfig.*"},
    KeyRule{"**.readinessProbe.**", kNoEffect, kStarts},
    KeyRule{"**.livenessProbe.**", kNoEffect, kStarts},
    KeyRule{"**.startupProbe.**", kNoEffect, kStarts},
    KeyRule{"**.autoscaling.**", kNotModelled, kFixedFleet},
};

constexpr KeyTable kServerTable = {
    .format = "server files",
    .source =
        "Kubernetes objects, charts of llm-d-modelservice and vLLM production-stack, KubeAI models "
        "and compose services",
    .rules = kServerRules};

}  // namespace

const KeyTable& router_values_keys() { return kRouterTable; }

const KeyTable& server_file_keys() { return kServerTable; }

}  // namespace routesim::tools
