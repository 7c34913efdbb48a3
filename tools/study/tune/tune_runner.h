// Runs of candidates, many at once.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/study/experiment/experiment.h"
#include "tools/study/tune/tune_space.h"

namespace routesim::tools {

/// Results of one configuration: by TuneSpace::metrics, then by seed; NaN where a run has none.
using SeedValues = std::vector<std::vector<double>>;

/// A configuration and seeds that it has not faced.
struct SeedRuns {
  const sim::RunPlan* plan = nullptr;
  std::vector<std::uint64_t> seeds = {};
  SeedValues* values = nullptr;  ///< Receives the numbers of these seeds behind those it has.
};

/// Does all runs, in one wave. A run that gets stuck, which some configurations do, has no values.
/// Throws Stopped. Returns how much was simulated, which most of the CPU time goes with: prompt
/// tokens that engines looked up, and 1000 for each request that a router sent to one.
double run_candidates(const TuneSpace& space, std::span<const SeedRuns> candidates,
                      Experiment& experiment);

/// `PATH MESSAGE` of the first error: why a candidate cannot run. Empty without errors.
std::string problem_of(const Diagnostics& found);

}  // namespace routesim::tools
