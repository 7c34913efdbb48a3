// Which LoRA adapters an engine core has on its GPU and in host memory: two caches, least recently
// used out first, as vLLM's LRUCacheWorkerLoRAManager.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace routesim::sim {

/// Adapters as bits, bit a for adapter a; bit 0, the base model, is never set.
using AdapterSet = std::uint64_t;

constexpr AdapterSet adapter_bit(std::uint32_t adapter) {
  return adapter == 0 ? 0 : AdapterSet{1} << adapter;
}

/// The adapters that an engine core reports (vllm:lora_requests_info); nothing before its first
/// step.
struct AdapterGauges {
  AdapterSet running = 0, waiting = 0;
  std::int64_t slots = 0;

  /// Adds the gauges of another rank of the same server.
  void add(const AdapterGauges& rank) {
    running |= rank.running;
    waiting |= rank.waiting;
    slots = std::max(slots, rank.slots);
  }
};

class AdapterSlots {
 public:
  /// Slots on the GPU and places in host memory; `host` >= `gpu` >= 0. What is on the GPU is in
  /// host memory, too. Adapters 1 ... `known` were loaded when the server started, one by one.
  AdapterSlots(std::int64_t gpu, std::int64_t host, std::uint32_t known);

  struct Moves {
    std::int64_t loads = 0;  ///< From host memory to the GPU.
    std::int64_t reads = 0;  ///< From disk to host memory.
  };
  /// Makes the adapters of a step's batch, at most as many as there are slots, ready, one by one:
  /// one of them may make room for another and come back, as in vLLM.
  Moves use(AdapterSet batch);

  AdapterSet on_gpu() const { return members(gpu_); }

 private:
  /// Least recently used first.
  struct Cache {
    std::size_t capacity = 0;
    std::vector<std::uint32_t> adapters;
  };
  static AdapterSet members(const Cache& cache);
  static bool touch(Cache& cache, std::uint32_t adapter, AdapterSet& evicted);

  Cache gpu_, host_;
};

}  // namespace routesim::sim
