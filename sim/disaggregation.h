// Prefill/decode disaggregation: the KV hand-over between the two legs of a request.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "sim/event_queue.h"
#include "sim/live_requests.h"
#include "sim/network/transfers.h"
#include "sim/plan/resolve.h"
#include "sim/servers.h"

namespace routesim::sim {

/// Owns the NIXL pulls of KV blocks over shared links and the leases under which prefill servers
/// keep the blocks.
class Disaggregation final : public TransferOwner {
 public:
  /// All arguments outlive this.
  Disaggregation(const RunPlan& plan, Servers& servers, LiveRequests& live, EventQueue& queue,
                 Transfers& transfers, RequestFlow& flow);

  /// The prefill server has answered: its promise to keep the blocks begins.
  void begin_lease(std::uint32_t handle, SimTime now);
  /// The decode engine has allocated `blocks` blocks for the KV.
  void start_transfer(std::uint32_t handle, std::int64_t blocks, SimTime now);
  /// The decode side has read the blocks (or needs none): the prefill side may free them.
  void release_prefill(std::uint32_t handle, SimTime now);
  /// The decode server is gone without having read the blocks: the prefill server keeps them until
  /// its lease is over, whatever becomes of the request.
  void orphan(std::uint32_t handle, SimTime now);
  /// The prefill server is gone, and with it KV that was not read.
  void lose_source(std::uint32_t handle, SimTime now);
  /// Engines [first, end) have ended: they hold nothing.
  void forget_orphans(std::uint32_t first, std::uint32_t end);
  /// The request gives up: its pull ends, and the prefill side may free its blocks.
  void cancel(std::uint32_t handle, SimTime now);

  // Events.
  void begin_pull(std::uint32_t handle, SimTime now);
  void on_transferred(std::uint64_t handle, SimTime now) override;
  void end_leases(SimTime now);

 private:
  /// A prefill server's promise to keep the blocks of a request.
  struct Lease {
    SimTime end;
    std::uint32_t handle = 0;
    std::uint32_t stamp = 0;
  };

  /// Blocks that nobody will read.
  struct Orphan {
    SimTime end;
    EndpointId holder;
    SequenceRef sequence;
  };

  void end_orphans(SimTime now);
  bool over(const Lease& lease) const;
  EnginePreset prefill_preset(std::uint32_t handle) const;
  Duration lease_length(std::uint32_t handle) const;
  void book_lease_end();
  void lose_kv(std::uint32_t handle, SimTime now);
  void fail_load(std::uint32_t handle, SimTime now);

  const RunPlan& plan_;
  Servers& servers_;
  LiveRequests& live_;
  EventQueue& queue_;
  Transfers& transfers_;
  RequestFlow& flow_;
  std::deque<Lease> leases_;  ///< By end; the event of the first one is booked.
  std::vector<Orphan> orphans_;
  SimTime booked_lease_end_ = SimTime::max();
  /// When two servers (from, to) have shaken hands.
  std::map<std::pair<std::uint32_t, std::uint32_t>, SimTime> acquainted_;
};

}  // namespace routesim::sim
