#include "policies/balancers/kit/block_loads.h"

#include <algorithm>
#include <utility>

namespace routesim::policies {
namespace {

HolderEntry row_of(std::uint32_t server) {
  HolderEntry row;
  row.endpoint = EndpointId(server);
  return row;
}

}  // namespace

void ActiveBlocks::add(std::uint32_t server, std::span<const BlockKey> keys) {
  auto& counts = counts_[server];
  std::size_t known = 0;
  for (const BlockKey key : keys)
    if (++counts[key] > 1) ++known;
  const HolderEntry row = row_of(server);
  if (known < keys.size()) index_.add({}, keys.subspan(known), {&row, 1});
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
  const HolderEntry row = row_of(server);
  if (kept < keys.size()) index_.evict_request_keys(keys.subspan(kept), {&row, 1});
}

void PredictedBlocks::add(std::uint32_t server, std::span<const BlockKey> keys, SimTime now) {
  if (keys.empty()) return;
  if (server >= due_.size()) due_.resize(server + 1);
  const SimTime due = now + ttl_;
  for (const BlockKey key : keys) due_[server][key] = due;
  const HolderEntry row = row_of(server);
  index_.add({}, keys, {&row, 1});
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
    const HolderEntry row = row_of(use.server);
    if (!use.keys.empty()) index_.evict_request_keys(use.keys, {&row, 1});
  }
}

}  // namespace routesim::policies
