// Blocks that servers hold as one router sees it: for its requests under way, and by its own
// decisions.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/units.h"
#include "policies/balancers/kit/announced_blocks.h"

namespace routesim::policies {

/// Blocks of requests under way per server. Keys are chained, so the blocks of a prompt that a
/// server has are always its first ones.
class ActiveBlocks {
 public:
  void resize(std::size_t servers) {
    if (servers > counts_.size()) counts_.resize(servers);
  }
  void add(std::uint32_t server, std::span<const BlockKey> keys);
  void remove(std::uint32_t server, std::span<const BlockKey> keys);
  /// Different blocks of a server.
  std::int64_t distinct(std::uint32_t server) const { return std::ssize(counts_[server]); }
  /// For each server that has the first key: how many of the first keys it has.
  std::span<const PrefixMatch> match(std::span<const BlockKey> keys) {
    index_.match(keys, scratch_);
    return scratch_.matches();
  }

 private:
  std::vector<std::unordered_map<BlockKey, std::uint32_t>> counts_;  ///< By server.
  PrefixIndex index_{all_holders()};
  MatchScratch scratch_;
};

/// Blocks that a router's own decisions have put on servers, until a time after their last use.
class PredictedBlocks {
 public:
  explicit PredictedBlocks(Duration ttl) : ttl_(ttl) {}
  void add(std::uint32_t server, std::span<const BlockKey> keys, SimTime now);
  void expire(SimTime now);
  std::size_t block_count(std::uint32_t server) const {
    return server < due_.size() ? due_[server].size() : 0;
  }
  std::span<const PrefixMatch> match(std::span<const BlockKey> keys) {
    index_.match(keys, scratch_);
    return scratch_.matches();
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
  PrefixIndex index_{all_holders()};
  MatchScratch scratch_;
};

}  // namespace routesim::policies
