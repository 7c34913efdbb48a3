// The configuration files that stand inside Kubernetes objects: entries of ConfigMaps, values of
// Helm releases, arguments of containers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/config_node.h"
#include "tools/ingest/tree/parse_config.h"

namespace routesim::tools {

/// Reads a file that may hold a manifest of several objects (see `parse_manifest`). A file that
/// cannot be read is a diagnostic at `asked_from`, the reference that named it or the file itself.
ConfigNode::Ptr read_manifest_file(const std::string& path, const SourceLocation& asked_from,
                                   const std::string& key_path, Diagnostics& diagnostics);

/// Which document is looked for inside Kubernetes objects.
struct DocumentSearch {
  /// Whether a map is the document.
  bool (*is_document)(const ConfigNode& map);
  /// Whether a text can hold it; other texts are not looked at.
  bool (*may_hold)(const std::string& text);
  /// Flags (without dashes) of a container, and keys of Helm values, that name the file read.
  std::vector<std::string_view> file_keys;
};

/// The document, or the text that holds it. Null when there is none, or when there
/// are several and no container says which; `hint` then names them.
struct FoundDocument {
  ConfigNode::Ptr node;
  std::string hint;
};

/// Whether the map is a Kubernetes object: it has `apiVersion` and `kind`.
bool is_kubernetes_object(const ConfigNode& node);

/// ` (it holds Service, HTTPRoute)`, for an object or a list; empty for other files.
std::string kinds_held(const ConfigNode& root);

/// Looks for the document in one object, or in the items of a `kind: List`.
FoundDocument find_in_objects(const ConfigNode::Ptr& root, const DocumentSearch& search);

}  // namespace routesim::tools
