// The two kinds of patches in kustomize folders, on trees.
#pragma once

#include <string>

#include "base/config_node.h"

namespace routesim::tools {

/// `object` with a strategic merge patch laid on it: maps merge, null removes, `$patch` deletes or
/// replaces. Lists of a built-in kind merge by the key that Kubernetes gives them (containers by
/// name, mounts by path), those of the patch first; other lists are replaced. The name stays.
/// `all_kinds` does the same for other kinds. Null when the patch deletes the object.
ConfigNode::Ptr merged_strategically(const ConfigNode::Ptr& object, const ConfigNode& patch,
                                     bool all_kinds);

/// `object` after JSON 6902 operations: add, replace and remove. A path that is not there and
/// another operation are errors at their places; the object is as far as it got then.
ConfigNode::Ptr patched_by_operations(const ConfigNode::Ptr& object, const ConfigNode& operations,
                                      const std::string& key_path, Diagnostics& diagnostics);

}  // namespace routesim::tools
