// The pending events, ordered by (time, priority, sequence).
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "sim/base/check.h"
#include "sim/event.h"

namespace routesim::sim {

/// A 4-ary implicit heap: flatter than a binary one, so a pop touches fewer cache lines. Timeouts,
/// of which every request has one and hardly any is ever reached, stand beside it in a list: they
/// are nearly always booked in the order they are due.
class EventQueue {
 public:
  void push(SimTime time, EventKind kind, std::uint32_t subject = 0, std::uint32_t stamp = 0) {
    ROUTESIM_DCHECK(time >= now_, "an event in the past");
    const auto priority = static_cast<std::uint64_t>(priority_of(kind));
    // Servers that wake at the same instant do so in the order of their numbers: when a wake was
    // booked depends on how far its server could look ahead, and must not show in the results.
    const std::uint64_t sequence = kind == EventKind::kReplicaWake ? subject : sequence_++;
    Event e{.time = time,
            .order = (priority << 56) | sequence,
            .kind = kind,
            .subject = subject,
            .stamp = stamp};
    if (kind == EventKind::kTimeout && (timeouts_.empty() || timeouts_.back() < e)) {
      timeouts_.push_back(e);
      return;
    }
    std::size_t i = heap_.size();
    heap_.push_back(e);
    while (i > 0) {
      const std::size_t parent = (i - 1) / 4;
      if (!(e < heap_[parent])) break;
      heap_[i] = heap_[parent];
      i = parent;
    }
    heap_[i] = e;
  }

  bool empty() const { return heap_.empty() && timeouts_.empty(); }
  std::size_t size() const { return heap_.size() + timeouts_.size(); }
  /// Time of the event popped last.
  SimTime now() const { return now_; }

  /// Drops the timeouts that are due next, as long as `is_void(event)`: their requests are over.
  template <class F>
  void drop_timeouts(F is_void) {
    while (!timeouts_.empty() && is_void(timeouts_.front())) timeouts_.pop_front();
  }

  Event pop() {
    if (heap_.empty() || (!timeouts_.empty() && timeouts_.front() < heap_.front())) {
      const Event timeout = timeouts_.front();
      timeouts_.pop_front();
      now_ = timeout.time;
      return timeout;
    }
    const Event top = heap_.front();
    const Event last = heap_.back();
    heap_.pop_back();
    now_ = top.time;
    if (heap_.empty()) return top;
    std::size_t i = 0;
    for (;;) {
      const std::size_t first = 4 * i + 1;
      if (first >= heap_.size()) break;
      std::size_t best = first;
      const std::size_t end = first + 4 < heap_.size() ? first + 4 : heap_.size();
      for (std::size_t child = first + 1; child < end; ++child)
        if (heap_[child] < heap_[best]) best = child;
      if (!(heap_[best] < last)) break;
      heap_[i] = heap_[best];
      i = best;
    }
    heap_[i] = last;
    return top;
  }

 private:
  std::vector<Event> heap_;
  std::deque<Event> timeouts_;
  std::uint64_t sequence_ = 0;
  SimTime now_;
};

}  // namespace routesim::sim
