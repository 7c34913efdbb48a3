// PrefixIndex: slots, mappings and events.

#include "base/check.h"
#include "policies/index/prefix_index_impl.h"

namespace routesim::policies {

using Impl = PrefixIndexImpl;

Impl::PrefixIndexImpl(PrefixIndexOptions opts)
    : options(std::move(opts)),
      sets(options.pod_cache_size, RowOrder::kRecency),
      requests(options.size),
      engines(options.size),
      counts(slots, sets, options.count_duplicates, options.size),
      scorer_(options.tier_weights, options.unlisted_tier_weight) {
  ROUTESIM_CHECK(options.size >= 1, "an index has room for at least one key");
  ROUTESIM_CHECK(options.pod_cache_size <= 65535, "podCacheSize is at most 65535");
}

// ---- Slots --------------------------------------------------------------------------------------

std::uint32_t Impl::find_or_insert(std::uint64_t key, std::uint32_t previous) {
  std::uint32_t s = guess(previous, key);
  if (s != kNoSlot) return s;
  s = find(key);
  if (s == kNoSlot) {
    s = slots.append(key, counts.initial_flags());
    table.insert(key, s);
  }
  remember(previous, s);
  return s;
}

// The longest stretch of a run that holds the first of `keys`. Unknown keys become
// a new run without either level, no longer than there is room for.
Impl::Stretch Impl::find_or_append(std::span<const std::uint64_t> keys, std::uint32_t previous) {
  const std::size_t before = slots.size();
  const std::uint32_t s = find_or_insert(keys.front(), previous);
  if (s != before) return {.first = s, .length = static_cast<std::uint32_t>(slots.common(s, keys))};
  const std::size_t most = std::min({keys.size(), requests.room(), engines.room()});
  table.look_at(keys.first(most));
  std::uint32_t n = 1;
  for (; n < most && table.find_unlikely(slots, keys[n]) == kNoSlot; ++n) {
    table.look_ahead(keys, n);
    slots.extend(keys[n]);
    table.insert(keys[n], s + n);
  }
  return {.first = s, .length = n};
}

void Impl::free_if_unused(std::uint32_t s) {
  if ((slots[s].set | slots[s].mapping) != 0) return;
  counts.note_freed(s);
  table.erase(slots.key(s), s);
  slots.free(s);
  ++holes_;
}

// New keys go to the end, so that those of one prompt stand side by side, and the holes that others
// leave are closed when they are many. Slot numbers held by the caller become void; those that are
// only probably right stay so.
void Impl::close_holes() {
  if (holes_ < kToleratedHoles || holes_ * 3 < slots.size()) return;
  slots.close_holes([this](std::uint64_t key, std::uint32_t from, std::uint32_t to) {
    table.relocate(key, from, to);
  });
  requests.forget_order();
  engines.forget_order();
  holes_ = 0;
}

// ---- Mappings ----------------------------------------------------------------------------------

std::uint32_t Impl::new_mapping() {
  if (free_mappings.empty()) {
    mappings.emplace_back();
    return static_cast<std::uint32_t>(mappings.size() - 1);
  }
  const std::uint32_t list = free_mappings.back();
  free_mappings.pop_back();
  return list;
}

void Impl::forget_list(std::uint32_t s) {
  if (slots[s].mapping < kFirstList) return;
  const std::uint32_t list = slots[s].mapping - kFirstList;
  mappings[list].several = {};
  free_mappings.push_back(list);
}

void Impl::map_to_self(std::uint32_t s) {
  const bool known = is_engine(slots[s]);
  forget_list(s);
  // Rows that came before the mapping stand for nothing.
  if (slots[s].mapping != kSelf && counts.has_counted_rows(slots[s].set)) counts.make_foreign(s);
  slots.isolate(s).mapping = kSelf;
  if (known) {
    engines.touch(slots, s);
    return;
  }
  engines.insert(slots, s);
  if (engines.over()) [[unlikely]]
    evict_oldest_engine();
}

void Impl::map_to(std::uint32_t s, std::span<const BlockKey> keys) {
  if (keys.size() == 1 && keys[0] == slots.key(s)) return map_to_self(s);
  const bool known = is_engine(slots[s]);
  counts.make_foreign(s);
  if (slots[s].mapping < kFirstList) slots.isolate(s).mapping = new_mapping() + kFirstList;
  Mapping& mapping = mappings[slots[s].mapping - kFirstList];
  mapping.only = keys[0];
  if (keys.size() > 1)
    mapping.several.assign(keys.begin(), keys.end());
  else
    mapping.several.clear();
  if (known) {
    engines.touch(slots, s);
    return;
  }
  engines.insert(slots, s);
  if (engines.over()) evict_oldest_engine();
}

void Impl::drop_mapping(std::uint32_t s) {
  if (slots[s].mapping == kSelf && slots[s].set != 0) counts.make_foreign(s);
  forget_list(s);
  slots.isolate(s).mapping = 0;
  engines.remove();
  free_if_unused(s);
}

void Impl::evict_oldest_engine() { drop_mapping(engines.oldest(slots, is_engine)); }

// engine[i * E / n] gets request[i * R / n] for i < n = max(E, R): 1:1, many:1 or 1:many.
void Impl::map_proportionally(std::span<const std::uint64_t> engine_keys,
                              std::span<const BlockKey> request_keys) {
  const std::size_t e = engine_keys.size();
  const std::size_t r = request_keys.size();
  const std::size_t n = std::max(e, r);
  std::uint32_t s = kNoSlot;
  for (std::size_t i = 0; i < n;) {
    const std::size_t engine = i * e / n;
    std::size_t end = i + 1;
    while (end < n && end * e / n == engine) ++end;
    // With several requests per engine key R = n, so their indices are i to end - 1 themselves.
    s = find_or_insert(engine_keys[engine], s);
    map_to(s, request_keys.subspan(i * r / n, end - i));
    i = end;
  }
}

std::uint32_t Impl::mapped_slot(std::uint32_t s, std::size_t i) {
  if (slots[s].mapping == kSelf) return s;
  Mapping& m = mappings[slots[s].mapping - kFirstList];
  if (!m.several.empty()) return find(m.several[i]);
  if (!slots.holds(m.slot, m.only) || slots[m.slot].set == 0) {
    const std::uint32_t t = find(m.only);
    if (t == kNoSlot) return kNoSlot;
    m.slot = t;
  }
  return m.slot;
}

// Evicts the row from all request keys of an engine slot.
void Impl::evict_mapped(std::uint32_t s, Row row) {
  engines.touch(slots, s);
  if (slots[s].mapping == kSelf) return evict_row(s, row);
  for (std::size_t i = 0; i < mapped_keys(s).size(); ++i) {
    const std::uint32_t t = mapped_slot(s, i);
    if (t == kNoSlot) continue;
    counts.keep(t, row);
    evict_row(t, row);
    if (t != s) free_if_unused(t);
  }
}

void Impl::drop_mapping_if_empty(std::uint32_t s) {
  for (std::size_t i = 0; i < mapped_keys(s).size(); ++i) {
    const std::uint32_t t = mapped_slot(s, i);
    if (t != kNoSlot && slots[t].set != 0) return;
  }
  drop_mapping(s);
}

// ---- Events ------------------------------------------------------------------------------------

bool Impl::stored(Row row, std::uint64_t parent, std::span<const std::uint64_t> engine_keys,
                  std::span<const BlockKey> request_keys, bool tokens_present) {
  close_holes();
  if (parent != 0) {
    const std::uint32_t s = find(parent);
    if (s == kNoSlot || !is_engine(slots[s])) return false;
    engines.touch(slots, s);
  }
  if (request_keys.empty()) {
    if (!tokens_present) update_tier(row, engine_keys);
    return true;
  }
  const bool self = engine_keys.size() == request_keys.size() &&
                    (engine_keys.data() == request_keys.data() ||
                     std::equal(engine_keys.begin(), engine_keys.end(), request_keys.begin()));
  if (self)
    stored_self(row, request_keys);
  else
    stored_mapped(row, engine_keys, request_keys);
  return true;
}

void Impl::stored_self(Row row, std::span<const std::uint64_t> keys) {
  Stretch at;
  for (std::size_t i = 0; i < keys.size(); i += at.length) {
    const std::uint32_t previous = i == 0 ? kNoSlot : at.last();
    at = find_or_append(keys.subspan(i), previous);
    if (store_run(at, row)) {
      slots.join(previous, at.first);
      continue;
    }
    at.length = 1;  // A cap may take the others away meanwhile.
    if (slots[at.first].mapping == kSelf)
      engines.touch(slots, at.first);
    else
      map_to_self(at.first);
    const bool contained = place_row(at.first, row);
    if (counts.enabled()) counts.count_self_store(at.first, row, contained);
    slots.join(previous, at.first);
  }
}

// One store of each key of a stretch by somebody who did not hold it: the new row stands for the
// count 1. False where there is more to it.
bool Impl::store_run(Stretch at, Row row) {
  const KeyRun& run = slots[at.first];
  const bool known = run.mapping == kSelf;
  if (run.flags != 0 || run.mapping > kSelf || (run.set == 0 && requests.room() < at.length) ||
      (!known && engines.room() < at.length) || sets.count(run.set) == options.pod_cache_size ||
      (!known && counts.has_counted_rows(run.set)))
    return false;
  const auto [to, contained] = sets.with(run.set, row);
  if (contained) return false;
  KeyRun& part = slots.cut(at.first, at.length);
  part.mapping = kSelf;
  known ? engines.stamp(part) : engines.insert(part);
  use_run(part, to);
  return true;
}

void Impl::stored_mapped(Row row, std::span<const std::uint64_t> engine_keys,
                         std::span<const BlockKey> request_keys) {
  const bool pairs = engine_keys.size() == request_keys.size();
  if (!pairs && !engine_keys.empty()) map_proportionally(engine_keys, request_keys);
  std::uint32_t s = kNoSlot;
  std::uint32_t e = kNoSlot;
  for (std::size_t i = 0; i < request_keys.size(); ++i) {
    if (pairs) {
      e = find_or_insert(engine_keys[i], e);
      map_to(e, request_keys.subspan(i, 1));
    }
    s = find_or_insert(request_keys[i], s);
    counts.make_foreign(s);
    place_row(s, row);
    if (!pairs) continue;
    if (slots[e].mapping >= kFirstList) mappings[slots[e].mapping - kFirstList].slot = s;
    if (counts.enabled()) counts.count_mapped_store(engine_keys[i], e, row);
  }
  if (pairs || !counts.enabled()) return;
  for (const std::uint64_t key : engine_keys) counts.count_mapped_store(key, find(key), row);
}

// Blocks moved or were copied to another tier; the event names engine hashes only.
void Impl::update_tier(Row row, std::span<const std::uint64_t> engine_keys) {
  bool any = false;
  std::vector<std::uint64_t> unknown;
  Stretch at;
  for (std::size_t i = 0; i < engine_keys.size(); i += at.length) {
    const std::uint32_t previous = i == 0 ? kNoSlot : at.last();
    const std::uint64_t key = engine_keys[i];
    const std::uint32_t near = previous == kNoSlot ? kNoSlot : guess(previous, key);
    const std::uint32_t s = near != kNoSlot ? near : find(key);
    at = {.first = s, .length = 1};
    if (s == kNoSlot || !is_engine(slots[s])) {
      unknown.push_back(key);
      continue;
    }
    any = true;
    const bool self = slots[s].mapping == kSelf;
    if (self && slots[s].set != 0) {
      at.length = static_cast<std::uint32_t>(slots.common(s, engine_keys.subspan(i)));
      if (store_run(at, row)) {
        slots.join(previous, at.first);
        continue;
      }
      at.length = 1;
    }
    engines.touch(slots, s);
    const std::uint32_t t = self ? s : find_or_insert(mapped_keys(s).back(), kNoSlot);
    if (!self) counts.make_foreign(t);
    const bool contained = place_row(t, row);
    if (!counts.enabled()) continue;
    self ? counts.count_self_store(t, row, contained) : counts.count_mapped_store(key, s, row);
  }
  // An event that took effect counts for all that it names (llm-d-router pkg/kvevents/pool.go).
  if (!any || !counts.enabled()) return;
  for (const std::uint64_t key : unknown) counts.count_mapped_store(key, find(key), row);
}

void Impl::removed(Row row, std::span<const std::uint64_t> engine_keys) {
  std::uint32_t s = kNoSlot;
  table.look_at(engine_keys);
  for (std::size_t i = 0; i < engine_keys.size(); ++i) {
    // Engines evict the tail of a prompt first, so keys often come in reverse.
    const std::uint64_t key = engine_keys[i];
    s = s != kNoSlot && s > 0 && slots.holds(s - 1, key) && is_engine(slots[s - 1]) ? s - 1
                                                                                    : find(key);
    if (s != kNoSlot)
      if (const std::size_t n = remove_run(s, engine_keys.subspan(i), row); n > 0) {
        s -= static_cast<std::uint32_t>(n) - 1;
        i += n - 1;
        continue;
      }
    if (counts.enabled() && !counts.forward_removal(key, s, row)) continue;
    if (s == kNoSlot || !is_engine(slots[s])) continue;
    evict_mapped(s, row);
    drop_mapping_if_empty(s);
  }
}

// Removes `row` from `keys`, as far as they are a run from `s` back whose rows were stored once;
// returns how many. The other rows of the keys stay, such as those of another tier.
std::size_t Impl::remove_run(std::uint32_t s, std::span<const std::uint64_t> keys, Row row) {
  const KeyRun& run = slots[s];
  if (run.mapping != kSelf || run.flags != 0 || run.set == 0) return 0;
  const SetId rest = sets.without(run.set, row);
  if (rest == 0) return free_run(s, keys);
  const std::uint32_t n = slots.common_back(s, keys);
  KeyRun& part = slots.cut(s - n + 1, n);
  engines.stamp(part, UseOrder::kDown);
  use_run(part, rest, UseOrder::kDown);
  slots.join_next(s);
  return n;
}

// Forgets `keys`, as far as they are a run from `s` back; returns how many.
std::size_t Impl::free_run(std::uint32_t s, std::span<const std::uint64_t> keys) {
  const std::uint32_t n = slots.common_back(s, keys);
  for (std::uint32_t i = 0; i < n; ++i) table.erase(keys[i], s - i);
  slots.free(s - n + 1, n);
  requests.remove(n);
  engines.remove(n);
  holes_ += n;
  return n;
}

void Impl::clear(std::uint32_t endpoint) {
  // Sets are shared by many keys, so each distinct set is reduced once; the references keep the
  // results alive until all keys have moved.
  std::vector<SetId> reduced(sets.id_bound(), kNoSlot);
  std::vector<SetId> held;
  for (std::uint32_t s = 0; s < slots.size(); ++s) {
    const SetId from = slots[s].set;
    if (from == 0) continue;
    if (from >= reduced.size()) reduced.resize(sets.id_bound(), kNoSlot);
    if (reduced[from] == kNoSlot) {
      reduced[from] = sets.without_endpoint(from, endpoint);
      for (const SetId id : {from, reduced[from]}) {
        sets.acquire(id);
        held.push_back(id);
      }
    }
    if (reduced[from] == from) continue;
    set_rows(s, reduced[from]);
    free_if_unused(s);
  }
  for (const SetId id : held) sets.release(id);
  counts.erase_endpoint(endpoint);
}

}  // namespace routesim::policies
