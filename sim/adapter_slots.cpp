#include "sim/adapter_slots.h"

#include <algorithm>
#include <bit>

#include "sim/base/check.h"

namespace routesim::sim {

AdapterSlots::AdapterSlots(std::int64_t gpu, std::int64_t host) {
  gpu_.capacity = static_cast<std::size_t>(gpu);
  host_.capacity = static_cast<std::size_t>(std::max(gpu, host));
}

AdapterSet AdapterSlots::members(const Cache& cache) {
  AdapterSet set = 0;
  for (const std::uint32_t a : cache.adapters) set |= adapter_bit(a);
  return set;
}

// Makes `adapter` the most recently used one; false when it was not there. For one that comes anew
// the oldest goes, but none that the batch needs.
bool AdapterSlots::touch(Cache& cache, std::uint32_t adapter, AdapterSet batch,
                         AdapterSet& evicted) {
  std::vector<std::uint32_t>& list = cache.adapters;
  const auto at = std::find(list.begin(), list.end(), adapter);
  if (at != list.end()) {
    std::rotate(at, at + 1, list.end());
    return true;
  }
  if (list.size() == cache.capacity) {
    const auto oldest = std::find_if(list.begin(), list.end(), [batch](std::uint32_t a) {
      return (adapter_bit(a) & batch) == 0;
    });
    ROUTESIM_CHECK(oldest != list.end(), "a batch has more adapters than slots");
    evicted |= adapter_bit(*oldest);
    list.erase(oldest);
  }
  list.push_back(adapter);
  return false;
}

AdapterSlots::Moves AdapterSlots::use(AdapterSet batch) {
  Moves moves;
  for (AdapterSet left = batch; left != 0; left &= left - 1) {
    const auto adapter = static_cast<std::uint32_t>(std::countr_zero(left));
    AdapterSet forgotten = 0, unloaded = 0;
    if (!touch(host_, adapter, batch, forgotten)) ++moves.reads;
    std::erase_if(gpu_.adapters,
                  [forgotten](std::uint32_t a) { return (adapter_bit(a) & forgotten) != 0; });
    if (!touch(gpu_, adapter, batch, unloaded)) ++moves.loads;
  }
  return moves;
}

}  // namespace routesim::sim
