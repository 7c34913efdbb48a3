// Interned sets of holders. Consecutive blocks of a prompt are nearly always held by the same
// endpoints, so a key stores the number of its set instead of the set: equal numbers mean equal
// sets, adding a holder to a whole run of blocks is one remembered transition, and memory is per
// distinct set.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/rng.h"
#include "policies/index/prefix_index.h"

namespace routesim::policies {

/// A HolderEntry in one word: endpoint (32 bits), group + 1 (24), tier (7), speculative (1).
using Row = std::uint64_t;

constexpr Row pack_row(const HolderEntry& e) {
  const std::uint64_t group = e.group ? std::uint64_t{*e.group} + 1 : 0;
  return static_cast<Row>(e.endpoint.value()) << 32 | (group & 0xffffff) << 8 |
         static_cast<Row>(e.tier & 0x7f) << 1 | static_cast<Row>(e.speculative);
}
constexpr std::uint32_t row_endpoint(Row row) { return static_cast<std::uint32_t>(row >> 32); }
constexpr TierId row_tier(Row row) { return static_cast<TierId>(row >> 1 & 0x7f); }
constexpr bool row_speculative(Row row) { return (row & 1) != 0; }
constexpr HolderEntry unpack_row(Row row) {
  HolderEntry e{.endpoint = EndpointId(row_endpoint(row)),
                .tier = row_tier(row),
                .speculative = row_speculative(row),
                .group = std::nullopt};
  if (const auto group = static_cast<std::uint32_t>(row >> 8 & 0xffffff); group != 0)
    e.group = group - 1;
  return e;
}

/// The number of an interned set; 0 is the empty set.
using SetId = std::uint32_t;

/// How the rows of a set are ordered, which is part of a set's identity.
enum class RowOrder : std::uint8_t {
  kRecency,  ///< Least recently added first; a full set drops its first row.
  kSorted,   ///< Ascending; for callers without a capacity.
};

inline std::uint32_t hash_rows(std::span<const Row> rows) {
  std::uint64_t h = rows.size();
  for (const Row row : rows) {
    h = (h ^ row) * 0x9e3779b97f4a7c15ULL;
    h ^= h >> 29;
  }
  return static_cast<std::uint32_t>(mix64(h) >> 32);
}

/// The pool of sets. A set lives as long as someone holds a reference; sets nobody refers to are
/// kept for a while, because transitions tend to come back to them.
class HolderSets {
 public:
  /// `capacity`: largest number of rows in a kRecency set, at least 1.
  HolderSets(std::size_t capacity, RowOrder order)
      : capacity_(capacity), order_(order), sets_(1), memo_(kTransitions) {
    ROUTESIM_CHECK(capacity >= 1, "a holder set has room for at least one row");
    sets_[0].refs = 1;  // The empty set is never garbage.
    rebuild_table(64);
  }

  std::span<const Row> rows(SetId id) const {
    return {arena_.data() + sets_[id].offset, sets_[id].count};
  }
  std::size_t count(SetId id) const { return sets_[id].count; }
  bool contains(SetId id, Row row) const {
    const auto all = rows(id);
    return std::find(all.begin(), all.end(), row) != all.end();
  }

  struct Added {
    SetId set;
    bool contained;  ///< The row was there already (and became the newest).
  };
  /// The set after adding `row`. The result is not referenced yet: acquire it before the next call.
  Added with(SetId from, Row row) {
    // Adding to the empty set has from_and_op 0, which also marks unused entries: row 0 (endpoint
    // 0, no tier) is then told apart by its result, which is never the empty set.
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
  /// The set after removing `row`; `from` itself when it is not there.
  SetId without(SetId from, Row row) {
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
  SetId without_endpoint(SetId from, std::uint32_t endpoint) {
    scratch_.clear();
    for (const Row row : rows(from))
      if (row_endpoint(row) != endpoint) scratch_.push_back(row);
    return scratch_.size() == count(from) ? from : intern(scratch_);
  }

  void acquire(SetId id, std::uint32_t n = 1) {
    if (n > 0 && sets_[id].refs == 0) --garbage_;
    sets_[id].refs += n;
  }
  void release(SetId id, std::uint32_t n = 1) {
    sets_[id].refs -= n;
    if (n > 0 && sets_[id].refs == 0) ++garbage_;
  }
  std::size_t live() const { return sets_.size() - free_.size() - garbage_ - 1; }
  /// One more than the largest number in use.
  std::size_t id_bound() const { return sets_.size(); }
  std::size_t memory_bytes() const {
    return arena_.capacity() * sizeof(Row) + sets_.capacity() * sizeof(Set) +
           (table_.capacity() + free_.capacity()) * sizeof(SetId) +
           memo_.size() * sizeof(Transition);
  }

 private:
  struct Set {
    std::size_t offset = 0;
    std::uint32_t count = 0;
    std::uint32_t size_class = 0;
    std::uint32_t refs = 0;
    std::uint32_t hash = 0;
  };
  struct Transition {
    Row row = 0;
    std::uint32_t from_and_op = 0;  // from * 2 + (1 for removal); 0 = unused (the empty set
    std::uint32_t to_and_flag = 0;  // minus a row is never remembered). to * 2 + contained.
  };
  static constexpr std::size_t kTransitions = 2048;

  Transition& transition(SetId from, Row row, bool removal) {
    const std::uint64_t key = std::uint64_t{from} << 1 | (removal ? 1 : 0);
    const std::uint64_t h = (row ^ key * 0xff51afd7ed558ccdULL) * 0x9e3779b97f4a7c15ULL;
    return memo_[h >> 53];
  }
  SetId intern(std::span<const Row> rows_in) {
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
  std::size_t allocate(std::uint32_t size_class) {
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
  void collect_garbage() {
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
    rebuild_table(table_.size());
  }
  void rebuild_table(std::size_t buckets) {
    table_.assign(buckets, 0);
    for (SetId id = 1; id < sets_.size(); ++id) {
      if (sets_[id].count == 0) continue;
      std::size_t i = sets_[id].hash & (buckets - 1);
      while (table_[i] != 0) i = (i + 1) & (buckets - 1);
      table_[i] = id;
    }
  }

  std::size_t capacity_;
  RowOrder order_;
  std::vector<Row> arena_;
  std::vector<Set> sets_;
  std::vector<SetId> free_;
  std::array<std::vector<std::size_t>, 32> free_blocks_;  // By size class: room for 2^class rows.
  std::vector<SetId> table_;  // Open addressing by content hash; 0 = empty bucket.
  std::vector<Transition> memo_;
  std::vector<Row> scratch_;
  std::size_t garbage_ = 0;
};

}  // namespace routesim::policies
