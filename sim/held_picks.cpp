#include "sim/held_picks.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace routesim::sim {

namespace {

/// Longer than anything that balancers remember (Dynamo: five minutes).
constexpr Duration kLongestVainRetry = Duration::milliseconds(10 * 60 * 1000);

SimTime due_of(const Route& route, SimTime now) {
  return route.retry_after > Duration::zero() ? now + route.retry_after : SimTime::max();
}

}  // namespace

HeldPicks::HeldPicks(Router& router, LiveRequests& live, EventQueue& queue, RequestFlow& flow)
    : router_(router),
      live_(live),
      queue_(queue),
      flow_(flow),
      held_(router.instances()),
      window_(router.tried_together()),
      in_order_(router.serves_in_order()) {}

void HeldPicks::add(std::uint32_t handle, std::uint32_t instance, SimTime now) {
  LiveRequest& live = live_[handle];
  Queue& queue = held_[instance];
  const bool has_turn = queue.empty() || (queue.size() < window_ && booked_ > now);
  live.leg = Leg::kQueued;
  live.route.instance = instance;
  queue.push_back({.handle = handle, .due = now, .turn = live.request.id.value()});
  if (has_turn && attempt(instance, std::prev(queue.end()), now)) return;
  if (queue.size() <= window_) book(std::max(queue.back().due, now));
}

// True when a request went: its own, or the oldest where that one takes what is found. The request
// whose turn it was then goes on with the turns of the one that went.
bool HeldPicks::attempt(std::uint32_t instance, Queue::iterator at, SimTime now) {
  Queue& queue = held_[instance];
  const auto goes = in_order_ ? queue.begin() : at;
  const std::uint32_t handle = goes->handle;
  const LiveRequest& live = live_[handle];
  const Route route = router_.decide(instance, live.request, *live.keys, now, at->turn);
  if (route.held) {
    at->due = due_of(route, now);
    return false;
  }
  at->due = goes->due;
  at->turn = goes->turn;
  queue.erase(goes);
  flow_.apply_route(handle, route, now);
  return true;
}

void HeldPicks::changed(std::uint32_t instance, SimTime now) {
  Queue& queue = held_[instance];
  if (queue.empty()) return;
  std::size_t left = window_;
  bool any = false;
  for (auto at = queue.begin(); at != queue.end() && left > 0; ++at, --left) {
    if (at->due != SimTime::max()) continue;
    at->due = now;
    any = true;
  }
  if (any) book(now);
}

void HeldPicks::cancel(std::uint32_t handle, SimTime now) {
  Queue& queue = held_[live_[handle].route.instance];
  const auto at =
      std::find_if(queue.begin(), queue.end(), [&](const Held& h) { return h.handle == handle; });
  ROUTESIM_CHECK(at != queue.end(), "a request that waits at a router is in its queue");
  queue.erase(at);
  // The first of those behind the window may be tried now.
  if (queue.size() >= window_) book(now);
}

void HeldPicks::retry(SimTime now) {
  if (booked_ != now) return;  // An earlier retry was booked after this one.
  booked_ = SimTime::max();
  bool moved = !queue_.empty();
  for (std::uint32_t instance = 0; instance < held_.size(); ++instance)
    moved = serve(instance, now) || moved;
  vain_since_ = moved ? SimTime::max() : std::min(vain_since_, now);
  if (!moved && now - vain_since_ > kLongestVainRetry) flow_.report_stuck(now);
  book_next(now);
}

// Tries what is due among the oldest requests of a process; true if any went.
bool HeldPicks::serve(std::uint32_t instance, SimTime now) {
  Queue& queue = held_[instance];
  bool went = false;
  std::size_t left = window_;
  for (auto at = queue.begin(); at != queue.end() && left > 0;) {
    const auto next = std::next(at);
    if (at->due <= now && attempt(instance, at, now)) {
      went = true;
      // An earlier request that went makes room for one more; this one has had its turn.
      at = next;
      continue;
    }
    at = next;
    --left;
  }
  return went;
}

void HeldPicks::book(SimTime at) {
  if (at >= booked_) return;
  booked_ = at;
  queue_.push(at, EventKind::kRetry);
}

void HeldPicks::book_next(SimTime now) {
  SimTime next = SimTime::max();
  for (const Queue& queue : held_) {
    std::size_t left = window_;
    for (auto at = queue.begin(); at != queue.end() && left > 0; ++at, --left)
      next = std::min(next, std::max(at->due, now));
  }
  if (next < SimTime::max()) book(next);
}

}  // namespace routesim::sim
