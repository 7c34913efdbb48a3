// Patches in kustomize folders: which objects they select, and what the two kinds do to a tree.
#pragma once

#include <regex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config_node.h"

namespace routesim::tools {

/// An object of a kustomize folder, and the names and namespaces it has had, the first and the
/// present ones included: patches may use them.
struct KustomizeObject {
  ConfigNode::Ptr node;
  std::vector<std::string> names;
  std::vector<std::string> namespaces;
};

/// A `target`, as in api/types/selector.go and api/resmap/reswrangler.go of kustomize v5.8.1:
/// group, version, kind, name and namespace are regular expressions for the whole text, and both
/// selectors have the syntax of Kubernetes' label selectors. An empty one selects everything.
class KustomizeTarget {
 public:
  /// A pattern or a selector that is not read is an error at its value.
  KustomizeTarget(const ConfigNode& target, const std::string& key_path, Diagnostics& diagnostics);

  bool selects(const KustomizeObject& object) const;

 private:
  /// One requirement of a selector, such as `app in (a, b)`.
  struct Requirement {
    std::string key;
    std::vector<std::string> values;  ///< None: the key itself must be there.
    bool is_negated = false;
  };

  static bool parse_selector(const std::string& text, std::vector<Requirement>& requirements);
  static bool fits(const std::vector<Requirement>& requirements, const ConfigNode* labels);

  std::vector<std::pair<std::string_view, std::regex>> patterns_;  ///< By the key of the target.
  std::vector<Requirement> labels_, annotations_;
};

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
