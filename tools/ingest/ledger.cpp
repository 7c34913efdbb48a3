#include "tools/ingest/ledger.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "base/diagnostic.h"
#include "base/text.h"
#include "base/tree_reader.h"
#include "tools/ingest/kv_tier_files.h"
#include "tools/ingest/vllm_serve_flags.h"

namespace routesim::tools {

namespace {

/// Longest path of a key in a list of keys.
constexpr std::size_t kLongestPath = 200;

/// How much a fate says about a result.
int weight(Fate fate) {
  constexpr std::array<int, 4> kWeights = {1, 0, 2, 3};  // In the order of the enumerators.
  return kWeights.at(static_cast<std::size_t>(fate));
}

}  // namespace

void note_keys(const ConfigNode& root, const std::string& path, const KeyTable& table,
               const ConfigNode* elsewhere, Diagnostics& diagnostics) {
  for_each_key(root, elsewhere,
               [&](const ConfigNode& node, const std::string& below, const SourceLocation& key) {
                 const KeyRule* rule = find_rule(table, below);
                 KeyUse use = key_use(key, table.format, path.empty() ? below : path + "." + below,
                                      rule == nullptr ? Fate::kUsed : rule->fate,
                                      rule == nullptr ? "" : rule->why, is_off(node));
                 if (use.fate == Fate::kNotModelled)
                   diagnostics.warning(key, use.path, "is not modelled: " + use.why);
                 diagnostics.key(std::move(use));
               });
}

std::vector<KeyUse> ledger(const Diagnostics& diagnostics) {
  // A key without a line (`--set`), or in one text with others (a command), is told apart by its
  // path. Elsewhere two readers may name the same key by different paths.
  using Place = std::tuple<std::string, int, int, std::string>;
  const auto shares_text = [](std::string_view format) {
    return format == kServeFormat || format.starts_with(kTransferFormat);
  };
  std::map<Place, KeyUse> once;
  for (const KeyUse& use : diagnostics.keys()) {
    Place place{use.where.file, use.where.line, use.where.column,
                use.where.line > 0 && !shares_text(use.format) ? std::string() : use.path};
    const auto [at, is_new] = once.emplace(std::move(place), use);
    if (!is_new && weight(use.fate) > weight(at->second.fate)) at->second = use;
  }
  std::vector<KeyUse> keys;
  for (auto& entry : once) keys.push_back(std::move(entry.second));
  return keys;
}

std::string summary_text(std::span<const KeyUse> keys) {
  std::array<std::size_t, 4> counts{};
  for (const KeyUse& use : keys) ++counts.at(static_cast<std::size_t>(use.fate));
  std::string text = std::to_string(counts[0]) + (counts[0] == 1 ? " key used" : " keys used");
  const auto add = [&](Fate fate, const char* words) {
    const std::size_t n = counts.at(static_cast<std::size_t>(fate));
    if (n > 0) text += ", " + std::to_string(n) + " " + words;
  };
  add(Fate::kNoEffect, "without effect");
  add(Fate::kApproximated, "approximated");
  add(Fate::kNotModelled, "not modelled");
  return text;
}

std::string keys_text(std::span<const KeyUse> keys) {
  std::string text;
  for (const KeyUse& use : keys) {
    text += printable(use.where.file, kLongestPath);
    if (use.where.line > 0)
      text.append(":")
          .append(std::to_string(use.where.line))
          .append(":")
          .append(std::to_string(use.where.column));
    text.append(": ").append(fate_name(use.fate)).append(": ");
    text += printable(use.path, kLongestPath);
    if (!use.why.empty()) text.append(" (").append(use.why).append(")");
    text += '\n';
  }
  return text;
}

namespace {

using enum Fate;

constexpr std::string_view kPods = "it is about running the router, not about its decisions";
constexpr std::string_view kServers = "the servers are the scenario's";
constexpr std::string_view kGateway = "it is about the gateway before the router";
constexpr std::string_view kObserved = "it is about metrics and traces of the router itself";
constexpr std::string_view kOneModel = "the predictor here has no such setting";
constexpr std::string_view kAtOnce = "predictions take no time here, and samples arrive at once";
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
    KeyRule{"**.latencyPredictor.enabled"},
    KeyRule{"inferenceExtension.latencyPredictor.enabled", kApproximated,
            "a predictor is there where a document declares predicted-latency-producer; the "
            "plugins of this chart are not switched"},
    KeyRule{"**.latencyPredictor.**", kNoEffect, kPods},
    KeyRule{"**.latencyPredictor.trainingServer.config.*", kNotModelled, kOneModel},
    KeyRule{"**.latencyPredictor.trainingServer.config.LATENCY_TTFT_MODEL_PATH", kNoEffect, kPods},
    KeyRule{"**.latencyPredictor.trainingServer.config.LATENCY_TPOT_MODEL_PATH", kNoEffect, kPods},
    KeyRule{"**.latencyPredictor.trainingServer.config.LATENCY_TTFT_SCALER_PATH", kNoEffect, kPods},
    KeyRule{"**.latencyPredictor.trainingServer.config.LATENCY_TPOT_SCALER_PATH", kNoEffect, kPods},
    KeyRule{"**.latencyPredictor.trainingServer.config.LATENCY_RETRAINING_INTERVAL_SEC"},
    KeyRule{"**.latencyPredictor.trainingServer.config.LATENCY_MIN_SAMPLES_FOR_RETRAIN_FRESH"},
    KeyRule{"**.latencyPredictor.trainingServer.config.LATENCY_MIN_SAMPLES_FOR_ENSEMBLE_SPLIT"},
    KeyRule{"**.latencyPredictor.trainingServer.config.LATENCY_MAX_TRAINING_DATA_SIZE_PER_BUCKET"},
    KeyRule{"**.latencyPredictor.trainingServer.config.LATENCY_TEST_TRAIN_RATIO"},
    KeyRule{"**.latencyPredictor.trainingServer.config.LATENCY_OBJECTIVE_TYPE"},
    KeyRule{"**.latencyPredictor.trainingServer.config.LATENCY_QUANTILE_ALPHA"},
    KeyRule{"**.latencyPredictor.trainingServer.config.LATENCY_MIN_SAMPLES_FOR_RETRAIN", kNoEffect,
            "without stored models LATENCY_MIN_SAMPLES_FOR_RETRAIN_FRESH counts"},
    KeyRule{"**.latencyPredictor.trainingServer.config.LATENCY_MODEL_TYPE", kApproximated,
            "a Bayesian ridge regression learns, whatever the type"},
    KeyRule{"**.latencyPredictor.predictionServers.config.MODEL_SYNC_INTERVAL_SEC"},
    KeyRule{"**.latencyPredictor.predictionServers.config.LATENCY_MODEL_TYPE", kApproximated,
            "a Bayesian ridge regression learns, whatever the type"},
    KeyRule{"**.latencyPredictor.predictionServers.count", kNotModelled, kAtOnce},
    KeyRule{"**.latencyPredictor.predictionServers.config.UVICORN_WORKERS", kNotModelled, kAtOnce},
    KeyRule{"**.latencyPredictor.eppEnv.*", kNotModelled, kAtOnce},
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
    KeyRule{"**.nodeSelector.*"},
    KeyRule{"**.nodeAffinity.**"},
    KeyRule{"**.nodeSelectorTerms.**"},
    KeyRule{"**.acceleratorTypes.labelValues"},
    KeyRule{"spec.resourceProfile"},
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
    KeyRule{"**.modelSpec[].lmcacheConfig.cpuOffloadingBufferSize"},
    KeyRule{"**.modelSpec[].lmcacheConfig.diskOffloadingBufferSize"},
    KeyRule{"**.modelSpec[].lmcacheConfig.logLevel", kNoEffect, kAround},
    KeyRule{"**.modelSpec[].lmcacheConfig.*", kNotModelled,
            "of LMCache's settings the chart's buffer sizes are read"},
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
