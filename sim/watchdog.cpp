// What a run that can go no further says: who waits for what.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sim/simulation.h"

namespace routesim::sim {

namespace {

/// Requests that are named one by one, the oldest first.
constexpr std::size_t kNamed = 8;

std::string seconds(SimTime t) { return std::to_string(t.to_seconds()) + " s"; }

}  // namespace

std::string Simulation::waits_for(const Live& live, SimTime now) const {
  const auto engine = [this](EndpointId e) { return home(e).name; };
  switch (live.leg) {
    case Leg::kToRouter:
      return "a decision of the router";
    case Leg::kQueued:
      return "room in the pool: its saturation is " + std::to_string(router_->saturation(now)) +
             ", and the router's queue never expires";
    case Leg::kToPrefill:
      return "the front end of prefill server " + engine(*live.route.prefill);
    case Leg::kPrefill:
      return "prefill server " + engine(*live.route.prefill);
    case Leg::kToEngine:
      return "the front end of " + engine(live.route.endpoint);
    case Leg::kEngine:
      if (live.route.prefill && !live.pulled)
        return "blocks at " + engine(live.route.endpoint) + " for the KV that " +
               engine(*live.route.prefill) + " holds for it";
      return "its turn at " + engine(live.route.endpoint);
    case Leg::kToClient:
      break;
  }
  return "its last token to reach the client";
}

void Simulation::report_stuck(SimTime now) const {
  std::string text = "nothing can happen any more at " + seconds(now) + ", but " +
                     std::to_string(outstanding_) + " requests are outstanding";
  if (!load_->finished()) text += " and the load generator has not finished";
  std::vector<const Live*> waiting;
  for (const Live& live : live_)
    if (live.in_use && !live.settled) waiting.push_back(&live);
  std::sort(waiting.begin(), waiting.end(), [](const Live* a, const Live* b) {
    return std::pair(a->sent, a->request.id) < std::pair(b->sent, b->request.id);
  });
  for (std::size_t i = 0; i < std::min(kNamed, waiting.size()); ++i)
    text += "\n  request " + std::to_string(waiting[i]->request.id.value()) + ", sent at " +
            seconds(waiting[i]->sent) + ", waits for " + waits_for(*waiting[i], now);
  if (waiting.size() > kNamed)
    text += "\n  and " + std::to_string(waiting.size() - kNamed) + " more";
  if (router_->queued() > 0)
    text += "\n  router: " + std::to_string(router_->queued()) + " requests are held back";
  for (const EndpointHome& at : router_->endpoints()) {
    const BatchScheduler& s = replicas_[at.replica]->scheduler(at.rank);
    if (!s.idle() || s.held() > 0) text += "\n  " + at.name + ": " + s.describe_queues();
  }
  throw StuckError(text);
}

}  // namespace routesim::sim
