// Collects what a run finds and makes its result.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/fleet/fleet.h"
#include "sim/gateway.h"
#include "sim/live_requests.h"
#include "sim/network/transfers.h"
#include "sim/observe/metrics_collector.h"
#include "sim/observe/run_result.h"
#include "sim/plan/resolve.h"
#include "sim/router/decision_queue.h"
#include "sim/servers.h"

namespace routesim::sim {

/// Owns the metrics of a run. Knows which load stage is under way and what the servers did in it.
class RunRecorder {
 public:
  /// The arguments outlive this.
  RunRecorder(const RunPlan& plan, const std::vector<workloads::StageInfo>& stages,
              Servers& servers, bool keep_requests);

  RoutingResult& routing() { return result_.routing; }
  FleetResult& fleet() { return result_.fleet ? *result_.fleet : result_.fleet.emplace(); }
  /// Before a request is counted: its stage may begin with it.
  void enter_stage(StageId stage, SimTime now);
  void on_sent(const workloads::Request& request, SimTime now);
  void on_gap(StageId stage, Duration gap);
  /// The client is done with a request: counts its latencies. `served`: since it was sent there
  /// was always somebody to serve it.
  RequestRecord on_done(const LiveRequest& live, workloads::Outcome outcome, bool served,
                        SimTime now);
  /// After the observers have heard of it: counts it as routed, and ends the stage with its last.
  void close(const RequestRecord& record, StageId stage, SimTime now);
  /// Call these before take_result().
  void note_decision_queue(const DecisionQueue& queue);
  /// Replays of KV events that failed.
  void note_replays(std::int64_t failed);
  void note_gateway(const Gateway& gateway);
  void note_fleet(Fleet& fleet, SimTime now);
  /// `most_in_flight`: requests whose clients waited at once.
  void note_streams(std::int64_t most_in_flight);
  /// Call once, at the end. `stopped`: the run did not reach its end.
  RunResult take_result(workloads::LoadGenerator& load, const Transfers& transfers,
                        std::uint64_t seed, SimTime end, bool stopped);

 private:
  void close_stage(StageId stage, SimTime now);
  ReplicaResult replica_result(std::uint32_t endpoint, SimTime end) const;
  const KvTiers& tiers_of(std::uint32_t endpoint) const;
  TierResult tier_result(std::uint32_t endpoint, const LinkUse& links) const;
  void add_tiers(const Transfers& transfers, SimTime end);
  std::vector<StepTimes> step_times() const;
  void note_long_waits();

  const RunPlan& plan_;
  Servers& servers_;
  bool keep_requests_;
  MetricsCollector metrics_;
  RunResult result_;
  StageId stage_;  ///< Under way.
  bool mixed_;     ///< Loads run side by side, and servers do not tell whose gaps are whose.
  std::vector<std::int64_t> outstanding_;    ///< By stage.
  std::vector<Servers::KvUse> start_usage_;  ///< Servers::kv_use() when a stage began.
  /// Of a mix: what start_usage_ is for its first reported stage, and the usage since then.
  std::optional<Servers::KvUse> mix_start_usage_;
  double mix_usage_ = 0;
  Samples unattributed_gaps_;  ///< Gaps before any stage; all those of a mix.
};

}  // namespace routesim::sim
