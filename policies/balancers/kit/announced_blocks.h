// The KV blocks of servers as their events announce them.
#pragma once

#include "policies/balancers/kit/balancer.h"
#include "policies/index/prefix_index.h"

namespace routesim::policies {

/// An index that keeps every holder of a block, as the indexers of other products do.
inline PrefixIndexOptions all_holders() {
  return {.pod_cache_size = std::numeric_limits<std::uint16_t>::max()};
}

/// A balancer's prefix_index(), and its matches by endpoint, valid until the next call.
class AnnouncedBlocks {
 public:
  /// Contiguous blocks of a prompt at an endpoint, from the first one on.
  struct Held {
    std::uint32_t device = 0, all = 0;  ///< In GPU memory; in any tier.
  };

  PrefixIndex& index() { return index_; }
  bool empty() const { return index_.request_key_count() == 0; }
  /// Call when the endpoints have changed.
  void set_endpoints(const Balancer& balancer) {
    held_.assign(balancer.size(), {});
    endpoint_of_.clear();
    for (std::uint32_t i = 0; i < balancer.size(); ++i) {
      const std::uint32_t holder = balancer.index_holder(i);
      if (endpoint_of_.size() <= holder) endpoint_of_.resize(holder + std::size_t{1}, kNobody);
      if (endpoint_of_[holder] == kNobody) endpoint_of_[holder] = i;
    }
  }
  /// The endpoint that the index knows as `holder`; kNobody when it left.
  std::uint32_t endpoint(EndpointId holder) const {
    return holder.value() < endpoint_of_.size() ? endpoint_of_[holder.value()] : kNobody;
  }
  /// By endpoint.
  const std::vector<Held>& held(std::span<const BlockKey> keys) {
    held_.assign(held_.size(), {});
    index_.tier_counts(keys, tiers_);
    for (const TierCount& t : tiers_) {
      const std::uint32_t i = endpoint(t.endpoint);
      if (i == kNobody) continue;
      if (t.rows == TierRows::kTier && t.tier == kGpuTier) held_[i].device = t.blocks;
      if (t.rows == TierRows::kConfirmed) held_[i].all = t.blocks;
    }
    return held_;
  }
  /// Blocks in any tier of the endpoints that have the first one, which the matches name.
  const std::vector<PrefixMatch>& match(std::span<const BlockKey> keys) {
    index_.match(keys, scratch_);
    matches_.clear();
    for (PrefixMatch m : scratch_.matches()) {
      const std::uint32_t i = endpoint(m.endpoint);
      if (i == kNobody) continue;
      m.endpoint = EndpointId(i);
      matches_.push_back(m);
    }
    return matches_;
  }
  std::size_t block_count(const Balancer& balancer, std::uint32_t i) const {
    return index_.block_count(EndpointId(balancer.index_holder(i)));
  }

  static constexpr std::uint32_t kNobody = std::numeric_limits<std::uint32_t>::max();

 private:
  PrefixIndex index_{all_holders()};
  std::vector<std::uint32_t> endpoint_of_;  ///< By id in the index.
  std::vector<Held> held_;
  std::vector<TierCount> tiers_;
  std::vector<PrefixMatch> matches_;
  MatchScratch scratch_;
};

}  // namespace routesim::policies
