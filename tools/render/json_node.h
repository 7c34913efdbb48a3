// A JSON value that knows its place in the data block of a page. Only for .cpp files that read
// results.
#pragma once

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/render/page_data.h"

namespace routesim::tools {

using Json = nlohmann::ordered_json;

/// Refers to a document that must outlive it.
class Node {
 public:
  Node(const Json& value, std::string path) : value_(&value), path_(std::move(path)) {}

  /// The member or element; a null node when there is none.
  Node operator[](const std::string& key) const {
    static const Json kNull;
    const bool found = value_->is_object() && value_->contains(key);
    std::string escaped;
    for (const char c : key) escaped += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
    return {found ? (*value_)[key] : kNull, path_ + "/" + escaped};
  }
  std::vector<Node> items() const {
    std::vector<Node> out;
    if (!value_->is_array()) return out;
    for (std::size_t i = 0; i < value_->size(); ++i)
      out.emplace_back((*value_)[i], path_ + "/" + std::to_string(i));
    return out;
  }
  /// Names of the members, in order.
  std::vector<std::string> keys() const {
    std::vector<std::string> out;
    if (value_->is_object())
      for (const auto& [key, member] : value_->items()) out.push_back(key);
    return out;
  }
  const Json& value() const { return *value_; }
  const std::string& path() const { return path_; }
  std::string text() const {
    if (value_->is_string()) return value_->get<std::string>();
    return value_->is_null() ? std::string() : value_->dump();
  }
  bool is_true() const { return value_->is_boolean() && value_->get<bool>(); }
  std::optional<Datum> datum() const {
    if (!value_->is_number()) return std::nullopt;
    return Datum{.value = value_->get<double>(), .path = path_, .low = {}, .high = {}, .raw = {}};
  }
  /// The number, or NaN.
  double number() const {
    return value_->is_number() ? value_->get<double>() : std::numeric_limits<double>::quiet_NaN();
  }

 private:
  const Json* value_;
  std::string path_;
};

}  // namespace routesim::tools
