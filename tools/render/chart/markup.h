// The parts that XML and HTML share.
#pragma once

#include <string_view>

namespace routesim::tools {

/// The entity of a character that markup gives a meaning; empty for any other.
constexpr std::string_view markup_entity(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    default:
      return {};
  }
}

}  // namespace routesim::tools
