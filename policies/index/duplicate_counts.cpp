#include "policies/index/duplicate_counts.h"

#include <utility>

#include "base/rng.h"

namespace routesim::policies {
namespace {

// Least room for explicit counts, however small the index is.
constexpr std::size_t kCountFloor = std::size_t{1} << 20;
constexpr std::size_t kOnceLimit = 16;  // Rows of a `once` set; more are explicit.

}  // namespace

std::size_t CountTable::home(std::uint64_t key, Row row) const {
  return mix64(key ^ row * 0x9e3779b97f4a7c15ULL) & (buckets_.size() - 1);
}

std::size_t CountTable::probe(std::uint64_t key, Row row) const {
  std::size_t i = home(key, row);
  while (buckets_[i].n != 0 && (buckets_[i].key != key || buckets_[i].row != row))
    i = (i + 1) & (buckets_.size() - 1);
  return i;
}

std::uint32_t CountTable::find(std::uint64_t key, Row row) const {
  return count_ == 0 ? 0 : buckets_[probe(key, row)].n;
}

int CountTable::set(std::uint64_t key, Row row, std::uint32_t n) {
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

void CountTable::erase_endpoint(std::uint32_t endpoint) {
  if (count_ == 0) return;
  for (Bucket& b : buckets_)
    if (b.n != 0 && row_endpoint(b.row) == endpoint) {
      b = {};
      --count_;
    }
  rehash(buckets_.size());  // Holes would break the probe sequences.
}

void CountTable::rehash(std::size_t buckets) {
  std::vector<Bucket> old(buckets);
  std::swap(old, buckets_);
  for (const Bucket& b : old)
    if (b.n != 0) buckets_[probe(b.key, b.row)] = b;
}

DuplicateCounts::DuplicateCounts(KeyRuns& slots, HolderSets& sets, std::vector<Mapping>& mappings,
                                 bool enabled, std::size_t keys)
    : slots_(slots),
      sets_(sets),
      mappings_(mappings),
      enabled_(enabled),
      table_(std::max(keys, kCountFloor)) {}

// Every change of an explicit count goes through here, so that a slot knows whether it has any.
void DuplicateCounts::set_count(std::uint64_t engine_key, std::uint32_t s, Row row,
                                std::uint32_t n) {
  const int change = table_.set(engine_key, row, n);
  if (change == 0) return;
  if (s == kNone) {
    orphaned_ = orphaned_ || change > 0;
  } else if (change > 0) {
    slots_.isolate(s).flags += kOneCount;
  } else if (slots_[s].flags >= kOneCount) {
    slots_.isolate(s).flags -= kOneCount;
  }
}

void DuplicateCounts::make_explicit(std::uint32_t s, Row row) {
  if (!enabled_) return;
  if (!may_have_counts(slots_[s]) || table_.find(slots_.key(s), row) == 0)
    set_count(slots_.key(s), s, row, 1);
}

void DuplicateCounts::make_foreign(std::uint32_t s) {
  if ((slots_[s].flags & kForeign) != 0) return;
  for (const Row row : sets_.rows(slots_[s].set))
    if (stands_for_count(slots_[s], row)) make_explicit(s, row);
  slots_.isolate(s).flags |= kForeign;
}

void DuplicateCounts::count_self_store(std::uint32_t s, Row row, bool contained) {
  const bool implicit = stands_for_count(slots_[s], row);
  const bool look = may_have_counts(slots_[s]);
  if (implicit && !contained && !look) return;  // The usual case: the new row says it.
  std::uint32_t n = look ? table_.find(slots_.key(s), row) : 0;
  if (n == 0 && implicit && contained) n = 1;
  if (++n == 1 && implicit) return;
  set_count(slots_.key(s), s, row, n);
}

void DuplicateCounts::set_once(Mapping& mapping, SetId to) {
  if (mapping.once == to) return;
  if (to != 0) once_.acquire(to);
  if (mapping.once != 0) once_.release(mapping.once);
  mapping.once = to;
}

void DuplicateCounts::count_mapped_store(std::uint64_t engine_key, std::uint32_t s, Row row) {
  const std::uint32_t n = find(engine_key, s, row);
  Mapping* const mapped = mapping_of(s);
  if (n != 0 || mapped == nullptr) return set_count(engine_key, s, row, n + 1);
  Mapping& mapping = *mapped;
  if (once_.contains(mapping.once, row)) return set_count(engine_key, s, row, 2);
  if (once_.count(mapping.once) >= kOnceLimit) return set_count(engine_key, s, row, 1);
  set_once(mapping, once_.with(mapping.once, row).set);
}

bool DuplicateCounts::has_counted_rows(SetId set) const {
  const auto rows = sets_.rows(set);
  return std::any_of(rows.begin(), rows.end(), [](Row row) { return !row_speculative(row); });
}

bool DuplicateCounts::forward_removal(std::uint64_t engine_key, std::uint32_t s, Row row) {
  const std::uint32_t n = find(engine_key, s, row);
  Mapping* mapping = mapping_of(s);
  if (n <= 1) {
    if (n == 1) set_count(engine_key, s, row, 0);
    if (mapping != nullptr) set_once(*mapping, once_.without(mapping->once, row));
    return true;
  }
  const bool implicit = mapping != nullptr ? once_.contains(mapping->once, row)
                                           : s != kNone && stands_for_count(slots_[s], row) &&
                                                 sets_.contains(slots_[s].set, row);
  set_count(engine_key, s, row, n == 2 && implicit ? 0 : n - 1);
  return false;
}

void DuplicateCounts::forget(std::uint32_t s, Mapping& mapping) {
  for (const Row row : once_.rows(mapping.once)) make_explicit(s, row);
  set_once(mapping, 0);
}

void DuplicateCounts::erase_endpoint(std::uint32_t endpoint) {
  table_.erase_endpoint(endpoint);
  for (Mapping& m : mappings_)
    if (m.once != 0) set_once(m, once_.without_endpoint(m.once, endpoint));
}

}  // namespace routesim::policies
