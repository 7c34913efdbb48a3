#include "policies/index/holder_sets.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/rng.h"

namespace routesim::policies {
namespace {

std::uint32_t hash_rows(std::span<const Row> rows) {
  std::uint64_t h = rows.size();
  for (const Row row : rows) {
    h = (h ^ row) * 0x9e3779b97f4a7c15ULL;
    h ^= h >> 29;
  }
  return static_cast<std::uint32_t>(mix64(h) >> 32);
}

}  // namespace

HolderSets::HolderSets(std::size_t capacity, RowOrder order)
    : capacity_(capacity), order_(order), sets_(1), memo_(kTransitions) {
  ROUTESIM_CHECK(capacity >= 1, "a holder set has room for at least one row");
  sets_[0].refs = 1;  // The empty set is never garbage.
  rebuild_table(64);
}

bool HolderSets::contains(SetId id, Row row) const {
  const auto all = rows(id);
  return std::find(all.begin(), all.end(), row) != all.end();
}

HolderSets::Transition& HolderSets::transition(SetId from, Row row, bool removal) {
  const std::uint64_t key = std::uint64_t{from} << 1 | (removal ? 1 : 0);
  const std::uint64_t h = (row ^ key * 0xff51afd7ed558ccdULL) * 0x9e3779b97f4a7c15ULL;
  return memo_[h >> 53];
}

HolderSets::Added HolderSets::find_with(SetId from, Row row) {
  // Adding to the empty set has from_and_op 0, which also marks unused entries: row 0 (endpoint 0,
  // no tier) is then told apart by its result, which is never the empty set.
  Transition& t = transition(from, row, false);
  if (t.row == row && t.from_and_op == from * 2 && t.to_and_flag != 0)
    return {t.to_and_flag / 2, (t.to_and_flag & 1) != 0};
  const auto old = rows(from);
  scratch_.clear();
  const auto at = std::find(old.begin(), old.end(), row);
  const bool contained = at != old.end();
  if (order_ == RowOrder::kSorted) {
    if (contained) {
      t = {.row = row, .from_and_op = from * 2, .to_and_flag = from * 2 + 1};
      return {from, true};
    }
    const auto place = std::lower_bound(old.begin(), old.end(), row);
    scratch_.assign(old.begin(), place);
    scratch_.push_back(row);
    scratch_.insert(scratch_.end(), place, old.end());
  } else {
    const bool drop = !contained && old.size() >= capacity_;
    scratch_.assign(old.begin() + (drop ? 1 : 0), old.end());
    if (contained) scratch_.erase(scratch_.begin() + (at - old.begin()));
    scratch_.push_back(row);
  }
  const SetId to = intern(scratch_);
  // intern() may have cleared the memo, which is fine: `t` is still an entry of it.
  t = {.row = row, .from_and_op = from * 2, .to_and_flag = to * 2 + (contained ? 1 : 0)};
  return {to, contained};
}

SetId HolderSets::find_without(SetId from, Row row) {
  if (from == 0) return 0;
  Transition& t = transition(from, row, true);
  if (t.row == row && t.from_and_op == from * 2 + 1) return t.to_and_flag / 2;
  const auto old = rows(from);
  const auto at = std::find(old.begin(), old.end(), row);
  if (at == old.end()) return from;
  scratch_.assign(old.begin(), at);
  scratch_.insert(scratch_.end(), at + 1, old.end());
  const SetId to = intern(scratch_);
  t = {.row = row, .from_and_op = from * 2 + 1, .to_and_flag = to * 2};
  return to;
}

SetId HolderSets::without_endpoint(SetId from, std::uint32_t endpoint) {
  scratch_.clear();
  for (const Row row : rows(from))
    if (row_endpoint(row) != endpoint) scratch_.push_back(row);
  return scratch_.size() == count(from) ? from : intern(scratch_);
}

SetId HolderSets::intern(std::span<const Row> rows_in) {
  if (rows_in.empty()) return 0;
  const std::uint32_t hash = hash_rows(rows_in);
  const auto probe = [&] {
    std::size_t i = hash & (table_.size() - 1);
    for (; table_[i] != 0; i = (i + 1) & (table_.size() - 1)) {
      const Set& set = sets_[table_[i]];
      if (set.hash == hash && set.count == rows_in.size() &&
          std::equal(rows_in.begin(), rows_in.end(), arena_.begin() + set.offset))
        break;
    }
    return i;
  };
  std::size_t bucket = probe();
  if (table_[bucket] != 0) return table_[bucket];
  if (garbage_ > std::max<std::size_t>(1024, live())) {
    collect_garbage();
    bucket = probe();
  } else if ((sets_.size() - free_.size()) * 2 > table_.size()) {
    rebuild_table(table_.size() * 2);
    bucket = probe();
  }
  SetId id;
  if (!free_.empty()) {
    id = free_.back();
    free_.pop_back();
  } else {
    id = static_cast<SetId>(sets_.size());
    ROUTESIM_CHECK(id < (1u << 31), "too many distinct holder sets");
    sets_.emplace_back();
  }
  const auto size_class = static_cast<std::uint32_t>(std::bit_width(rows_in.size() - 1));
  const std::size_t offset = allocate(size_class);
  std::copy(rows_in.begin(), rows_in.end(), arena_.begin() + offset);
  sets_[id] = {.offset = offset,
               .count = static_cast<std::uint32_t>(rows_in.size()),
               .size_class = size_class,
               .refs = 0,
               .hash = hash};
  ++garbage_;
  table_[bucket] = id;
  return id;
}

std::size_t HolderSets::allocate(std::uint32_t size_class) {
  auto& blocks = free_blocks_[size_class];
  if (!blocks.empty()) {
    const std::size_t offset = blocks.back();
    blocks.pop_back();
    return offset;
  }
  const std::size_t offset = arena_.size();
  arena_.resize(offset + (std::size_t{1} << size_class));
  return offset;
}

void HolderSets::collect_garbage() {
  std::vector<bool> dead(sets_.size(), false);
  for (const SetId id : table_) {
    if (id == 0 || sets_[id].refs != 0) continue;
    free_blocks_[sets_[id].size_class].push_back(sets_[id].offset);
    dead[id] = true;
  }
  for (SetId id = 1; id < sets_.size(); ++id)
    if (dead[id]) {
      sets_[id] = {};
      free_.push_back(id);
    }
  garbage_ = 0;
  std::fill(memo_.begin(), memo_.end(), Transition{});
  last_with_ = last_without_ = {};
  rebuild_table(table_.size());
}

void HolderSets::rebuild_table(std::size_t buckets) {
  table_.assign(buckets, 0);
  for (SetId id = 1; id < sets_.size(); ++id) {
    if (sets_[id].count == 0) continue;
    std::size_t i = sets_[id].hash & (buckets - 1);
    while (table_[i] != 0) i = (i + 1) & (buckets - 1);
    table_[i] = id;
  }
}

std::size_t HolderSets::memory_bytes() const {
  return arena_.capacity() * sizeof(Row) + sets_.capacity() * sizeof(Set) +
         (table_.capacity() + free_.capacity()) * sizeof(SetId) + memo_.size() * sizeof(Transition);
}

}  // namespace routesim::policies
