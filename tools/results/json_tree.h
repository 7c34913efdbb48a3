// JSON texts as trees, for the readers of result files.
#pragma once

#include <string>

#include "base/config_node.h"

namespace routesim::tools {

/// The value as a tree, all at one place. Null when the text is no JSON, or nests deeper than every
/// document of ours: readers and writers of trees are recursive.
ConfigNode::Ptr json_tree(const std::string& text, const SourceLocation& where);

}  // namespace routesim::tools
