// The network of a cluster: which links there are, and what moves over them.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/event_queue.h"
#include "sim/network/links.h"
#include "sim/observe/run_result.h"
#include "sim/plan/resolve.h"
#include "sim/servers.h"

namespace routesim::sim {

/// Hears that a transfer of its kind is done.
class TransferOwner {
 public:
  virtual ~TransferOwner() = default;
  virtual void on_transferred(std::uint64_t id, SimTime now) = 0;
};

/// Owns the links: a network port per server and direction; where servers have tiers, also the bus
/// between each engine's GPUs and its host, per direction, and the memory of each host. Everything
/// that moves at the same time shares them.
class Transfers {
 public:
  enum class Kind : std::uint8_t { kPull, kTierCopy, kTierPull, kDisk };
  static constexpr std::size_t kKinds = 4;

  /// The arguments outlive this.
  Transfers(const RunPlan& plan, const Servers& servers, EventQueue& queue);
  void set_owner(Kind kind, TransferOwner& owner) {
    owners_[static_cast<std::size_t>(kind)] = &owner;
  }

  /// From one server's GPUs to another's.
  LinkPath between_gpus(const EndpointHome& from, const EndpointHome& to) const;
  /// From the host of one endpoint's engine to that of another's; both have tiers.
  LinkPath between_hosts(std::uint32_t from, std::uint32_t to) const;
  /// Between the GPUs of an engine, which has tiers, and its host.
  LinkPath to_host(std::uint32_t endpoint) const;
  LinkPath to_gpus(std::uint32_t endpoint) const;
  /// The memory of an endpoint's host, which tells hosts apart; it has tiers.
  LinkId host_memory(std::uint32_t endpoint) const { return host_links_[endpoint].memory; }
  /// The network port of an endpoint's server.
  LinkId nic(std::uint32_t endpoint, bool out) const {
    return (out ? egress_ : ingress_)[replica_of_[endpoint]];
  }
  /// One more link.
  LinkId add_link(double bytes_per_s) { return links_.add(bytes_per_s); }

  void start(Kind kind, std::uint64_t id, const LinkPath& path, double bytes, SimTime now);
  void cancel(Kind kind, std::uint64_t id, SimTime now);
  /// Of an endpoint's engine, which has tiers, until `now`.
  LinkUse use(std::uint32_t endpoint, SimTime now) const;
  /// EventKind::kTransferTick.
  void tick(SimTime now);

 private:
  struct HostLinks {
    LinkId to_gpus = 0, to_host = 0, memory = 0;
    bool present = false;
  };
  static std::uint64_t flow(Kind kind, std::uint64_t id) {
    return static_cast<std::uint64_t>(kind) << 56 | id;
  }
  void add_host_links(const RunPlan& plan, const Servers& servers);
  void book();

  EventQueue& queue_;
  Links links_;
  std::vector<LinkId> egress_, ingress_;   ///< By replica.
  std::vector<std::uint32_t> replica_of_;  ///< By endpoint.
  std::vector<HostLinks> host_links_;      ///< By endpoint.
  TransferOwner* owners_[kKinds] = {};
  SimTime booked_ = SimTime::max();
  std::vector<std::uint64_t> done_;
};

}  // namespace routesim::sim
