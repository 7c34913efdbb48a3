// Random whole scenarios: every engine rule, every way of routing, small pools, odd loads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "sim/simulation.h"

namespace routesim::sim::testing {

/// Scenario number `seed`. Its load finishes within a few thousand steps.
RunPlan swarm_plan(std::uint64_t seed);

/// One line that says what is special about it.
std::string describe_plan(const RunPlan& plan);

}  // namespace routesim::sim::testing
