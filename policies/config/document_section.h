// A map of the document being decoded: takes known keys with their types, reports the others.
// Internal to the loader.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "policies/document_keys.h"
#include "policies/go_values.h"
#include "policies/parameter_value.h"

namespace routesim::policies {

class Section {
 public:
  Section(const ParameterValue& node, std::string path, Diagnostics& diagnostics)
      : node_(node), path_(std::move(path)), diagnostics_(diagnostics) {
    if (!node_.is_map() && !node_.is_null())
      diagnostics_.error(node_.where, path_, "must be a map (got " + node_.to_text() + ")");
  }
  const std::string& path() const { return path_; }
  const SourceLocation& where() const { return node_.where; }
  std::string child(std::string_view key) const {
    return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
  }

  /// The member, or nullptr when absent or null.
  const ParameterValue* take(std::string_view key) {
    known_.emplace_back(key);
    const ParameterValue* v = node_.find(key);
    if (v != nullptr) note_document_key(*v, child(key), diagnostics_);
    return v == nullptr || v->is_null() ? nullptr : v;
  }
  std::optional<std::string> text(std::string_view key) {
    const ParameterValue* v = take(key);
    if (v == nullptr) return std::nullopt;
    if (!v->is_string()) return mismatch(key, *v, "a string"), std::nullopt;
    return v->string();
  }
  std::optional<bool> boolean(std::string_view key) {
    const ParameterValue* v = take(key);
    if (v == nullptr) return std::nullopt;
    if (v->kind() != ParameterValue::Kind::kBool)
      return mismatch(key, *v, "true or false"), std::nullopt;
    return v->boolean();
  }
  std::optional<double> number(std::string_view key) {
    const ParameterValue* v = take(key);
    if (v == nullptr) return std::nullopt;
    if (!v->is_number()) return mismatch(key, *v, "a number"), std::nullopt;
    return v->number();
  }
  std::optional<std::int64_t> integer(std::string_view key) {
    const ParameterValue* v = take(key);
    if (v == nullptr) return std::nullopt;
    if (v->kind() != ParameterValue::Kind::kInteger)
      return mismatch(key, *v, "a whole number"), std::nullopt;
    return v->integer();
  }
  /// A number or a Kubernetes quantity.
  std::optional<std::int64_t> quantity(std::string_view key) {
    const ParameterValue* v = take(key);
    if (v == nullptr) return std::nullopt;
    const std::string text = v->is_string() ? v->string() : v->to_text();
    const auto parsed =
        v->is_string() || v->is_number() ? parse_quantity(text) : std::optional<std::int64_t>();
    if (!parsed) mismatch(key, *v, "a quantity such as 500 or 1Gi");
    return parsed;
  }
  std::optional<Duration> duration(std::string_view key) {
    const ParameterValue* v = take(key);
    if (v == nullptr) return std::nullopt;
    const auto parsed = v->is_string() ? parse_go_duration(v->string()) : std::optional<Duration>();
    if (!parsed) mismatch(key, *v, "a duration such as 500ms or 2m");
    return parsed;
  }
  /// The elements of a list, or none.
  const ParameterValue::List& list(std::string_view key) {
    static const ParameterValue::List kEmpty;
    const ParameterValue* v = take(key);
    if (v == nullptr) return kEmpty;
    if (!v->is_list()) return mismatch(key, *v, "a list"), kEmpty;
    return v->list();
  }
  void mismatch(std::string_view key, const ParameterValue& v, std::string_view expected) {
    diagnostics_.error(v.where, child(key),
                       "must be " + std::string(expected) + " (got " + v.to_text() + ")");
  }
  /// Reports keys nobody took.
  void finish() {
    if (!node_.is_map()) return;
    for (const auto& [key, value] : node_.map()) {
      bool known = false;
      for (const std::string& k : known_) known = known || k == key;
      if (known) continue;
      const std::string close = nearest(key, known_);
      diagnostics_.error(value.where, child(key), "unknown field",
                         close.empty() ? std::string() : "did you mean '" + close + "'?");
    }
  }

 private:
  const ParameterValue& node_;
  std::string path_;
  Diagnostics& diagnostics_;
  std::vector<std::string> known_;
};

}  // namespace routesim::policies
