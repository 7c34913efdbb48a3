#include "policies/index/slot_table.h"

#include <utility>

namespace routesim::policies {

void SlotTable::erase(std::uint64_t key, std::uint32_t slot) {
  const std::size_t mask = buckets_.size() - 1;
  std::size_t hole = tag(key) & mask;
  while (buckets_[hole].slot_plus_1 != slot + 1) hole = (hole + 1) & mask;
  // Backward shift: an entry may move into the hole unless that would put it before its home.
  for (std::size_t i = (hole + 1) & mask; buckets_[i].slot_plus_1 != 0; i = (i + 1) & mask) {
    const std::size_t home = buckets_[i].tag & mask;
    if (((i - home) & mask) < ((i - hole) & mask)) continue;
    buckets_[hole] = buckets_[i];
    hole = i;
  }
  buckets_[hole] = {};
  --count_;
}

void SlotTable::grow() {
  std::vector<Bucket> old(buckets_.size() * 2);
  std::swap(old, buckets_);
  for (const Bucket& b : old)
    if (b.slot_plus_1 != 0) place(b);
}

}  // namespace routesim::policies
