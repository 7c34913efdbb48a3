// How often each engine stored each block. Upstream of August 2026 forwards only the last of as
// many removals (llm-d-kv-cache).
//
// A row in a self-mapped slot stands for the count 1. All other counts are in an explicit table,
// which takes precedence. `kForeign` marks slots whose rows may have another origin, so that they
// stand for no count.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "policies/index/holder_sets.h"
#include "policies/index/key_runs.h"

namespace routesim::policies {

inline constexpr std::uint32_t kSelf = 1;           ///< KeyRun::mapping: its own request key.
inline constexpr std::uint32_t kFirstList = 2;      ///< KeyRun::mapping of mappings[0].
inline constexpr std::uint32_t kForeign = 1;        ///< KeyRun::flags: rows stand for no counts.
inline constexpr std::uint32_t kMayHaveCounts = 2;  ///< The explicit table knew it before the slot.
inline constexpr std::uint32_t kOneCount = 256;     ///< Higher flag bits count explicit entries.

/// The request keys of one engine key. Nearly always one, which then needs no memory of its own.
struct Mapping {
  BlockKey only = 0;
  std::vector<BlockKey> several;  ///< All of them when there is more than one.
  std::uint32_t slot = 0;         ///< Probable slot of `only`.
};

// Least room for explicit counts, however small the index is.
inline constexpr std::size_t kCountFloor = std::size_t{1} << 20;

/// Explicit duplicate counts by (engine key, row): open addressing, 0 = empty bucket. Engines that
/// never take back what they store would let it grow for ever, so a full table takes no new
/// entries; what it does not know counts as stored once.
class CountTable {
 public:
  explicit CountTable(std::size_t limit) : limit_(limit) {}
  bool empty() const { return count_ == 0; }
  std::uint32_t find(std::uint64_t key, Row row) const {
    return count_ == 0 ? 0 : buckets_[probe(key, row)].n;
  }
  /// Sets the count; 0 erases. Returns the change of the number of entries: -1, 0 or 1.
  int set(std::uint64_t key, Row row, std::uint32_t n) {
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
  void erase_endpoint(std::uint32_t endpoint) {
    if (count_ == 0) return;
    for (Bucket& b : buckets_)
      if (b.n != 0 && row_endpoint(b.row) == endpoint) {
        b = {};
        --count_;
      }
    rehash(buckets_.size());  // Holes would break the probe sequences.
  }
  std::size_t memory_bytes() const { return buckets_.capacity() * sizeof(Bucket); }

 private:
  struct Bucket {
    std::uint64_t key = 0;
    Row row = 0;
    std::uint32_t n = 0;
  };
  std::size_t home(std::uint64_t key, Row row) const {
    return mix64(key ^ row * 0x9e3779b97f4a7c15ULL) & (buckets_.size() - 1);
  }
  std::size_t probe(std::uint64_t key, Row row) const {
    std::size_t i = home(key, row);
    while (buckets_[i].n != 0 && (buckets_[i].key != key || buckets_[i].row != row))
      i = (i + 1) & (buckets_.size() - 1);
    return i;
  }
  void rehash(std::size_t buckets) {
    std::vector<Bucket> old(buckets);
    std::swap(old, buckets_);
    for (const Bucket& b : old)
      if (b.n != 0) buckets_[probe(b.key, b.row)] = b;
  }

  std::size_t limit_;
  std::vector<Bucket> buckets_;
  std::size_t count_ = 0;
};

/// The counts of one index, by slot. Single-threaded; calls are O(1) but for erase_endpoint.
class DuplicateCounts {
 public:
  /// `enabled` false: the era does not count. `keys`: cap of the index.
  DuplicateCounts(KeyRuns& slots, HolderSets& sets, bool enabled, std::size_t keys)
      : slots_(slots), sets_(sets), enabled_(enabled), table_(std::max(keys, kCountFloor)) {}

  bool enabled() const { return enabled_; }
  static bool stands_for_count(const KeyRun& run, Row row) {
    return run.mapping == kSelf && (run.flags & kForeign) == 0 && !row_speculative(row);
  }
  std::uint32_t initial_flags() const { return orphaned_ ? kMayHaveCounts : 0; }
  /// The slot's key is about to leave.
  void note_freed(std::uint32_t s) {
    if (may_have_counts(slots_[s])) orphaned_ = !table_.empty();
  }
  bool has_counted_rows(SetId set) const {
    const auto rows = sets_.rows(set);
    return std::any_of(rows.begin(), rows.end(), [](Row row) { return !row_speculative(row); });
  }

  /// Writes down the count of a row that goes away or stops standing for one.
  void make_explicit(std::uint32_t s, Row row) {
    if (!enabled_) return;
    if (!may_have_counts(slots_[s]) || table_.find(slots_.key(s), row) == 0)
      set_count(slots_.key(s), s, row, 1);
  }
  /// make_explicit() where the row stands for a count.
  void keep(std::uint32_t s, Row row) {
    if (stands_for_count(slots_[s], row) && sets_.contains(slots_[s].set, row))
      make_explicit(s, row);
  }
  /// From now on rows may enter the slot that its own engine key did not store.
  void make_foreign(std::uint32_t s) {
    if ((slots_[s].flags & kForeign) != 0) return;
    for (const Row row : sets_.rows(slots_[s].set))
      if (stands_for_count(slots_[s], row)) make_explicit(s, row);
    slots_.isolate(s).flags |= kForeign;
  }
  /// One more store of a row in its key's own slot; `contained`: the row was there before.
  void count_self_store(std::uint32_t s, Row row, bool contained) {
    const bool implicit = stands_for_count(slots_[s], row);
    const bool look = may_have_counts(slots_[s]);
    if (implicit && !contained && !look) return;  // The usual case: the new row says it.
    std::uint32_t n = look ? table_.find(slots_.key(s), row) : 0;
    if (n == 0 && implicit && contained) n = 1;
    if (++n == 1 && implicit) return;
    set_count(slots_.key(s), s, row, n);
  }
  /// The same where rows and engine keys live in different slots, or where the engine key has lost
  /// its slot (kNoSlot: a tiny cap may already have evicted it).
  void count_mapped_store(std::uint64_t engine_key, std::uint32_t s, Row row) {
    set_count(engine_key, s, row, find(engine_key, s, row) + 1);
  }
  /// Whether a removal reaches the index: only the last of the counted stores does.
  bool forward_removal(std::uint64_t engine_key, std::uint32_t s, Row row) {
    const std::uint32_t n = find(engine_key, s, row);
    if (n <= 1) {
      if (n == 1) set_count(engine_key, s, row, 0);
      return true;
    }
    const bool implicit =
        s != kNoSlot && stands_for_count(slots_[s], row) && sets_.contains(slots_[s].set, row);
    set_count(engine_key, s, row, n == 2 && implicit ? 0 : n - 1);
    return false;
  }
  /// O(explicit counts).
  void erase_endpoint(std::uint32_t endpoint) { table_.erase_endpoint(endpoint); }
  std::size_t memory_bytes() const { return table_.memory_bytes(); }

 private:
  /// False means that the explicit table does not know the slot's key.
  static bool may_have_counts(const KeyRun& run) {
    return run.flags >= kOneCount || (run.flags & kMayHaveCounts) != 0;
  }
  std::uint32_t find(std::uint64_t engine_key, std::uint32_t s, Row row) const {
    return s == kNoSlot || may_have_counts(slots_[s]) ? table_.find(engine_key, row) : 0;
  }
  // Every change of an explicit count goes through here, so that a slot knows whether it has any.
  void set_count(std::uint64_t engine_key, std::uint32_t s, Row row, std::uint32_t n) {
    const int change = table_.set(engine_key, row, n);
    if (change == 0) return;
    if (s == kNoSlot) {
      orphaned_ = orphaned_ || change > 0;
    } else if (change > 0) {
      slots_.isolate(s).flags += kOneCount;
    } else if (slots_[s].flags >= kOneCount) {
      slots_.isolate(s).flags -= kOneCount;
    }
  }

  KeyRuns& slots_;
  HolderSets& sets_;
  bool enabled_;
  CountTable table_;
  bool orphaned_ = false;  // A key has left the slots while the explicit table still knows it.
};

}  // namespace routesim::policies
