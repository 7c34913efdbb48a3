// Reads EndpointPickerConfig documents (llm-d.ai/v1alpha1 and
// inference.networking.x-k8s.io/v1alpha1): checks them and applies the loader's defaults.
#pragma once

#include <optional>
#include <string>

#include "base/config_node.h"
#include "base/describe.h"
#include "base/diagnostic.h"
#include "policies/endpoint_picker_config.h"
#include "policies/era.h"

namespace routesim::policies {

class PluginRegistry;

struct LoadOptions {
  std::optional<Era> era;                    ///< Absent = infer from the document's shape.
  std::string era_origin = "set";            ///< Why, when it is given.
  std::optional<Distribution> distribution;  ///< Absent = infer.
  const PluginRegistry* registry = nullptr;  ///< Absent = standard_registry().
};

/// Reads, validates and completes a document. Reports every error it finds with place and path;
/// returns nothing when there is one.
std::optional<EndpointPickerConfig> load_endpoint_picker_config(const ConfigNode& root,
                                                                const LoadOptions& options,
                                                                Diagnostics& diagnostics);

/// Every key of the document outside `plugins[].parameters`, with its fate.
void describe_document(Describer& d);

/// Facts in Helm values about the endpoint picker, besides its document.
struct ChartValues {
  std::string image_tag{};  ///< Tag of the router's own image; empty when they name none.
  const ConfigNode* replicas = nullptr;
  /// Without the election of a leader all replicas serve; the charts elect one unless told not to.
  bool all_replicas_serve = false;
};

/// The place of an EndpointPickerConfig inside a YAML file.
struct LocatedDocument {
  enum class Kind {
    kDocument,      ///< `node` is the document.
    kText,          ///< `node` is a string that holds the document as YAML: parse it, then load it.
    kChartDefault,  ///< Helm values that leave it to the chart: take chart_default_document.
    kNotFound,
  };
  Kind kind = Kind::kNotFound;
  const ConfigNode* node = nullptr;
  std::string path;  ///< Dotted path to the node; empty for a bare document.
  Distribution distribution = Distribution::kLlmD;
  ChartValues chart{};  ///< Facts about the router in the Helm values around the document.
  std::string hint{};   ///< When not found: what the file is, and what would help.
};

/// Finds the document in a file that is one, or in Helm values: Heimdall's `config:`, or the entry
/// of the first `pluginsCustomConfig` (each chart has it below another key) that
/// `pluginsConfigFile` beside it names (the only one, or the first in document order, when it names
/// none).
LocatedDocument find_endpoint_picker_config(const ConfigNode& root);

/// The document that the router takes for an empty one, and that charts write for values without
/// one: queue-scorer 2, kv-cache-utilization-scorer 2, prefix-cache-scorer 3.
ConfigNode::Ptr default_document(const SourceLocation& where, const std::string& api_version);
/// The latencyPredictor of Helm values where it is enabled, or null.
const ConfigNode* chart_predictor(const ConfigNode& values);
/// The document that the charts of llm-d and of gateway-api-inference-extension write for values
/// without one: queue-scorer 2, kv-cache-utilization-scorer 2, prefix-cache-scorer 3. With the
/// predictor, llm-d's chart writes latency-scorer with its producer, filters and admitter.
ConfigNode::Ptr chart_default_document(const ConfigNode& values);

}  // namespace routesim::policies
