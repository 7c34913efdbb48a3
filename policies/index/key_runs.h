// The keys of PrefixIndex, one slot each, and what is known of them. The blocks of a prompt arrive
// together, are held by the same endpoints and are used together, so their slots stand side by side
// and nearly everything about them is equal: it is kept once, per run of such slots. Whoever
// changes one slot isolates it first; runs that have become alike again are joined.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/check.h"
#include "policies/index/holder_sets.h"
#include "policies/index/slot_table.h"

namespace routesim::policies {

/// The two levels of a key, each with its own recency.
enum class Level { kRequest, kEngine };

/// The order in which the slots of a run were used last.
enum class UseOrder : std::uint8_t { kUp, kDown };

/// Adjacent slots in which all of this is equal, but for recency, which counts up from the first,
/// or where blocks were removed from the tail of a prompt on, from the last.
struct KeyRun {
  /// Stamps of the slot used first, by Level.
  std::uint64_t request_recency = 0;
  std::uint64_t engine_recency = 0;
  UseOrder request_order = UseOrder::kUp;
  UseOrder engine_order = UseOrder::kUp;
  std::uint32_t first = 0;
  std::uint32_t length = 0;
  SetId set = 0;              ///< Holders; 0 = not request keys.
  std::uint32_t mapping = 0;  ///< 0 = not engine keys, else see PrefixIndexImpl.
  std::uint32_t flags = 0;    ///< See PrefixIndexImpl.
  std::uint32_t hint = 0;     ///< The slot that probably follows the last one in a prompt.

  template <Level L>
  std::uint64_t& recency() {
    return L == Level::kRequest ? request_recency : engine_recency;
  }
  template <Level L>
  std::uint64_t recency() const {
    return L == Level::kRequest ? request_recency : engine_recency;
  }
  template <Level L>
  UseOrder& order() {
    return L == Level::kRequest ? request_order : engine_order;
  }
  template <Level L>
  UseOrder order() const {
    return L == Level::kRequest ? request_order : engine_order;
  }
  std::uint32_t end() const { return first + length; }
};

// How many of two lists of keys are equal, from the first on. Mostly all are.
inline std::size_t equal_keys(const std::uint64_t* a, const std::uint64_t* b, std::size_t n) {
  if (std::memcmp(a, b, n * sizeof *a) == 0) return n;
  return static_cast<std::size_t>(std::mismatch(a, a + n, b).first - a);
}

// The order in which two neighbours were used.
template <Level L>
UseOrder order_of(const KeyRun& left, const KeyRun& right) {
  return left.recency<L>() < right.recency<L>() ? UseOrder::kUp : UseOrder::kDown;
}
// Whether all slots of two neighbours were used one right after the other.
template <Level L>
bool used_together(const KeyRun& left, const KeyRun& right) {
  const UseOrder order = order_of<L>(left, right);
  const KeyRun& earlier = order == UseOrder::kUp ? left : right;
  const KeyRun& later = order == UseOrder::kUp ? right : left;
  return earlier.recency<L>() + earlier.length == later.recency<L>() &&
         (left.length == 1 || left.order<L>() == order) &&
         (right.length == 1 || right.order<L>() == order);
}

// Whether two runs may be one. Recency matters on the levels that the keys have.
inline bool alike(const KeyRun& left, const KeyRun& right) {
  return left.set == right.set && left.mapping == right.mapping && left.flags == right.flags &&
         (left.set == 0 || used_together<Level::kRequest>(left, right)) &&
         (left.mapping == 0 || used_together<Level::kEngine>(left, right));
}

/// The slots. A freed one keeps its key and belongs to run 0, which has neither level. References
/// to runs are void after any call that is not const.
class KeyRuns {
 public:
  /// Every run holds one reference to its set in `sets`.
  explicit KeyRuns(HolderSets& sets) : sets_(sets), runs_(1) {}

  std::size_t size() const { return keys_.size(); }
  std::uint64_t key(std::size_t s) const { return keys_[s]; }
  std::span<const std::uint64_t> keys(std::size_t s, std::size_t n) const {
    return std::span(keys_).subspan(s, n);
  }
  const KeyRun& operator[](std::size_t s) const { return runs_[run_of_[s]]; }
  bool live(std::size_t s) const { return run_of_[s] != 0; }
  /// True for the slot that holds `key`, which may be any number.
  bool holds(std::size_t s, std::uint64_t key) const {
    return s < keys_.size() && keys_[s] == key && live(s);
  }
  template <Level L>
  std::uint64_t recency(std::size_t s) const {
    const KeyRun& run = (*this)[s];
    const std::size_t before = run.order<L>() == UseOrder::kUp ? s - run.first : run.end() - 1 - s;
    return run.recency<L>() + before;
  }
  /// How many slots from `s` on hold `keys` in order, within the run of `s`.
  // Calls cost more than what it does; lookups spend most of their time here.
  [[gnu::always_inline]] std::size_t common(std::size_t s, std::span<const BlockKey> keys) const {
    const std::size_t most = std::min<std::size_t>(keys.size(), (*this)[s].end() - s);
    return most == 1 ? (keys_[s] == keys.front() ? 1 : 0) : common_of(s, keys.first(most));
  }

  /// How many slots from `s` back hold `keys` in order, within the run of `s`.
  std::uint32_t common_back(std::uint32_t s, std::span<const BlockKey> keys) const {
    const std::size_t most = std::min<std::size_t>(keys.size(), s - (*this)[s].first + 1);
    std::uint32_t n = 0;
    while (n < most && keys_[s - n] == keys[n]) ++n;
    return n;
  }

  /// Makes the `n` slots from `s` on, which are in one run, a run of their own; to change them.
  KeyRun& cut(std::uint32_t s, std::size_t n) {
    KeyRun& run = runs_[run_of_[s]];
    return run.length == n ? run : cut_out(s, n);
  }
  KeyRun& isolate(std::uint32_t s) { return cut(s, 1); }
  /// Notes which slot followed `s`, where `s` is the last of its run.
  void set_hint(std::uint32_t s, std::uint32_t next) {
    KeyRun& run = runs_[run_of_[s]];
    if (s + 1 == run.end()) run.hint = next;
  }
  /// Joins the run of `s` with the one before it if they are alike. `previous`: what was used right
  /// before; recency can only go on from there.
  void join(std::uint32_t previous, std::uint32_t s) {
    if (previous + 1 == s && s != 0) join(s);
  }

  /// The same with the run behind `s`, for slots that are used from the last to the first.
  void join_next(std::uint32_t s) {
    if (s + 1 < keys_.size()) join(s + 1);
  }

  /// A new slot at the end, alone.
  std::uint32_t append(std::uint64_t key, std::uint32_t flags) {
    const auto s = static_cast<std::uint32_t>(keys_.size());
    ROUTESIM_CHECK(s < kNoSlot - 1, "too many keys");
    keys_.push_back(key);
    run_of_.push_back(new_run({.first = s, .length = 1, .flags = flags}));
    return s;
  }
  /// A new slot behind the last one and in its run, which has neither level yet.
  void extend(std::uint64_t key) {
    const RunId id = run_of_.back();
    keys_.push_back(key);
    run_of_.push_back(id);
    ++runs_[id].length;
  }
  /// The keys of `n` slots from `s` on, which are in one run, have neither level any more.
  void free(std::uint32_t s, std::size_t n = 1) {
    cut(s, n);
    drop_run(run_of_[s]);
    label(s, static_cast<std::uint32_t>(n), 0);
  }
  /// Moves the slots together over the freed ones, in order; tells `moved(key, from, to)` of each.
  template <class Moved>
  void close_holes(Moved moved);

  std::size_t memory_bytes() const {
    return keys_.capacity() * sizeof(std::uint64_t) + runs_.capacity() * sizeof(KeyRun) +
           (run_of_.capacity() + free_runs_.capacity()) * sizeof(std::uint32_t);
  }

 private:
  using RunId = std::uint32_t;
  std::size_t common_of(std::size_t s, std::span<const BlockKey> keys) const {
    return equal_keys(keys_.data() + s, keys.data(), keys.size());
  }
  KeyRun& cut_out(std::uint32_t s, std::size_t n) {
    const auto end = s + static_cast<std::uint32_t>(n);
    const std::uint32_t run_end = (*this)[s].end();
    ROUTESIM_DCHECK(end <= run_end, "what is cut out of a run is part of it");
    split_before(s);
    if (end < run_end) split_before(end);
    return runs_[run_of_[s]];
  }
  RunId new_run(const KeyRun& run) {
    if (run.set != 0) sets_.acquire(run.set);
    if (free_runs_.empty()) {
      runs_.push_back(run);
      return static_cast<RunId>(runs_.size() - 1);
    }
    const RunId id = free_runs_.back();
    free_runs_.pop_back();
    runs_[id] = run;
    return id;
  }
  void drop_run(RunId id) {
    if (runs_[id].set != 0) sets_.release(runs_[id].set);
    free_runs_.push_back(id);
  }
  // The shorter part gets a new number.
  void split_before(std::uint32_t s) {
    const RunId id = run_of_[s];
    KeyRun left = runs_[id];
    if (left.first == s) return;
    KeyRun right = left;
    left.length = s - left.first;
    left.hint = s;
    right.first = s;
    right.length -= left.length;
    split_recency<Level::kRequest>(left, right);
    split_recency<Level::kEngine>(left, right);
    const bool new_left = left.length < right.length;
    const KeyRun& small = new_left ? left : right;
    label(small.first, small.length, new_run(small));
    runs_[id] = new_left ? right : left;
  }
  void join(std::uint32_t s) {
    const RunId left_id = run_of_[s - 1];
    const RunId right_id = run_of_[s];
    KeyRun& left = runs_[left_id];
    KeyRun& right = runs_[right_id];
    if (left_id == 0 || !alike(left, right)) return;
    const bool into_left = left.length >= right.length;
    KeyRun& both = into_left ? left : right;
    join_recency<Level::kRequest>(left, right, both);
    join_recency<Level::kEngine>(left, right, both);
    if (into_left) {
      label(right.first, right.length, left_id);
      left.length += right.length;
      left.hint = right.hint;
    } else {
      label(left.first, left.length, right_id);
      right.first = left.first;
      right.length += left.length;
    }
    drop_run(into_left ? right_id : left_id);
  }
  template <Level L>
  static void split_recency(KeyRun& left, KeyRun& right) {
    if (left.order<L>() == UseOrder::kUp)
      right.recency<L>() += left.length;
    else
      left.recency<L>() += right.length;
  }
  template <Level L>
  static void join_recency(const KeyRun& left, const KeyRun& right, KeyRun& both) {
    const UseOrder order = order_of<L>(left, right);
    both.recency<L>() = (order == UseOrder::kUp ? left : right).recency<L>();
    both.order<L>() = order;
  }
  void label(std::uint32_t first, std::uint32_t length, RunId id) {
    std::fill_n(run_of_.begin() + first, length, id);
  }

  HolderSets& sets_;
  std::vector<std::uint64_t> keys_;
  std::vector<RunId> run_of_;
  std::vector<KeyRun> runs_;  // The first is that of freed slots.
  std::vector<RunId> free_runs_;
};

template <class Moved>
void KeyRuns::close_holes(Moved moved) {
  std::uint32_t to = 0;
  for (std::uint32_t s = 0; s < keys_.size();) {
    const RunId id = run_of_[s];
    if (id == 0) {
      ++s;
      continue;
    }
    KeyRun& run = runs_[id];
    const std::uint32_t length = run.length;
    if (to != s) {
      for (std::uint32_t i = 0; i < length; ++i) {
        keys_[to + i] = keys_[s + i];
        moved(keys_[to + i], s + i, to + i);
      }
      label(to, length, id);
      run.first = to;
    }
    s += length;
    to += length;
  }
  keys_.resize(to);
  run_of_.resize(to);
}

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
