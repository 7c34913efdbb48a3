// When a run missed its goals, and what its fleet did then.
#pragma once

#include "sim/observe/run_result.h"
#include "sim/observe/timeline.h"
#include "sim/plan/scenario.h"

namespace routesim::tools {

/// Gives `run` its timeline; with `goals` also the stretches that miss them, each with the events
/// and the servers of that time. Only facts are named, and "no event" where there is none.
void complete_timeline(const sim::TimelineCounter& counts, const sim::Scenario& scenario,
                       bool goals, sim::RunResult& run);

}  // namespace routesim::tools
