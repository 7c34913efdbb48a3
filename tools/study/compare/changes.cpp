#include "tools/study/compare/changes.h"

#include <algorithm>
#include <map>

#include "base/tree_reader.h"

namespace routesim::tools {

namespace {

using Scalars = std::vector<std::pair<std::string, std::string>>;

/// Plugins by their names, so that one more of them shifts no others.
std::string item_path(const ConfigNode& item, const std::string& path, std::size_t i) {
  for (const char* key : {"pluginRef", "name", "type"})
    if (const ConfigNode* name =
            path.starts_with("files") && item.is_map() ? item.child(key) : nullptr;
        name != nullptr && name->is_scalar())
      return path + "[" + name->text() + "]";
  return element_path(path, i);
}

void flatten(const ConfigNode& node, const std::string& path, Scalars& out) {
  if (node.is_map()) {
    for (const ConfigNode::Member& m : node.members())
      flatten(*m.value, path.empty() ? m.key : child_path(path, m.key), out);
  } else if (node.is_sequence()) {
    for (std::size_t i = 0; i < node.items().size(); ++i)
      flatten(*node.items()[i], item_path(*node.items()[i], path, i), out);
  } else {
    out.emplace_back(path, node.is_null() ? "null" : node.text());
  }
}

void add(Change change, const std::string& variant, std::vector<Change>& changes) {
  const auto same = std::find_if(changes.begin(), changes.end(), [&](const Change& c) {
    return c.path == change.path && c.base == change.base && c.changed == change.changed;
  });
  if (same != changes.end()) {
    same->variants.push_back(variant);
    return;
  }
  change.variants = {variant};
  changes.push_back(std::move(change));
}

}  // namespace

std::vector<Change> changes_of(const Comparison& c) {
  std::vector<Change> changes;
  for (const VariantPair& pair : c.pairs) {
    const ConfigNode* const a = c.base->resolved_of(*pair.base);
    const ConfigNode* const b = c.changed->resolved_of(*pair.changed);
    if (a == nullptr || b == nullptr) continue;
    Scalars before;
    Scalars after;
    flatten(*a, "", before);
    flatten(*b, "", after);
    std::map<std::string, std::string> left(after.begin(), after.end());
    for (const auto& [path, value] : before) {
      const auto other = left.find(path);
      if (other == left.end())
        add({.path = path, .base = value}, pair.base->name, changes);
      else if (other->second != value)
        add({.path = path, .base = value, .changed = other->second}, pair.base->name, changes);
      if (other != left.end()) left.erase(other);
    }
    for (const auto& [path, value] : after)
      if (left.contains(path)) add({.path = path, .changed = value}, pair.base->name, changes);
  }
  return changes;
}

}  // namespace routesim::tools
