// Targets of patches in kustomize folders: which objects they select.
#pragma once

#include <regex>
#include <string>
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

}  // namespace routesim::tools
