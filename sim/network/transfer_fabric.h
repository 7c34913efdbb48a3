// KV transfers between servers that share their network ports fairly.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/units.h"

namespace routesim::sim {

/// Point-to-point flows between nodes. Every node has one egress and one ingress port of the same
/// bandwidth; all flows advance at max-min fair rates (progressive filling), recomputed whenever a
/// flow starts or ends. Times are rounded up to whole nanoseconds.
class TransferFabric {
 public:
  TransferFabric() = default;
  /// bytes_per_second > 0: of each port.
  TransferFabric(std::size_t nodes, double bytes_per_second);

  /// Starts moving `bytes` (> 0) at `now`. `id` comes back when it is done.
  void start(std::uint64_t id, std::uint32_t from, std::uint32_t to, double bytes, SimTime now);
  /// Drops a flow; its bytes are lost. No effect on an unknown id.
  void cancel(std::uint64_t id, SimTime now);
  /// When the next flow ends if nothing changes; SimTime::max() without flows.
  SimTime next_end() const;
  /// Moves every flow to `now` and appends the ids of those that have ended, in start order.
  void advance(SimTime now, std::vector<std::uint64_t>& done);
  std::size_t active() const { return flows_.size(); }

 private:
  struct Flow {
    std::uint64_t id;
    std::uint32_t from, to;
    double bytes_left;  ///< May fall a little below 0 before the flow is noticed to have ended.
    double rate = 0;    ///< Bytes per nanosecond.
  };
  void progress(SimTime now);
  void share();

  double port_rate_ = 0;  ///< Bytes per nanosecond.
  std::size_t nodes_ = 0;
  std::vector<Flow> flows_;  ///< In start order.
  SimTime now_;
};

}  // namespace routesim::sim
