#include "sim/transfers.h"

#include <algorithm>

namespace routesim::sim {

Transfers::Transfers(const RunPlan& plan, const Servers& servers, EventQueue& queue)
    : queue_(queue) {
  const double port = plan.scenario.cluster.transfer.bandwidth_gbps / 8 * 1e9;
  for (std::size_t r = 0; r < servers.replicas().size(); ++r) egress_.push_back(links_.add(port));
  for (std::size_t r = 0; r < servers.replicas().size(); ++r) ingress_.push_back(links_.add(port));
  add_host_links(plan, servers);
}

// Servers of a pool fill one host after another.
void Transfers::add_host_links(const RunPlan& plan, const Servers& servers) {
  const HostConfig host = plan.scenario.cluster.host.value_or(HostConfig{});
  host_links_.resize(servers.endpoints().size());
  for (std::uint32_t e = 0; e < servers.endpoints().size(); ++e)
    replica_of_.push_back(servers.endpoints()[e].replica);
  std::uint32_t pool = ~std::uint32_t{0};
  std::int64_t gpus_left = 0;
  LinkId memory = 0;
  for (std::uint32_t e = 0; e < servers.endpoints().size(); ++e) {
    const EndpointHome& at = servers.endpoints()[e];
    const ResolvedPool& p = plan.pools[at.pool];
    if (!p.rules.tiers.in_use()) continue;
    const std::int64_t gpus = p.config.tensor_parallel * p.config.pipeline_parallel;
    if (at.pool != pool || gpus_left < gpus) {
      pool = at.pool;
      gpus_left = std::max(host.gpus, gpus);
      memory = links_.add(host.memory_gb_per_s * 1e9);
    }
    gpus_left -= gpus;
    const double rate = p.rules.tiers.link_bytes_per_s;
    HostLinks& h = host_links_[e];
    h.to_gpus = links_.add(rate);
    h.to_host = links_.add(rate);
    h.memory = memory;
    h.present = true;
  }
}

LinkPath Transfers::between_gpus(const EndpointHome& from, const EndpointHome& to) const {
  return {egress_[from.replica], ingress_[to.replica]};
}

LinkPath Transfers::between_hosts(std::uint32_t from, std::uint32_t to) const {
  LinkPath path{egress_[replica_of_[from]], ingress_[replica_of_[to]], host_links_[from].memory};
  if (host_links_[to].memory != host_links_[from].memory) path.add(host_links_[to].memory);
  return path;
}

LinkPath Transfers::to_host(std::uint32_t endpoint) const {
  return {host_links_[endpoint].to_host, host_links_[endpoint].memory};
}

LinkPath Transfers::to_gpus(std::uint32_t endpoint) const {
  return {host_links_[endpoint].to_gpus, host_links_[endpoint].memory};
}

LinkUse Transfers::use(std::uint32_t endpoint, SimTime now) const {
  const HostLinks& host = host_links_[endpoint];
  const std::uint32_t replica = replica_of_[endpoint];
  return {.to_gpus = links_.mean_use(host.to_gpus, now),
          .to_host = links_.mean_use(host.to_host, now),
          .host_memory = links_.mean_use(host.memory, now),
          .nic_out = links_.mean_use(egress_[replica], now),
          .nic_in = links_.mean_use(ingress_[replica], now)};
}

void Transfers::start(Kind kind, std::uint64_t id, const LinkPath& path, double bytes,
                      SimTime now) {
  links_.start(flow(kind, id), path, bytes, now);
  book();
}

void Transfers::cancel(Kind kind, std::uint64_t id, SimTime now) {
  links_.cancel(flow(kind, id), now);
  book();
}

void Transfers::book() {
  const SimTime next = links_.next_end();
  if (next == SimTime::max() || next == booked_) return;
  booked_ = next;
  queue_.push(next, EventKind::kTransferTick);
}

void Transfers::tick(SimTime now) {
  if (booked_ != now) return;
  booked_ = SimTime::max();
  done_.clear();
  links_.advance(now, done_);
  for (const std::uint64_t id : done_)
    owners_[id >> 56]->on_transferred(id & 0xff'ffff'ffff'ffff, now);
  book();
}

}  // namespace routesim::sim
