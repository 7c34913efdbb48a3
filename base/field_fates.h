// Fields of a description (describe.h) that do not simply count: each says why.
#pragma once

#include <string_view>

#include "base/describe.h"

namespace routesim {

/// A key that changes nothing that a simulation shows.
constexpr Field no_effect(std::string_view name, std::string_view doc, std::string_view why) {
  return {.name = name, .doc = doc, .required = false, .fate = Fate::kNoEffect, .why = why};
}

/// A key that counts in a simpler way than in the real system.
constexpr Field approximated(std::string_view name, std::string_view doc, std::string_view how) {
  return {.name = name, .doc = doc, .required = false, .fate = Fate::kApproximated, .why = how};
}

/// A key that the real system uses and the simulation does not. Whoever reads it says so, by a
/// warning or an error.
constexpr Field not_modelled(std::string_view name, std::string_view doc, std::string_view why) {
  return {.name = name, .doc = doc, .required = false, .fate = Fate::kNotModelled, .why = why};
}

}  // namespace routesim
