#include "sim/kv_copies.h"

namespace routesim::sim {

KvCopies::KvCopies(Servers& servers, Transfers& transfers, RequestFlow& flow)
    : servers_(servers),
      transfers_(transfers),
      flow_(flow),
      first_endpoint_(servers.replicas().size()),
      queues_(servers.endpoints().size()) {
  for (std::uint32_t e = servers.endpoints().size(); e-- > 0;)
    first_endpoint_[servers.endpoints()[e].replica] = e;
}

void KvCopies::start(std::uint32_t replica, SimTime now) {
  std::vector<Replica::RankCopy>& asked = servers_.replica(replica).copies();
  for (const Replica::RankCopy& c : asked) {
    const std::uint32_t endpoint = first_endpoint_[replica] + static_cast<std::uint32_t>(c.rank);
    Queue& queue = queues_[endpoint][static_cast<std::size_t>(c.copy.direction)];
    queue.copies.push_back(c.copy);
    if (queue.copies.size() == 1) begin(endpoint, c.copy.direction, now);
  }
  asked.clear();
}

void KvCopies::begin(std::uint32_t endpoint, TierCopy::Direction direction, SimTime now) {
  const bool to_host = direction == TierCopy::Direction::kToHost;
  Queue& queue = queues_[endpoint][static_cast<std::size_t>(direction)];
  queue.begin = now;
  const TierCopy& copy = queue.copies.front();
  LinkPath path = to_host ? transfers_.to_host(endpoint) : transfers_.to_gpus(endpoint);
  // A store writes GPU memory over the network, and reads it.
  if (servers_.pool(servers_.endpoints()[endpoint]).rules.tiers.shared_store)
    path = {transfers_.nic(endpoint, to_host)};
  transfers_.start(Transfers::Kind::kTierCopy, endpoint * 2 + (to_host ? 1 : 0), path, copy.bytes,
                   now);
}

void KvCopies::on_transferred(std::uint64_t id, SimTime now) {
  const auto endpoint = static_cast<std::uint32_t>(id / 2);
  const auto direction = static_cast<TierCopy::Direction>(id % 2);
  Queue& queue = queues_[endpoint][id % 2];
  const TierCopy done = queue.copies.front();
  queue.copies.pop_front();
  flow_.report({.kind = direction == TierCopy::Direction::kToHost ? CopySpan::Kind::kToHost
                                                                  : CopySpan::Kind::kToGpus,
                .endpoint = endpoint,
                .begin = queue.begin,
                .end = now,
                .bytes = done.bytes});
  if (!queue.copies.empty()) begin(endpoint, direction, now);
  const EndpointHome& at = servers_.endpoints()[endpoint];
  servers_.replica(at.replica).advance_to(now);
  servers_.replica(at.replica).land_copy(at.rank, done.id);
  servers_.replica(at.replica).copy_done(at.rank, done.id, now);
  flow_.after_touch(at.replica, now);
}

}  // namespace routesim::sim
