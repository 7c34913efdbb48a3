#include "sim/adapter_demand.h"

#include <algorithm>

namespace routesim::sim {

namespace {

void add(AdapterDemand& demand, const std::string& name, double share, const std::string& model) {
  std::uint32_t adapter = 0;
  if (name != model) {
    auto at = std::find(demand.names.begin(), demand.names.end(), name);
    if (at == demand.names.end()) at = demand.names.insert(at, name);
    adapter = static_cast<std::uint32_t>(at - demand.names.begin()) + 1;
  }
  demand.shares.push_back({.adapter = adapter, .share = share});
}

const std::vector<workloads::LoraSplit>* split_of(const WorkloadConfig& w) {
  if (w.lora_traffic_split) return &*w.lora_traffic_split;
  if (!w.inference_perf_config || !w.inference_perf_config->load.lora_traffic_split) return nullptr;
  return &*w.inference_perf_config->load.lora_traffic_split;
}

}  // namespace

AdapterDemand adapter_demand(const WorkloadConfig& w, const std::string& model) {
  AdapterDemand demand;
  if (const auto* split = split_of(w)) {
    for (const workloads::LoraSplit& s : *split) add(demand, s.name, s.split, model);
  } else if (w.vllm_bench) {
    const std::vector<std::string>& modules = w.vllm_bench->lora_modules;
    for (const std::string& name : modules)
      add(demand, name, 1.0 / static_cast<double>(modules.size()), model);
    demand.assignment = w.vllm_bench->lora_assignment;
  }
  if (demand.names.empty()) demand.shares.clear();
  return demand;
}

void check_adapters(const Scenario& scenario, const AdapterDemand& demand,
                    const SourceLocation& where, Diagnostics& diagnostics) {
  if (scenario.workload.lora_traffic_split)
    workloads::check_lora_split(*scenario.workload.lora_traffic_split,
                                "workload.lora_traffic_split", diagnostics);
  else if (demand.names.size() > workloads::kMostAdapters)
    diagnostics.error(
        where, "workload.vllm_bench.lora_modules",
        "at most " + std::to_string(workloads::kMostAdapters) + " adapters are simulated");
  if (demand.names.empty()) return;
  for (std::size_t i = 0; i < scenario.cluster.pools.size(); ++i)
    if (!scenario.cluster.pools[i].engine.max_loras)
      diagnostics.error(where, "cluster.pools[" + std::to_string(i) + "].engine.max_loras",
                        "is missing: the load asks for LoRA adapters (" + demand.names.front() +
                            (demand.names.size() > 1 ? ", …)" : ")"),
                        "say what the servers have: vllm serve --enable-lora --max-loras N, 1 by "
                        "default");
}

}  // namespace routesim::sim
