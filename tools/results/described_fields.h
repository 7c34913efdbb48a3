// Short forms of fields that results have and inputs do not: values that follow from others, parts
// that only some objects have, and keys that are null where there is no value.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/describe.h"

namespace routesim::tools {

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

}  // namespace routesim::tools
