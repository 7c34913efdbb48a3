// The approximate prefix index of llm-d's approx-prefix-cache-producer: what each endpoint probably
// caches, guessed from the router's own decisions. Quirks are kept: each endpoint has an LRU of
// hashes, but the hash -> endpoints map may remember what a too small LRU has forgotten, and the
// match loop counts blocks after a gap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"

namespace routesim::policies {

/// Single-threaded. Memory: about 20 bytes per (endpoint, hash) and 16 per distinct hash.
class ApproxPrefixIndex {
 public:
  /// `default_capacity`: hashes per endpoint when add() names none (lruCapacityPerServer, 31250).
  explicit ApproxPrefixIndex(std::size_t default_capacity = 31250);
  ~ApproxPrefixIndex();
  ApproxPrefixIndex(ApproxPrefixIndex&&) noexcept;
  ApproxPrefixIndex& operator=(ApproxPrefixIndex&&) noexcept;

  /// The prompt with these hashes went to `endpoint`. First all hashes enter its LRU, evicting old
  /// ones from LRU and map; then all of them are set in the map. The first call fixes the
  /// endpoint's capacity: `capacity`, or the default when 0.
  void add(EndpointId endpoint, std::span<const std::uint64_t> hashes, std::size_t capacity = 0);
  /// The endpoint left the pool: drops its LRU and the map entries that LRU still knows.
  void remove_endpoint(EndpointId endpoint);

  /// Walks the hashes in order and stops at the first one held by no endpoint; every endpoint that
  /// holds the current hash gets one more in counts[endpoint] (sized by the caller; ids beyond it
  /// are ignored). Counts of several prompts add up.
  void add_matches(std::span<const std::uint64_t> hashes, std::span<std::uint32_t> counts) const;

  /// Endpoints under one hash, ascending.
  std::vector<EndpointId> holders(std::uint64_t hash) const;
  std::size_t lru_size(EndpointId endpoint) const;
  std::size_t distinct_hashes() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace routesim::policies
