// Random whole scenarios: every engine rule, every way of routing, small pools, odd loads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "sim/simulation.h"

namespace routesim::sim::testing {

/// Scenario number `seed`. Its load finishes within a few thousand steps.
RunPlan swarm_plan(std::uint64_t seed);

/// The scenario that these bytes choose: each decision eats a few of them, and is the first of its
/// alternatives when none are left.
RunPlan swarm_plan(std::span<const std::uint8_t> choices);

/// One line that says what is special about it.
std::string describe_plan(const RunPlan& plan);

}  // namespace routesim::sim::testing
