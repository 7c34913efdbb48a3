#include "sim/network/transfers.h"

#include <algorithm>
#include <utility>

namespace routesim::sim {

Transfers::Transfers(const std::vector<EngineSite>& engines, const SharedLinks& shared,
                     std::function<void(SimTime)> book)
    : port_(shared.port), book_(std::move(book)) {
  std::size_t replicas = 0;
  for (const EngineSite& e : engines) {
    replica_of_.push_back(e.replica);
    replicas = std::max<std::size_t>(replicas, e.replica + 1);
  }
  for (std::size_t r = 0; r < replicas; ++r) egress_.push_back(links_.add(shared.port));
  for (std::size_t r = 0; r < replicas; ++r) ingress_.push_back(links_.add(shared.port));
  add_host_links(engines, shared);
}

void Transfers::add_host_links(const std::vector<EngineSite>& engines, const SharedLinks& shared) {
  host_links_.resize(engines.size());
  std::uint32_t pool = ~std::uint32_t{0};
  std::int64_t gpus_left = 0;
  LinkId memory = 0;
  for (std::size_t e = 0; e < engines.size(); ++e) {
    const EngineSite& at = engines[e];
    if (!at.has_tiers) continue;
    if (at.pool != pool || gpus_left < at.gpus) {
      pool = at.pool;
      gpus_left = std::max(shared.host_gpus, at.gpus);
      memory = links_.add(shared.host_memory);
    }
    gpus_left -= at.gpus;
    HostLinks& h = host_links_[e];
    h.to_gpus = links_.add(at.bus_bytes_per_s);
    h.to_host = links_.add(at.bus_bytes_per_s);
    h.memory = memory;
  }
}

LinkPath Transfers::between_hosts(std::uint32_t from, std::uint32_t to) const {
  LinkPath path{egress_[replica_of_[from]], ingress_[replica_of_[to]], host_links_[from].memory};
  if (host_links_[to].memory != host_links_[from].memory) path.add(host_links_[to].memory);
  return path;
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

void Transfers::set_port(std::uint32_t replica, bool works, SimTime now) {
  for (const LinkId link : {egress_[replica], ingress_[replica]})
    links_.set_rate(link, works ? port_ : 0, now);
  book_next();
}

void Transfers::start(Kind kind, std::uint64_t id, const LinkPath& path, double bytes,
                      SimTime now) {
  links_.start(flow(kind, id), path, bytes, now);
  book_next();
}

void Transfers::cancel(Kind kind, std::uint64_t id, SimTime now) {
  links_.cancel(flow(kind, id), now);
  book_next();
}

void Transfers::book_next() {
  const SimTime next = links_.next_end();
  if (next == SimTime::max() || next == booked_) return;
  booked_ = next;
  book_(next);
}

void Transfers::tick(SimTime now) {
  if (booked_ != now) return;
  booked_ = SimTime::max();
  done_.clear();
  links_.advance(now, done_);
  for (const std::uint64_t id : done_)
    owners_[id >> 56]->on_transferred(id & 0xff'ffff'ffff'ffff, now);
  book_next();
}

}  // namespace routesim::sim
