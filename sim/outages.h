// Carries out what happens to the fleet.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/event_queue.h"
#include "sim/fleet/fleet.h"
#include "sim/fleet_meters.h"
#include "sim/kv_moves.h"
#include "sim/live_requests.h"
#include "sim/plan/discovery.h"
#include "sim/router/router.h"
#include "sim/servers.h"

namespace routesim::sim {

/// Owns the Fleet. Starts and ends servers and router processes, and finds the requests that are
/// lost with them; the loop decides what becomes of these.
class Outages final : private FleetActions {
 public:
  /// Envoy gives up a connection that nobody answers after this time (cluster.connect_timeout of
  /// Envoy Gateway and Istio: 10 s).
  static constexpr Duration kConnectTimeout = Duration::seconds(10);
  /// Mooncake's master forgets a client without a heartbeat, and the chunks in its memory, after
  /// this time (DEFAULT_CLIENT_LIVE_TTL_SEC of v0.3.7, ClientMonitorFunc in master_service.cpp). It
  /// looks once a second.
  static constexpr Duration kStoreClient = Duration::seconds(10);

  /// All arguments outlive this.
  Outages(const RunPlan& plan, std::uint64_t seed, Servers& servers, Router& router,
          LiveRequests& live, KvMoves& moves, EventQueue& queue, RequestFlow& flow);

  /// Before the first request.
  void begin();
  /// EventKind::kFleet. `load_waits`: nothing is sent before something is answered. Reports a run
  /// that cannot end: for an hour every request has waited at a router, and nothing was due but
  /// looks of autoscalers.
  void tick(SimTime now, bool load_waits);
  /// A server takes connections.
  bool answers(EndpointId e) const { return fleet_.serves(servers_.server_of(e)); }
  /// A request goes to a server that does not: books the time at which this is known.
  void refuse(std::uint32_t handle, EndpointId e, SimTime now);
  Fleet& fleet() { return fleet_; }
  const Fleet& fleet() const { return fleet_; }
  /// The routers are proxies, whose clients lose their connections with them.
  bool proxies() const { return proxies_; }
  /// A prefill server, or both servers of a request, failed before they answered: a breaker may
  /// open.
  void count_failure(const Route& route, bool prefill_alone, SimTime now);
  /// A request was lost: a router that notices leaves out the server that is gone.
  void find_dead(const Route& route, SimTime now);
  /// The back-off of a request that its router tries again by itself; nothing where it does not.
  std::optional<Duration> retry(LiveRequest& live, RetriedByRouter what) const;
  /// Null where nobody asks.
  FleetMeters* meters() { return meters_ ? &*meters_ : nullptr; }

 private:
  void start(std::uint32_t server, SimTime now) override;
  void stop(std::uint32_t server, ServerEnd how, SimTime now) override;
  void lose_machine(std::uint32_t server, SimTime now) override;
  void join(std::uint32_t server, std::int64_t pod, SimTime now) override;
  void leave(std::uint32_t server, SimTime now) override;
  void set_pace(std::uint32_t server, double factor, SimTime now) override;
  void set_events_lost(std::uint32_t server, bool lost, SimTime now) override;
  void set_scrapes_lost(std::uint32_t server, bool lost, SimTime now) override;
  void set_link(std::uint32_t server, bool works, SimTime now) override;
  void stop_router(std::uint32_t process, SimTime now) override;
  void start_router(std::uint32_t process, SimTime now) override;
  void lead_router(std::uint32_t process, SimTime now) override;
  std::int64_t requests_in(std::uint32_t server) const override;
  const FleetMetrics& metrics(std::uint32_t pool, SimTime now) override {
    return meters_->of(pool, now);
  }

  template <class F>
  void for_each_replica(std::uint32_t server, F f);
  /// The endpoint whose engine has a request, by its leg.
  bool is_in(const LiveRequest& live, std::uint32_t server) const;
  bool is_at(const std::optional<EndpointId>& e, std::uint32_t server) const {
    return e && servers_.server_of(*e) == server;
  }
  void lose_requests(std::uint32_t server, ServerEnd how, SimTime now);
  void lose_request(std::uint32_t handle, std::uint32_t server, ServerEnd how, SimTime now);

  Servers& servers_;
  Router& router_;
  LiveRequests& live_;
  KvMoves& moves_;
  EventQueue& queue_;
  RequestFlow& flow_;
  RouterRetries retries_;
  bool finds_dead_;                          ///< DiscoveryFacts::finds_dead.
  std::optional<std::uint32_t> stopping_{};  ///< The server that stop() is about.
  std::uint64_t seed_;
  bool proxies_;                ///< The routers carry the requests that they route.
  std::vector<bool> vanished_;  ///< By server: nobody answers there, not even to refuse.
  Fleet fleet_;
  std::optional<FleetMeters> meters_;
  bool began_ = false;
  SimTime served_{};  ///< Until then somebody was served, or something else was due.
};

}  // namespace routesim::sim
