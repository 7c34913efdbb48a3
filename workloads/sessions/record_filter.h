// The lambda by which inference-perf's replay selects records: the part of Python that compares
// members of a record with constants. Private to workloads/.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/diagnostic.h"
#include "workloads/sessions/json_value.h"

namespace routesim::workloads {

/// `lambda x: EXPRESSION`, of: and, or, not, parentheses; <, <=, >, >=, ==, !=, in, not in, chained
/// too; numbers, texts, True, False, None, lists and tuples; `x`, `E[E]`, `E.get(E)`, `E.get(E, E)`
/// and `len(E)`.
class RecordFilter {
 public:
  struct Node;

  /// Nothing, with `problem` set, when the text is not such a lambda.
  static std::optional<RecordFilter> parse(std::string_view text, std::string& problem);

  /// The filter of settings that have been checked; nothing without one.
  static std::optional<RecordFilter> of(const std::optional<std::string>& checked);

  /// Whether the record is wanted; where Python would raise, an error at `where` that calls the
  /// record `name`, and false.
  bool accepts(const JsonValue& record, const std::string& name, const SourceLocation& where,
               Diagnostics& out) const;

  /// Whether the record is wanted. Nothing, with `problem` set, where Python would raise: a missing
  /// key, values that cannot be compared.
  std::optional<bool> keeps(const JsonValue& record, std::string& problem) const;

 private:
  std::shared_ptr<const Node> root_;
};

}  // namespace routesim::workloads
