#include "sim/held_requests.h"

#include <optional>

namespace routesim::sim {

namespace {

constexpr std::int64_t kTick = policies::FlowControl::kDispatchPeriod.ns();
constexpr std::int64_t kSweep = policies::FlowControl::kExpiryPeriod.ns();
/// Two seconds in which every server has been scraped many times and nothing has moved.
constexpr std::int64_t kMostFutileTicks = 2000;
/// An hour, in which a server that starts is ready.
constexpr std::int64_t kMostTicksForServers = 3'600'000;

}  // namespace

void HeldRequests::add(std::uint32_t handle, SimTime now) {
  LiveRequest& live = live_[handle];
  const Router::Arrival arrival = router_.enqueue(handle, live.request, now);
  live.route.instance = arrival.instance;
  if (arrival.http_status != 0) {
    flow_.refuse(handle, arrival.http_status, now);
    return;
  }
  live.leg = Leg::kQueued;
  dispatch(arrival.instance, now);
  book_tick(now);
}

bool HeldRequests::dispatch(std::uint32_t instance, SimTime now) {
  const std::optional<std::uint32_t> handle = router_.dispatch(instance, now);
  if (!handle) {
    evict(instance, now);
    return false;
  }
  picks_.add(*handle, instance, now);
  return true;
}

// The router resets the connections of requests that flow control wants ended. It ignores one whose
// answer is complete.
void HeldRequests::evict(std::uint32_t instance, SimTime now) {
  for (const std::uint64_t victim : router_.take_victims(instance)) {
    const auto handle = static_cast<std::uint32_t>(victim);
    if (live_[handle].leg != Leg::kToClient)
      flow_.give_up(handle, "429 Too Many Requests", workloads::Outcome::kError, now);
  }
}

void HeldRequests::book_tick(SimTime now) {
  if (tick_ == Tick::kBooked || router_.queued() == 0) return;
  tick_ = Tick::kBooked;
  queue_.push(SimTime::from_ns((now.ns() / kTick + 1) * kTick), EventKind::kRouterTick);
}

// Refuses requests whose time in the queue is over; true if there were any.
bool HeldRequests::expire(std::uint32_t instance, SimTime now) {
  const auto expired = router_.expire(instance, now);
  for (const auto& e : expired)
    flow_.refuse(static_cast<std::uint32_t>(e.request), e.http_status, now);
  return !expired.empty();
}

void HeldRequests::tick(SimTime now) {
  tick_ = Tick::kNone;
  bool moved = !queue_.empty();
  for (std::uint32_t instance = 0; instance < router_.instances(); ++instance) {
    if (now.ns() % kSweep == 0) moved = expire(instance, now) || moved;
    moved = dispatch(instance, now) || moved;
  }
  futile_ticks_ = moved ? 0 : futile_ticks_ + 1;
  if (futile_ticks_ > kMostFutileTicks && !router_.queue_expires() &&
      (futile_ticks_ > kMostTicksForServers || !flow_.fleet_may_grow()))
    flow_.report_stuck(now);
  book_tick(now);
}

}  // namespace routesim::sim
