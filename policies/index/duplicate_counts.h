// How often each engine stored each block. Upstream of August 2026 forwards only the last of as
// many removals (llm-d-kv-cache).
//
// A row in a self-mapped slot stands for the count 1, and so does a row in the `once` set of a
// mapping. All other counts are in an explicit table, which takes precedence. `kForeign` marks
// slots whose rows may have another origin, so that they stand for no count.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

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
  std::uint32_t slot = 0;         ///< Of `only`, probably.
  SetId once = 0;                 ///< In `once`: who stored the engine key once.
};

/// Explicit duplicate counts by (engine key, row): open addressing, 0 = empty bucket. Engines that
/// never take back what they store would let it grow for ever, so a full table takes no new
/// entries; what it does not know counts as stored once.
class CountTable {
 public:
  explicit CountTable(std::size_t limit) : limit_(limit) {}
  bool empty() const { return count_ == 0; }
  std::uint32_t find(std::uint64_t key, Row row) const;
  /// Sets the count; 0 erases. Returns the change of the number of entries: -1, 0 or 1.
  int set(std::uint64_t key, Row row, std::uint32_t n);
  void erase_endpoint(std::uint32_t endpoint);
  std::size_t memory_bytes() const { return buckets_.capacity() * sizeof(Bucket); }

 private:
  struct Bucket {
    std::uint64_t key = 0;
    Row row = 0;
    std::uint32_t n = 0;
  };
  std::size_t home(std::uint64_t key, Row row) const;
  std::size_t probe(std::uint64_t key, Row row) const;
  void rehash(std::size_t buckets);

  std::size_t limit_;
  std::vector<Bucket> buckets_;
  std::size_t count_ = 0;
};

/// The counts of one index, by slot. Single-threaded; every call is O(1) expected, but for
/// erase_endpoint.
class DuplicateCounts {
 public:
  /// `enabled` false: the era does not count. `keys`: cap of the index.
  DuplicateCounts(KeyRuns& slots, HolderSets& sets, std::vector<Mapping>& mappings, bool enabled,
                  std::size_t keys);

  bool enabled() const { return enabled_; }
  static bool stands_for_count(const KeyRun& run, Row row) {
    return run.mapping == kSelf && (run.flags & kForeign) == 0 && !row_speculative(row);
  }
  /// Flags of a new slot.
  std::uint32_t initial_flags() const { return orphaned_ ? kMayHaveCounts : 0; }
  /// The slot's key is about to leave.
  void note_freed(std::uint32_t s) {
    if (may_have_counts(slots_[s])) orphaned_ = !table_.empty();
  }
  bool has_counted_rows(SetId set) const;

  /// Writes down the count of a row that goes away or stops standing for one.
  void make_explicit(std::uint32_t s, Row row);
  /// make_explicit() where the row stands for a count.
  void keep(std::uint32_t s, Row row) {
    if (stands_for_count(slots_[s], row) && sets_.contains(slots_[s].set, row))
      make_explicit(s, row);
  }
  /// From now on rows may enter the slot that its own engine key did not store.
  void make_foreign(std::uint32_t s);
  /// The mapping goes away.
  void forget(std::uint32_t s, Mapping& mapping);
  /// One more store of a row in its key's own slot; `contained`: the row was there before.
  void count_self_store(std::uint32_t s, Row row, bool contained);
  /// The same where rows and engine keys live in different slots, or where the engine key has lost
  /// its slot (kNone: a tiny cap may already have evicted it).
  void count_mapped_store(std::uint64_t engine_key, std::uint32_t s, Row row);
  /// Whether a removal reaches the index: only the last of the counted stores does.
  bool forward_removal(std::uint64_t engine_key, std::uint32_t s, Row row);
  /// O(explicit counts + mappings).
  void erase_endpoint(std::uint32_t endpoint);
  std::size_t memory_bytes() const { return table_.memory_bytes() + once_.memory_bytes(); }

 private:
  /// False means that the explicit table does not know the slot's key.
  static bool may_have_counts(const KeyRun& run) {
    return run.flags >= kOneCount || (run.flags & kMayHaveCounts) != 0;
  }
  Mapping* mapping_of(std::uint32_t s) {
    const bool has = s != kNone && slots_[s].mapping >= kFirstList;
    return has ? &mappings_[slots_[s].mapping - kFirstList] : nullptr;
  }
  std::uint32_t find(std::uint64_t engine_key, std::uint32_t s, Row row) const {
    return s == kNone || may_have_counts(slots_[s]) ? table_.find(engine_key, row) : 0;
  }
  void set_count(std::uint64_t engine_key, std::uint32_t s, Row row, std::uint32_t n);
  void set_once(Mapping& mapping, SetId to);

  KeyRuns& slots_;
  HolderSets& sets_;
  std::vector<Mapping>& mappings_;
  bool enabled_;
  CountTable table_;
  HolderSets once_{1, RowOrder::kSorted};  // Sets of Mapping::once.
  bool orphaned_ = false;  // A key has left the slots while the explicit table still knows it.
};

}  // namespace routesim::policies
