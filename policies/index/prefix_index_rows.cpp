// PrefixIndex: rows of keys, changed by events or directly, and lookups.
#include <algorithm>
#include <utility>

#include "policies/index/prefix_index_impl.h"

namespace routesim::policies {

using Impl = PrefixIndexImpl;

// ---- Rows
// -----------------------------------------------------------------------------------------

// Makes `row` the newest holder of the slot's key; true when it was one already.
bool Impl::place_row(std::uint32_t s, Row row) {
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

// Uses the keys of a run and gives them other holders: what happens to one block of a prompt mostly
// happens to the blocks after it. Not where rows that stand for counts go.
void Impl::use_run(KeyRun& run, SetId to) {
  sets.acquire(to);
  const SetId from = run.set;
  run.set = to;
  if (from == 0) return requests.insert(run);
  sets.release(from);
  requests.stamp(run);
}

void Impl::set_rows(std::uint32_t s, SetId to) {
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
void Impl::evict_row(std::uint32_t s, Row row) {
  if (slots[s].set == 0) return;
  requests.touch(slots, s);
  set_rows(s, sets.without(slots[s].set, row));
}

void Impl::evict_oldest_request() {
  const std::uint32_t s = requests.oldest(slots, is_request);
  for (const Row row : sets.rows(slots[s].set))
    if (DuplicateCounts::stands_for_count(slots[s], row)) counts.make_explicit(s, row);
  set_rows(s, 0);
  free_if_unused(s);
}

// ---- Rows directly
// --------------------------------------------------------------------------------

namespace {

// What a list of holders allows: runs of keys take them together where there is one `plain` holder;
// rows that are `counted` stand for duplicate counts.
struct HolderKinds {
  explicit HolderKinds(std::span<const HolderEntry> entries)
      : counted(std::any_of(entries.begin(), entries.end(),
                            [](const HolderEntry& e) { return !e.speculative; })),
        plain(!counted && entries.size() == 1) {}
  bool counted;
  bool plain;
};

}  // namespace

void Impl::add(std::span<const std::uint64_t> engine_keys, std::span<const BlockKey> request_keys,
               std::span<const HolderEntry> entries) {
  if (request_keys.empty() || entries.empty()) return;
  close_holes();
  if (!engine_keys.empty()) map_proportionally(engine_keys, request_keys);
  const HolderKinds kinds(entries);
  Stretch at;
  for (std::size_t i = 0; i < request_keys.size(); i += at.length) {
    const std::uint32_t previous = i == 0 ? kNone : at.last();
    at = find_or_append(request_keys.subspan(i), previous);
    if (!kinds.plain || !add_run(at, pack_row(entries.front()))) {
      at.length = 1;  // A cap may take the others away meanwhile.
      if (kinds.counted) counts.make_foreign(at.first);
      for (const HolderEntry& entry : entries) place_row(at.first, pack_row(entry));
    }
    slots.join(previous, at.first);
  }
}

// Makes `row`, which stands for no count, the newest holder of a stretch; false where there is more
// to it.
bool Impl::add_run(Stretch at, Row row) {
  const SetId from = slots[at.first].set;
  if (from == 0 && requests.room() < at.length) return false;
  const auto [to, contained] = sets.with(from, row);
  if (!contained && sets.count(from) == options.pod_cache_size) return false;
  use_run(slots.cut(at.first, at.length), to);
  return true;
}

void Impl::evict_engine_key(std::uint64_t engine_key, std::span<const HolderEntry> entries) {
  const std::uint32_t s = find(engine_key);
  if (s == kNone || !is_engine(slots[s])) return;
  for (const HolderEntry& entry : entries) {
    const Row row = pack_row(entry);
    counts.keep(s, row);
    evict_mapped(s, row);
  }
  drop_mapping_if_empty(s);
}

void Impl::evict_request_keys(std::span<const BlockKey> keys,
                              std::span<const HolderEntry> entries) {
  const bool plain = HolderKinds(entries).plain;
  std::uint32_t s = kNone;
  for (std::size_t i = 0; i < keys.size();) {
    const std::uint32_t previous = s;
    s = guess(previous, keys[i]);
    if (s == kNone) s = find(keys[i]);
    if (s == kNone) {
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

// Evicts `row`, which stands for no count, from a stretch that others hold, too; false where there
// is more to it.
bool Impl::evict_run(Stretch at, Row row) {
  const SetId from = slots[at.first].set;
  if (from == 0) return false;
  const SetId to = sets.without(from, row);
  if (to == 0) return false;
  use_run(slots.cut(at.first, at.length), to);
  return true;
}

// ---- Lookups
// --------------------------------------------------------------------------------------

// The slot of a request key, or kNone.
std::uint32_t Impl::locate(std::uint32_t previous, std::uint64_t key, bool likely) {
  const std::uint32_t near = guess(previous, key);
  if (near != kNone) return slots[near].set != 0 ? near : kNone;
  const std::uint32_t s = likely ? find(key) : table.find_unlikely(slots, key);
  if (s == kNone || slots[s].set == 0) return kNone;
  remember(previous, s);
  return s;
}

void Impl::match(std::span<const BlockKey> keys, MatchScratch& scratch) {
  scratch.matches_.clear();
  scratch.alive_.clear();
  SetId run_set = 0;
  std::uint32_t length = 0;
  std::uint32_t previous = kNone;
  bool scoring = true;
  for (std::size_t i = 0; i < keys.size();) {
    const std::uint32_t s = locate(previous, keys[i], scoring);
    const std::uint32_t last = std::exchange(previous, s);
    if (s == kNone) {
      // The rest cannot score any more, but keys further on are still used, which refreshes them.
      if (scoring) MatchScorer::credit(length, scratch);
      if (scoring) table.look_at(keys.subspan(i + 1));
      scoring = false;
      table.look_ahead(keys, ++i);
      continue;
    }
    const std::size_t n = slots.common(s, keys.subspan(i));
    requests.stamp(slots.cut(s, n));
    slots.join(last, s);
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

std::optional<BlockKey> Impl::resolve_engine_key(std::uint64_t engine_key) {
  const std::uint32_t s = find(engine_key);
  if (s == kNone || !is_engine(slots[s])) return std::nullopt;
  engines.touch(slots, s);
  return mapped_keys(s).back();
}

}  // namespace routesim::policies
