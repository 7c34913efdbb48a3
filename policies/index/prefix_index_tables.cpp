// The hash tables of PrefixIndex.
#include <algorithm>
#include <utility>

#include "base/rng.h"
#include "policies/index/prefix_index_impl.h"

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

std::size_t CountTable::home(std::uint64_t key, Row row) const {
  return mix64(key ^ row * 0x9e3779b97f4a7c15ULL) & (buckets_.size() - 1);
}

std::size_t CountTable::probe(std::uint64_t key, Row row) const {
  std::size_t i = home(key, row);
  while (buckets_[i].n != 0 && (buckets_[i].key != key || buckets_[i].row != row))
    i = (i + 1) & (buckets_.size() - 1);
  return i;
}

std::uint32_t CountTable::find(std::uint64_t key, Row row) const {
  return count_ == 0 ? 0 : buckets_[probe(key, row)].n;
}

int CountTable::set(std::uint64_t key, Row row, std::uint32_t n) {
  if (n != 0 && count_ < limit_ && (count_ + 1) * 2 > buckets_.size())
    rehash(buckets_.empty() ? 64 : buckets_.size() * 2);
  if (buckets_.empty()) return 0;
  std::size_t i = probe(key, row);
  const bool is_new = buckets_[i].n == 0;
  if (n != 0) {
    if (is_new && count_ >= limit_) return 0;
    buckets_[i] = {.key = key, .row = row, .n = n};
    count_ += is_new ? 1 : 0;
    return is_new ? 1 : 0;
  }
  if (is_new) return 0;
  const std::size_t mask = buckets_.size() - 1;
  for (std::size_t j = (i + 1) & mask; buckets_[j].n != 0; j = (j + 1) & mask) {
    if (((j - home(buckets_[j].key, buckets_[j].row)) & mask) < ((j - i) & mask)) continue;
    buckets_[i] = buckets_[j];
    i = j;
  }
  buckets_[i] = {};
  --count_;
  return -1;
}

void CountTable::erase_endpoint(std::uint32_t endpoint) {
  if (count_ == 0) return;
  for (Bucket& b : buckets_)
    if (b.n != 0 && row_endpoint(b.row) == endpoint) {
      b = {};
      --count_;
    }
  rehash(buckets_.size());  // Holes would break the probe sequences.
}

void CountTable::rehash(std::size_t buckets) {
  std::vector<Bucket> old(buckets);
  std::swap(old, buckets_);
  for (const Bucket& b : old)
    if (b.n != 0) buckets_[probe(b.key, b.row)] = b;
}

}  // namespace routesim::policies
