// The steps of loading a document, one file each. Internal to the library.
#pragma once

#include "policies/config/document.h"
#include "policies/config/factory.h"

namespace routesim::policies {

/// References the document makes outside its profiles, kept for validation.
struct DocumentReferences {
  std::optional<PluginReference> saturation_detector;
  std::optional<PluginReference> usage_limit_policy;
  std::vector<PluginReference> fairness_policies, ordering_policies, parsers;
  std::optional<Duration> request_ttl, no_endpoint_request_ttl;  ///< As flowControl states them.
  bool has_flow_control = false;  ///< flowControl holds more than saturationDetector.
  SourceLocation flow_control_where;
  bool inline_detector = false;  ///< saturationDetector carries thresholds, not a reference.
  std::string old_name;          ///< A name of the summer of 2025 that the document uses.
};

/// Step 1: strict decode, deprecated fields folded, names defaulted.
void decode_document(const ConfigNode& root, EndpointPickerConfig& config,
                     DocumentReferences& references, Diagnostics& diagnostics);

/// Gives plugins and parameters with names of the summer of 2025 the names they have now:
/// kv-cache-scorer, prefix-cache-scorer's `mode` and `hashBlockSize` (llm-d-inference-scheduler up
/// to 0.3.0, gateway-api-inference-extension up to 1.0).
void fold_old_names(EndpointPickerConfig& config, DocumentReferences& references,
                    Diagnostics& diagnostics);

/// Chooses the era by the shape of the decoded document.
void infer_era(const ConfigNode& root, EndpointPickerConfig& config,
               const DocumentReferences& references, Diagnostics& diagnostics);

/// Warns of a precise index that nothing feeds, of a prefill endpoint that is picked and never
/// named to the side-car, and of prompts that nothing reads. The document must be complete.
void check_wiring(const EndpointPickerConfig& config, Diagnostics& diagnostics);

/// Steps 2, 5 and 6: plugin entries, defaults, references and roles.
void complete_document(EndpointPickerConfig& config, const DocumentReferences& references,
                       const PluginRegistry& registry, Diagnostics& diagnostics);

}  // namespace routesim::policies
