// Requests on their way through a router: sent at once, or held there by a balancer, or by a plugin
// that gathers requests to place them together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <vector>

#include "sim/event_queue.h"
#include "sim/live_requests.h"
#include "sim/router/router.h"

namespace routesim::sim {

/// Asks the balancer of one router process per request, and again for the requests it holds: in
/// their order of arrival, when a request of that process got its first token or ended, or at the
/// time the balancer named. Retries come after everything else that happens at their instant, and
/// before requests that arrive then. Where the product serves in order, every held request has
/// turns of its own, and the oldest one takes the server that any of them finds.
class HeldPicks {
 public:
  /// All arguments outlive this.
  HeldPicks(Router& router, LiveRequests& live, EventQueue& queue, RequestFlow& flow);

  /// A request reaches the router.
  void add(std::uint32_t handle, SimTime now) { add(handle, router_.next_instance(), now); }
  /// The same for one that a process has already.
  void add(std::uint32_t handle, std::uint32_t instance, SimTime now);
  /// A request of this process got its first token or ended.
  void changed(std::uint32_t instance, SimTime now);
  /// The client of a held request gives up.
  void cancel(std::uint32_t handle, SimTime now);
  /// The event that this booked.
  void retry(SimTime now);

 private:
  struct Held {
    std::uint32_t handle = 0;
    SimTime due;             ///< When it is tried next; max() = when something changes.
    std::uint64_t turn = 0;  ///< Id of the request that began these attempts.
  };
  using Queue = std::list<Held>;
  bool serve(std::uint32_t instance, SimTime now);
  bool attempt(std::uint32_t instance, Queue::iterator at, SimTime now);
  void book(SimTime at);
  void book_next(SimTime now);

  Router& router_;
  LiveRequests& live_;
  EventQueue& queue_;
  RequestFlow& flow_;
  std::vector<Queue> held_;  ///< Per router process, oldest first.
  std::size_t window_ = 1;   ///< Held requests of a process that are tried.
  bool in_order_ = false;
  SimTime booked_ = SimTime::max();      ///< Of the next retry.
  SimTime vain_since_ = SimTime::max();  ///< Since then nothing but retries in vain.
};

}  // namespace routesim::sim
