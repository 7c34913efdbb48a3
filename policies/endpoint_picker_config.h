// EndpointPickerConfig as typed data: a document after it was read, checked and completed.
// config/document.h makes it from a file; the scheduler runs it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/config_node.h"
#include "base/diagnostic.h"
#include "base/units.h"
#include "policies/era.h"

namespace routesim::policies {

/// One entry of `plugins`.
struct PluginSpec {
  std::string name;
  std::string type;
  ConfigNode::Ptr parameters = ConfigNode::make_null({});  ///< A map or null.
  SourceLocation where;
  std::string path;       ///< "plugins[3]"; empty for a plugin the defaults added.
  bool implicit = false;  ///< True when the loader's defaults added it.
};

/// One entry of a scheduling profile.
struct PluginReference {
  std::string name;
  std::optional<double> weight;  ///< Scorers only; absent = 1.
  SourceLocation where;
  std::string path;
  bool implicit = false;
};

struct ProfileSpec {
  std::string name;
  std::vector<PluginReference> plugins;
  SourceLocation where;
  std::string path;
};

struct DataSourceSpec {
  PluginReference source;
  std::vector<PluginReference> extractors;
};

struct DataLayerSpec {
  bool inject_defaults = true;
  std::vector<DataSourceSpec> sources;
  std::optional<PluginReference> discovery, peer_discovery;
};

struct PriorityBandSpec {
  std::int32_t priority = 0;
  std::optional<std::int64_t> max_bytes = 1'000'000'000;
  std::optional<std::int64_t> max_requests;     ///< Absent = unlimited.
  std::optional<Duration> default_request_ttl;  ///< Absent = the one of all bands.
  std::string fairness_policy = "global-strict-fairness-policy";
  std::string ordering_policy = "fcfs-ordering-policy";
};

struct FlowControlSpec {
  std::optional<std::int64_t> max_bytes, max_requests;  ///< Absent = unlimited.
  /// Zero = never expires. What no document states is that of its era.
  Duration default_request_ttl = Duration::zero(), no_endpoint_request_ttl = Duration::zero();
  PriorityBandSpec default_band, default_negative_band;
  std::vector<PriorityBandSpec> bands;
  std::string usage_limit_policy = "static-usage-limit-policy";
  bool evicts = false;  ///< Running requests of negative priority give way to waiting ones.
};

/// Copies of the router, as the Helm values around the document say.
struct RouterReplicas {
  std::int64_t count = 1;
  bool all_serve = false;  ///< Otherwise a leader does, and the others wait.
  SourceLocation where;
};

struct Requirements;

struct EndpointPickerConfig {
  std::string api_version;
  Era era = Era::kAug2026;
  std::string era_origin;  ///< Why this era: "set", "inferred: …" or "default: …".
  Distribution distribution = Distribution::kLlmD;
  std::map<std::string, bool> feature_gates;  ///< Every registered gate with its value.
  std::vector<PluginSpec> plugins;
  std::vector<ProfileSpec> profiles;
  std::string profile_handler;      ///< Name of the handler's instance.
  std::string saturation_detector;  ///< Name of the detector's instance.
  std::vector<std::string> parsers;
  DataLayerSpec data_layer;
  FlowControlSpec flow_control;
  RouterReplicas replicas;
  /// A map of what the Helm values around the document set for the latency predictor: environment
  /// variables of its servers. Null without a predictor.
  ConfigNode::Ptr predictor = ConfigNode::make_null({});
  /// What it needs, stored by whoever checked its plugins, which do not change afterwards; null
  /// before.
  std::shared_ptr<const Requirements> needs = {};

  bool gate(const std::string& name) const {
    const auto it = feature_gates.find(name);
    return it != feature_gates.end() && it->second;
  }
  /// The place of a profile; nothing when there is none of that name.
  std::optional<std::size_t> profile(std::string_view wanted) const {
    for (std::size_t i = 0; i < profiles.size(); ++i)
      if (profiles[i].name == wanted) return i;
    return std::nullopt;
  }
  const PluginSpec* find(const std::string& plugin) const {
    for (const PluginSpec& spec : plugins)
      if (spec.name == plugin) return &spec;
    return nullptr;
  }
};

/// Name of the parser that takes OpenAI requests; nullptr when none of the document does. The first
/// parser without paths of its own ends the list (llm-d-router 0.9.0 pkg/epp/handlers/parsers.go).
inline const std::string* openai_parser(const EndpointPickerConfig& config) {
  for (const std::string& name : config.parsers) {
    const PluginSpec* spec = config.find(name);
    const std::string& type = spec == nullptr ? name : spec->type;  // Defaults are not declared.
    if (type == "openai-parser" || type == "passthrough-parser") return &name;
  }
  return nullptr;
}

/// Whether the router reads the prompts of OpenAI requests: passthrough-parser does not.
inline bool reads_prompts(const EndpointPickerConfig& config) {
  const std::string* parser = openai_parser(config);
  if (parser == nullptr) return true;
  const PluginSpec* spec = config.find(*parser);
  return (spec == nullptr ? *parser : spec->type) != "passthrough-parser";
}

}  // namespace routesim::policies
