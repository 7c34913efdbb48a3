#include "policies/config/inert_keys.h"

#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "policies/parameters.h"

namespace routesim::policies {
namespace {

constexpr std::string_view kTokens = "requests come with their tokens";
constexpr std::string_view kMedia = "prompts are text here";
constexpr std::string_view kReach = "it is about how the router reaches a server";
constexpr std::string_view kMetrics = "the simulation fills the table of endpoints itself";
constexpr std::string_view kSession = "requests name their session themselves";
constexpr std::string_view kOneRevision = "servers of a roll-out have no labels here";
constexpr std::string_view kReports = "it reports and has no part in decisions";
constexpr std::string_view kInterval = "metrics arrive as routing.scrape_interval says";

/// Below the type of the plugin.
constexpr KeyGroup kInert[] = {
    {Fate::kNoEffect, kTokens, "token-producer", "modelName vllm vllm.url vllm.timeout"},
    {Fate::kNoEffect, kMedia, "token-producer", "vllm.mmTimeout"},
    {Fate::kNoEffect, kTokens, "token-producer",
     "udsTokenizerConfig.socketFile udsTokenizerConfig.useTCP"},
    {Fate::kApproximated, "the engines' own tokens stand in for the estimate", "token-producer",
     "estimate"},
    {Fate::kNoEffect, kMedia, "token-producer", "estimate.image.** estimate.video.**"},
    {Fate::kNoEffect, kTokens, "tokenizer", "modelName vllm vllm.url vllm.timeout"},
    {Fate::kNoEffect, kMedia, "tokenizer", "vllm.mmTimeout"},
    {Fate::kNoEffect, kTokens, "tokenizer",
     "udsTokenizerConfig.socketFile udsTokenizerConfig.useTCP"},
    {Fate::kNoEffect, kSession, "session-id-producer", "headerName cookieName"},
    {Fate::kNoEffect, kMedia, "mm-embeddings-cache-producer", "cacheSizeInMBPerServer"},
    {Fate::kNoEffect, kReach, "metrics-data-source",
     "scheme path port insecureSkipVerify caCertPath clientCertPath clientKeyPath"},
    {Fate::kApproximated, kInterval, "metrics-data-source", "interval"},
    {Fate::kNoEffect, kMetrics, "core-metrics-extractor",
     "engineLabelKey defaultEngine engineConfigs engineConfigs[].name "
     "engineConfigs[].queuedRequestsSpec engineConfigs[].runningRequestsSpec "
     "engineConfigs[].kvUsageSpec engineConfigs[].loraSpec engineConfigs[].cacheInfoSpec "
     "engineConfigs[].cacheBlockSizeLabelName engineConfigs[].cacheNumBlocksLabelName "
     "engineConfigs[].cacheBlockSizeSpec engineConfigs[].cacheNumBlocksSpec "
     "engineConfigs[].customMetrics engineConfigs[].customMetrics[].attributeKey "
     "engineConfigs[].customMetrics[].metricSpec"},
    {Fate::kNoEffect, kReach, "models-data-source",
     "scheme path insecureSkipVerify caCertPath clientCertPath clientKeyPath"},
    {Fate::kNoEffect, kMetrics, "models-data-source", "interval"},
    {Fate::kNoEffect, kReach, "dcgm-data-source",
     "scheme path port insecureSkipVerify useNodeAddress"},
    {Fate::kNoEffect, kMetrics, "dcgm-data-source", "interval"},
    {Fate::kNoEffect, kMetrics, "topology-extractor", "hostname rack zone region"},
    {Fate::kNoEffect, kMetrics, "k8s-notification-source", "group version kind"},
    {Fate::kNoEffect, "the servers are the scenario's", "file-discovery", "path watchFile"},
    {Fate::kNoEffect, kReach, "multicluster-metrics-data-source",
     "scheme path port insecureSkipVerify caCertPath clientCertPath clientKeyPath"},
    {Fate::kApproximated, kInterval, "multicluster-metrics-data-source", "interval"},
    {Fate::kNoEffect, kMetrics, "multicluster-metrics-extractor",
     "kvCacheUtilizationMetric queueSizeMetric"},
    {Fate::kNoEffect, "the clusters are the scenario's servers", "multicluster-file-discovery",
     "path watchFile"},
    {Fate::kNoEffect, kSession, "agent-identity", "additionalSessionHeaders"},
    {Fate::kNoEffect, kReports, "request-attribute-reporter",
     "attributes attributes[].key.namespace attributes[].key.name attributes[].expression "
     "attributes[].condition"},
    {Fate::kNoEffect, kOneRevision, "disaggregatedset-rollout-screener",
     "scope.labelSelector headerSelectors headerSelectors[].name headerSelectors[].headerName "
     "headerSelectors[].labelKey headerSelectors[].mode revisionGating.revisionLabelKey "
     "revisionGating.roleLabelKey revisionGating.mode revisionGating.requireRoles.values"},
    {Fate::kNoEffect, "engines that take hints of retention are not simulated", "kv-cache-hint",
     "**"},
    {Fate::kNoEffect, "engines that take hints of retention are not simulated", "kv-cache-hint-v2",
     "**"},
    {Fate::kNoEffect, kReports, "session-interturn-latency-producer", "**"},
    {Fate::kNoEffect, kReports, "destination-endpoint-served-verifier", "**"},
};

void report(const PluginSpec& spec, const SourceLocation& where, const std::string& path,
            Severity unknown_key, Diagnostics& diagnostics) {
  std::vector<std::string> known;
  for (const KeyRule& rule : inert_keys().rules)
    if (rule.pattern.starts_with(spec.type + "."))
      known.emplace_back(rule.pattern.substr(spec.type.size() + 1));
  const std::string close = nearest(path, known);
  const bool is_error = unknown_key == Severity::kError;
  diagnostics.add({.severity = unknown_key,
                   .where = where,
                   .path = spec.path + ".parameters." + path,
                   .message = is_error ? "unknown key" : "unknown key, ignored by this release",
                   .hint = close.empty() ? std::string() : "did you mean " + close + "?"});
}

}  // namespace

const KeyTable& inert_keys() {
  static const GroupedTable kTable(
      "parameters of plugins without a part in decisions",
      "llm-d-router, pkg/epp/framework/plugins at ebab6879 (August 2026)", kInert);
  return kTable.table();
}

void check_inert_parameters(const PluginSpec& spec, Severity unknown_key,
                            Diagnostics& diagnostics) {
  for_each_key(
      *spec.parameters, nullptr,
      [&](const ConfigNode&, const std::string& path, const SourceLocation& where) {
        const KeyRule* rule = find_rule(inert_keys(), spec.type + "." + path);
        if (rule == nullptr) report(spec, where, path, unknown_key, diagnostics);
        diagnostics.key(key_use(where, kDocumentFormat, spec.path + ".parameters." + path,
                                rule == nullptr ? Fate::kNoEffect : rule->fate,
                                rule == nullptr ? "this release does not know it" : rule->why));
      });
}

}  // namespace routesim::policies
