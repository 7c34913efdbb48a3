#include "tools/study/capacity_band.h"

#include <algorithm>
#include <array>

#include "tools/study/parallel.h"
#include "tools/study/what_if.h"

namespace routesim::sim {

namespace {

bool is_reported(const StageResult& stage) {
  return stage.info.reported && !stage.info.is_preparation;
}

StageBand::Side side_of(const StageResult& stage) {
  return {.ttft_mean_s = stage.time_to_first_token.mean(), .overloaded = stage.overloaded()};
}

}  // namespace

bool is_near_knee(const RunResult& result) {
  return std::ranges::any_of(result.stages, [](const StageResult& stage) {
    return is_reported(stage) &&
           (stage.overloaded() || stage.kv_cache_usage_max >= 1 - kCapacityBand);
  });
}

std::vector<StageBand> capacity_band(const RunPlan& plan, const RunResult& result, std::size_t jobs,
                                     Progress& progress, Diagnostics& diagnostics) {
  std::array<RunResult, 2> changed;
  std::array<Diagnostics, 2> found;
  for_each_index(changed.size(), jobs, [&](std::size_t i) {
    const RunPlan other = with_kv_blocks(plan, i == 0 ? 1 - kCapacityBand : 1 + kCapacityBand);
    Simulation simulation(other, {.seed = result.seed, .progress = &progress, .observers = {}},
                          found[i]);
    if (!found[i].has_errors()) changed[i] = simulation.run();
  });
  for (const Diagnostics& one : found)
    for (const Diagnostic& d : one.items()) diagnostics.add(d);
  std::vector<StageBand> band;
  if (progress.stop || diagnostics.has_errors()) return band;
  // A load that finds its own rates may find other stages.
  if (changed[0].stages.size() != result.stages.size() ||
      changed[1].stages.size() != result.stages.size())
    return band;
  for (std::size_t s = 0; s < result.stages.size(); ++s)
    if (is_reported(result.stages[s]))
      band.push_back({.stage = result.stages[s].info.name,
                      .as_is = side_of(result.stages[s]),
                      .fewer = side_of(changed[0].stages[s]),
                      .more = side_of(changed[1].stages[s])});
  return band;
}

}  // namespace routesim::sim
