// The vLLM router (vllm-project/router): src/policies/{cache_aware.rs @16917f49, consistent_hash.rs
// @080589a0, power_of_two.rs @fa999f98, rendezvous_hash.rs @292889eb, hash_key.rs @335c57e2,
// registry.rs @00edc4e9}.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "base/describe.h"
#include "base/rng.h"
#include "policies/balancers/balancer.h"

namespace routesim::policies {

/// In the order of EnumNames below.
enum class VllmRouterPolicy : std::uint8_t {
  kRandom,
  kRoundRobin,
  kCacheAware,
  kPowerOfTwo,
  kConsistentHash,
  kRendezvousHash
};

/// Settings under the names of the router's flags, with the values that its command line gives.
struct VllmRouterSettings {
  /// A leg without one uses the balancer's own policy, and two such legs one object of it.
  std::optional<VllmRouterPolicy> prefill_policy, decode_policy;
  double cache_threshold = 0.3;
  std::int64_t balance_abs_threshold = 64;
  double balance_rel_threshold = 1.5;
  Duration eviction_interval = Duration::seconds(120);
  std::int64_t max_tree_size = 67'108'864;
  bool load_monitor = true;
};
void describe(Describer& d, VllmRouterSettings& s);

std::unique_ptr<Balancer> make_vllm_router(VllmRouterPolicy policy,
                                           const VllmRouterSettings& settings,
                                           const RandomStream& random);

}  // namespace routesim::policies

template <>
struct routesim::EnumNames<routesim::policies::VllmRouterPolicy> {
  static constexpr std::array<std::string_view, 6> value = {
      "random", "round_robin", "cache_aware", "power_of_two", "consistent_hash", "rendezvous_hash"};
};
