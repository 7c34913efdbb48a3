// The metrics of servers and routers that autoscalers read.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "sim/fleet/fleet.h"
#include "sim/live_requests.h"
#include "sim/router/router.h"
#include "sim/scaling/fleet_metrics.h"
#include "sim/servers.h"

namespace routesim::sim {

/// Counts what servers and routers export and engines do not count themselves, and answers for each
/// pool. A process that starts begins at 0. Made only where something asks; O(1) per request.
class FleetMeters {
 public:
  /// All arguments outlive this.
  FleetMeters(const RunPlan& plan, const Fleet& fleet, Servers& servers, const Router& router,
              const LiveRequests& live);

  /// The router decided about a request, or refused it.
  void on_decided(bool routed) {
    ++incoming_;
    if (routed) ++routed_;
  }
  void on_first_token(const LiveRequest& live, SimTime now);
  /// The prefill server of a request has answered.
  void on_prefilled(const LiveRequest& live, SimTime now);
  void on_finished(const LiveRequest& live, SimTime now);
  void on_failed() { ++errors_; }
  /// A server's process is another one.
  void restart(std::uint32_t server);
  /// What the autoscaler of a pool sees at `now`.
  const FleetMetrics& of(std::uint32_t pool, SimTime now);

 private:
  /// The books of one process. SGLang counts tokens when their request has finished
  /// (tokenizer_manager.py, collect_metrics); vLLM's are the engine's own counters.
  struct Server {
    std::int64_t prompt_tokens = 0, generation_tokens = 0, finished = 0;
    BucketCounts ttft{FleetMetric::kServerTtft}, tpot{FleetMetric::kServerTpot},
        latency{FleetMetric::kServerLatency};
  };
  /// The answers about one pool.
  class Pool final : public FleetMetrics {
   public:
    Pool(FleetMeters& meters, std::uint32_t pool) : meters_(meters), pool_(pool) {}
    std::int32_t spec_replicas() const override;
    void pods(std::vector<FleetPod>& out) const override;
    std::optional<double> value(FleetMetric metric, std::int64_t pod) const override;
    const BucketCounts* histogram(FleetMetric metric, std::int64_t pod) const override;

   private:
    FleetMeters& meters_;
    std::uint32_t pool_;
  };

  Server& finish(EndpointId e, const LiveRequest& live, std::int64_t tokens, SimTime now);
  std::optional<double> server_value(FleetMetric metric, std::uint32_t server);
  std::optional<double> pool_value(FleetMetric metric, std::uint32_t pool) const;

  const RunPlan& plan_;
  const Fleet& fleet_;
  Servers& servers_;
  const Router& router_;
  const LiveRequests& live_;
  SimTime now_;
  std::vector<Server> books_;  ///< By server.
  std::deque<Pool> pools_;
  std::int64_t incoming_ = 0, routed_ = 0, errors_ = 0;
  BucketCounts router_ttft_{FleetMetric::kRouterTtft}, router_tpot_{FleetMetric::kRouterTpot},
      router_latency_{FleetMetric::kRouterLatency},
      predicted_ttft_{FleetMetric::kRouterPredictedTtft},
      predicted_tpot_{FleetMetric::kRouterPredictedTpot};
};

}  // namespace routesim::sim
