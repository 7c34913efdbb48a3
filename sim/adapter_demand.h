// The LoRA adapters a load asks for.
#pragma once

#include <string>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/scenario.h"
#include "workloads/adapter_traffic.h"

namespace routesim::sim {

struct AdapterDemand {
  std::vector<std::string> names;               ///< Adapter a is names[a - 1].
  std::vector<workloads::AdapterShare> shares;  ///< Empty: every request is for the base model.
  workloads::LoraAssignment assignment = workloads::LoraAssignment::kRandom;
};

/// What `workload` says, or its load tool's file. A name that is the model's is the base model.
AdapterDemand adapter_demand(const WorkloadConfig& workload, const std::string& model);

/// Errors where `workload` has shares that make no sense, and where a pool serves no adapters
/// although some are asked for; vLLM answers 404 then.
void check_adapters(const Scenario& scenario, const AdapterDemand& demand,
                    const SourceLocation& where, Diagnostics& diagnostics);

}  // namespace routesim::sim
