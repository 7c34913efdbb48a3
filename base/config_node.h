// The parsed form of every YAML or JSON file routesim reads: an immutable tree that remembers the
// raw text and the place of each value, so that typing stays strict and every error has a line.
// tools/ingest builds trees from files. A program that links only the libraries builds them with
// namespace tree (below) from whatever its own YAML reader gives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostic.h"

namespace routesim {

/// One value of a configuration file. Nodes are shared, never changed: merging and `--set` build
/// new trees that share their unchanged parts.
class ConfigNode {
 public:
  using Ptr = std::shared_ptr<const ConfigNode>;

  enum class Kind { kNull, kScalar, kSequence, kMap };

  /// How a scalar was written. `kUntyped` is a bare word from the command line, where quotes would
  /// be the shell's: it may stand for text as well as for a number.
  enum class Style { kPlain, kQuoted, kBlock, kUntyped };

  /// A key of a map with its own place.
  struct Member {
    std::string key;
    SourceLocation key_where;
    Ptr value;
  };

  static Ptr make_null(const SourceLocation& where);
  static Ptr make_scalar(std::string text, Style style, const SourceLocation& where);
  static Ptr make_sequence(std::vector<Ptr> items, const SourceLocation& where);
  static Ptr make_map(std::vector<Member> members, const SourceLocation& where);
  /// A literal block scalar whose first line of content stands on `first_line`, indented by
  /// `indent` columns: documents embedded in it keep their places in the outer file.
  static Ptr make_block(std::string text, const SourceLocation& where, int first_line, int indent);

  Kind kind() const { return kind_; }
  bool is_null() const { return kind_ == Kind::kNull; }
  bool is_scalar() const { return kind_ == Kind::kScalar; }
  bool is_sequence() const { return kind_ == Kind::kSequence; }
  bool is_map() const { return kind_ == Kind::kMap; }

  /// The raw text of a scalar, escapes resolved; empty for other kinds.
  const std::string& text() const { return text_; }
  Style style() const { return style_; }
  /// Elements of a sequence, in order.
  const std::vector<Ptr>& items() const { return items_; }
  /// Members of a map, in the order of the file.
  const std::vector<Member>& members() const { return members_; }
  /// The member with this key, or null.
  const Member* find(std::string_view key) const;
  /// The value of the member with this key, or null.
  const ConfigNode* child(std::string_view key) const;
  /// Text that no reader takes for a number, a boolean or nothing.
  bool is_text() const;

  const SourceLocation& where() const { return where_; }
  /// First line of a literal block's content, or 0 when the scalar is not a literal block.
  int block_first_line() const { return block_first_line_; }
  int block_indent() const { return block_indent_; }

  /// Nodes of the tree with every alias expanded, saturating.
  std::size_t expanded_size() const { return expanded_size_; }
  /// Levels below and including this node.
  int height() const { return height_; }

 private:
  ConfigNode(Kind kind, const SourceLocation& where) : kind_(kind), where_(where) {}
  void account(const ConfigNode& child);

  Kind kind_;
  Style style_ = Style::kPlain;
  SourceLocation where_;
  std::string text_;
  std::vector<Ptr> items_;
  std::vector<Member> members_;
  int block_first_line_ = 0;
  int block_indent_ = 0;
  std::size_t expanded_size_ = 1;
  int height_ = 1;
};

/// Trees built in C++. All nodes get the place `where`; the default is no place.
namespace tree {

using Node = ConfigNode::Ptr;
using Map = std::vector<std::pair<std::string, Node>>;

Node text(std::string value, const SourceLocation& where = {});
Node number(std::int64_t value, const SourceLocation& where = {});
Node number(double value, const SourceLocation& where = {});
Node boolean(bool value, const SourceLocation& where = {});
Node list(std::vector<Node> items, const SourceLocation& where = {});
Node map(Map members, const SourceLocation& where = {});

}  // namespace tree

}  // namespace routesim
