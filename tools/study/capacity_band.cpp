#include "tools/study/capacity_band.h"

#include <algorithm>

#include "tools/study/what_if.h"

namespace routesim::tools {

namespace {

bool is_reported(const sim::StageResult& stage) {
  return stage.info.reported && !stage.info.is_preparation;
}

StageSide side_of(const sim::StageResult& stage) {
  return {.ttft_mean_s = stage.time_to_first_token.mean(), .overloaded = stage.overloaded()};
}

}  // namespace

bool is_near_knee(const sim::RunResult& result) {
  return std::ranges::any_of(result.stages, [](const sim::StageResult& stage) {
    return is_reported(stage) &&
           (stage.overloaded() || stage.kv_cache_usage_max >= 1 - kCapacityBand);
  });
}

std::vector<StageSide> stages_with_kv_blocks(const sim::RunPlan& plan, std::uint64_t seed,
                                             double factor, sim::Progress& progress,
                                             Diagnostics& found) {
  const sim::RunPlan other = sim::with_kv_blocks(plan, factor);
  sim::Simulation simulation(other, {.seed = seed, .progress = &progress, .observers = {}}, found);
  if (found.has_errors()) return {};
  const sim::RunResult result = simulation.run();
  std::vector<StageSide> sides;
  if (progress.stop) return sides;
  for (const sim::StageResult& stage : result.stages) sides.push_back(side_of(stage));
  return sides;
}

std::vector<StageBand> capacity_band(const sim::RunResult& as_is, std::span<const StageSide> fewer,
                                     std::span<const StageSide> more) {
  std::vector<StageBand> band;
  if (fewer.size() != as_is.stages.size() || more.size() != as_is.stages.size()) return band;
  for (std::size_t s = 0; s < as_is.stages.size(); ++s)
    if (is_reported(as_is.stages[s]))
      band.push_back({.stage = as_is.stages[s].info.name,
                      .as_is = side_of(as_is.stages[s]),
                      .fewer = fewer[s],
                      .more = more[s]});
  return band;
}

}  // namespace routesim::tools
