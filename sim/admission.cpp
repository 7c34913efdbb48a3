// A request at the router: decided at once, or held back by flow control until the pool has room.
#include <string>

#include "sim/simulation.h"

namespace routesim::sim {

namespace {

/// What the load tools count a refusal under.
const char* refusal_label(int http_status) {
  switch (http_status) {
    case 412:
      return "412 Precondition Failed";
    case 429:
      return "429 Too Many Requests";
    case 503:
      return "503 Service Unavailable";
    default:
      return "500 Internal Server Error";
  }
}

constexpr std::int64_t kTick = policies::FlowControl::kDispatchPeriod.ns();
constexpr std::int64_t kSweep = policies::FlowControl::kExpiryPeriod.ns();
/// Two seconds in which every server has been scraped many times and nothing has moved.
constexpr std::int64_t kHopelessTicks = 2000;

}  // namespace

void Simulation::route(std::uint32_t handle, SimTime now) {
  if (router_->holds_back()) {
    hold_back(handle, now);
  } else {
    const Live& live = live_[handle];
    apply_route(handle, router_->route(live.request, *live.keys, now), now);
  }
}

void Simulation::apply_route(std::uint32_t handle, const Route& route, SimTime now) {
  Live& live = live_[handle];
  live.route = route;
  ++result_.routing.decisions;
  if (!route.routed) {
    ++result_.routing.rejected;
    fail(handle, refusal_label(route.http_status), workloads::Outcome::kError, now);
    return;
  }
  live.route.endpoint = choose_rank(live.route.endpoint, now);
  if (live.route.prefill) live.route.prefill = choose_rank(*live.route.prefill, now);
  for (Observer* o : options_.observers) o->on_routed(live.request, live.route, now);
  if (route.prefill) {
    ++result_.routing.disaggregated;
    live.leg = Leg::kToPrefill;
    enter_server(handle, *live.route.prefill, now);
  } else {
    live.leg = Leg::kToEngine;
    enter_server(handle, live.route.endpoint, now);
  }
}

// When a request reaches its engine is known as soon as its round at the API server begins.
void Simulation::enter_server(std::uint32_t handle, EndpointId endpoint, SimTime now) {
  const Live& live = live_[handle];
  const std::uint32_t server = api_server_of_[endpoint.value()];
  book_round(server,
             api_servers_[server].arrive({.handle = handle,
                                          .stamp = live.stamp,
                                          .prompt_tokens = live.request.prompt->tokens,
                                          .arrival = now + plan_.scenario.cluster.frontend_latency},
                                         booking()));
}

void Simulation::begin_round(std::uint32_t server, std::uint32_t process, SimTime now) {
  book_round(server, api_servers_[server].begin(process, now, booking()));
}

void Simulation::book_round(std::uint32_t server, const std::optional<ApiServer::Round>& round) {
  if (round) queue_.push(round->at, EventKind::kApiRound, server, round->process);
}

// Every arrival is followed by one dispatch attempt, which may let another request go.
void Simulation::hold_back(std::uint32_t handle, SimTime now) {
  Live& live = live_[handle];
  const Router::Arrival arrival = router_->enqueue(handle, live.request, now);
  live.route.instance = arrival.instance;
  if (arrival.http_status != 0) {
    ++result_.routing.rejected;
    fail(handle, refusal_label(arrival.http_status), workloads::Outcome::kError, now);
    return;
  }
  live.leg = Leg::kQueued;
  dispatch(arrival.instance, now);
  book_router_tick(now);
}

bool Simulation::dispatch(std::uint32_t instance, SimTime now) {
  const std::optional<std::uint32_t> handle = router_->dispatch(instance, now);
  if (!handle) return false;
  const Live& live = live_[*handle];
  apply_route(*handle, router_->decide(instance, live.request, *live.keys, now), now);
  return true;
}

// Ticks fall on whole milliseconds and exist only while somebody waits.
void Simulation::book_router_tick(SimTime now) {
  if (router_tick_booked_ || router_->queued() == 0) return;
  router_tick_booked_ = true;
  queue_.push(SimTime::from_ns((now.ns() / kTick + 1) * kTick), EventKind::kRouterTick);
}

void Simulation::router_tick(SimTime now) {
  router_tick_booked_ = false;
  bool moved = !queue_.empty();
  for (std::uint32_t instance = 0; instance < router_->instances(); ++instance) {
    if (now.ns() % kSweep == 0) {
      for (const auto& expired : router_->expire(instance, now)) {
        ++result_.routing.rejected;
        moved = true;
        fail(static_cast<std::uint32_t>(expired.request), refusal_label(expired.http_status),
             workloads::Outcome::kError, now);
      }
    }
    moved = dispatch(instance, now) || moved;
  }
  lonely_ticks_ = moved ? 0 : lonely_ticks_ + 1;
  if (lonely_ticks_ > kHopelessTicks && !router_->queue_expires()) report_stuck(now);
  book_router_tick(now);
}

// The server's own front end spreads requests over its ranks. It decides when the router does: what
// it knows is older than the way from one to the other is long.
EndpointId Simulation::choose_rank(EndpointId server, SimTime now) {
  const auto it = front_end_of_.find(server.value());
  if (it == front_end_of_.end()) return server;
  FrontEnd& front_end = front_ends_[it->second];
  const auto observe = [&](std::uint32_t endpoint) {
    const EndpointHome& at = router_->endpoints()[endpoint];
    replicas_[at.replica]->advance_to(now);
    const Gauges g = replicas_[at.replica]->gauges(at.rank);
    const auto usable = static_cast<double>(plan_.pools[at.pool].rules.num_gpu_blocks - 1);
    return FrontEnd::RankLoad{.waiting = g.waiting,
                              .running = g.running,
                              .kv_usage = 1.0 - static_cast<double>(g.free_blocks) / usable};
  };
  return EndpointId(front_end.choose(now, observe));
}

void Simulation::leave_rank(EndpointId endpoint) {
  const auto it = front_end_of_.find(endpoint.value());
  if (it != front_end_of_.end()) front_ends_[it->second].on_completed(endpoint.value());
}

}  // namespace routesim::sim
