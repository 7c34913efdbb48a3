// How far the simulated clock goes.
#pragma once

#include "base/units.h"

namespace routesim::sim {

/// No event is handled at or after this instant. The ends of engine steps are counted in 2^-10 ns,
/// which 64 bits hold for 104 days.
inline constexpr SimTime kEndOfTime =
    SimTime::zero() + Duration::seconds(std::int64_t{103} * 86'400);

}  // namespace routesim::sim
