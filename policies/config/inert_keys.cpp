#include "policies/config/inert_keys.h"

#include <array>
#include <string>
#include <vector>

#include "base/key_note.h"
#include "policies/document_keys.h"

namespace routesim::policies {
namespace {

constexpr Fate kNoEffect = Fate::kNoEffect;
constexpr std::string_view kTokens = "requests come with their tokens";
constexpr std::string_view kMedia = "prompts are text here";
constexpr std::string_view kReach = "it is about how the router reaches a server";
constexpr std::string_view kMetrics = "the simulation fills the table of endpoints itself";
constexpr std::string_view kSession = "requests name their session themselves";
constexpr std::string_view kOneRevision = "all servers are of one revision here";
constexpr std::string_view kReports = "it reports and has no part in decisions";
constexpr std::string_view kInterval = "metrics arrive as routing.scrape_interval says";

constexpr std::array kRules = {
    KeyRule{"token-producer.modelName", kNoEffect, kTokens},
    KeyRule{"token-producer.vllm", kNoEffect, kTokens},
    KeyRule{"token-producer.vllm.url", kNoEffect, kTokens},
    KeyRule{"token-producer.vllm.timeout", kNoEffect, kTokens},
    KeyRule{"token-producer.vllm.mmTimeout", kNoEffect, kMedia},
    KeyRule{"token-producer.udsTokenizerConfig.socketFile", kNoEffect, kTokens},
    KeyRule{"token-producer.udsTokenizerConfig.useTCP", kNoEffect, kTokens},
    KeyRule{"token-producer.estimate", Fate::kApproximated,
            "the engines' own tokens stand in for the estimate"},
    KeyRule{"token-producer.estimate.image.**", kNoEffect, kMedia},
    KeyRule{"token-producer.estimate.video.**", kNoEffect, kMedia},
    KeyRule{"tokenizer.modelName", kNoEffect, kTokens},
    KeyRule{"tokenizer.vllm", kNoEffect, kTokens},
    KeyRule{"tokenizer.vllm.url", kNoEffect, kTokens},
    KeyRule{"tokenizer.vllm.timeout", kNoEffect, kTokens},
    KeyRule{"tokenizer.vllm.mmTimeout", kNoEffect, kMedia},
    KeyRule{"tokenizer.udsTokenizerConfig.socketFile", kNoEffect, kTokens},
    KeyRule{"tokenizer.udsTokenizerConfig.useTCP", kNoEffect, kTokens},
    KeyRule{"session-id-producer.headerName", kNoEffect, kSession},
    KeyRule{"session-id-producer.cookieName", kNoEffect, kSession},
    KeyRule{"mm-embeddings-cache-producer.cacheSizeInMBPerServer", kNoEffect, kMedia},
    KeyRule{"metrics-data-source.scheme", kNoEffect, kReach},
    KeyRule{"metrics-data-source.path", kNoEffect, kReach},
    KeyRule{"metrics-data-source.port", kNoEffect, kReach},
    KeyRule{"metrics-data-source.insecureSkipVerify", kNoEffect, kReach},
    KeyRule{"metrics-data-source.caCertPath", kNoEffect, kReach},
    KeyRule{"metrics-data-source.clientCertPath", kNoEffect, kReach},
    KeyRule{"metrics-data-source.clientKeyPath", kNoEffect, kReach},
    KeyRule{"metrics-data-source.interval", Fate::kApproximated, kInterval},
    KeyRule{"core-metrics-extractor.engineLabelKey", kNoEffect, kMetrics},
    KeyRule{"core-metrics-extractor.defaultEngine", kNoEffect, kMetrics},
    KeyRule{"core-metrics-extractor.engineConfigs", kNoEffect, kMetrics},
    KeyRule{"core-metrics-extractor.engineConfigs[].name", kNoEffect, kMetrics},
    KeyRule{"core-metrics-extractor.engineConfigs[].queuedRequestsSpec", kNoEffect, kMetrics},
    KeyRule{"core-metrics-extractor.engineConfigs[].runningRequestsSpec", kNoEffect, kMetrics},
    KeyRule{"core-metrics-extractor.engineConfigs[].kvUsageSpec", kNoEffect, kMetrics},
    KeyRule{"core-metrics-extractor.engineConfigs[].loraSpec", kNoEffect, kMetrics},
    KeyRule{"core-metrics-extractor.engineConfigs[].cacheInfoSpec", kNoEffect, kMetrics},
    KeyRule{"core-metrics-extractor.engineConfigs[].cacheBlockSizeLabelName", kNoEffect, kMetrics},
    KeyRule{"core-metrics-extractor.engineConfigs[].cacheNumBlocksLabelName", kNoEffect, kMetrics},
    KeyRule{"core-metrics-extractor.engineConfigs[].cacheBlockSizeSpec", kNoEffect, kMetrics},
    KeyRule{"core-metrics-extractor.engineConfigs[].cacheNumBlocksSpec", kNoEffect, kMetrics},
    KeyRule{"core-metrics-extractor.engineConfigs[].customMetrics", kNoEffect, kMetrics},
    KeyRule{"core-metrics-extractor.engineConfigs[].customMetrics[].attributeKey", kNoEffect,
            kMetrics},
    KeyRule{"core-metrics-extractor.engineConfigs[].customMetrics[].metricSpec", kNoEffect,
            kMetrics},
    KeyRule{"models-data-source.scheme", kNoEffect, kReach},
    KeyRule{"models-data-source.path", kNoEffect, kReach},
    KeyRule{"models-data-source.insecureSkipVerify", kNoEffect, kReach},
    KeyRule{"models-data-source.caCertPath", kNoEffect, kReach},
    KeyRule{"models-data-source.clientCertPath", kNoEffect, kReach},
    KeyRule{"models-data-source.clientKeyPath", kNoEffect, kReach},
    KeyRule{"models-data-source.interval", kNoEffect, kMetrics},
    KeyRule{"dcgm-data-source.scheme", kNoEffect, kReach},
    KeyRule{"dcgm-data-source.path", kNoEffect, kReach},
    KeyRule{"dcgm-data-source.port", kNoEffect, kReach},
    KeyRule{"dcgm-data-source.insecureSkipVerify", kNoEffect, kReach},
    KeyRule{"dcgm-data-source.useNodeAddress", kNoEffect, kReach},
    KeyRule{"dcgm-data-source.interval", kNoEffect, kMetrics},
    KeyRule{"topology-extractor.hostname", kNoEffect, kMetrics},
    KeyRule{"topology-extractor.rack", kNoEffect, kMetrics},
    KeyRule{"topology-extractor.zone", kNoEffect, kMetrics},
    KeyRule{"topology-extractor.region", kNoEffect, kMetrics},
    KeyRule{"k8s-notification-source.group", kNoEffect, kMetrics},
    KeyRule{"k8s-notification-source.version", kNoEffect, kMetrics},
    KeyRule{"k8s-notification-source.kind", kNoEffect, kMetrics},
    KeyRule{"file-discovery.path", kNoEffect, "the servers are the scenario's"},
    KeyRule{"file-discovery.watchFile", kNoEffect, "the servers are the scenario's"},
    KeyRule{"agent-identity.additionalSessionHeaders", kNoEffect, kSession},
    KeyRule{"request-attribute-reporter.attributes", kNoEffect, kReports},
    KeyRule{"request-attribute-reporter.attributes[].key.namespace", kNoEffect, kReports},
    KeyRule{"request-attribute-reporter.attributes[].key.name", kNoEffect, kReports},
    KeyRule{"request-attribute-reporter.attributes[].expression", kNoEffect, kReports},
    KeyRule{"request-attribute-reporter.attributes[].condition", kNoEffect, kReports},
    KeyRule{"disaggregatedset-rollout-screener.scope.labelSelector", kNoEffect, kOneRevision},
    KeyRule{"disaggregatedset-rollout-screener.headerSelectors", kNoEffect, kOneRevision},
    KeyRule{"disaggregatedset-rollout-screener.headerSelectors[].name", kNoEffect, kOneRevision},
    KeyRule{"disaggregatedset-rollout-screener.headerSelectors[].headerName", kNoEffect,
            kOneRevision},
    KeyRule{"disaggregatedset-rollout-screener.headerSelectors[].labelKey", kNoEffect,
            kOneRevision},
    KeyRule{"disaggregatedset-rollout-screener.headerSelectors[].mode", kNoEffect, kOneRevision},
    KeyRule{"disaggregatedset-rollout-screener.revisionGating.revisionLabelKey", kNoEffect,
            kOneRevision},
    KeyRule{"disaggregatedset-rollout-screener.revisionGating.roleLabelKey", kNoEffect,
            kOneRevision},
    KeyRule{"disaggregatedset-rollout-screener.revisionGating.mode", kNoEffect, kOneRevision},
    KeyRule{"disaggregatedset-rollout-screener.revisionGating.requireRoles.values", kNoEffect,
            kOneRevision},
    // Releases after this one have them; their parameters are not known here.
    KeyRule{"kv-cache-hint.**", kNoEffect,
            "engines that take hints of retention are not simulated"},
    KeyRule{"kv-cache-hint-v2.**", kNoEffect,
            "engines that take hints of retention are not simulated"},
    KeyRule{"session-interturn-latency-producer.**", kNoEffect, kReports},
    KeyRule{"destination-endpoint-served-verifier.**", kNoEffect, kReports},
};

constexpr KeyTable kTable = {
    .format = "parameters of plugins without a part in decisions",
    .source = "llm-d-router, pkg/epp/framework/plugins at ebab6879 (August 2026)",
    .rules = kRules};

void report(const PluginSpec& spec, const SourceLocation& where, const std::string& path,
            Severity unknown_key, Diagnostics& diagnostics) {
  std::vector<std::string> known;
  for (const KeyRule& rule : kRules)
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

const KeyTable& inert_keys() { return kTable; }

void check_inert_parameters(const PluginSpec& spec, Severity unknown_key,
                            Diagnostics& diagnostics) {
  for_each_key(
      *spec.parameters, nullptr,
      [&](const ConfigNode&, const std::string& path, const SourceLocation& where) {
        const KeyRule* rule = find_rule(kTable, spec.type + "." + path);
        if (rule == nullptr) report(spec, where, path, unknown_key, diagnostics);
        diagnostics.key(key_use(where, kDocumentFormat, spec.path + ".parameters." + path,
                                rule == nullptr ? Fate::kNoEffect : rule->fate,
                                rule == nullptr ? "this release does not know it" : rule->why));
      });
}

}  // namespace routesim::policies
