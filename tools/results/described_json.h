// JSON of described structs (base/describe.h): results, which readers of JSON take back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_node.h"
#include "base/describe.h"
#include "base/tree_reader.h"

namespace routesim::tools {

// JSON as a stream: keys in the order written, numbers as the shortest text that reads back the
// same, two-space indentation. Small enough to keep a JSON library out of the renderers.

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

// JSON texts as trees, for the readers of result files.

/// The value as a tree, all at one place. Null when the text is no JSON, or nests deeper than every
/// document of ours: readers and writers of trees are recursive.
ConfigNode::Ptr json_tree(const std::string& text, const SourceLocation& where);

// Short forms of fields that results have and inputs do not: values that follow from others, parts
// that only some objects have, and keys that are null where there is no value.

/// A key that is null where there is no value.
constexpr Field nullable(std::string_view name, std::string_view doc) {
  Field f{.name = name, .doc = doc};
  f.null = true;
  return f;
}

/// A key whose value follows from others: written, and not taken back.
template <class T>
void derived(Describer& d, const Field& f, T v) {
  field(d, f, v);
}

/// A text that is left out when it is empty.
inline void text_unless_empty(Describer& d, const Field& f, std::string& v) {
  std::optional<std::string> copy = v.empty() ? std::nullopt : std::optional(v);
  field(d, f, copy);
  v = copy.value_or("");
}

/// Writes the members of a described struct into the open object, in their order. An optional that
/// is absent is left out, or null where its field says so; NaN is null.
void write_members(JsonWriter& json, const DescribeFunction& describe_object);

/// The whole struct as one JSON value. Writing changes nothing in it.
template <class T>
void write_value(JsonWriter& json, T& value) {
  json.begin_object();
  write_members(json, [&value](Describer& d) { describe(d, value); });
  json.end_object();
}

/// A tree as JSON: plain scalars keep their types.
void write_tree(JsonWriter& json, const ConfigNode& node);

/// The text of a result file.
template <class T>
std::string json_text(T& record) {
  JsonWriter json;
  write_value(json, record);
  return json.str() + "\n";
}

/// Reads a result strictly: unknown keys, wrong types and what is missing are errors at their
/// place. Keys that early builds do not write may be absent.
template <class T>
T read_record(const ConfigNode& root, Diagnostics& diagnostics) {
  T record;
  read_struct(root, record, diagnostics, {.format = "", .null_numbers = true});
  return record;
}

}  // namespace routesim::tools
