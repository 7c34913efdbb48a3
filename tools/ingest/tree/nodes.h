// Questions that every reader asks of trees, and the small trees that it makes.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_node.h"

namespace routesim::tools {

using Ptr = ConfigNode::Ptr;
using Member = ConfigNode::Member;
using Members = std::vector<Member>;
using KeyPath = std::initializer_list<std::string_view>;

/// The value at a path of keys; null where there is none.
const ConfigNode* node_at(const ConfigNode& root, KeyPath keys);
/// The same, shared.
Ptr value_at(const ConfigNode& root, KeyPath keys);
/// The same where it is a scalar.
Ptr scalar_at(const ConfigNode& root, KeyPath keys);
/// Its text; empty where it is no scalar.
std::string text_at(const ConfigNode& root, KeyPath keys);
/// The items of the list at a path; none where it is no list.
const std::vector<Ptr>& items_at(const ConfigNode& root, KeyPath keys);

/// Whether the map has a key, `engine.block_size`, or something else than a map above it.
bool says_key(const ConfigNode& map, std::string_view dotted);

/// The items of a list or the values of a map.
std::vector<Ptr> children_of(const ConfigNode& node);

/// Scalars as YAML has them without quotes, and as a command line has them.
Ptr plain(std::string text, const SourceLocation& where);
Ptr untyped(std::string text, const SourceLocation& where);
/// A scalar's copy: what readers make of a scalar of a block is none.
Ptr copy_of(const ConfigNode& scalar);

/// The node with each of its items or values changed.
Ptr with_children(const Ptr& node, const std::function<Ptr(const Ptr&)>& change);

/// The map without a key.
Ptr without_key(const Ptr& map, std::string_view key);

/// The member of this key; null where there is none.
Member* find_member(Members& members, std::string_view key);
/// Appends a member in place of those of its key.
void put_member(Members& members, Member member);
/// Appends a member whose key stands where its value does; nothing for null.
void add_member(Members& members, std::string key, const Ptr& value);

/// Appends to a list in words.
void add_word(std::string& list, std::string_view word);

/// The text with its ASCII letters in lower case.
std::string lower_case(std::string text);
std::string with_underscores(std::string text);
std::string with_hyphens(std::string text);

/// Whether a name is that of a YAML or JSON file; `.yaml.in` is a template of llm-d-benchmark.
bool is_config_name(std::string_view path);

}  // namespace routesim::tools
