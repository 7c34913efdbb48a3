// PrefixIndex: how often each engine stored each block. See prefix_index_impl.h.
#include <algorithm>

#include "policies/index/prefix_index_impl.h"

namespace routesim::policies {

using Impl = PrefixIndexImpl;

// Every change of an explicit count goes through here, so that a slot knows whether it has any.
void Impl::set_count(std::uint64_t engine_key, std::uint32_t s, Row row, std::uint32_t n) {
  const int change = counts.set(engine_key, row, n);
  if (change == 0) return;
  if (s == kNone) {
    orphaned_counts_ = orphaned_counts_ || change > 0;
  } else if (change > 0) {
    slots.isolate(s).flags += kOneCount;
  } else if (slots[s].flags >= kOneCount) {
    slots.isolate(s).flags -= kOneCount;
  }
}

void Impl::make_explicit(std::uint32_t s, Row row) {
  if (!options.count_duplicates) return;
  if (!may_have_counts(slots[s]) || counts.find(slots.key(s), row) == 0)
    set_count(slots.key(s), s, row, 1);
}

// From here on rows may enter the slot that its own engine key did not store.
void Impl::make_foreign(std::uint32_t s) {
  if ((slots[s].flags & kForeign) != 0) return;
  for (const Row row : sets.rows(slots[s].set))
    if (stands_for_count(slots[s], row)) make_explicit(s, row);
  slots.isolate(s).flags |= kForeign;
}

// One more store of a row in its key's own slot; `contained` says whether it was there before.
void Impl::count_self_store(std::uint32_t s, Row row, bool contained) {
  const bool implicit = stands_for_count(slots[s], row);
  const bool look = may_have_counts(slots[s]);
  if (implicit && !contained && !look) return;  // The usual case: the new row says it.
  std::uint32_t n = look ? counts.find(slots.key(s), row) : 0;
  if (n == 0 && implicit && contained) n = 1;
  if (++n == 1 && implicit) return;
  set_count(slots.key(s), s, row, n);
}

void Impl::set_once(Mapping& mapping, SetId to) {
  if (mapping.once == to) return;
  if (to != 0) once.acquire(to);
  if (mapping.once != 0) once.release(mapping.once);
  mapping.once = to;
}

// The same where rows and engine keys live in different slots, or the engine key has lost its slot
// (kNone: a tiny cap may already have evicted it).
void Impl::count_mapped_store(std::uint64_t engine_key, std::uint32_t s, Row row) {
  const std::uint32_t n =
      s == kNone || may_have_counts(slots[s]) ? counts.find(engine_key, row) : 0;
  if (n != 0 || s == kNone || slots[s].mapping < kFirstList)
    return set_count(engine_key, s, row, n + 1);
  Mapping& mapping = mappings[slots[s].mapping - kFirstList];
  if (once.contains(mapping.once, row)) return set_count(engine_key, s, row, 2);
  if (once.count(mapping.once) >= kOnceLimit) return set_count(engine_key, s, row, 1);
  set_once(mapping, once.with(mapping.once, row).set);
}

bool Impl::has_counted_rows(SetId set) const {
  const auto rows = sets.rows(set);
  return std::any_of(rows.begin(), rows.end(), [](Row row) { return !row_speculative(row); });
}

// Whether a removal reaches the index: only the last of the counted stores does.
bool Impl::forward_removal(std::uint64_t engine_key, std::uint32_t s, Row row) {
  const std::uint32_t n =
      s == kNone || may_have_counts(slots[s]) ? counts.find(engine_key, row) : 0;
  Mapping* mapping = nullptr;
  if (s != kNone && slots[s].mapping >= kFirstList)
    mapping = &mappings[slots[s].mapping - kFirstList];
  if (n <= 1) {
    if (n == 1) set_count(engine_key, s, row, 0);
    if (mapping != nullptr) set_once(*mapping, once.without(mapping->once, row));
    return true;
  }
  const bool implicit = mapping != nullptr ? once.contains(mapping->once, row)
                                           : s != kNone && stands_for_count(slots[s], row) &&
                                                 sets.contains(slots[s].set, row);
  set_count(engine_key, s, row, n == 2 && implicit ? 0 : n - 1);
  return false;
}

}  // namespace routesim::policies
