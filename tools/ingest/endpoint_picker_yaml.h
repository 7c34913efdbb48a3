// EndpointPickerConfig from YAML: bare, inside Heimdall's `config:`, as text inside Helm values, or
// inside Kubernetes objects.
// The library in policies/ knows no file format; this is the bridge.
#pragma once

#include <optional>
#include <string>

#include "base/config_node.h"
#include "policies/config/document.h"

namespace routesim::tools {

/// The node as plain data, with places. Plain scalars are typed by YAML 1.2's core schema; what
/// Go's YAML reader would take differently (`yes`, `010`, `.nan`) is an error at its place.
policies::ParameterValue to_parameter_value(const ConfigNode& node, const std::string& path,
                                            Diagnostics& diagnostics);

/// Finds the document inside `root`, reads and validates it. Everything wrong is in `diagnostics`;
/// nothing is returned then. `path` is the document's own key path and goes before those inside it.
std::optional<policies::EndpointPickerConfig> load_endpoint_picker(
    const ConfigNode::Ptr& root, const policies::LoadOptions& options, Diagnostics& diagnostics,
    const std::string& path = {});

/// Makes every plugin once, for what only their parameters can tell. `path` is as above.
void check_plugins(const policies::EndpointPickerConfig& config, Diagnostics& diagnostics,
                   const std::string& path = {});

}  // namespace routesim::tools
