// Servers by role, and the blocks that they hold as one router sees it: for its requests under way,
// and by its own decisions.
#pragma once

#include <deque>
#include <unordered_map>

#include "policies/balancers/kit/announced_blocks.h"

namespace routesim::policies {

/// Healthy prefill servers, and all the other healthy ones.
class RolePools : public Balancer {
 public:
  void set_endpoints(std::span<const BalancerEndpoint> endpoints) override {
    Balancer::set_endpoints(endpoints);
    prefill_.clear();
    decode_.clear();
    for (std::uint32_t i = 0; i < size(); ++i)
      if (endpoints[i].healthy)
        (endpoints[i].role == ServerRole::kPrefill ? prefill_ : decode_).push_back(i);
  }

 protected:
  /// Indexes of endpoints that may be chosen, in their order.
  const std::vector<std::uint32_t>& prefill() const { return offered(prefill_); }
  const std::vector<std::uint32_t>& decode() const { return offered(decode_); }

 private:
  std::vector<std::uint32_t> prefill_, decode_;
};

/// An index of blocks by server.
class BlocksByServer {
 public:
  /// For each server that has the first key: how many of the first keys it has.
  std::span<const PrefixMatch> match(std::span<const BlockKey> keys) {
    index_.match(keys, scratch_);
    return scratch_.matches();
  }

 protected:
  void hold(std::uint32_t server, std::span<const BlockKey> keys);
  void drop(std::uint32_t server, std::span<const BlockKey> keys);

 private:
  PrefixIndex index_{all_holders()};
  MatchScratch scratch_;
};

/// Blocks of requests under way. Keys are chained, so the blocks of a prompt that a server has are
/// always its first ones.
class ActiveBlocks : public BlocksByServer {
 public:
  void resize(std::size_t servers) {
    if (servers > counts_.size()) counts_.resize(servers);
  }
  void add(std::uint32_t server, std::span<const BlockKey> keys);
  void remove(std::uint32_t server, std::span<const BlockKey> keys);
  std::int64_t distinct(std::uint32_t server) const { return std::ssize(counts_[server]); }

 private:
  std::vector<std::unordered_map<BlockKey, std::uint32_t>> counts_;  ///< By server.
};

/// Blocks that a router's own decisions have put on servers, until a time after their last use.
class PredictedBlocks : public BlocksByServer {
 public:
  explicit PredictedBlocks(Duration ttl) : ttl_(ttl) {}
  void add(std::uint32_t server, std::span<const BlockKey> keys, SimTime now);
  void expire(SimTime now);
  std::size_t block_count(std::uint32_t server) const {
    return server < due_.size() ? due_[server].size() : 0;
  }

 private:
  struct Use {
    SimTime due;
    std::uint32_t server = 0;
    std::vector<BlockKey> keys;
  };
  Duration ttl_;
  std::deque<Use> uses_;
  std::vector<std::unordered_map<BlockKey, SimTime>> due_;  ///< By server.
};

}  // namespace routesim::policies
