// How far a small error of the KV capacity moves the results of a run near its knee.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/observe/run_result.h"
#include "sim/plan/resolve.h"
#include "sim/simulation.h"

namespace routesim::sim {

/// A reported stage as it is, and with 1 - kCapacityBand and 1 + kCapacityBand times the KV blocks.
struct StageBand {
  struct Side {
    double ttft_mean_s = 0;  ///< NaN without a success.
    bool overloaded = false;
  };
  std::string stage;
  Side as_is, fewer, more;
};

/// Whether a few per cent of the KV blocks can decide: a reported stage is overloaded, or some
/// server had all but kCapacityBand of its blocks in use.
bool is_near_knee(const RunResult& result);

/// Runs the plan twice more with the seed of `result`, in up to `jobs` threads. Empty when
/// `progress.stop` was set, `diagnostics` got an error, or the load found other stages.
std::vector<StageBand> capacity_band(const RunPlan& plan, const RunResult& result, std::size_t jobs,
                                     Progress& progress, Diagnostics& diagnostics);

}  // namespace routesim::sim
