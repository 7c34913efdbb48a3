// The earliest of many times, each of which changes now and then.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"

namespace routesim::sim {

/// A table of times that knows its minimum: a tournament among groups of eight, one cache line
/// each. A change costs one group per level, and no more levels than it is felt on.
class Earliest {
 public:
  /// Changes time number `i`; those never set are SimTime::max().
  void set(std::size_t i, SimTime time) {
    if (i >= levels_.front().size()) grow(i + 1);
    std::int64_t winner = time.ns();
    for (std::vector<std::int64_t>& level : levels_) {
      if (level[i] == winner) return;
      level[i] = winner;
      i /= kGroup;
      winner = min_of(level.data() + i * kGroup);
    }
    earliest_ = winner;
  }
  SimTime operator[](std::size_t i) const {
    return i < levels_.front().size() ? SimTime::from_ns(levels_.front()[i]) : SimTime::max();
  }
  /// The earliest time; SimTime::max() when none was set.
  SimTime time() const { return SimTime::from_ns(earliest_); }
  /// The index of the earliest time; of several the first.
  std::size_t index() const {
    std::size_t i = 0;
    for (std::size_t level = levels_.size(); level-- > 0;) {
      i *= kGroup;
      while (levels_[level][i] != earliest_) ++i;
    }
    return i;
  }

 private:
  static constexpr std::size_t kGroup = 8;

  static std::int64_t min_of(const std::int64_t* group) {
    std::int64_t least = group[0];
    for (std::size_t k = 1; k < kGroup; ++k) least = std::min(least, group[k]);
    return least;
  }

  void grow(std::size_t n) {
    std::vector<std::int64_t> times = levels_.front();
    times.resize((std::max(n, 2 * times.size()) + kGroup - 1) / kGroup * kGroup, kNever);
    levels_.assign(1, times);
    while (levels_.back().size() > kGroup) {
      const std::vector<std::int64_t>& below = levels_.back();
      std::vector<std::int64_t> winners;
      for (std::size_t i = 0; i < below.size(); i += kGroup)
        winners.push_back(min_of(below.data() + i));
      winners.resize((winners.size() + kGroup - 1) / kGroup * kGroup, kNever);
      levels_.push_back(std::move(winners));
    }
  }

  static constexpr std::int64_t kNever = SimTime::max().ns();

  /// The times, the winners of their groups, the winners of those … down to one group.
  std::vector<std::vector<std::int64_t>> levels_{std::vector<std::int64_t>(kGroup, kNever)};
  std::int64_t earliest_ = kNever;
};

}  // namespace routesim::sim
