#include "base/config_node.h"

#include <algorithm>
#include <memory>

#include "base/scalar_parse.h"

namespace routesim {

namespace {

constexpr std::size_t kSaturated = std::size_t{1} << 40;

}  // namespace

void ConfigNode::account(const ConfigNode& child) {
  expanded_size_ = std::min(kSaturated, expanded_size_ + child.expanded_size_);
  height_ = std::max(height_, child.height_ + 1);
}

ConfigNode::Ptr ConfigNode::make_null(const SourceLocation& where) {
  return Ptr(new ConfigNode(Kind::kNull, where));
}

ConfigNode::Ptr ConfigNode::make_scalar(std::string text, Style style,
                                        const SourceLocation& where) {
  std::shared_ptr<ConfigNode> node(new ConfigNode(Kind::kScalar, where));
  node->text_ = std::move(text);
  node->style_ = style;
  return node;
}

ConfigNode::Ptr ConfigNode::make_block(std::string text, const SourceLocation& where,
                                       int first_line, int indent) {
  std::shared_ptr<ConfigNode> node(new ConfigNode(Kind::kScalar, where));
  node->text_ = std::move(text);
  node->style_ = Style::kBlock;
  node->block_first_line_ = first_line;
  node->block_indent_ = indent;
  return node;
}

ConfigNode::Ptr ConfigNode::make_sequence(std::vector<Ptr> items, const SourceLocation& where) {
  std::shared_ptr<ConfigNode> node(new ConfigNode(Kind::kSequence, where));
  for (const Ptr& item : items) node->account(*item);
  node->items_ = std::move(items);
  return node;
}

ConfigNode::Ptr ConfigNode::make_map(std::vector<Member> members, const SourceLocation& where) {
  std::shared_ptr<ConfigNode> node(new ConfigNode(Kind::kMap, where));
  for (const Member& member : members) node->account(*member.value);
  node->members_ = std::move(members);
  return node;
}

const ConfigNode::Member* ConfigNode::find(std::string_view key) const {
  for (const Member& member : members_)
    if (member.key == key) return &member;
  return nullptr;
}

const ConfigNode* ConfigNode::child(std::string_view key) const {
  const Member* member = find(key);
  return member == nullptr ? nullptr : member->value.get();
}

bool ConfigNode::is_text() const {
  return is_scalar() && (style_ == Style::kQuoted || style_ == Style::kBlock ||
                         plain_type(text_) == PlainType::kText);
}

namespace tree {

Node text(std::string value, const SourceLocation& where) {
  return ConfigNode::make_scalar(std::move(value), ConfigNode::Style::kQuoted, where);
}

Node number(std::int64_t value, const SourceLocation& where) {
  return ConfigNode::make_scalar(std::to_string(value), ConfigNode::Style::kPlain, where);
}

Node number(double value, const SourceLocation& where) {
  return ConfigNode::make_scalar(number_text(value), ConfigNode::Style::kPlain, where);
}

Node boolean(bool value, const SourceLocation& where) {
  return ConfigNode::make_scalar(value ? "true" : "false", ConfigNode::Style::kPlain, where);
}

Node list(std::vector<Node> items, const SourceLocation& where) {
  return ConfigNode::make_sequence(std::move(items), where);
}

Node map(Map members, const SourceLocation& where) {
  std::vector<ConfigNode::Member> placed;
  placed.reserve(members.size());
  for (auto& [key, value] : members) placed.push_back({std::move(key), where, std::move(value)});
  return ConfigNode::make_map(std::move(placed), where);
}

}  // namespace tree

}  // namespace routesim
