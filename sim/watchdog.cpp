#include "sim/watchdog.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace routesim::sim {

namespace {

/// Requests that are named one by one, the oldest first.
constexpr std::size_t kNamed = 8;

std::string seconds(SimTime t) { return std::to_string(t.to_seconds()) + " s"; }

std::string waits_for(const LiveRequest& live, SimTime now, const Servers& servers,
                      const Router& router) {
  const auto engine = [&](EndpointId e) { return servers.home(e).name; };
  switch (live.leg) {
    case Leg::kToRouter:
    case Leg::kDeciding:
      return "a decision of the router";
    case Leg::kQueued:
      if (!router.holds_back()) return "the router's balancer, which holds it";
      return "room in the pool: its saturation is " + std::to_string(router.saturation(now)) +
             ", and the router's queue never expires";
    case Leg::kBackingOff:
      return "the router's next try";
    case Leg::kAtGateway:
      return "a connection of the gateway to " + engine(live.route.endpoint);
    case Leg::kToPrefill:
      return "the front end of prefill server " + engine(*live.route.prefill);
    case Leg::kPrefill:
      return "prefill server " + engine(*live.route.prefill);
    case Leg::kToEngine:
      return "the front end of " + engine(live.route.endpoint);
    case Leg::kEngine:
      if (live.route.prefill && !live.kv_released)
        return "blocks at " + engine(live.route.endpoint) + " for the KV that " +
               engine(*live.route.prefill) + " holds for it";
      return "its turn at " + engine(live.route.endpoint);
    case Leg::kToClient:
      break;
  }
  return "its last token to reach the client";
}

}  // namespace

std::string describe_stuck(SimTime now, const LiveRequests& live, const Servers& servers,
                           const Router& router, bool load_finished) {
  std::string text = "nothing can happen any more at " + seconds(now) + ", but " +
                     std::to_string(live.outstanding()) + " requests are outstanding";
  if (!load_finished) text += " and the load generator has not finished";
  std::vector<const LiveRequest*> waiting;
  for (const LiveRequest& l : live.all())
    if (l.open()) waiting.push_back(&l);
  std::sort(waiting.begin(), waiting.end(), [](const LiveRequest* a, const LiveRequest* b) {
    return std::pair(a->sent, a->request.id) < std::pair(b->sent, b->request.id);
  });
  for (std::size_t i = 0; i < std::min(kNamed, waiting.size()); ++i)
    text += "\n  request " + std::to_string(waiting[i]->request.id.value()) + ", sent at " +
            seconds(waiting[i]->sent) + ", waits for " +
            waits_for(*waiting[i], now, servers, router);
  if (waiting.size() > kNamed)
    text += "\n  and " + std::to_string(waiting.size() - kNamed) + " more";
  if (router.queued() > 0)
    text += "\n  router: " + std::to_string(router.queued()) + " requests are held back";
  for (const EndpointHome& at : servers.endpoints().homes()) {
    const BatchScheduler& s = servers.replicas()[at.replica]->scheduler(at.rank);
    if (!s.idle() || s.held() > 0) text += "\n  " + at.name + ": " + s.describe_queues();
  }
  return text;
}

}  // namespace routesim::sim
