// Recency of the keys of PrefixIndex: stamps until a cap binds, a linked list from then on.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "policies/index/key_runs.h"

namespace routesim::policies {

/// An LRU order over slots, by one of their two levels.
template <Level L>
class Recency {
 public:
  explicit Recency(std::size_t cap) : cap_(cap) {}
  std::size_t count() const { return count_; }
  bool linked() const { return linked_; }
  /// True right after an insertion that exceeded the cap.
  bool over() const { return count_ > cap_; }
  /// How many slots can be stamped as new members in one go.
  std::size_t room() const { return linked_ ? 0 : cap_ - count_; }

  void insert(KeyRuns& slots, std::uint32_t s) {
    ++count_;
    if (linked_) [[unlikely]]
      link_newest(slots, s);
    else
      stamp(slots.isolate(s));
  }
  void touch(KeyRuns& slots, std::uint32_t s) {
    if (linked_) [[unlikely]] {
      if (newest_ == s) return;
      unlink(slots, s);
      link_newest(slots, s);
    } else {
      stamp(slots.isolate(s));
    }
  }
  /// Makes the slots of a run members, in order; there must be room.
  void insert(KeyRun& run) {
    count_ += run.length;
    stamp(run);
  }
  /// Touches the slots of a run in order; only while not linked.
  void stamp(KeyRun& run) {
    run.template recency<L>() = clock_ + 1;
    clock_ += run.length;
  }
  void remove(KeyRuns& slots, std::uint32_t s) {
    --count_;
    if (linked_) [[unlikely]]
      unlink(slots, s);
  }
  /// The same for `n` slots at once; only while not linked.
  void remove(std::size_t n) { count_ -= n; }
  /// The least recently used member; there must be one. `members(slot)` tells members from others.
  template <class IsMember>
  std::uint32_t oldest(KeyRuns& slots, IsMember is_member) {
    if (!linked_) link_all(slots, is_member);
    return oldest_;
  }
  /// Members, least recently used first.
  template <class IsMember>
  std::vector<std::uint32_t> order(const KeyRuns& slots, IsMember is_member) const {
    std::vector<std::uint32_t> members;
    members.reserve(count_);
    if (linked_) {
      for (std::uint32_t s = oldest_; s != kNone; s = newer(slots.template recency<L>(s)))
        members.push_back(s);
      return members;
    }
    for (std::uint32_t s = 0; s < slots.size(); ++s)
      if (is_member(slots[s])) members.push_back(s);
    std::sort(members.begin(), members.end(), [&](std::uint32_t a, std::uint32_t b) {
      return slots.template recency<L>(a) < slots.template recency<L>(b);
    });
    return members;
  }

  /// Takes `n` consecutive stamps for a concurrent reader; the first one is returned.
  std::uint64_t reserve_stamps(std::uint64_t n) {
    return std::atomic_ref(clock_).fetch_add(n, std::memory_order_relaxed) + 1;
  }
  /// The stamp clock; only while not linked.
  std::uint64_t& clock() { return clock_; }

 private:
  static std::uint32_t older(std::uint64_t w) { return static_cast<std::uint32_t>(w >> 32); }
  static std::uint32_t newer(std::uint64_t w) { return static_cast<std::uint32_t>(w); }
  static void set_older(std::uint64_t& w, std::uint32_t s) {
    w = (w & 0xffffffff) | std::uint64_t{s} << 32;
  }
  static void set_newer(std::uint64_t& w, std::uint32_t s) { w = (w >> 32 << 32) | s; }

  // The links of a slot, which is a run by itself then.
  static std::uint64_t& links(KeyRuns& slots, std::uint32_t s) {
    return slots.isolate(s).template recency<L>();
  }
  void unlink(KeyRuns& slots, std::uint32_t s) {
    const std::uint64_t w = links(slots, s);
    (older(w) == kNone) ? void(oldest_ = newer(w)) : set_newer(links(slots, older(w)), newer(w));
    (newer(w) == kNone) ? void(newest_ = older(w)) : set_older(links(slots, newer(w)), older(w));
  }
  void link_newest(KeyRuns& slots, std::uint32_t s) {
    links(slots, s) = std::uint64_t{newest_} << 32 | kNone;
    (newest_ == kNone) ? void(oldest_ = s) : set_newer(links(slots, newest_), s);
    newest_ = s;
  }
  template <class IsMember>
  void link_all(KeyRuns& slots, IsMember is_member) {
    const std::vector<std::uint32_t> members = order(slots, is_member);
    linked_ = true;
    slots.isolate_all();
    for (const std::uint32_t s : members) link_newest(slots, s);
  }

  std::size_t cap_;
  std::size_t count_ = 0;
  std::uint64_t clock_ = 0;
  bool linked_ = false;
  std::uint32_t oldest_ = kNone;
  std::uint32_t newest_ = kNone;
};

}  // namespace routesim::policies
