// The loads of a workload: one, or those of its mix.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/plan/scenario.h"

namespace routesim::sim {

/// `workload.mix[1]`.
std::string part_path(std::size_t part);

/// Calls `f(path, load, demand)` for the load of `workload`, which stands at the path `workload`,
/// or for every load of its mix. `W` is WorkloadConfig, or const.
template <class W, class F>
void for_each_load(W& workload, F f) {
  if (workload.mix.empty()) f(std::string("workload"), workload.load, workload.demand);
  for (std::size_t i = 0; i < workload.mix.size(); ++i)
    f(part_path(i), workload.mix[i].load, workload.mix[i].demand);
}

/// One load of a mix as a workload that has it alone; its rates are scaled by both.
WorkloadConfig part_alone(const WorkloadConfig& workload, std::size_t part);

/// The traffic classes: those of the workload, or one for each load of its mix.
std::vector<workloads::TrafficClass> classes_of(const WorkloadConfig& workload);

/// `workload.classes[1]`, or the load of the mix that is the class.
std::string class_path(const WorkloadConfig& workload, std::size_t which);

/// Adds what was found in a workload that part_alone() made, with paths as the scenario has them.
void place_in_mix(const Diagnostics& found, const WorkloadConfig& workload, std::size_t part,
                  Diagnostics& out);

/// Reports what is wrong with a mix that no load of it can tell alone.
void check_mix(const WorkloadConfig& workload, Diagnostics& diagnostics);

}  // namespace routesim::sim
