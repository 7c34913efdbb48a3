// The layout of PrefixIndex. One slot per 64-bit key serves both levels: as a request key it has a
// set of holders, as an engine key it has a mapping to request keys. Most engines publish hashes
// that the caller can use as request keys directly ("self mapping"), and then an event touches one
// slot only. Slots that are alike are kept as runs (key_runs.h), and what happens to the blocks of
// a prompt is done run by run.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "policies/index/duplicate_counts.h"
#include "policies/index/holder_sets.h"
#include "policies/index/key_runs.h"
#include "policies/index/match_scorer.h"
#include "policies/index/prefix_index.h"
#include "policies/index/slot_table.h"

namespace routesim::policies {

// The treatment of a list of holders: runs of keys take one `plain` holder together;
// rows that are `counted` stand for duplicate counts.
struct HolderKinds {
  explicit HolderKinds(std::span<const HolderEntry> entries)
      : counted(std::any_of(entries.begin(), entries.end(),
                            [](const HolderEntry& e) { return !e.speculative; })),
        plain(!counted && entries.size() == 1) {}
  bool counted;
  bool plain;
};

/// Slots, rows and mappings of one index; rows and lookups are here, events in
/// prefix_index_events.cpp. One thread at a time.
class PrefixIndexImpl {
 public:
  explicit PrefixIndexImpl(PrefixIndexOptions opts);

  bool stored(Row row, std::uint64_t parent, std::span<const std::uint64_t> engine_keys,
              std::span<const BlockKey> request_keys, bool tokens_present);
  void removed(Row row, std::span<const std::uint64_t> engine_keys);
  void clear(std::uint32_t endpoint);

  void add(std::span<const std::uint64_t> engine_keys, std::span<const BlockKey> request_keys,
           std::span<const HolderEntry> entries) {
    if (request_keys.empty() || entries.empty()) return;
    close_holes();
    if (!engine_keys.empty()) map_proportionally(engine_keys, request_keys);
    const HolderKinds kinds(entries);
    Stretch at;
    for (std::size_t i = 0; i < request_keys.size(); i += at.length) {
      const std::uint32_t previous = i == 0 ? kNoSlot : at.last();
      at = find_or_append(request_keys.subspan(i), previous);
      if (!kinds.plain || !add_run(at, pack_row(entries.front()))) {
        at.length = 1;  // A cap may take the others away meanwhile.
        if (kinds.counted) counts.make_foreign(at.first);
        for (const HolderEntry& entry : entries) place_row(at.first, pack_row(entry));
      }
      slots.join(previous, at.first);
    }
  }
  void evict_engine_key(std::uint64_t engine_key, std::span<const HolderEntry> entries) {
    const std::uint32_t s = find(engine_key);
    if (s == kNoSlot || !is_engine(slots[s])) return;
    for (const HolderEntry& entry : entries) {
      const Row row = pack_row(entry);
      counts.keep(s, row);
      evict_mapped(s, row);
    }
    drop_mapping_if_empty(s);
  }
  void evict_request_keys(std::span<const BlockKey> keys, std::span<const HolderEntry> entries) {
    const bool plain = HolderKinds(entries).plain;
    std::uint32_t s = kNoSlot;
    for (std::size_t i = 0; i < keys.size();) {
      const std::uint32_t previous = s;
      s = guess(previous, keys[i]);
      if (s == kNoSlot) s = find(keys[i]);
      if (s == kNoSlot) {
        ++i;
        continue;
      }
      const Stretch at{s, static_cast<std::uint32_t>(slots.common(s, keys.subspan(i)))};
      s = at.last();
      i += at.length;
      if (plain && evict_run(at, pack_row(entries.front()))) {
        slots.join(previous, at.first);
        continue;
      }
      for (std::uint32_t t = at.first; t <= at.last(); ++t) {
        for (const HolderEntry& entry : entries) {
          const Row row = pack_row(entry);
          counts.keep(t, row);
          evict_row(t, row);
        }
        free_if_unused(t);
      }
    }
  }

  void match(std::span<const BlockKey> keys, MatchScratch& scratch, bool dry_run) {
    scratch.matches_.clear();
    scratch.alive_.clear();
    SetId run_set = 0;
    std::uint32_t length = 0;
    std::uint32_t previous = kNoSlot;
    bool scoring = true;
    for (std::size_t i = 0; i < keys.size();) {
      const std::uint32_t s = locate(previous, keys[i], scoring);
      const std::uint32_t last = std::exchange(previous, s);
      if (s == kNoSlot) {
        // The rest cannot score any more, but keys further on are still used, which refreshes them.
        if (scoring) MatchScorer::credit(length, scratch);
        if (scoring) table.look_at(keys.subspan(i + 1));
        scoring = false;
        table.look_ahead(keys, ++i);
        continue;
      }
      const std::size_t n = slots.common(s, keys.subspan(i));
      if (!dry_run) {
        requests.stamp(slots.cut(s, n));
        slots.join(last, s);
      }
      const SetId set = slots[s].set;
      if (scoring && set == run_set) {
        length += static_cast<std::uint32_t>(n);
      } else if (scoring) {
        MatchScorer::credit(length, scratch);
        run_set = set;
        length = static_cast<std::uint32_t>(n);
        i == 0 ? scorer_.begin(sets.rows(set), scratch) : scorer_.narrow(sets.rows(set), scratch);
        if (scratch.alive_.empty()) scoring = false;
      }
      previous = s + static_cast<std::uint32_t>(n) - 1;
      i += n;
    }
    if (scoring) MatchScorer::credit(length, scratch);
  }

  void tier_counts(std::span<const BlockKey> keys, std::vector<TierCount>& out) const {
    TierCounter counter;
    std::uint32_t s = kNoSlot;
    for (std::size_t i = 0; i < keys.size();) {
      const std::uint32_t near = guess(s, keys[i]);
      s = near != kNoSlot ? near : find(keys[i]);
      if (s == kNoSlot || slots[s].set == 0) break;
      const auto n = static_cast<std::uint32_t>(slots.common(s, keys.subspan(i)));
      if (!counter.add(sets.rows(slots[s].set), n)) break;
      s += n - 1;
      i += n;
    }
    counter.write(out);
  }

  std::optional<BlockKey> resolve_engine_key(std::uint64_t engine_key) {
    const std::uint32_t s = find(engine_key);
    if (s == kNoSlot || !is_engine(slots[s])) return std::nullopt;
    engines.touch(slots, s);
    return mapped_keys(s).back();
  }

  /// The request keys of an engine slot, in order.
  std::span<const BlockKey> mapped_keys(std::uint32_t s) const {
    if (slots[s].mapping == kSelf) return slots.keys(s, 1);
    const Mapping& m = mappings[slots[s].mapping - kFirstList];
    return m.several.empty() ? std::span(&m.only, 1) : std::span(m.several);
  }

  std::uint32_t find(std::uint64_t key) const { return table.find(slots, key); }
  /// The slot of a key if it is where the slot of the key before it suggests, else kNoSlot. Keys
  /// that arrived together sit in consecutive slots, which needs no read of the hint.
  [[gnu::always_inline]] std::uint32_t guess(std::uint32_t previous, std::uint64_t key) const {
    if (previous == kNoSlot) return kNoSlot;
    if (slots.holds(previous + 1, key)) return previous + 1;
    const std::uint32_t hint = slots[previous].hint;
    return slots.holds(hint, key) ? hint : kNoSlot;
  }
  void remember(std::uint32_t previous, std::uint32_t s) {
    if (previous != kNoSlot) slots.set_hint(previous, s);
  }
  static bool is_request(const KeyRun& run) { return run.set != 0; }
  static bool is_engine(const KeyRun& run) { return run.mapping != 0; }

  PrefixIndexOptions options;
  HolderSets sets;
  KeyRuns slots{sets};
  SlotTable table;
  Recency<Level::kRequest> requests;
  Recency<Level::kEngine> engines;
  std::vector<Mapping> mappings;  // Engine keys that are not their own request key.
  std::vector<std::uint32_t> free_mappings;
  DuplicateCounts counts;

 private:
  static constexpr std::size_t kToleratedHoles = 1024;

  /// Slots of one run.
  struct Stretch {
    std::uint32_t first = kNoSlot;
    std::uint32_t length = 0;
    std::uint32_t last() const { return first + length - 1; }
  };

  std::uint32_t find_or_insert(std::uint64_t key, std::uint32_t previous);
  void free_if_unused(std::uint32_t s);
  std::size_t free_run(std::uint32_t s, std::span<const std::uint64_t> keys);
  std::size_t remove_run(std::uint32_t s, std::span<const std::uint64_t> keys, Row row);
  void close_holes();

  // Rows of a slot.
  // Makes `row` the newest holder of the slot's key; true when it was one already.
  bool place_row(std::uint32_t s, Row row) {
    const SetId from = slots[s].set;
    const auto [to, contained] = sets.with(from, row);
    sets.acquire(to);
    if (!contained && sets.count(from) == options.pod_cache_size) [[unlikely]] {
      const Row dropped = sets.rows(from).front();
      if (DuplicateCounts::stands_for_count(slots[s], dropped)) counts.make_explicit(s, dropped);
    }
    slots.isolate(s).set = to;
    if (from != 0) {
      sets.release(from);
      requests.touch(slots, s);
      return contained;
    }
    requests.insert(slots, s);
    if (requests.over()) [[unlikely]]
      evict_oldest_request();
    return contained;
  }
  Stretch find_or_append(std::span<const std::uint64_t> keys, std::uint32_t previous);
  // Uses the keys of a run and gives them other holders: what happens to one block of a prompt
  // mostly happens to the blocks after it. Not where rows that stand for counts go.
  void use_run(KeyRun& run, SetId to, UseOrder order = UseOrder::kUp) {
    sets.acquire(to);
    const SetId from = run.set;
    run.set = to;
    if (from == 0) return requests.insert(run);
    sets.release(from);
    requests.stamp(run, order);
  }
  // Makes `row`, which stands for no count, the newest holder; false where there is more to it.
  bool add_run(Stretch at, Row row) {
    const SetId from = slots[at.first].set;
    if (from == 0 && requests.room() < at.length) return false;
    const auto [to, contained] = sets.with(from, row);
    if (!contained && sets.count(from) == options.pod_cache_size) return false;
    use_run(slots.cut(at.first, at.length), to);
    return true;
  }
  // Evicts such a `row` from a stretch that others hold, too; false where there is more to it.
  bool evict_run(Stretch at, Row row) {
    const SetId from = slots[at.first].set;
    if (from == 0) return false;
    const SetId to = sets.without(from, row);
    if (to == 0) return false;
    use_run(slots.cut(at.first, at.length), to);
    return true;
  }
  void set_rows(std::uint32_t s, SetId to) {
    if (slots[s].set == to) return;
    KeyRun& run = slots.isolate(s);
    if (to != 0) sets.acquire(to);
    sets.release(run.set);
    run.set = to;
    if (to != 0) return;
    run.flags &= ~kForeign;
    requests.remove();
  }
  // One row of one request key, by an access that refreshes the key. A key without rows disappears.
  void evict_row(std::uint32_t s, Row row) {
    if (slots[s].set == 0) return;
    requests.touch(slots, s);
    set_rows(s, sets.without(slots[s].set, row));
  }
  void evict_oldest_request() {
    const std::uint32_t s = requests.oldest(slots, is_request);
    for (const Row row : sets.rows(slots[s].set))
      if (DuplicateCounts::stands_for_count(slots[s], row)) counts.make_explicit(s, row);
    set_rows(s, 0);
    free_if_unused(s);
  }

  std::uint32_t new_mapping();
  void map_to(std::uint32_t s, std::span<const BlockKey> keys);
  void map_to_self(std::uint32_t s);
  void forget_list(std::uint32_t s);
  void drop_mapping(std::uint32_t s);
  void evict_oldest_engine();
  void map_proportionally(std::span<const std::uint64_t> engine_keys,
                          std::span<const BlockKey> request_keys);
  /// The slot of the i-th request key of an engine slot, or kNoSlot.
  std::uint32_t mapped_slot(std::uint32_t s, std::size_t i);
  void evict_mapped(std::uint32_t s, Row row);
  void drop_mapping_if_empty(std::uint32_t s);

  void stored_self(Row row, std::span<const std::uint64_t> keys);
  bool store_run(Stretch at, Row row);
  void stored_mapped(Row row, std::span<const std::uint64_t> engine_keys,
                     std::span<const BlockKey> request_keys);
  void update_tier(Row row, std::span<const std::uint64_t> engine_keys);

  // Lookup.
  // The slot of a request key, or kNoSlot.
  std::uint32_t locate(std::uint32_t previous, std::uint64_t key, bool likely) {
    const std::uint32_t near = guess(previous, key);
    if (near != kNoSlot) return slots[near].set != 0 ? near : kNoSlot;
    const std::uint32_t s = likely ? find(key) : table.find_unlikely(slots, key);
    if (s == kNoSlot || slots[s].set == 0) return kNoSlot;
    remember(previous, s);
    return s;
  }

  MatchScorer scorer_;
  std::size_t holes_ = 0;  // Slots of keys that are gone.
};

}  // namespace routesim::policies
