// A JSON value in memory, for records whose shape is known only when they have been read. Private
// to workloads/.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "workloads/traces/text_scan.h"

namespace routesim::workloads {

class JsonValue {
 public:
  enum class Kind { kNull, kBoolean, kNumber, kString, kArray, kObject };

  Kind kind = Kind::kNull;
  std::string text{};  ///< Of a string; of a number as it was written; true or false.
  std::vector<JsonValue> items{};
  std::vector<std::pair<std::string, JsonValue>> members{};  ///< In the order of the text.

  bool is_string() const { return kind == Kind::kString; }
  bool is_array() const { return kind == Kind::kArray; }
  bool is_object() const { return kind == Kind::kObject; }

  /// The member of an object, the last one of that name; null when there is none.
  const JsonValue* find(std::string_view key) const;
  /// Its text when it is a string, else empty.
  std::string_view string(std::string_view key) const;
  /// Null, false, zero, and what is empty: as Python takes values for conditions.
  bool is_empty() const;
  /// As Python's json.dumps writes it; numbers as they were written.
  std::string dump() const;
  /// The same with members in the order of their keys: equal texts, equal values.
  std::string sorted_dump() const;

 private:
  void dump(std::string& out, bool sorted) const;
};

/// Reads the next value. False after an error, which the scanner then has.
bool read_value(JsonScanner& json, JsonValue& out);

/// The value a text holds; nothing when it is no JSON.
std::optional<JsonValue> parse_value(std::string_view text);

}  // namespace routesim::workloads
