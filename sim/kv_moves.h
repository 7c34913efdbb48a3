// Everything that moves KV blocks in a run.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/disaggregation.h"
#include "sim/event_queue.h"
#include "sim/live_requests.h"
#include "sim/network/transfers.h"
#include "sim/plan/resolve.h"
#include "sim/servers.h"
#include "sim/tiers/kv_copies.h"
#include "sim/tiers/kv_disks.h"
#include "sim/tiers/kv_pulls.h"
#include "sim/tiers/tier_engines.h"

namespace routesim::sim {

/// Owns the links of the cluster and those who move KV blocks over them, and leads between them and
/// the engines. Each kind of transfer has its owner.
class KvMoves final : private TierEngines {
 public:
  /// All arguments outlive this.
  KvMoves(const RunPlan& plan, Servers& servers, LiveRequests& live, EventQueue& queue,
          RequestFlow& flow);

  /// Starts the copies and sends the messages that a replica wants.
  void collect(std::uint32_t replica, SimTime now) {
    Replica& r = servers_.replica(replica);
    if (!r.copies().empty()) start_copies(replica, now);
    if (!r.messages().empty()) send_messages(replica, now);
  }
  /// A server's engines are gone, with all that moves to or from them. `vanished`: without a word.
  void drop(Servers::Range endpoints, bool vanished, SimTime now);
  /// Its machine is gone, with the files there.
  void lose_machine(Servers::Range endpoints, SimTime now) {
    for (std::uint32_t e = endpoints.first; e < endpoints.end; ++e) disks_.lose_machine(e, now);
  }
  Transfers& links() { return links_; }
  Disaggregation& disaggregation() { return disaggregation_; }
  /// EventKind::kPullStep.
  void step_pull(std::uint32_t pull, bool deadline, SimTime now) {
    pulls_.step(pull, deadline, now);
  }

 private:
  void add_files(const RunPlan& plan);
  void start_copies(std::uint32_t replica, SimTime now);
  void send_messages(std::uint32_t replica, SimTime now);
  const TierRules& rules(std::uint32_t endpoint) const override {
    return servers_.pool(servers_.endpoints()[endpoint]).rules.tiers;
  }
  bool is_up(std::uint32_t endpoint) const override { return servers_.is_up(endpoint); }
  void end_copy(std::uint32_t endpoint, std::uint32_t copy, SimTime now) override;
  void tell(std::uint32_t endpoint, PullNews news, KvPull& pull, SimTime now) override;
  void book_step(std::uint32_t pull, bool deadline, SimTime at) override {
    queue_.push(at, EventKind::kPullStep, pull, deadline ? 1 : 0);
  }
  void report(const CopySpan& span) override { flow_.report(span); }

  Servers& servers_;
  const LiveRequests& live_;
  bool fails_loads_;  ///< A request whose load failed fails.
  EventQueue& queue_;
  RequestFlow& flow_;
  std::vector<std::uint32_t> first_endpoint_;  ///< By replica.
  Transfers links_;
  Disaggregation disaggregation_;
  KvCopies copies_;
  KvDisks disks_;
  KvPulls pulls_;
};

}  // namespace routesim::sim
