// The LoRA adapters a load asks for.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "sim/plan/scenario.h"
#include "workloads/adapter_traffic.h"

namespace routesim::sim {

struct AdapterDemand {
  std::vector<std::string> names;  ///< Adapter a is names[a - 1].
  workloads::AdapterTraffic traffic;
};

/// The adapters that `workload` asks for, or its load tool's file. Names for which `is_base` holds,
/// or that the load tool has as the model's, are the base model. `known`: names that have numbers.
AdapterDemand adapter_demand(const WorkloadConfig& workload,
                             const std::function<bool(const std::string&)>& is_base,
                             std::vector<std::string> known = {});

/// Errors where `workload` has shares that make no sense, where a pool serves no adapters although
/// some are asked for (vLLM answers 404 then), and where vLLM would not start.
void check_adapters(const Scenario& scenario, const AdapterDemand& demand,
                    const SourceLocation& where, Diagnostics& diagnostics);

}  // namespace routesim::sim
