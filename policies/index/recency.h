// Recency of the keys of PrefixIndex, by stamps.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "policies/index/key_runs.h"

namespace routesim::policies {

/// An LRU order over slots, by one of their two levels. Using a slot writes a stamp, O(1) for a
/// whole run. The oldest member is looked for only when a cap binds: all stamps are sorted then,
/// and members leave in that order as long as their stamp is still the one that was sorted. A sort
/// of n members therefore comes after n uses or evictions at the earliest.
template <Level L>
class Recency {
 public:
  explicit Recency(std::size_t cap) : cap_(cap) {}
  std::size_t count() const { return count_; }
  /// True right after an insertion that exceeded the cap.
  bool over() const { return count_ > cap_; }
  /// How many slots can become members before something has to leave.
  std::size_t room() const { return cap_ - count_; }

  void insert(KeyRuns& slots, std::uint32_t s) { insert(slots.isolate(s)); }
  void touch(KeyRuns& slots, std::uint32_t s) { stamp(slots.isolate(s)); }
  /// Makes the slots of a run members, in order.
  void insert(KeyRun& run) {
    count_ += run.length;
    stamp(run);
  }
  /// Uses the slots of a run, in order.
  void stamp(KeyRun& run, UseOrder order = UseOrder::kUp) {
    run.template recency<L>() = clock_ + 1;
    run.template order<L>() = order;
    clock_ += run.length;
  }
  void remove(std::size_t n = 1) { count_ -= n; }

  /// The least recently used member; there must be one, and the caller must remove it.
  /// `is_member(run)` tells members from others.
  template <class IsMember>
  std::uint32_t oldest(const KeyRuns& slots, IsMember is_member) {
    for (;;) {
      while (!oldest_last_.empty()) {
        const auto [stamp, s] = oldest_last_.back();
        oldest_last_.pop_back();
        if (is_member(slots[s]) && slots.template recency<L>(s) == stamp) return s;
      }
      oldest_last_ = stamps(slots, is_member);
      std::sort(oldest_last_.rbegin(), oldest_last_.rend());
    }
  }
  /// Slots have moved, so the sorted order is void.
  void forget_order() { oldest_last_.clear(); }
  /// Members, least recently used first.
  template <class IsMember>
  std::vector<std::uint32_t> order(const KeyRuns& slots, IsMember is_member) const {
    std::vector<Stamp> sorted = stamps(slots, is_member);
    std::sort(sorted.begin(), sorted.end());
    std::vector<std::uint32_t> members;
    for (const auto& [stamp, s] : sorted) members.push_back(s);
    return members;
  }
  std::size_t memory_bytes() const { return oldest_last_.capacity() * sizeof(Stamp); }

 private:
  using Stamp = std::pair<std::uint64_t, std::uint32_t>;
  template <class IsMember>
  std::vector<Stamp> stamps(const KeyRuns& slots, IsMember is_member) const {
    std::vector<Stamp> all;
    all.reserve(count_);
    for (std::uint32_t s = 0; s < slots.size(); ++s)
      if (is_member(slots[s])) all.emplace_back(slots.template recency<L>(s), s);
    return all;
  }

  std::size_t cap_;
  std::size_t count_ = 0;
  std::uint64_t clock_ = 0;
  std::vector<Stamp> oldest_last_;
};

}  // namespace routesim::policies
