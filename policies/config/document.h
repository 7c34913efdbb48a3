// The EndpointPickerConfig document (llm-d.ai/v1alpha1 and inference.networking.x-k8s.io/v1alpha1),
// typed, validated and with the loader's defaults applied.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "base/units.h"
#include "policies/config/era.h"
#include "policies/config/parameter_value.h"

namespace routesim::policies {

class PluginRegistry;

/// One entry of `plugins`.
struct PluginSpec {
  std::string name;
  std::string type;
  ParameterValue parameters;  ///< A map or null.
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
  std::optional<PluginReference> discovery, peer_discovery, cross_replica_syncer;
};

struct PriorityBandSpec {
  std::int32_t priority = 0;
  std::optional<std::int64_t> max_bytes = 1'000'000'000;
  std::optional<std::int64_t> max_requests = 5'000;
  std::optional<Duration> default_request_ttl;  ///< Absent = the one of all bands.
  std::string fairness_policy = "global-strict-fairness-policy";
  std::string ordering_policy = "fcfs-ordering-policy";
};

struct FlowControlSpec {
  std::optional<std::int64_t> max_bytes, max_requests;   ///< Absent = unlimited.
  Duration default_request_ttl = Duration::seconds(60);  ///< Zero = never expires.
  Duration no_endpoint_request_ttl = Duration::seconds(60);
  PriorityBandSpec default_band, default_negative_band;
  std::vector<PriorityBandSpec> bands;
  std::string usage_limit_policy = "static-usage-limit-policy";
  bool enable_eviction = false;
};

/// Copies of the router, as the Helm values around the document say.
struct RouterReplicas {
  std::int64_t count = 1;
  bool all_serve = false;  ///< Otherwise a leader does, and the others wait.
  SourceLocation where;
};

/// The whole document.
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

  bool gate(const std::string& name) const {
    const auto it = feature_gates.find(name);
    return it != feature_gates.end() && it->second;
  }
  const PluginSpec* find(const std::string& plugin) const;
};

struct LoadOptions {
  std::optional<Era> era;                    ///< Absent = infer from the document's shape.
  std::string era_origin = "set";            ///< Why, when it is given.
  std::optional<Distribution> distribution;  ///< Absent = infer.
  const PluginRegistry* registry = nullptr;  ///< Absent = PluginRegistry::standard().
};

/// Reads, validates and completes a document. Reports every error it finds with place and path;
/// returns nothing when there is one.
std::optional<EndpointPickerConfig> load_endpoint_picker_config(const ParameterValue& root,
                                                                const LoadOptions& options,
                                                                Diagnostics& diagnostics);

/// What Helm values say of the endpoint picker besides its document.
struct ChartValues {
  std::string image_tag{};  ///< Of the router's own image; empty when they name none.
  const ParameterValue* replicas = nullptr;
  /// Without the election of a leader all replicas serve; the charts elect one unless told not to.
  bool all_replicas_serve = false;
};

/// Where an EndpointPickerConfig was found inside a YAML file.
struct LocatedDocument {
  enum class Kind {
    kDocument,      ///< `node` is the document.
    kText,          ///< `node` is a string that holds the document as YAML: parse it, then load it.
    kChartDefault,  ///< Helm values that leave it to the chart: take chart_default_document.
    kNotFound,
  };
  Kind kind = Kind::kNotFound;
  const ParameterValue* node = nullptr;
  std::string path;  ///< Dotted path to the node; empty for a bare document.
  Distribution distribution = Distribution::kLlmD;
  ChartValues chart{};  ///< What the Helm values around the document say of the router.
  std::string hint{};   ///< When not found: what the file is, and what would help.
};

/// Finds the document in a file that is one, or in Helm values: Heimdall's `config:`, or the entry
/// of the first `pluginsCustomConfig` (each chart has it below another key) that
/// `pluginsConfigFile` beside it names (the only one, or the first in document order, when it names
/// none).
LocatedDocument find_endpoint_picker_config(const ParameterValue& root);

/// The document that the router takes for an empty one, and that charts write for values without
/// one: queue-scorer 2, kv-cache-utilization-scorer 2, prefix-cache-scorer 3.
ParameterValue default_document(const SourceLocation& where, const std::string& api_version);
/// The document that the charts of llm-d and of gateway-api-inference-extension write for values
/// without one: queue-scorer 2, kv-cache-utilization-scorer 2, prefix-cache-scorer 3.
ParameterValue chart_default_document(const ParameterValue& values);

}  // namespace routesim::policies
