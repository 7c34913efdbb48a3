// Things that a client has put off, by the instant of each. Private to workloads/.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "base/units.h"

namespace routesim::workloads {

/// Things to do, earliest first; of several at one instant the one put off first.
template <class T>
class Timers {
 public:
  struct Entry {
    SimTime at;
    std::uint64_t sequence;
    T what;
    bool operator>(const Entry& o) const { return at != o.at ? at > o.at : sequence > o.sequence; }
  };

  void add(SimTime at, T what) { entries_.push({at, next_sequence_++, std::move(what)}); }
  bool empty() const { return entries_.empty(); }
  /// The instant of the next entry; SimTime::max() when there is none.
  SimTime next_at() const { return empty() ? SimTime::max() : entries_.top().at; }
  /// Whether an entry is for `now` or earlier.
  bool is_due(SimTime now) const { return !empty() && entries_.top().at <= now; }
  /// The next entry, taken out. There must be one.
  Entry take() {
    Entry entry = entries_.top();
    entries_.pop();
    return entry;
  }
  void clear() { entries_ = {}; }

 private:
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> entries_;
  std::uint64_t next_sequence_ = 0;
};

}  // namespace routesim::workloads
