// PrefixIndex: the rows of keys, as events change them and as others do directly.
#include <algorithm>

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
    if (stands_for_count(slots[s], dropped)) make_explicit(s, dropped);
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
// happens to the blocks after it. Not where rows that stand for counts go, nor for linked recency.
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
  requests.remove(slots, s);
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
    if (stands_for_count(slots[s], row)) make_explicit(s, row);
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
      if (kinds.counted) make_foreign(at.first);
      for (const HolderEntry& entry : entries) place_row(at.first, pack_row(entry));
    }
    slots.join(previous, at.first);
  }
}

// Makes `row`, which stands for no count, the newest holder of a stretch; false where there is more
// to it.
bool Impl::add_run(Stretch at, Row row) {
  const SetId from = slots[at.first].set;
  if (requests.room() < at.length) return false;
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
    if (stands_for_count(slots[s], row) && sets.contains(slots[s].set, row)) make_explicit(s, row);
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
        if (stands_for_count(slots[t], row) && sets.contains(slots[t].set, row))
          make_explicit(t, row);
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
  if (from == 0 || requests.linked()) return false;
  const SetId to = sets.without(from, row);
  if (to == 0) return false;
  use_run(slots.cut(at.first, at.length), to);
  return true;
}

}  // namespace routesim::policies
