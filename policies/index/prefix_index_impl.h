// The layout of PrefixIndex. One slot per 64-bit key serves both levels: as a request key it has a
// set of holders, as an engine key it has a mapping to request keys. Most engines publish hashes
// that the caller can use as request keys directly ("self mapping"), and then an event touches one
// slot only. Slots that are alike are kept as runs (key_runs.h), and what happens to the blocks of
// a prompt is done run by run.
//
// Recency: while a cap has never been reached, using keys only stores a stamp in their run. The
// first time a cap binds, the stamps are sorted once into a linked list of slots, each a run by
// itself, which is kept from then on.
//
// Duplicate counts (how often an engine stored a block): a row in a self-mapped slot stands for the
// count 1, and so does a row in the `once` set of a mapping; everything else is in an explicit
// table, which goes before them. `kForeign` marks slots whose rows may come from elsewhere, so that
// they stand for nothing.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "policies/index/holder_sets.h"
#include "policies/index/key_runs.h"
#include "policies/index/prefix_index.h"

namespace routesim::policies {

/// An LRU order over slots, by one of their two levels.
template <Level L>
class Recency {
 public:
  explicit Recency(std::size_t cap) : cap_(cap) {}
  std::size_t count() const { return count_; }
  bool linked() const { return linked_; }
  /// True right after an insertion that exceeded the cap.
  bool over() const { return count_ > cap_; }
  /// How many slots can be stamped as new members in one go.
  std::size_t room() const { return linked_ ? 0 : cap_ - count_; }

  void insert(KeyRuns& slots, std::uint32_t s) {
    ++count_;
    if (linked_) [[unlikely]]
      link_newest(slots, s);
    else
      stamp(slots.isolate(s));
  }
  void touch(KeyRuns& slots, std::uint32_t s) {
    if (linked_) [[unlikely]] {
      if (newest_ == s) return;
      unlink(slots, s);
      link_newest(slots, s);
    } else {
      stamp(slots.isolate(s));
    }
  }
  /// Makes the slots of a run members, in order; there must be room.
  void insert(KeyRun& run) {
    count_ += run.length;
    stamp(run);
  }
  /// Touches the slots of a run in order; only while not linked.
  void stamp(KeyRun& run) {
    run.template recency<L>() = clock_ + 1;
    clock_ += run.length;
  }
  void remove(KeyRuns& slots, std::uint32_t s) {
    --count_;
    if (linked_) [[unlikely]]
      unlink(slots, s);
  }
  /// The same for `n` slots at once; only while not linked.
  void remove(std::size_t n) { count_ -= n; }
  /// The least recently used member; there must be one. `members(slot)` tells members from others.
  template <class IsMember>
  std::uint32_t oldest(KeyRuns& slots, IsMember is_member) {
    if (!linked_) link_all(slots, is_member);
    return oldest_;
  }
  /// Members, least recently used first.
  template <class IsMember>
  std::vector<std::uint32_t> order(const KeyRuns& slots, IsMember is_member) const {
    std::vector<std::uint32_t> members;
    members.reserve(count_);
    if (linked_) {
      for (std::uint32_t s = oldest_; s != kNone; s = newer(slots.template recency<L>(s)))
        members.push_back(s);
      return members;
    }
    for (std::uint32_t s = 0; s < slots.size(); ++s)
      if (is_member(slots[s])) members.push_back(s);
    std::sort(members.begin(), members.end(), [&](std::uint32_t a, std::uint32_t b) {
      return slots.template recency<L>(a) < slots.template recency<L>(b);
    });
    return members;
  }

  /// Takes `n` consecutive stamps for a concurrent reader; the first one is returned.
  std::uint64_t reserve_stamps(std::uint64_t n) {
    return std::atomic_ref(clock_).fetch_add(n, std::memory_order_relaxed) + 1;
  }
  /// The stamp clock; only while not linked.
  std::uint64_t& clock() { return clock_; }

 private:
  static std::uint32_t older(std::uint64_t w) { return static_cast<std::uint32_t>(w >> 32); }
  static std::uint32_t newer(std::uint64_t w) { return static_cast<std::uint32_t>(w); }
  static void set_older(std::uint64_t& w, std::uint32_t s) {
    w = (w & 0xffffffff) | std::uint64_t{s} << 32;
  }
  static void set_newer(std::uint64_t& w, std::uint32_t s) { w = (w >> 32 << 32) | s; }

  // The links of a slot, which is a run by itself then.
  static std::uint64_t& links(KeyRuns& slots, std::uint32_t s) {
    return slots.isolate(s).template recency<L>();
  }
  void unlink(KeyRuns& slots, std::uint32_t s) {
    const std::uint64_t w = links(slots, s);
    (older(w) == kNone) ? void(oldest_ = newer(w)) : set_newer(links(slots, older(w)), newer(w));
    (newer(w) == kNone) ? void(newest_ = older(w)) : set_older(links(slots, newer(w)), older(w));
  }
  void link_newest(KeyRuns& slots, std::uint32_t s) {
    links(slots, s) = std::uint64_t{newest_} << 32 | kNone;
    (newest_ == kNone) ? void(oldest_ = s) : set_newer(links(slots, newest_), s);
    newest_ = s;
  }
  template <class IsMember>
  void link_all(KeyRuns& slots, IsMember is_member) {
    const std::vector<std::uint32_t> members = order(slots, is_member);
    linked_ = true;
    slots.isolate_all();
    for (const std::uint32_t s : members) link_newest(slots, s);
  }

  std::size_t cap_;
  std::size_t count_ = 0;
  std::uint64_t clock_ = 0;
  bool linked_ = false;
  std::uint32_t oldest_ = kNone;
  std::uint32_t newest_ = kNone;
};

/// Open-addressing map from a 64-bit key to its slot number: 8-byte buckets, linear probing,
/// backward shift on removal.
class SlotTable {
 public:
  SlotTable() : buckets_(64) {}
  static std::uint32_t tag(std::uint64_t key) {
    return static_cast<std::uint32_t>((key * 0x9e3779b97f4a7c15ULL) >> 32);
  }
  std::uint32_t find(const KeyRuns& slots, std::uint64_t key) const {
    const std::uint32_t t = tag(key);
    const std::size_t mask = buckets_.size() - 1;
    for (std::size_t i = t & mask; buckets_[i].slot_plus_1 != 0; i = (i + 1) & mask)
      if (buckets_[i].tag == t && slots.key(buckets_[i].slot_plus_1 - 1) == key)
        return buckets_[i].slot_plus_1 - 1;
    return kNone;
  }
  /// find() for a key that is probably not there. Where such a search ends is random, so that a
  /// branch per bucket would be mispredicted every other time: this one looks at four at once.
  std::uint32_t find_unlikely(const KeyRuns& slots, std::uint64_t key) const {
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
      if (ends) return kNone;
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
  void erase(std::uint64_t key, std::uint32_t slot);
  /// The key's slot is `to` from now on, no longer `from`.
  void relocate(std::uint64_t key, std::uint32_t from, std::uint32_t to) {
    const std::size_t mask = buckets_.size() - 1;
    std::size_t i = tag(key) & mask;
    while (buckets_[i].slot_plus_1 != from + 1) i = (i + 1) & mask;
    buckets_[i].slot_plus_1 = to + 1;
  }
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
  void grow();

  std::vector<Bucket> buckets_;
  std::size_t count_ = 0;
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

class PrefixIndexImpl {
 public:
  explicit PrefixIndexImpl(PrefixIndexOptions opts);

  bool stored(Row row, std::uint64_t parent, std::span<const std::uint64_t> engine_keys,
              std::span<const BlockKey> request_keys, bool tokens_present);
  void removed(Row row, std::span<const std::uint64_t> engine_keys);
  void clear(std::uint32_t endpoint);

  void add(std::span<const std::uint64_t> engine_keys, std::span<const BlockKey> request_keys,
           std::span<const HolderEntry> entries);
  void evict_engine_key(std::uint64_t engine_key, std::span<const HolderEntry> entries);
  void evict_request_keys(std::span<const BlockKey> keys, std::span<const HolderEntry> entries);

  /// Shared: may run in parallel with itself. See PrefixIndex::match.
  /// A shared lookup returns false where it cannot: it would have to cut a run.
  template <bool Shared>
  bool match(std::span<const BlockKey> keys, MatchScratch& scratch);
  std::vector<TierCount> tier_counts(std::span<const BlockKey> keys, EndpointId endpoint) const;

  std::optional<BlockKey> resolve_engine_key(std::uint64_t engine_key);

  /// The request keys of one engine key. Nearly always one, which then needs no memory of its own.
  struct Mapping {
    BlockKey only = 0;
    std::vector<BlockKey> several;  ///< All of them when there is more than one.
    std::uint32_t slot = 0;         ///< Of `only`, probably.
    SetId once = 0;                 ///< In `once`: who stored the engine key once.
  };
  /// The request keys of an engine slot, in order.
  std::span<const BlockKey> mapped_keys(std::uint32_t s) const {
    if (slots[s].mapping == kSelf) return slots.keys(s, 1);
    const Mapping& m = mappings[slots[s].mapping - kFirstList];
    return m.several.empty() ? std::span(&m.only, 1) : std::span(m.several);
  }

  std::uint32_t find(std::uint64_t key) const { return table.find(slots, key); }
  /// The slot of a key if it is where the slot of the key before it suggests, else kNone. Keys that
  /// arrived together sit in consecutive slots, which needs no read of the hint.
  template <bool Shared = false>
  std::uint32_t guess(std::uint32_t previous, std::uint64_t key) {
    if (previous == kNone) return kNone;
    if (slots.holds(previous + 1, key)) return previous + 1;
    std::uint32_t& word = slots.shared(previous).hint;
    const std::uint32_t hint =
        Shared ? std::atomic_ref(word).load(std::memory_order_relaxed) : word;
    return slots.holds(hint, key) ? hint : kNone;
  }
  template <bool Shared = false>
  void remember(std::uint32_t previous, std::uint32_t s) {
    if (previous == kNone) return;
    KeyRun& run = slots.shared(previous);
    if (previous + 1 != run.end()) return;
    Shared ? std::atomic_ref(run.hint).store(s, std::memory_order_relaxed) : void(run.hint = s);
  }
  static bool is_request(const KeyRun& run) { return run.set != 0; }
  static bool is_engine(const KeyRun& run) { return run.mapping != 0; }

  PrefixIndexOptions options;
  HolderSets sets;
  KeyRuns slots{sets};
  SlotTable table;
  Recency<Level::kRequest> requests;
  Recency<Level::kEngine> engines;
  CountTable counts;
  HolderSets once{1, RowOrder::kSorted};  // Sets of Mapping::once.
  std::vector<std::uint32_t> free_slots;  // Once recency is linked; before, close_holes().
  std::vector<Mapping> mappings;          // Of engine keys that are not their own request key.
  std::vector<std::uint32_t> free_mappings;

 private:
  static constexpr std::uint32_t kSelf = 1;           // KeyRun::mapping.
  static constexpr std::uint32_t kFirstList = 2;      // KeyRun::mapping of mappings[0].
  static constexpr std::uint32_t kForeign = 1;        // Rows do not stand for duplicate counts.
  static constexpr std::uint32_t kMayHaveCounts = 2;  // The explicit table knew it before the slot.
  static constexpr std::uint32_t kOneCount = 256;     // The upper bits count explicit entries.
  static constexpr std::size_t kToleratedHoles = 1024;
  // The least room for explicit counts, however small the index is.
  static constexpr std::size_t kCountFloor = std::size_t{1} << 20;
  static constexpr std::size_t kOnceLimit = 16;  // Rows of a `once` set; more are explicit.

  /// Slots of one run.
  struct Stretch {
    std::uint32_t first = kNone;
    std::uint32_t length = 0;
    std::uint32_t last() const { return first + length - 1; }
  };

  std::uint32_t find_or_insert(std::uint64_t key, std::uint32_t previous);
  void free_if_unused(std::uint32_t s);
  std::size_t free_run(std::uint32_t s, std::span<const std::uint64_t> keys, Row row);
  void close_holes();

  // Rows of a slot.
  bool place_row(std::uint32_t s, Row row);
  Stretch find_or_append(std::span<const std::uint64_t> keys, std::uint32_t previous);
  void use_run(KeyRun& run, SetId to);
  bool add_run(Stretch at, Row row);
  bool evict_run(Stretch at, Row row);
  void set_rows(std::uint32_t s, SetId to);
  void evict_row(std::uint32_t s, Row row);
  void evict_oldest_request();

  // Mappings of a slot.
  std::uint32_t new_mapping();
  void map_to(std::uint32_t s, std::span<const BlockKey> keys);
  void map_to_self(std::uint32_t s);
  void forget_list(std::uint32_t s);
  void drop_mapping(std::uint32_t s);
  void evict_oldest_engine();
  void map_proportionally(std::span<const std::uint64_t> engine_keys,
                          std::span<const BlockKey> request_keys);
  /// The slot of the i-th request key of an engine slot, or kNone.
  std::uint32_t mapped_slot(std::uint32_t s, std::size_t i);
  void evict_mapped(std::uint32_t s, Row row);
  void drop_mapping_if_empty(std::uint32_t s);

  // Events.
  void stored_self(Row row, std::span<const std::uint64_t> keys);
  bool store_run(Stretch at, Row row);
  void stored_mapped(Row row, std::span<const std::uint64_t> engine_keys,
                     std::span<const BlockKey> request_keys);
  void update_tier(Row row, std::span<const std::uint64_t> engine_keys);

  // Duplicate counts.
  static bool stands_for_count(const KeyRun& run, Row row) {
    return run.mapping == kSelf && (run.flags & kForeign) == 0 && !row_speculative(row);
  }
  /// False means that the explicit table does not know the slot's key.
  static bool may_have_counts(const KeyRun& run) {
    return run.flags >= kOneCount || (run.flags & kMayHaveCounts) != 0;
  }
  void set_count(std::uint64_t engine_key, std::uint32_t s, Row row, std::uint32_t n);
  void count_self_store(std::uint32_t s, Row row, bool contained);
  void count_mapped_store(std::uint64_t engine_key, std::uint32_t s, Row row);
  void set_once(Mapping& mapping, SetId to);
  bool forward_removal(std::uint64_t engine_key, std::uint32_t s, Row row);
  void make_explicit(std::uint32_t s, Row row);
  void make_foreign(std::uint32_t s);
  bool has_counted_rows(SetId set) const;

  // Lookup.
  template <bool Shared>
  std::uint32_t locate(std::uint32_t previous, std::uint64_t key, bool likely);
  void begin_alive(SetId set, MatchScratch& scratch) const;
  void narrow_alive(SetId set, MatchScratch& scratch) const;
  bool best_weight(std::span<const Row> rows, std::uint32_t endpoint, double& best) const;
  void index_best_weights(std::span<const Row> rows, MatchScratch& scratch) const;
  static void credit_run(std::uint32_t length, MatchScratch& scratch);
  double weight(Row row) const { return weights_[row_tier(row)]; }

  std::array<double, 128> weights_;  // By tier.
  // Slots of keys that are gone, not counting free_slots.
  std::size_t holes_ = 0;
  // Some key has left the slots while the explicit table still knows it.
  bool orphaned_counts_ = false;
};

}  // namespace routesim::policies
