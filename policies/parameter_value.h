// A parsed document as plain data: what a YAML or JSON reader hands to this library, which itself
// reads no files and links no parser.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/diagnostic.h"

namespace routesim::policies {

/// One node: null, bool, integer, real, string, list or map, with the place it came from. Maps
/// keep the order of the document; duplicate keys are the reader's to refuse.
class ParameterValue {
 public:
  using List = std::vector<ParameterValue>;
  using Map = std::vector<std::pair<std::string, ParameterValue>>;
  enum class Kind { kNull, kBool, kInteger, kReal, kString, kList, kMap };

  ParameterValue() = default;
  explicit ParameterValue(bool b) : value_(b) {}
  explicit ParameterValue(std::int64_t i) : value_(i) {}
  explicit ParameterValue(double d) : value_(d) {}
  explicit ParameterValue(std::string s) : value_(std::move(s)) {}
  explicit ParameterValue(List l) : value_(std::move(l)) {}
  explicit ParameterValue(Map m) : value_(std::move(m)) {}

  Kind kind() const { return static_cast<Kind>(value_.index()); }
  bool is_null() const { return kind() == Kind::kNull; }
  bool is_map() const { return kind() == Kind::kMap; }
  bool is_list() const { return kind() == Kind::kList; }
  bool is_string() const { return kind() == Kind::kString; }
  bool is_number() const { return kind() == Kind::kInteger || kind() == Kind::kReal; }
  bool boolean() const { return std::get<bool>(value_); }
  std::int64_t integer() const { return std::get<std::int64_t>(value_); }
  /// The number as a double; requires is_number().
  double number() const {
    return kind() == Kind::kInteger ? static_cast<double>(integer()) : std::get<double>(value_);
  }
  const std::string& string() const { return std::get<std::string>(value_); }
  const List& list() const { return std::get<List>(value_); }
  const Map& map() const { return std::get<Map>(value_); }
  List& list() { return std::get<List>(value_); }
  Map& map() { return std::get<Map>(value_); }

  /// The member of a map, or nullptr when there is none or this is no map.
  const ParameterValue* find(std::string_view key) const;
  /// "null", "bool", "integer", "number", "string", "list" or "map".
  std::string_view kind_name() const;
  /// Short text for `(got …)`.
  std::string to_text() const;

  SourceLocation where;

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, List, Map> value_;
};

}  // namespace routesim::policies
