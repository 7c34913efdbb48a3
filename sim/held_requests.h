// Requests that flow control holds back at the router until the pool has room.
#pragma once

#include <cstdint>

#include "sim/event_queue.h"
#include "sim/held_picks.h"
#include "sim/live_requests.h"
#include "sim/router/router.h"

namespace routesim::sim {

/// Drives the flow control of every router process: one dispatch attempt at each arrival and at
/// each tick. Ticks fall on whole milliseconds and exist only while a request waits.
class HeldRequests {
 public:
  /// All arguments outlive this.
  HeldRequests(Router& router, LiveRequests& live, EventQueue& queue, HeldPicks& picks,
               RequestFlow& flow)
      : router_(router), live_(live), queue_(queue), picks_(picks), flow_(flow) {}

  /// Every arrival is followed by one dispatch attempt, which may let another request go.
  void add(std::uint32_t handle, SimTime now);
  void tick(SimTime now);

 private:
  enum class Tick : std::uint8_t { kNone, kBooked };
  bool dispatch(std::uint32_t instance, SimTime now);
  void evict(std::uint32_t instance, SimTime now);
  bool expire(std::uint32_t instance, SimTime now);
  void book_tick(SimTime now);

  Router& router_;
  LiveRequests& live_;
  EventQueue& queue_;
  HeldPicks& picks_;  ///< Decides about what flow control lets go.
  RequestFlow& flow_;
  Tick tick_ = Tick::kNone;
  std::int64_t futile_ticks_ = 0;  ///< Ticks in a row with no other event booked and no dispatch.
};

}  // namespace routesim::sim
