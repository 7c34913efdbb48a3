// A JSON value that knows its place in the data block of a page.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/render/page/page_data.h"

namespace routesim::tools {

/// Refers to a document that must outlive it.
class Node {
 public:
  Node(const void* value, std::string path) : value_(value), path_(std::move(path)) {}

  /// The member or element; a null node when there is none.
  Node operator[](const std::string& key) const;
  /// The elements of a list; nothing of anything else.
  std::vector<Node> items() const;
  /// Names of the members, in order.
  std::vector<std::string> keys() const;
  /// A text as it is, anything else as JSON; null is empty.
  std::string text() const;
  bool is_true() const;
  std::optional<Datum> datum() const;
  /// The number, or NaN.
  double number() const;
  const std::string& path() const { return path_; }
  /// The nlohmann::ordered_json itself, for .cpp files that know the library.
  const void* value() const { return value_; }

 private:
  const void* value_;
  std::string path_;
};

/// `+4.2 % [+3.1, +5.3]` of the number and the `low` and `high` of the object beside it; empty
/// without a number.
std::string percent_text(const Node& percent, const Node& interval);

/// A parsed text; null when it is no JSON.
class JsonDocument {
 public:
  explicit JsonDocument(const std::string& text);
  Node root(std::string path) const { return {value_.get(), std::move(path)}; }

 private:
  std::shared_ptr<const void> value_;
};

}  // namespace routesim::tools
