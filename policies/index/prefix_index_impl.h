// The layout of PrefixIndex. One slot per 64-bit key serves both levels: as a request key it has a
// set of holders, as an engine key it has a mapping to request keys. Most engines publish hashes
// that the caller can use as request keys directly ("self mapping"), and then an event touches one
// slot only. Slots that are alike are kept as runs (key_runs.h), and what happens to the blocks of
// a prompt is done run by run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "policies/index/duplicate_counts.h"
#include "policies/index/holder_sets.h"
#include "policies/index/key_runs.h"
#include "policies/index/match_scorer.h"
#include "policies/index/prefix_index.h"
#include "policies/index/recency.h"
#include "policies/index/slot_table.h"

namespace routesim::policies {

/// Slots, rows and mappings of one index. Events are in prefix_index_events.cpp, rows and lookups
/// in prefix_index_rows.cpp. One thread at a time.
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

  void match(std::span<const BlockKey> keys, MatchScratch& scratch);

  std::optional<BlockKey> resolve_engine_key(std::uint64_t engine_key);

  /// The request keys of an engine slot, in order.
  std::span<const BlockKey> mapped_keys(std::uint32_t s) const {
    if (slots[s].mapping == kSelf) return slots.keys(s, 1);
    const Mapping& m = mappings[slots[s].mapping - kFirstList];
    return m.several.empty() ? std::span(&m.only, 1) : std::span(m.several);
  }

  std::uint32_t find(std::uint64_t key) const { return table.find(slots, key); }
  /// The slot of a key if it is where the slot of the key before it suggests, else kNone. Keys that
  /// arrived together sit in consecutive slots, which needs no read of the hint.
  std::uint32_t guess(std::uint32_t previous, std::uint64_t key) const {
    if (previous == kNone) return kNone;
    if (slots.holds(previous + 1, key)) return previous + 1;
    const std::uint32_t hint = slots[previous].hint;
    return slots.holds(hint, key) ? hint : kNone;
  }
  void remember(std::uint32_t previous, std::uint32_t s) {
    if (previous != kNone) slots.set_hint(previous, s);
  }
  static bool is_request(const KeyRun& run) { return run.set != 0; }
  static bool is_engine(const KeyRun& run) { return run.mapping != 0; }

  PrefixIndexOptions options;
  HolderSets sets;
  KeyRuns slots{sets};
  SlotTable table;
  Recency<Level::kRequest> requests;
  Recency<Level::kEngine> engines;
  std::vector<Mapping> mappings;  // Of engine keys that are not their own request key.
  std::vector<std::uint32_t> free_mappings;
  DuplicateCounts counts;

 private:
  static constexpr std::size_t kToleratedHoles = 1024;

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

  // Lookup.
  std::uint32_t locate(std::uint32_t previous, std::uint64_t key, bool likely);

  MatchScorer scorer_;
  std::size_t holes_ = 0;  // Slots of keys that are gone.
};

}  // namespace routesim::policies
