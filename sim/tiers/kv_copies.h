// Carries out the copies between GPU and host memory that the engines ask for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "sim/network/transfers.h"
#include "sim/tiers/kv_tiers.h"
#include "sim/tiers/tier_engines.h"

namespace routesim::sim {

/// Owns the copy queues of the engines. An engine does one copy at a time per direction, both
/// directions at once, and never stops computing for them (vLLM v0.27.1 v1/kv_offload/cpu/
/// gpu_worker.py: a stream per direction, transfers chained by events).
class KvCopies final : public TransferOwner {
 public:
  /// The references outlive this.
  KvCopies(std::size_t endpoints, Transfers& transfers, TierEngines& engines)
      : transfers_(transfers), engines_(engines), queues_(endpoints) {}

  /// Queues a copy that an engine wants.
  void start(std::uint32_t endpoint, const TierCopy& copy, SimTime now);
  void on_transferred(std::uint64_t id, SimTime now) override;
  /// The engine is gone, with its copies.
  void drop(std::uint32_t endpoint, SimTime now);

 private:
  struct Queue {
    std::deque<TierCopy> copies;  ///< The first one is under way,
    SimTime begin;                ///< since then.
  };
  void begin(std::uint32_t endpoint, TierCopy::Direction direction, SimTime now);

  Transfers& transfers_;
  TierEngines& engines_;
  std::vector<std::array<Queue, 2>> queues_;  ///< By endpoint and direction.
};

}  // namespace routesim::sim
