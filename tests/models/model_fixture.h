// What tests of models share: the built-in catalogue, made once per binary, and milliseconds.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "models/catalogue.h"
#include "tools/ingest/servers/catalogue_file.h"

namespace routesim::models {

inline const Catalogue& catalogue() {
  static const Catalogue c = tools::builtin_catalogue();
  return c;
}

/// Simulation ticks as milliseconds.
inline double ms(std::int64_t ticks) {
  return static_cast<double>(ticks) / static_cast<double>(kTicksPerMillisecond);
}

}  // namespace routesim::models
