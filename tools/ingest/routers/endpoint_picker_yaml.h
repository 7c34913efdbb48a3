// EndpointPickerConfig from YAML: bare, inside Heimdall's `config:`, as text inside Helm values, or
// inside Kubernetes objects.
#pragma once

#include <optional>
#include <string>

#include "base/config_node.h"
#include "policies/config/document.h"

namespace routesim::tools {

/// Finds the document inside `root`, reads and validates it. Everything wrong is in `diagnostics`;
/// nothing is returned then. `path` is the document's own key path and goes before those inside it.
std::optional<policies::EndpointPickerConfig> load_endpoint_picker(
    const ConfigNode::Ptr& root, const policies::LoadOptions& options, Diagnostics& diagnostics,
    const std::string& path = {});

/// The document inside a file, and the text that its places refer to.
struct PickerDocument {
  ConfigNode::Ptr root;  ///< The EndpointPickerConfig.
  std::string text;      ///< YAML in which `root` stands at its places; empty when there is none.
  bool is_bare = true;   ///< The file is the document, so key paths of the file lead into it.
};

/// Finds the document of a file without judging it; nothing when there is none, or when it is a
/// chart's default.
std::optional<PickerDocument> find_picker_document(const std::string& path);

/// Makes every plugin once, for what only their parameters can tell. `path` is as above.
void check_plugins(policies::EndpointPickerConfig& config, Diagnostics& diagnostics,
                   const std::string& path = {});

}  // namespace routesim::tools
