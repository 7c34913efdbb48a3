// How far a small error of the KV capacity moves the results of a run near its knee.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/observe/run_result.h"
#include "sim/plan/resolve.h"
#include "sim/simulation.h"
#include "tools/results/report.h"

namespace routesim::tools {

/// Whether a few per cent of the KV blocks can decide: a reported stage is overloaded, or some
/// server had all but kCapacityBand of its blocks in use.
bool is_near_knee(const sim::RunResult& result);

/// Runs the plan with `factor` times the KV blocks and returns its stages, empty when
/// `progress.stop` was set or `found` got an error.
std::vector<StageSide> stages_with_kv_blocks(const sim::RunPlan& plan, std::uint64_t seed,
                                             double factor, sim::Progress& progress,
                                             Diagnostics& found);

/// The band of `as_is` from its plan's stages with fewer and more KV blocks. Empty when those are
/// not the same stages, which a load that finds its own rates can cause.
std::vector<StageBand> capacity_band(const sim::RunResult& as_is, std::span<const StageSide> fewer,
                                     std::span<const StageSide> more);

}  // namespace routesim::tools
