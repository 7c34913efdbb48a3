#include "tools/ingest/tree/nodes.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace routesim::tools {

namespace {

const Member* member_at(const ConfigNode& root, KeyPath keys) {
  const Member* member = nullptr;
  for (const std::string_view key : keys) {
    member = (member == nullptr ? root : *member->value).find(key);
    if (member == nullptr) return nullptr;
  }
  return member;
}

}  // namespace

const ConfigNode* node_at(const ConfigNode& root, KeyPath keys) {
  const Member* member = member_at(root, keys);
  return member != nullptr ? member->value.get() : nullptr;
}

Ptr value_at(const ConfigNode& root, KeyPath keys) {
  const Member* member = member_at(root, keys);
  return member != nullptr ? member->value : nullptr;
}

Ptr scalar_at(const ConfigNode& root, KeyPath keys) {
  const Ptr found = value_at(root, keys);
  return found != nullptr && found->is_scalar() ? found : nullptr;
}

std::string text_at(const ConfigNode& root, KeyPath keys) {
  const ConfigNode* found = node_at(root, keys);
  return found != nullptr ? found->text() : std::string();
}

const std::vector<Ptr>& items_at(const ConfigNode& root, KeyPath keys) {
  static const std::vector<Ptr> kNone;
  const ConfigNode* found = node_at(root, keys);
  return found != nullptr ? found->items() : kNone;
}

bool says_key(const ConfigNode& map, std::string_view dotted) {
  const std::size_t dot = std::min(dotted.find('.'), dotted.size());
  const Member* member = map.find(dotted.substr(0, dot));
  if (member == nullptr || dot == dotted.size()) return member != nullptr;
  return !member->value->is_map() || says_key(*member->value, dotted.substr(dot + 1));
}

std::vector<Ptr> children_of(const ConfigNode& node) {
  std::vector<Ptr> children = node.items();
  for (const Member& member : node.members()) children.push_back(member.value);
  return children;
}

Ptr plain(std::string text, const SourceLocation& where) {
  return ConfigNode::make_scalar(std::move(text), ConfigNode::Style::kPlain, where);
}

Ptr untyped(std::string text, const SourceLocation& where) {
  return ConfigNode::make_scalar(std::move(text), ConfigNode::Style::kUntyped, where);
}

Ptr copy_of(const ConfigNode& scalar) {
  return ConfigNode::make_scalar(scalar.text(), scalar.style(), scalar.where());
}

Ptr with_children(const Ptr& node, const std::function<Ptr(const Ptr&)>& change) {
  if (node->is_sequence()) {
    std::vector<Ptr> items = node->items();
    for (Ptr& item : items) item = change(item);
    return ConfigNode::make_sequence(std::move(items), node->where());
  }
  if (!node->is_map()) return node;
  Members members = node->members();
  for (Member& member : members) member.value = change(member.value);
  return ConfigNode::make_map(std::move(members), node->where());
}

Ptr without_key(const Ptr& map, std::string_view key) {
  Members members = map->members();
  std::erase_if(members, [&](const Member& member) { return member.key == key; });
  return ConfigNode::make_map(std::move(members), map->where());
}

Member* find_member(Members& members, std::string_view key) {
  const auto at = std::ranges::find(members, key, &Member::key);
  return at != members.end() ? &*at : nullptr;
}

void put_member(Members& members, Member member) {
  std::erase_if(members, [&](const Member& other) { return other.key == member.key; });
  members.push_back(std::move(member));
}

void add_member(Members& members, std::string key, const Ptr& value) {
  if (value != nullptr) members.push_back({std::move(key), value->where(), value});
}

void add_word(std::string& list, std::string_view word) {
  list.append(list.empty() ? "" : ", ").append(word);
}

std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::string with_underscores(std::string text) {
  std::ranges::replace(text, '-', '_');
  return text;
}

std::string with_hyphens(std::string text) {
  std::ranges::replace(text, '_', '-');
  return text;
}

bool is_config_name(std::string_view path) {
  return path.ends_with(".yaml") || path.ends_with(".yml") || path.ends_with(".json") ||
         path.ends_with(".yaml.in");
}

}  // namespace routesim::tools
