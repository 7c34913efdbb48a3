// The hash table of the prefix indexes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace routesim::policies {

inline constexpr std::uint32_t kNoSlot = 0xffffffff;

/// Open-addressing map from a 64-bit key to its slot number: 8-byte buckets, linear probing,
/// backward shift on removal. The keys themselves are with the caller: `slots.key(slot)`.
class SlotTable {
 public:
  SlotTable() : buckets_(64) {}
  static std::uint32_t tag(std::uint64_t key) {
    return static_cast<std::uint32_t>((key * 0x9e3779b97f4a7c15ULL) >> 32);
  }
  template <class Slots>
  std::uint32_t find(const Slots& slots, std::uint64_t key) const {
    const std::uint32_t t = tag(key);
    const std::size_t mask = buckets_.size() - 1;
    for (std::size_t i = t & mask; buckets_[i].slot_plus_1 != 0; i = (i + 1) & mask)
      if (buckets_[i].tag == t && slots.key(buckets_[i].slot_plus_1 - 1) == key)
        return buckets_[i].slot_plus_1 - 1;
    return kNoSlot;
  }
  /// find() for a key that is probably not there. The end of such a search is random, so that a
  /// branch per bucket would be mispredicted every other time: this one looks at four at once.
  template <class Slots>
  std::uint32_t find_unlikely(const Slots& slots, std::uint64_t key) const {
    const std::uint32_t t = tag(key);
    const std::size_t mask = buckets_.size() - 1;
    for (std::size_t i = t & mask;; i = (i + 4) & mask) {
      bool found = false, ends = false;
      for (std::size_t k = 0; k < 4; ++k) {
        const Bucket& b = buckets_[(i + k) & mask];
        found |= b.tag == t;
        ends |= b.slot_plus_1 == 0;
      }
      if (found) [[unlikely]]
        return find(slots, key);
      if (ends) return kNoSlot;
    }
  }
  void prefetch(std::uint64_t key) const {
    __builtin_prefetch(&buckets_[tag(key) & (buckets_.size() - 1)]);
  }
  /// Fetches what a search for a key some places after `i` will need.
  void look_ahead(std::span<const std::uint64_t> keys, std::size_t i) const {
    if (i + kLookAhead < keys.size()) prefetch(keys[i + kLookAhead]);
  }
  /// The same for the first keys, which nobody has looked ahead to.
  void look_at(std::span<const std::uint64_t> keys) const {
    for (const std::uint64_t key : keys.first(std::min(keys.size(), kLookAhead))) prefetch(key);
  }
  /// The key must not be present.
  void insert(std::uint64_t key, std::uint32_t slot) {
    if ((count_ + 1) * 2 > buckets_.size()) grow();
    place({.tag = tag(key), .slot_plus_1 = slot + 1});
    ++count_;
  }
  void erase(std::uint64_t key, std::uint32_t slot) {
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
  /// The key's slot is `to` from now on, no longer `from`.
  void relocate(std::uint64_t key, std::uint32_t from, std::uint32_t to) {
    const std::size_t mask = buckets_.size() - 1;
    std::size_t i = tag(key) & mask;
    while (buckets_[i].slot_plus_1 != from + 1) i = (i + 1) & mask;
    buckets_[i].slot_plus_1 = to + 1;
  }
  std::size_t count() const { return count_; }
  std::size_t memory_bytes() const { return buckets_.capacity() * sizeof(Bucket); }

 private:
  struct Bucket {
    std::uint32_t tag = 0;
    std::uint32_t slot_plus_1 = 0;
  };
  static constexpr std::size_t kLookAhead = 8;
  void place(Bucket b) {
    const std::size_t mask = buckets_.size() - 1;
    std::size_t i = b.tag & mask;
    while (buckets_[i].slot_plus_1 != 0) i = (i + 1) & mask;
    buckets_[i] = b;
  }
  void grow() {
    std::vector<Bucket> old(buckets_.size() * 2);
    std::swap(old, buckets_);
    for (const Bucket& b : old)
      if (b.slot_plus_1 != 0) place(b);
  }

  std::vector<Bucket> buckets_;
  std::size_t count_ = 0;
};

}  // namespace routesim::policies
