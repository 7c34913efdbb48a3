// The network of a cluster: which links there are, and what moves over them.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/network/links.h"

namespace routesim::sim {

/// Hears that a transfer of its kind is done.
class TransferOwner {
 public:
  virtual ~TransferOwner() = default;
  virtual void on_transferred(std::uint64_t id, SimTime now) = 0;
};

/// The place of an endpoint's engine. Engines of a pool fill one host after another.
struct EngineSite {
  std::uint32_t replica = 0;
  std::uint32_t pool = 0;
  bool has_tiers = false;
  std::int64_t gpus = 1;
  double bus_bytes_per_s = 0;  ///< With tiers: between its GPUs and its host, per direction.
};

/// The rates of the hardware that engines share, bytes per second.
struct SharedLinks {
  double port = 0;         ///< Of a server, per direction.
  double host_memory = 0;  ///< Of all copies to and from it.
  std::int64_t host_gpus = 8;
};

/// Owns the links: a network port per server and direction; where servers have tiers, also the bus
/// between each engine's GPUs and its host, per direction, and the memory of each host. Everything
/// that moves at the same time shares them.
class Transfers {
 public:
  enum class Kind : std::uint8_t { kPull, kTierCopy, kTierPull, kDisk };
  static constexpr std::size_t kKinds = 4;

  /// `book` asks for a tick at a time.
  Transfers(const std::vector<EngineSite>& engines, const SharedLinks& shared,
            std::function<void(SimTime)> book);
  void set_owner(Kind kind, TransferOwner& owner) {
    owners_[static_cast<std::size_t>(kind)] = &owner;
  }

  /// From one server's GPUs to another's.
  LinkPath between_gpus(std::uint32_t from_replica, std::uint32_t to_replica) const {
    return {egress_[from_replica], ingress_[to_replica]};
  }
  /// From the host of one endpoint's engine to that of another's; both have tiers.
  LinkPath between_hosts(std::uint32_t from, std::uint32_t to) const;
  /// Between the GPUs of an engine, which has tiers, and its host.
  LinkPath bus(std::uint32_t endpoint, bool to_host) const {
    const HostLinks& host = host_links_[endpoint];
    return {to_host ? host.to_host : host.to_gpus, host.memory};
  }
  /// The memory of an endpoint's host, which tells hosts apart; it has tiers.
  LinkId host_memory(std::uint32_t endpoint) const { return host_links_[endpoint].memory; }
  /// The network port of an endpoint's server.
  LinkId nic(std::uint32_t endpoint, bool out) const {
    return (out ? egress_ : ingress_)[replica_of_[endpoint]];
  }
  /// One more link.
  LinkId add_link(double bytes_per_s) { return links_.add(bytes_per_s); }

  /// Nothing moves through the network port of a replica any more; or again.
  void set_port(std::uint32_t replica, bool works, SimTime now);
  void start(Kind kind, std::uint64_t id, const LinkPath& path, double bytes, SimTime now);
  void cancel(Kind kind, std::uint64_t id, SimTime now);
  /// The link use of an endpoint's engine, which has tiers, until `now`.
  LinkUse use(std::uint32_t endpoint, SimTime now) const;
  /// A time that was booked has come.
  void tick(SimTime now);

 private:
  struct HostLinks {
    LinkId to_gpus = 0, to_host = 0, memory = 0;
  };
  static std::uint64_t flow(Kind kind, std::uint64_t id) {
    return static_cast<std::uint64_t>(kind) << 56 | id;
  }
  void add_host_links(const std::vector<EngineSite>& engines, const SharedLinks& shared);
  void book_next();

  Links links_;
  double port_ = 0;                        ///< Bytes per second of a port that works.
  std::vector<LinkId> egress_, ingress_;   ///< By replica.
  std::vector<std::uint32_t> replica_of_;  ///< By endpoint.
  std::vector<HostLinks> host_links_;      ///< By endpoint.
  TransferOwner* owners_[kKinds] = {};
  std::function<void(SimTime)> book_;
  SimTime booked_ = SimTime::max();
  std::vector<std::uint64_t> done_;  ///< Scratch of tick().
};

}  // namespace routesim::sim
