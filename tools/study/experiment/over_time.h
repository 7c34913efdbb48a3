// When a run missed its goals, and what its fleet did then.
#pragma once

#include <cstdint>
#include <map>

#include "sim/observe/run_result.h"
#include "sim/observe/timeline.h"
#include "sim/plan/scenario.h"

namespace routesim::tools {

/// Gives `run` its timeline; with `goals` also the stretches that miss them, each with the events
/// and the servers of that time. Only facts are named, and "no event" where there is none. Each
/// load of a mix that has goals must meet them, and what it misses has its name.
/// `loads`: by their numbers, empty without a mix.
void complete_timeline(const sim::TimelineCounter& whole,
                       const std::map<std::int64_t, sim::TimelineCounter>& loads,
                       const sim::Scenario& scenario, bool goals, sim::RunResult& run);

}  // namespace routesim::tools
