#include "tools/results/json_tree.h"

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

namespace routesim::tools {

namespace {

using Json = nlohmann::ordered_json;

/// Whether brackets outside quotes nest too deep.
bool nests_too_deep(std::string_view text) {
  constexpr int kDeepest = 64;
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') ++i;
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if ((c == '[' || c == '{') && ++depth > kDeepest) return true;
    if (c == ']' || c == '}') --depth;
  }
  return false;
}

ConfigNode::Ptr tree_of(const Json& value, const SourceLocation& where) {
  if (value.is_null()) return ConfigNode::make_null(where);
  if (value.is_string())
    return ConfigNode::make_scalar(value.get<std::string>(), ConfigNode::Style::kQuoted, where);
  if (!value.is_structured())
    return ConfigNode::make_scalar(value.dump(), ConfigNode::Style::kPlain, where);
  std::vector<ConfigNode::Ptr> items;
  std::vector<ConfigNode::Member> members;
  for (const auto& [key, member] : value.items()) {
    if (value.is_array())
      items.push_back(tree_of(member, where));
    else
      members.push_back({.key = key, .key_where = where, .value = tree_of(member, where)});
  }
  return value.is_array() ? ConfigNode::make_sequence(std::move(items), where)
                          : ConfigNode::make_map(std::move(members), where);
}

}  // namespace

ConfigNode::Ptr json_tree(const std::string& text, const SourceLocation& where) {
  if (nests_too_deep(text)) return nullptr;
  const Json value = Json::parse(text, nullptr, false);
  return value.is_discarded() ? nullptr : tree_of(value, where);
}

}  // namespace routesim::tools
