// Carries out the copies between GPU and host memory that the engines ask for.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "sim/live_requests.h"
#include "sim/servers.h"
#include "sim/transfers.h"

namespace routesim::sim {

/// Owns the copy queues of the engines. An engine does one copy at a time per direction, both
/// directions at once, and never stops computing for them (vLLM v0.27.1 v1/kv_offload/cpu/
/// gpu_worker.py: a stream per direction, transfers chained by events).
class KvCopies final : public TransferOwner {
 public:
  /// All arguments outlive this.
  KvCopies(Servers& servers, Transfers& transfers, RequestFlow& flow);

  /// Queues what a replica asks for.
  void start(std::uint32_t replica, SimTime now);
  void on_transferred(std::uint64_t id, SimTime now) override;

 private:
  struct Queue {
    std::deque<TierCopy> copies;  ///< The first one is under way,
    SimTime begin;                ///< since then.
  };
  void begin(std::uint32_t endpoint, TierCopy::Direction direction, SimTime now);

  Servers& servers_;
  Transfers& transfers_;
  RequestFlow& flow_;
  std::vector<std::uint32_t> first_endpoint_;  ///< By replica.
  std::vector<std::array<Queue, 2>> queues_;   ///< By endpoint and direction.
};

}  // namespace routesim::sim
