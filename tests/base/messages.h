// What a reader said, for a test to look into.
#pragma once

#include <string>

#include "base/diagnostic.h"

namespace routesim {

/// Every error and warning as the command prints it, one per line; empty when nothing was said.
inline std::string messages_of(const Diagnostics& diagnostics) {
  std::string out;
  for (const Diagnostic& item : diagnostics.items()) out += to_string(item) + "\n";
  return out;
}

}  // namespace routesim
