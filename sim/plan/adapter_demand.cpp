#include "sim/plan/adapter_demand.h"

#include <algorithm>
#include <utility>

namespace routesim::sim {

namespace {

using IsBase = std::function<bool(const std::string&)>;

void add(AdapterDemand& demand, const std::string& name, double share, const IsBase& is_base) {
  std::uint32_t adapter = 0;
  if (!is_base(name)) {
    auto at = std::find(demand.names.begin(), demand.names.end(), name);
    if (at == demand.names.end()) at = demand.names.insert(at, name);
    adapter = static_cast<std::uint32_t>(at - demand.names.begin()) + 1;
  }
  demand.traffic.shares.push_back({.adapter = adapter, .share = share});
}

void check_pool(const PoolConfig& pool, const std::string& path, const AdapterDemand& demand,
                const SourceLocation& where, Diagnostics& diagnostics) {
  const EngineConfig& engine = pool.engine;
  if (!engine.max_loras) {
    diagnostics.error(where, path + ".engine.max_loras",
                      "is missing: the load asks for LoRA adapters (" + demand.names.front() +
                          (demand.names.size() > 1 ? ", …)" : ")"),
                      "say what the servers have: vllm serve --enable-lora --max-loras N, 1 by "
                      "default");
    return;
  }
  if (pool.data_parallel > 1 && !from_2026(engine.preset) &&
      pool.data_parallel_balancing == DataParallelBalancing::kInternal)
    diagnostics.error(where, path + ".data_parallel",
                      "vLLM of 2025 does not start with LoRA and several ranks in one server");
}

}  // namespace

AdapterDemand adapter_demand(const WorkloadConfig& w, const IsBase& is_base,
                             std::vector<std::string> known) {
  const workloads::AdapterWish wish = traits_of(w.load).adapters;
  AdapterDemand demand{.names = std::move(known), .traffic = {}};
  const auto is_model = [&](const std::string& name) {
    return is_base(name) || wish.base_name == name;
  };
  if (!w.lora_traffic_split) demand.traffic.assignment = wish.assignment;
  for (const workloads::LoraSplit& s : w.lora_traffic_split ? *w.lora_traffic_split : wish.shares)
    add(demand, s.name, s.split, is_model);
  demand.traffic.warms_up_base = wish.warms_up_base;
  if (demand.names.empty()) demand.traffic.shares.clear();
  return demand;
}

void check_adapters(const Scenario& scenario, const AdapterDemand& demand,
                    const SourceLocation& where, Diagnostics& diagnostics) {
  const WorkloadConfig& workload = scenario.workload;
  if (workload.lora_traffic_split)
    workloads::check_lora_split(*workload.lora_traffic_split, "workload.lora_traffic_split",
                                diagnostics);
  const std::string key =
      "workload." + (workload.lora_traffic_split ? std::string("lora_traffic_split")
                                                 : traits_of(workload.load).adapters.key);
  if (demand.names.size() > workloads::kMostAdapters)
    diagnostics.error(
        where, key,
        "at most " + std::to_string(workloads::kMostAdapters) + " adapters are simulated");
  const std::vector<PoolConfig>& pools = scenario.cluster.pools;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    const std::string path = "cluster.pools[" + std::to_string(i) + "]";
    const EngineConfig& engine = pools[i].engine;
    if (engine.max_cpu_loras && *engine.max_cpu_loras < engine.max_loras.value_or(0))
      diagnostics.error(where, path + ".engine.max_cpu_loras", "must be max_loras at least");
    if (!demand.names.empty()) check_pool(pools[i], path, demand, where, diagnostics);
  }
}

}  // namespace routesim::sim
