// Interned sets of holders. Consecutive blocks of a prompt are nearly always held by the same
// endpoints, so a key stores the number of its set instead of the set: equal numbers mean equal
// sets, adding a holder to a whole run of blocks is one remembered transition, and memory is per
// distinct set.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

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

/// The pool of sets. A set lives as long as someone holds a reference; sets nobody refers to are
/// kept for a while, because transitions tend to come back to them.
class HolderSets {
 public:
  /// `capacity`: largest number of rows in a kRecency set, at least 1.
  HolderSets(std::size_t capacity, RowOrder order);

  std::span<const Row> rows(SetId id) const {
    return {arena_.data() + sets_[id].offset, sets_[id].count};
  }
  std::size_t count(SetId id) const { return sets_[id].count; }
  bool contains(SetId id, Row row) const;

  struct Added {
    SetId set;
    bool contained;  ///< The row was there already (and became the newest).
  };
  /// The set after adding `row`. The result is not referenced yet: acquire it before the next call.
  Added with(SetId from, Row row) {
    if (from == last_with_.from && row == last_with_.row && last_with_.to != 0)
      return {last_with_.to, last_with_.contained};
    const Added added = find_with(from, row);
    last_with_ = {.row = row, .from = from, .to = added.set, .contained = added.contained};
    return added;
  }
  /// The set after removing `row`; `from` itself when it is not there.
  SetId without(SetId from, Row row) {
    if (from == last_without_.from && row == last_without_.row) return last_without_.to;
    const SetId to = find_without(from, row);
    last_without_ = {.row = row, .from = from, .to = to, .contained = false};
    return to;
  }
  /// The set after removing every row of an endpoint.
  SetId without_endpoint(SetId from, std::uint32_t endpoint);

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
  std::size_t memory_bytes() const;

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
  /// The transition before: runs of consecutive keys nearly always repeat it. Initially that of the
  /// empty set, which is the same whatever the row.
  struct Last {
    Row row = 0;
    SetId from = 0;
    SetId to = 0;
    bool contained = false;
  };

  Transition& transition(SetId from, Row row, bool removal);
  Added find_with(SetId from, Row row);
  SetId find_without(SetId from, Row row);
  SetId intern(std::span<const Row> rows);
  std::size_t allocate(std::uint32_t size_class);
  void collect_garbage();
  void rebuild_table(std::size_t buckets);

  std::size_t capacity_;
  RowOrder order_;
  std::vector<Row> arena_;
  std::vector<Set> sets_;
  std::vector<SetId> free_;
  std::array<std::vector<std::size_t>, 32> free_blocks_;  // By size class: room for 2^class rows.
  std::vector<SetId> table_;  // Open addressing by content hash; 0 = empty bucket.
  std::vector<Transition> memo_;
  Last last_with_, last_without_;
  std::vector<Row> scratch_;
  std::size_t garbage_ = 0;
};

}  // namespace routesim::policies
