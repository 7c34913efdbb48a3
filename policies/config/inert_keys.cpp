#include "policies/config/inert_keys.h"

#include <deque>
#include <sstream>
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
constexpr std::string_view kOneRevision = "all servers are of one revision here";
constexpr std::string_view kReports = "it reports and has no part in decisions";
constexpr std::string_view kInterval = "metrics arrive as routing.scrape_interval says";

/// Keys of one plugin type that share a fate, separated by spaces.
struct InertKeys {
  std::string_view type, keys, why;
  Fate fate = Fate::kNoEffect;
};
constexpr InertKeys kInert[] = {
    {"token-producer", "modelName vllm vllm.url vllm.timeout", kTokens},
    {"token-producer", "vllm.mmTimeout", kMedia},
    {"token-producer", "udsTokenizerConfig.socketFile udsTokenizerConfig.useTCP", kTokens},
    {"token-producer", "estimate", "the engines' own tokens stand in for the estimate",
     Fate::kApproximated},
    {"token-producer", "estimate.image.** estimate.video.**", kMedia},
    {"tokenizer", "modelName vllm vllm.url vllm.timeout", kTokens},
    {"tokenizer", "vllm.mmTimeout", kMedia},
    {"tokenizer", "udsTokenizerConfig.socketFile udsTokenizerConfig.useTCP", kTokens},
    {"session-id-producer", "headerName cookieName", kSession},
    {"mm-embeddings-cache-producer", "cacheSizeInMBPerServer", kMedia},
    {"metrics-data-source",
     "scheme path port insecureSkipVerify caCertPath clientCertPath clientKeyPath", kReach},
    {"metrics-data-source", "interval", kInterval, Fate::kApproximated},
    {"core-metrics-extractor",
     "engineLabelKey defaultEngine engineConfigs engineConfigs[].name "
     "engineConfigs[].queuedRequestsSpec engineConfigs[].runningRequestsSpec "
     "engineConfigs[].kvUsageSpec engineConfigs[].loraSpec engineConfigs[].cacheInfoSpec "
     "engineConfigs[].cacheBlockSizeLabelName engineConfigs[].cacheNumBlocksLabelName "
     "engineConfigs[].cacheBlockSizeSpec engineConfigs[].cacheNumBlocksSpec "
     "engineConfigs[].customMetrics engineConfigs[].customMetrics[].attributeKey "
     "engineConfigs[].customMetrics[].metricSpec",
     kMetrics},
    {"models-data-source", "scheme path insecureSkipVerify caCertPath clientCertPath clientKeyPath",
     kReach},
    {"models-data-source", "interval", kMetrics},
    {"dcgm-data-source", "scheme path port insecureSkipVerify useNodeAddress", kReach},
    {"dcgm-data-source", "interval", kMetrics},
    {"topology-extractor", "hostname rack zone region", kMetrics},
    {"k8s-notification-source", "group version kind", kMetrics},
    {"file-discovery", "path watchFile", "the servers are the scenario's"},
    {"multicluster-metrics-data-source",
     "scheme path port insecureSkipVerify caCertPath clientCertPath clientKeyPath", kReach},
    {"multicluster-metrics-data-source", "interval", kInterval, Fate::kApproximated},
    {"multicluster-metrics-extractor", "kvCacheUtilizationMetric queueSizeMetric", kMetrics},
    {"multicluster-file-discovery", "path watchFile", "the clusters are the scenario's servers"},
    {"agent-identity", "additionalSessionHeaders", kSession},
    {"request-attribute-reporter",
     "attributes attributes[].key.namespace attributes[].key.name attributes[].expression "
     "attributes[].condition",
     kReports},
    {"disaggregatedset-rollout-screener",
     "scope.labelSelector headerSelectors headerSelectors[].name headerSelectors[].headerName "
     "headerSelectors[].labelKey headerSelectors[].mode revisionGating.revisionLabelKey "
     "revisionGating.roleLabelKey revisionGating.mode revisionGating.requireRoles.values",
     kOneRevision},
    {"kv-cache-hint", "**", "engines that take hints of retention are not simulated"},
    {"kv-cache-hint-v2", "**", "engines that take hints of retention are not simulated"},
    {"session-interturn-latency-producer", "**", kReports},
    {"destination-endpoint-served-verifier", "**", kReports},
};

const std::vector<KeyRule>& inert_rules() {
  static std::deque<std::string> patterns;  // The rules refer to them.
  static const std::vector<KeyRule> kRules = [] {
    std::vector<KeyRule> rules;
    for (const InertKeys& row : kInert) {
      std::istringstream keys{std::string(row.keys)};
      for (std::string key; keys >> key;)
        rules.push_back(
            {patterns.emplace_back(std::string(row.type) + "." + key), row.fate, row.why});
    }
    return rules;
  }();
  return kRules;
}

void report(const PluginSpec& spec, const SourceLocation& where, const std::string& path,
            Severity unknown_key, Diagnostics& diagnostics) {
  std::vector<std::string> known;
  for (const KeyRule& rule : inert_rules())
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
  static const KeyTable kTable = {
      .format = "parameters of plugins without a part in decisions",
      .source = "llm-d-router, pkg/epp/framework/plugins at ebab6879 (August 2026)",
      .rules = inert_rules()};
  return kTable;
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
