// The keys of PrefixIndex, one slot each, and what is known of them. The blocks of a prompt arrive
// together, are held by the same endpoints and are used together, so their slots stand side by side
// and nearly everything about them is equal: it is kept once, per run of such slots. Whoever
// changes one slot isolates it first; runs that have become alike again are joined.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "policies/index/holder_sets.h"

namespace routesim::policies {

inline constexpr std::uint32_t kNone = 0xffffffff;

/// The two levels of a key, each with its own recency.
enum class Level { kRequest, kEngine };

/// Adjacent slots in which all of this is equal, but for recency, which counts up from the first.
struct KeyRun {
  /// Of the first slot: stamps, or (older, newer) links once a cap has bound; by Level.
  std::uint64_t request_recency = 0;
  std::uint64_t engine_recency = 0;
  std::uint32_t first = 0;
  std::uint32_t length = 0;
  SetId set = 0;              ///< Holders; 0 = not request keys.
  std::uint32_t mapping = 0;  ///< 0 = not engine keys, else see PrefixIndexImpl.
  std::uint32_t flags = 0;    ///< See PrefixIndexImpl.
  std::uint32_t hint = 0;     ///< The slot that followed the last one in a prompt, probably.

  template <Level L>
  std::uint64_t& recency() {
    return L == Level::kRequest ? request_recency : engine_recency;
  }
  template <Level L>
  std::uint64_t recency() const {
    return L == Level::kRequest ? request_recency : engine_recency;
  }
  std::uint32_t end() const { return first + length; }
};

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
  /// The run of a slot, to read.
  const KeyRun& operator[](std::size_t s) const { return runs_[run_of_[s]]; }
  bool live(std::size_t s) const { return run_of_[s] != 0; }
  /// True for the slot that holds `key`, which may be any number.
  bool holds(std::size_t s, std::uint64_t key) const {
    return s < keys_.size() && keys_[s] == key && live(s);
  }
  template <Level L>
  std::uint64_t recency(std::size_t s) const {
    const KeyRun& run = (*this)[s];
    return run.recency<L>() + (s - run.first);
  }
  /// How many slots from `s` on hold `keys` in order, within the run of `s`.
  std::size_t common(std::size_t s, std::span<const BlockKey> keys) const {
    const std::size_t most = std::min<std::size_t>(keys.size(), (*this)[s].end() - s);
    return most == 1 ? (keys_[s] == keys.front() ? 1 : 0) : common_of(s, keys.first(most));
  }

  /// Makes the `n` slots from `s` on, which are in one run, a run of their own; to change them.
  KeyRun& cut(std::uint32_t s, std::size_t n) {
    KeyRun& run = runs_[run_of_[s]];
    return run.length == n ? run : cut_out(s, n);
  }
  KeyRun& isolate(std::uint32_t s) { return cut(s, 1); }
  /// The run of `s`, of which nothing but hint and recency may change; for concurrent readers.
  KeyRun& shared(std::uint32_t s) { return runs_[run_of_[s]]; }
  /// Joins the run of `s` with the one before it if they are alike. `previous`: what was used right
  /// before; recency can only go on from there.
  void join(std::uint32_t previous, std::uint32_t s) {
    if (previous + 1 == s && s != 0) join(s);
  }
  /// From now on every slot is a run of its own, for ever: recency has become links.
  void isolate_all();

  /// A new slot at the end, alone.
  std::uint32_t append(std::uint64_t key, std::uint32_t flags);
  /// A new slot behind the last one and in its run, which has neither level yet.
  void extend(std::uint64_t key) {
    const RunId id = run_of_.back();
    keys_.push_back(key);
    run_of_.push_back(id);
    ++runs_[id].length;
  }
  /// The same as append() in place of a freed slot.
  void reuse(std::uint32_t s, std::uint64_t key, std::uint32_t flags);
  /// The keys of `n` slots from `s` on, which are in one run, have neither level any more.
  void free(std::uint32_t s, std::size_t n = 1);
  /// Moves the slots together over the freed ones, in order; tells `moved(key, from, to)` of each.
  template <class Moved>
  void close_holes(Moved moved);

  std::size_t memory_bytes() const {
    return keys_.capacity() * sizeof(std::uint64_t) + runs_.capacity() * sizeof(KeyRun) +
           (run_of_.capacity() + free_runs_.capacity()) * sizeof(std::uint32_t);
  }

 private:
  using RunId = std::uint32_t;
  std::size_t common_of(std::size_t s, std::span<const BlockKey> keys) const;
  KeyRun& cut_out(std::uint32_t s, std::size_t n);
  RunId new_run(const KeyRun& run);
  void drop_run(RunId id);
  void split_before(std::uint32_t s);
  void join(std::uint32_t s);
  void label(std::uint32_t first, std::uint32_t length, RunId id);

  HolderSets& sets_;
  bool joining_ = true;
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

}  // namespace routesim::policies
