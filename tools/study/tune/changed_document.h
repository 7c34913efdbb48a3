// A YAML document with some of its values changed and everything else, comments included, as it
// was.
#pragma once

#include <span>
#include <string>

#include "base/config_node.h"
#include "tools/ingest/tree/config_merge.h"

namespace routesim::tools {

/// The value at the end of a key path, or null. An element of a list is chosen by its index, or by
/// its `name`, `pluginRef` or `type`.
ConfigNode::Ptr node_at(const ConfigNode::Ptr& root, std::span<const PathStep> steps);

/// A tree on one line, in flow style.
std::string flow_text(const ConfigNode& node);

/// Whether two trees hold the same values; places and quotes do not count.
bool is_same_tree(const ConfigNode& a, const ConfigNode& b);

/// `root` with the assignments made, as text. `text` is where `root` was read from; its lines are
/// kept where they can be. Otherwise (anchors, a map without a block or flow style of its own) the
/// document is written anew, without comments; then `kept` is false.
struct ChangedDocument {
  std::string text = {};
  ConfigNode::Ptr root = {};
  bool kept = true;
};
ChangedDocument change_document(const ConfigNode::Ptr& root, const std::string& text,
                                std::span<const Assignment> assignments);

}  // namespace routesim::tools
