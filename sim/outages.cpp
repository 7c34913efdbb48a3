#include "sim/outages.h"

#include <algorithm>

#include "sim/plan/fleet_plan.h"

namespace routesim::sim {

Outages::Outages(const RunPlan& plan, std::uint64_t seed, Servers& servers, Router& router,
                 LiveRequests& live, KvMoves& moves, EventQueue& queue, RequestFlow& flow)
    : servers_(servers),
      router_(router),
      live_(live),
      moves_(moves),
      queue_(queue),
      flow_(flow),
      retries_(discovery_facts(plan.scenario.routing.balancer).retries),
      finds_dead_(discovery_facts(plan.scenario.routing.balancer).finds_dead),
      seed_(seed),
      proxies_(carries_requests(plan.scenario.routing)),
      vanished_(servers.server_of(EndpointId(servers.endpoints().size() - 1)) + 1),
      fleet_(fleet_pools(plan), fleet_events(plan.scenario), discovery_of(plan.scenario.routing),
             seed, *this, [&queue](SimTime at) { queue.push(at, EventKind::kFleet); }) {
  retries_.most = plan.scenario.routing.retries.value_or(retries_.most);
  elect_leader(fleet_, plan);
  if (std::any_of(plan.pools.begin(), plan.pools.end(),
                  [](const ResolvedPool& pool) { return pool.config.autoscaler.has_value(); }))
    meters_.emplace(plan, fleet_, servers, router, live);
}

// The servers that are not there yet leave one by one, and the routers hear of it once.
void Outages::begin() {
  for (std::uint32_t s = 0; s < fleet_.servers(); ++s)
    if (!fleet_.serves(s)) (void)servers_.end(s, true, SimTime::zero());
  fleet_.begin();
  router_.look_again();
  began_ = true;
}

void Outages::tick(SimTime now, bool load_waits) {
  constexpr Duration kLongestWait = Duration::seconds(3600);
  servers_.forget_lost(now - kStoreClient);
  fleet_.tick(now);
  const auto waits = [](const LiveRequest& live) {
    return !live.open() || (live.leg == Leg::kQueued && live.request.timeout == Duration::max());
  };
  if (!load_waits || !fleet_.only_looks() || !std::ranges::all_of(live_.all(), waits))
    served_ = now;
  if (now - served_ > kLongestWait) flow_.report_stuck(now);
}

template <class F>
void Outages::for_each_replica(std::uint32_t server, F f) {
  const Servers::Range range = servers_.endpoints_of(server);
  for (std::uint32_t e = range.first; e < range.end; ++e)
    if (servers_.endpoints()[e].rank == 0) f(servers_.endpoints()[e].replica);
}

void Outages::start(std::uint32_t server, SimTime now) {
  vanished_[server] = false;
  servers_.start(server, now);
  if (meters_) meters_->restart(server);
  const Servers::Range range = servers_.endpoints_of(server);
  for (std::uint32_t e = range.first; e < range.end; ++e)
    router_.set_up(router_.row(EndpointId(e)), true, now);
}

void Outages::stop(std::uint32_t server, ServerEnd how, SimTime now) {
  vanished_[server] = how == ServerEnd::kVanished;
  stopping_ = server;
  for_each_replica(server, [&](std::uint32_t r) {
    servers_.replica(r).advance_to(now);
    flow_.after_touch(r, now);
  });
  const Servers::Range range = servers_.endpoints_of(server);
  moves_.drop(range, how == ServerEnd::kVanished, now);
  if (servers_.end(server, how == ServerEnd::kTerminated, now))
    queue_.push(now + kStoreClient, EventKind::kFleet);
  servers_.restart(server, now);
  for_each_replica(server, [&](std::uint32_t r) { flow_.after_touch(r, now); });
  for (std::uint32_t e = range.first; e < range.end; ++e)
    router_.set_up(router_.row(EndpointId(e)), false, now);
  moves_.disaggregation().forget_orphans(range.first, range.end);
  lose_requests(server, how, now);
  stopping_.reset();
}

void Outages::lose_machine(std::uint32_t server, SimTime now) {
  moves_.lose_machine(servers_.endpoints_of(server), now);
}

void Outages::join(std::uint32_t server, std::int64_t pod, SimTime now) {
  const Servers::Range range = servers_.endpoints_of(server);
  for (std::uint32_t e = range.first; e < range.end; ++e)
    router_.join(router_.row(EndpointId(e)), pod, now);
  router_.look_again();
  flow_.fleet_changed(now);
}

void Outages::leave(std::uint32_t server, SimTime now) {
  const Servers::Range range = servers_.endpoints_of(server);
  for (std::uint32_t e = range.first; e < range.end; ++e)
    router_.leave(router_.row(EndpointId(e)), now);
  if (began_) router_.look_again();
}

void Outages::set_pace(std::uint32_t server, double factor, SimTime now) {
  for_each_replica(server, [&](std::uint32_t r) {
    servers_.replica(r).advance_to(now);
    servers_.replica(r).set_pace(factor);
    flow_.after_touch(r, now);
  });
}

void Outages::set_events_lost(std::uint32_t server, bool lost, SimTime now) {
  for_each_replica(server, [&](std::uint32_t r) {
    servers_.replica(r).advance_to(now);
    servers_.replica(r).set_events_lost(lost);
    flow_.after_touch(r, now);
  });
}

void Outages::set_scrapes_lost(std::uint32_t server, bool lost, SimTime now) {
  const Servers::Range range = servers_.endpoints_of(server);
  for (std::uint32_t e = range.first; e < range.end; ++e)
    router_.set_scraped(router_.row(EndpointId(e)), !lost, now);
}

void Outages::set_link(std::uint32_t server, bool works, SimTime now) {
  const Servers::Range range = servers_.endpoints_of(server);
  for (std::uint32_t e = range.first; e < range.end; ++e)
    if (servers_.endpoints()[e].rank == 0)
      moves_.links().set_port(servers_.endpoints()[e].replica, works, now);
}

// Requests that wait in the process are lost. Those that it has routed are lost where it carries
// them; an endpoint picker only names servers to a proxy that goes on.
void Outages::stop_router(std::uint32_t process, SimTime now) {
  for (std::uint32_t h = 0; h < live_.all().size(); ++h) {
    const LiveRequest& live = live_[h];
    if (!live.open() || live.route.instance != process) continue;
    if (live.leg == Leg::kQueued || live.leg == Leg::kBackingOff ||
        (live.leg == Leg::kDeciding && live.entered <= now) ||
        (proxies_ && live.route.routed && live.leg != Leg::kToClient))
      flow_.give_up(h, proxies_ ? "ServerDisconnectedError" : "500 Internal Server Error",
                    workloads::Outcome::kError, now);
  }
  router_.stop(process);
}

void Outages::count_failure(const Route& route, bool prefill_alone, SimTime now) {
  const auto count = [&](std::uint32_t server, EndpointId e) {
    if (router_.on_outcome(route, server, false, now))
      fleet_.mark(now, "trips a router's breaker", servers_.server_of(e));
  };
  if (route.prefill) count(route.pick.prefill_server, *route.prefill);
  if (!prefill_alone) count(route.pick.server, route.endpoint);
}

void Outages::find_dead(const Route& route, SimTime now) {
  const auto find = [&](std::uint32_t server) {
    if (server == stopping_ || !fleet_.serves(server)) fleet_.find_dead(server, now);
  };
  if (!finds_dead_) return;
  if (route.prefill) find(servers_.server_of(*route.prefill));
  find(servers_.server_of(route.endpoint));
}

std::optional<Duration> Outages::retry(LiveRequest& live, RetriedByRouter what) const {
  const std::optional<Duration> after =
      router_retry(retries_, what, live.retries.by_router, seed_, live.request.id.value());
  if (after) ++live.retries.by_router;
  return after;
}

void Outages::start_router(std::uint32_t process, SimTime now) {
  router_.start(process, now);
  flow_.fleet_changed(now);
}

void Outages::lead_router(std::uint32_t process, SimTime now) {
  router_.lead(process, now);
  flow_.fleet_changed(now);
}

bool Outages::is_in(const LiveRequest& live, std::uint32_t server) const {
  if (live.leg == Leg::kPrefill) return is_at(live.route.prefill, server);
  return live.leg == Leg::kEngine && is_at(live.route.endpoint, server);
}

std::int64_t Outages::requests_in(std::uint32_t server) const {
  return std::count_if(live_.all().begin(), live_.all().end(), [&](const LiveRequest& live) {
    return live.open() && live.leg != Leg::kToClient && live.leg != Leg::kAtGateway &&
           live.route.routed && (is_at(live.route.endpoint, server) || is_in(live, server));
  });
}

void Outages::refuse(std::uint32_t handle, EndpointId e, SimTime now) {
  const bool silent = vanished_[servers_.server_of(e)];
  queue_.push(silent ? now + kConnectTimeout : now, EventKind::kLost, handle, live_[handle].stamp);
}

// Requests may take new slots while this goes on; those are not lost.
void Outages::lose_requests(std::uint32_t server, ServerEnd how, SimTime now) {
  std::vector<std::uint32_t> lost;
  for (std::uint32_t h = 0; h < live_.all().size(); ++h) {
    const LiveRequest& live = live_[h];
    if (live.state == LiveRequest::State::kFree) continue;
    const bool settled = !live.open() && is_in(live, server);
    const bool here = live.open() && live.route.routed &&
                      (is_at(live.route.endpoint, server) || is_at(live.route.prefill, server));
    if (settled || here) lost.push_back(h);
  }
  for (const std::uint32_t h : lost) lose_request(h, server, how, now);
}

void Outages::lose_request(std::uint32_t handle, std::uint32_t server, ServerEnd how, SimTime now) {
  LiveRequest& live = live_[handle];
  // The engine that was to drain the abort is gone.
  if (live.state == LiveRequest::State::kSettled) {
    flow_.free(handle);
    return;
  }
  if (!live.open()) return;
  const bool decodes = is_at(live.route.endpoint, server);
  switch (live.leg) {
    case Leg::kToPrefill:
    case Leg::kPrefill:
      // The side-car beside the decode server leads the request.
      if (!decodes) {
        flow_.fall_back(handle, now);
        return;
      }
      break;
    case Leg::kToEngine:
    case Leg::kEngine:
      if (!decodes) {
        moves_.disaggregation().lose_source(handle, now);
        return;
      }
      break;
    default:
      return;
  }
  if (how == ServerEnd::kVanished)
    queue_.push(now + kConnectionLost, EventKind::kLost, handle, live.stamp);
  else
    flow_.lose(handle, Loss::kReset, now);
}

}  // namespace routesim::sim
