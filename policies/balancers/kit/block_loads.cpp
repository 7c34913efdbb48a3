#include "policies/balancers/kit/block_loads.h"

#include <algorithm>
#include <utility>

namespace routesim::policies {

void BlocksByServer::hold(std::uint32_t server, std::span<const BlockKey> keys) {
  const HolderEntry row{.endpoint = EndpointId(server), .group = std::nullopt};
  if (!keys.empty()) index_.add({}, keys, {&row, 1});
}

void BlocksByServer::drop(std::uint32_t server, std::span<const BlockKey> keys) {
  const HolderEntry row{.endpoint = EndpointId(server), .group = std::nullopt};
  if (!keys.empty()) index_.evict_request_keys(keys, {&row, 1});
}

void ActiveBlocks::add(std::uint32_t server, std::span<const BlockKey> keys) {
  auto& counts = counts_[server];
  std::size_t known = 0;
  for (const BlockKey key : keys)
    if (++counts[key] > 1) ++known;
  hold(server, keys.subspan(known));
}

void ActiveBlocks::remove(std::uint32_t server, std::span<const BlockKey> keys) {
  auto& counts = counts_[server];
  std::size_t kept = 0;
  for (const BlockKey key : keys) {
    const auto at = counts.find(key);
    if (--at->second > 0)
      ++kept;
    else
      counts.erase(at);
  }
  drop(server, keys.subspan(kept));
}

void PredictedBlocks::add(std::uint32_t server, std::span<const BlockKey> keys, SimTime now) {
  if (keys.empty()) return;
  if (server >= due_.size()) due_.resize(server + 1);
  const SimTime due = now + ttl_;
  for (const BlockKey key : keys) due_[server][key] = due;
  hold(server, keys);
  uses_.push_back({.due = due, .server = server, .keys = {keys.begin(), keys.end()}});
}

void PredictedBlocks::expire(SimTime now) {
  for (; !uses_.empty() && uses_.front().due <= now; uses_.pop_front()) {
    Use& use = uses_.front();
    auto& due = due_[use.server];
    std::erase_if(use.keys, [&](BlockKey key) {
      const auto at = due.find(key);
      if (at == due.end() || at->second > now) return true;  // It was used again, or is gone.
      due.erase(at);
      return false;
    });
    drop(use.server, use.keys);
  }
}

}  // namespace routesim::policies
