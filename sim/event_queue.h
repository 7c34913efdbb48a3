// The pending events, ordered by (time, priority, sequence).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/check.h"
#include "sim/engine/earliest.h"
#include "sim/event.h"

namespace routesim::sim {

/// Most events are booked in the order they are due, kind by kind, because what lies between a
/// cause and its effect is one latency for all: each such kind has a lane of its own, first in,
/// first out. A server has one wake, which moves. What fits neither stands in a 4-ary heap.
class EventQueue {
 public:
  /// Books an event. A kReplicaWake takes the place of the one its server had; SimTime::max() takes
  /// it away.
  void push(SimTime time, EventKind kind, std::uint32_t subject = 0, std::uint32_t stamp = 0) {
    ROUTESIM_DCHECK(time >= now_, "an event in the past");
    if (kind == EventKind::kReplicaWake) {
      // Servers that wake at the same instant do so in the order of their numbers: when a wake was
      // booked depends on how far its server could look ahead, and must not show in the results.
      wakes_.set(subject, time);
      return;
    }
    const auto priority = static_cast<std::uint64_t>(priority_of(kind));
    const Event e{.time = time,
                  .order = (priority << 56) | sequence_++,
                  .kind = kind,
                  .subject = subject,
                  .stamp = stamp};
    const std::size_t lane = lane_of(kind);
    if (lane == kHeap || !lanes_[lane].takes(e)) {
      push_heap(e);
      return;
    }
    if (lanes_[lane].empty()) set_front(lane, front(e, lane));
    lanes_[lane].push(e);
  }

  bool empty() const { return wakes_.time() == SimTime::max() && first_ == kNone; }
  /// When a server wakes next; SimTime::max() if it has no wake.
  SimTime wake(std::uint32_t replica) const { return wakes_[replica]; }
  /// Time of the event popped last.
  SimTime now() const { return now_; }

  /// Drops the timeouts that are due next, as long as `is_void(event)`: their requests are over.
  template <class F>
  void drop_timeouts(F is_void) {
    const std::size_t lane = lane_of(EventKind::kTimeout);
    while (!lanes_[lane].empty() && is_void(lanes_[lane].front())) pop_lane(lane);
  }

  /// Removes and returns the first event, if there is one.
  std::optional<Event> pop() {
    const Front next = first_;
    if (wakes_.time().ns() <= static_cast<std::int64_t>(next >> 64) &&
        wakes_.time() < SimTime::max()) {
      const std::size_t replica = wakes_.index();
      now_ = wakes_.time();
      wakes_.set(replica, SimTime::max());
      return Event{.time = now_, .subject = static_cast<std::uint32_t>(replica)};
    }
    if (next == kNone) return std::nullopt;
    const auto lane = static_cast<std::size_t>(next & (kLanes - 1));
    const Event e = lane == kHeap ? pop_heap() : pop_lane(lane);
    now_ = e.time;
    return e;
  }

 private:
  __extension__ using Front = unsigned __int128;
  static constexpr std::size_t kLanes = 8;  ///< A power of two; not all are used.
  static constexpr std::size_t kHeap = 0;
  static constexpr Front kNone = static_cast<Front>(SimTime::max().ns()) << 64 | ~std::uint64_t{0};

  static constexpr std::size_t lane_of(EventKind kind) {
    switch (kind) {
      case EventKind::kCompletion:
        return 1;
      case EventKind::kClientAction:
        return 2;
      case EventKind::kDelivery:
        return 3;
      case EventKind::kRoute:
        return 4;
      case EventKind::kTimeout:
        return 5;
      default:
        return kHeap;
    }
  }
  /// Time, order and lane in one number, so that the first of all fronts is simply the smallest.
  static constexpr Front front(const Event& e, std::size_t lane) {
    return static_cast<Front>(e.time.ns()) << 64 | (e.order << 3 | lane);
  }
  /// A lane begins with another event: earlier than before, or anywhere else.
  void set_front(std::size_t lane, Front f) {
    const bool earlier = f < fronts_[lane];
    fronts_[lane] = f;
    if (earlier) {
      first_ = std::min(first_, f);
      return;
    }
    first_ = fronts_[0];
    for (std::size_t l = 1; l < kUsedLanes; ++l) first_ = fronts_[l] < first_ ? fronts_[l] : first_;
  }

  /// A ring buffer.
  class Lane {
   public:
    bool empty() const { return size_ == 0; }
    bool takes(const Event& e) const {
      return empty() || !(e.time < ring_[(head_ + size_ - 1) & (ring_.size() - 1)].time);
    }
    const Event& front() const { return ring_[head_]; }
    void push(const Event& e) {
      if (size_ == ring_.size()) grow();
      ring_[(head_ + size_++) & (ring_.size() - 1)] = e;
    }
    void pop() {
      head_ = (head_ + 1) & (ring_.size() - 1);
      --size_;
    }

   private:
    void grow() {
      std::vector<Event> larger(ring_.empty() ? 16 : 2 * ring_.size());
      for (std::size_t i = 0; i < size_; ++i) larger[i] = ring_[(head_ + i) & (ring_.size() - 1)];
      ring_ = std::move(larger);
      head_ = 0;
    }
    std::vector<Event> ring_;  ///< A power of two.
    std::size_t head_ = 0;
    std::size_t size_ = 0;
  };

  Event pop_lane(std::size_t lane) {
    const Event e = lanes_[lane].front();
    lanes_[lane].pop();
    set_front(lane, lanes_[lane].empty() ? kNone : front(lanes_[lane].front(), lane));
    return e;
  }

  void push_heap(const Event& e) {
    std::size_t i = heap_.size();
    heap_.push_back(e);
    while (i > 0) {
      const std::size_t parent = (i - 1) / 4;
      if (!(e < heap_[parent])) break;
      heap_[i] = heap_[parent];
      i = parent;
    }
    heap_[i] = e;
    set_front(kHeap, front(heap_.front(), kHeap));
  }

  Event pop_heap() {
    const Event top = heap_.front();
    const Event last = heap_.back();
    heap_.pop_back();
    if (heap_.empty()) {
      set_front(kHeap, kNone);
      return top;
    }
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
    set_front(kHeap, front(heap_.front(), kHeap));
    return top;
  }

  static constexpr std::size_t kUsedLanes = 6;

  std::array<Front, kUsedLanes> fronts_{kNone, kNone, kNone, kNone, kNone, kNone};
  Front first_ = kNone;                 ///< The smallest of them.
  std::array<Lane, kUsedLanes> lanes_;  ///< The heap's is empty.
  std::vector<Event> heap_;
  Earliest wakes_;  ///< By server.
  std::uint64_t sequence_ = 0;
  SimTime now_;
};

}  // namespace routesim::sim
