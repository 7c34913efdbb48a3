#include "policies/parameter_value.h"

#include <array>
#include <cstdio>

namespace routesim::policies {

const ParameterValue* ParameterValue::find(std::string_view key) const {
  if (!is_map()) return nullptr;
  for (const auto& [name, value] : map())
    if (name == key) return &value;
  return nullptr;
}

std::string_view ParameterValue::kind_name() const {
  constexpr std::array<std::string_view, 7> kNames = {"null",   "bool", "integer", "number",
                                                      "string", "list", "map"};
  return kNames[value_.index()];
}

std::string ParameterValue::to_text() const {
  switch (kind()) {
    case Kind::kNull:
      return "null";
    case Kind::kBool:
      return boolean() ? "true" : "false";
    case Kind::kInteger:
      return std::to_string(integer());
    case Kind::kReal: {
      std::array<char, 32> text{};
      std::snprintf(text.data(), text.size(), "%.17g", number());
      return text.data();
    }
    case Kind::kString:
      return "'" + string() + "'";
    case Kind::kList:
      return "a list";
    case Kind::kMap:
      return "a map";
  }
  return {};
}

}  // namespace routesim::policies
