#include "tools/ingest/tree/ledger.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "base/diagnostic.h"
#include "base/text.h"
#include "base/tree_reader.h"

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
constexpr std::string_view kAtOnce = "predictions take no time here, and samples arrive at once";

constexpr KeyGroup kRouterGroups[] = {
    {kNoEffect, kPods, "", "** **.latencyPredictor.**"},
    {kUsed, "", "",
     "inferenceExtension.image.tag inferenceExtension.image.name "
     "inferenceExtension.image.repository inferenceExtension.replicas **.epp.image.tag "
     "**.epp.image.name **.epp.image.repository **.epp.replicas **.pluginsConfigFile "
     "**.flags.ha-enable-leader-election **.flags.ha-enable-leader-election=false "
     "**.latencyPredictor.enabled"},
    {kApproximated, "metrics reach the router as routing.scrape_interval says", "",
     "**.flags.refresh-metrics-interval"},
    {kNotModelled, "metrics of a server never go stale here", "",
     "**.flags.metrics-staleness-threshold"},
    {kApproximated,
     "a predictor is there where a document declares predicted-latency-producer; the "
     "plugins of this chart are not switched",
     "", "inferenceExtension.latencyPredictor.enabled"},
    {kNotModelled, "the predictor here has no such setting",
     "**.latencyPredictor.trainingServer.config", "*"},
    {kNoEffect, kPods, "**.latencyPredictor.trainingServer.config",
     "LATENCY_TTFT_MODEL_PATH LATENCY_TPOT_MODEL_PATH LATENCY_TTFT_SCALER_PATH "
     "LATENCY_TPOT_SCALER_PATH"},
    {kUsed, "", "**.latencyPredictor.trainingServer.config",
     "LATENCY_RETRAINING_INTERVAL_SEC LATENCY_MIN_SAMPLES_FOR_RETRAIN_FRESH "
     "LATENCY_MIN_SAMPLES_FOR_ENSEMBLE_SPLIT LATENCY_MAX_TRAINING_DATA_SIZE_PER_BUCKET "
     "LATENCY_TEST_TRAIN_RATIO LATENCY_OBJECTIVE_TYPE LATENCY_QUANTILE_ALPHA"},
    {kNoEffect, "without stored models LATENCY_MIN_SAMPLES_FOR_RETRAIN_FRESH counts",
     "**.latencyPredictor.trainingServer.config", "LATENCY_MIN_SAMPLES_FOR_RETRAIN"},
    {kApproximated, "a Bayesian ridge regression learns, whatever the type",
     "**.latencyPredictor.trainingServer.config", "LATENCY_MODEL_TYPE"},
    {kUsed, "", "**.latencyPredictor.predictionServers", "config.MODEL_SYNC_INTERVAL_SEC"},
    {kApproximated, "a Bayesian ridge regression learns, whatever the type",
     "**.latencyPredictor.predictionServers", "config.LATENCY_MODEL_TYPE"},
    {kNotModelled, kAtOnce, "**.latencyPredictor.predictionServers",
     "count config.UVICORN_WORKERS"},
    {kNotModelled, kAtOnce, "", "**.latencyPredictor.eppEnv.*"},
    {kNoEffect, "it is about metrics and traces of the router itself", "",
     "**.monitoring.** **.tracing.**"},
    {kNoEffect, "the servers are the scenario's", "", "inferencePool.**"},
    {kNotModelled, "requests have no objectives of their own", "", "inferenceObjectives.**"},
    {kNoEffect, "it is about the gateway before the router", "",
     "provider.** istio.** gateway.** httpRoute.** experimentalHttpRoute.**"},
};

constexpr std::string_view kAround = "it is about running the pod, not about how it serves";
constexpr std::string_view kFixedFleet = "the fleet does not change during a run";

constexpr KeyGroup kServerGroups[] = {
    {kNoEffect, kAround, "", "**"},
    {kUsed, "", "",
     "**.name **.image **.image.tag **.image.repository **.command **.args **.entrypoint "
     "**.env[].name **.env[].value **.environment.* **.modelCommand **.replicas **.labels.* "
     "**.nodeSelector.* **.nodeAffinity.** **.nodeSelectorTerms.** "
     "**.acceleratorTypes.labelValues **.acceleratorType.labelValue **.spec.resourceProfile "
     "**.parallelism.* **.leaderWorkerTemplate.size **.spec.slices **.modelArtifacts.uri "
     "**.modelArtifacts.name **.spec.url **.spec.engine **.minReplicas **.minReplicaCount "
     "**.scaleTargetRef.name **.spec.loadBalancing.** **.routerSpec.enableRouter "
     "**.routerSpec.routingLogic **.kind **.envs[].name **.envs[].value **.subComponentType "
     "**.componentType **.components[].type **.limits.gpu **.spec.model.uri **.spec.model.name "
     "**.model.lora.* **.baseRefs[].name **.kvCacheOffloading.cpu **.customCommand "
     "**.additionalFlags **.extraEnvVars[].name **.extraEnvVars[].value **.enforceEager "
     "**.vllm.repository **.vllm.tag **.accelerator.count **.accelerator.resource"},
    {kUsed, "", "scenario[].**.model",
     "name huggingfaceId path blockSize maxModelLen gpuMemoryUtilization maxNumSeq "
     "maxNumBatchedTokens"},
    {kNoEffect, kPods, "", "**.routerSpec.**"},
    {kUsed, "", "", "**.routerSpec.sessionKey"},
    {kNotModelled, "its flags of the router are not read", "", "**.routerSpec.extraArgs"},
    {kNotModelled, kFixedFleet, "",
     "**.maxReplicas **.maxReplicaCount **.autoscaling.** **.scaling.**"},
    {kNoEffect, kFixedFleet, "", "**.autoscaling.enabled **.targetRequests"},
    {kNotModelled, "of its settings the size of the memory is read", "", "**.kvCacheOffloading.**"},
    {kUsed, "", "**.modelSpec[]", "modelURL replicaCount repository tag enableLoRA vllmConfig.*"},
    {kUsed, "", "**.modelSpec[].lmcacheConfig",
     "enabled cpuOffloadingBufferSize diskOffloadingBufferSize"},
    {kNoEffect, kAround, "**.modelSpec[].lmcacheConfig", "logLevel"},
    {kNotModelled, "of LMCache's settings the chart's buffer sizes are read",
     "**.modelSpec[].lmcacheConfig", "*"},
    {kNoEffect, "the simulation begins with servers that are ready", "",
     "**.readinessProbe.** **.livenessProbe.** **.startupProbe.**"},
};

}  // namespace

const KeyTable& router_values_keys() {
  static const GroupedTable kTable(
      "router values", "charts of llm-d-router, gateway-api-inference-extension and Heimdall",
      kRouterGroups);
  return kTable.table();
}

const KeyTable& server_file_keys() {
  static const GroupedTable kTable(
      "server files",
      "Kubernetes objects, charts of llm-d-modelservice and vLLM production-stack, KubeAI models "
      "and compose services",
      kServerGroups);
  return kTable.table();
}

}  // namespace routesim::tools
