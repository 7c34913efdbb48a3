#include "sim/tiers/kv_copies.h"

namespace routesim::sim {

void KvCopies::start(std::uint32_t endpoint, const TierCopy& copy, SimTime now) {
  Queue& queue = queues_[endpoint][static_cast<std::size_t>(copy.direction)];
  queue.copies.push_back(copy);
  if (queue.copies.size() == 1) begin(endpoint, copy.direction, now);
}

void KvCopies::begin(std::uint32_t endpoint, TierCopy::Direction direction, SimTime now) {
  const bool to_host = direction == TierCopy::Direction::kToHost;
  Queue& queue = queues_[endpoint][static_cast<std::size_t>(direction)];
  queue.begin = now;
  // A store writes GPU memory over the network, and reads it.
  const LinkPath path = engines_.rules(endpoint).shared_store
                            ? LinkPath{transfers_.nic(endpoint, to_host)}
                            : transfers_.bus(endpoint, to_host);
  transfers_.start(Transfers::Kind::kTierCopy, endpoint * 2 + (to_host ? 1 : 0), path,
                   queue.copies.front().bytes, now);
}

void KvCopies::on_transferred(std::uint64_t id, SimTime now) {
  const auto endpoint = static_cast<std::uint32_t>(id / 2);
  const auto direction = static_cast<TierCopy::Direction>(id % 2);
  Queue& queue = queues_[endpoint][id % 2];
  const TierCopy done = queue.copies.front();
  queue.copies.pop_front();
  engines_.report({.kind = direction == TierCopy::Direction::kToHost ? CopySpan::Kind::kToHost
                                                                     : CopySpan::Kind::kToGpus,
                   .endpoint = endpoint,
                   .begin = queue.begin,
                   .end = now,
                   .bytes = done.bytes});
  if (!queue.copies.empty()) begin(endpoint, direction, now);
  engines_.end_copy(endpoint, done.id, now);
}

void KvCopies::drop(std::uint32_t endpoint, SimTime now) {
  for (const std::uint32_t direction : {0U, 1U}) {
    queues_[endpoint][direction].copies.clear();
    transfers_.cancel(Transfers::Kind::kTierCopy, endpoint * 2 + direction, now);
  }
}

}  // namespace routesim::sim
