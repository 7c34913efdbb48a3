// The parsed form of every YAML or JSON file routesim reads: an immutable tree that remembers the
// raw text and the place of each value, so that typing stays strict and every error has a line.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
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

/// Limits on hostile input. They are far above any honest file.
struct ConfigLimits {
  std::size_t max_bytes = 16U << 20;  ///< Size of one file.
  int max_depth = 64;                 ///< Nesting, aliases expanded.
  std::size_t max_nodes = 1'000'000;  ///< Values, aliases expanded.
};

/// Where a text stands inside an outer file.
struct TextPlacement {
  std::string file;       ///< Name used in diagnostics.
  int line_offset = 0;    ///< Added to every line number.
  int column_offset = 0;  ///< Added to every column number.
};

/// Parses YAML 1.2 (JSON included) strictly: duplicate keys, tags, further documents, keys that are
/// not text and invalid UTF-8 are errors; aliases and merge keys are expanded. Returns the tree
/// whenever one could be built, even if errors were added, so that a reader can go on and find the
/// rest; null after a syntax error or an exceeded limit.
ConfigNode::Ptr parse_config(const std::string& text, const TextPlacement& placement,
                             Diagnostics& diagnostics, const ConfigLimits& limits = {});

/// Like `parse_config` for a file of Kubernetes objects, which may hold several documents: these
/// become the items of one `kind: List`, as `kubectl get -o yaml` prints them.
ConfigNode::Ptr parse_manifest(const std::string& text, const TextPlacement& placement,
                               Diagnostics& diagnostics, const ConfigLimits& limits = {});

/// Reads and parses a file. A file that cannot be read is a diagnostic too.
ConfigNode::Ptr read_config_file(const std::string& path, Diagnostics& diagnostics,
                                 const ConfigLimits& limits = {});

/// Parses the YAML text held by a scalar (Helm values do this), with places in the outer file.
ConfigNode::Ptr parse_embedded(const ConfigNode& scalar, Diagnostics& diagnostics,
                               const ConfigLimits& limits = {});

/// Reads a whole file into `text`. On failure adds a diagnostic placed at `asked_from` (the
/// reference that named the file, or the file itself) and returns false.
bool read_text_file(const std::string& path, const SourceLocation& asked_from,
                    const std::string& key_path, std::size_t max_bytes, std::string& text,
                    Diagnostics& diagnostics);

}  // namespace routesim
