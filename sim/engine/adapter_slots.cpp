#include "sim/engine/adapter_slots.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace routesim::sim {

AdapterSlots::AdapterSlots(std::int64_t gpu, std::int64_t host, std::uint32_t known) {
  gpu_.capacity = static_cast<std::size_t>(gpu);
  host_.capacity = static_cast<std::size_t>(std::max(gpu, host));
  for (std::uint32_t a = 1; a <= known && gpu > 0; ++a) use(adapter_bit(a));
}

AdapterSet AdapterSlots::members(const Cache& cache) {
  AdapterSet set = 0;
  for (const std::uint32_t a : cache.adapters) set |= adapter_bit(a);
  return set;
}

// Makes `adapter` the most recently used one; false when it was not there. For one that comes anew
// the oldest goes.
bool AdapterSlots::touch(Cache& cache, std::uint32_t adapter, AdapterSet& evicted) {
  std::vector<std::uint32_t>& list = cache.adapters;
  const auto at = std::find(list.begin(), list.end(), adapter);
  if (at != list.end()) {
    std::rotate(at, at + 1, list.end());
    return true;
  }
  if (list.size() == cache.capacity) {
    evicted |= adapter_bit(list.front());
    list.erase(list.begin());
  }
  list.push_back(adapter);
  return false;
}

AdapterSlots::Moves AdapterSlots::use(AdapterSet batch) {
  ROUTESIM_CHECK(std::popcount(batch) <= static_cast<int>(gpu_.capacity),
                 "a batch has more adapters than slots");
  Moves moves;
  for (AdapterSet left = batch; left != 0; left &= left - 1) {
    const auto adapter = static_cast<std::uint32_t>(std::countr_zero(left));
    AdapterSet forgotten = 0, unloaded = 0;
    if (!touch(host_, adapter, forgotten)) ++moves.reads;
    std::erase_if(gpu_.adapters,
                  [forgotten](std::uint32_t a) { return (adapter_bit(a) & forgotten) != 0; });
    if (!touch(gpu_, adapter, unloaded)) ++moves.loads;
  }
  return moves;
}

}  // namespace routesim::sim
