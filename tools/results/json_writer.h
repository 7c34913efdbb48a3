// JSON as a stream: keys in the order written, numbers as the shortest text that reads back the
// same, two-space indentation. Small enough to keep a JSON library out of the renderers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace routesim::tools {

/// Appends one JSON value to a string. Calls must nest properly; a value in an object follows
/// key().
class JsonWriter {
 public:
  /// `indent` 0 writes everything on one line.
  explicit JsonWriter(int indent = 2) : indent_(indent) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(bool b);
  JsonWriter& value(double v);  ///< NaN and infinities become null.
  JsonWriter& value(std::int64_t v);
  JsonWriter& value(std::uint64_t v);
  JsonWriter& value(int v) { return value(static_cast<std::int64_t>(v)); }
  JsonWriter& null();
  template <class T>
  JsonWriter& value(const std::optional<T>& v) {
    return v ? value(*v) : null();
  }
  /// Text that is JSON already.
  JsonWriter& raw(std::string_view json);

  template <class T>
  JsonWriter& member(std::string_view name, const T& v) {
    return key(name).value(v);
  }

  /// An array of values under a key.
  template <class Range>
  JsonWriter& list(std::string_view name, const Range& values) {
    key(name).begin_array();
    for (const auto& v : values) value(v);
    return end_array();
  }

  /// The text so far.
  const std::string& str() const { return out_; }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void before_value();
  void new_line();

  int indent_;
  std::string out_;
  std::vector<bool> has_items_;  ///< Per open bracket.
  bool after_key_ = false;
};

/// `text` as a JSON string with its quotes.
std::string json_string(std::string_view text);

}  // namespace routesim::tools
