// The vLLM router (vllm-project/router): src/policies and src/tree.rs of the releases 0.1.15,
// 0.1.16 and 0.1.17 (sdists); power_of_two.rs with polled loads @fa999f98.
#pragma once

#include "policies/balancers/kit/circuit_breakers.h"
#include "policies/balancers/kit/family.h"

namespace routesim::policies {

class LegPolicy;

/// In the order of EnumNames below.
enum class VllmRouterPolicy : std::uint8_t {
  kRandom,
  kRoundRobin,
  kCacheAware,
  kPowerOfTwo,
  kConsistentHash,
  kRendezvousHash,
  kKvAware,            ///< From 0.1.17 on.
  kStickyLeastLoaded,  ///< Likewise.
};

/// In the order of kVllmRouterReleases.
enum class VllmRouterRelease : std::uint8_t { k0_1_15, k0_1_17 };
inline constexpr std::array kVllmRouterReleases = std::to_array<ReleaseRow>({
    {"0.1.15", "", "cache_aware compares text, and a chat has none outside P/D"},
    {"0.1.17", "",
     "cache_aware compares each server's share of the tokens; kv_aware, "
     "sticky_least_loaded"},
});

/// Settings under the names of the router's flags, with the values that its command line gives.
struct VllmRouterSettings {
  /// A leg without one uses the balancer's own policy, and two such legs one object of it.
  std::optional<VllmRouterPolicy> prefill_policy, decode_policy;
  std::string release;
  double cache_threshold = 0.3;
  std::int64_t balance_abs_threshold = 64;
  double balance_rel_threshold = 1.5;
  Duration eviction_interval = Duration::seconds(120);
  std::optional<std::int64_t> max_tree_size;
  bool load_monitor = false;
  Duration sll_session_expiration = Duration::seconds(7'200);
  double router_temperature = 0;
  double kv_penalty_host = 0.8;
  CircuitBreakerSettings breaker;
};
void describe(Describer& d, VllmRouterSettings& s);

inline VllmRouterRelease vllm_router_release(const VllmRouterSettings& s) {
  return release_of<VllmRouterRelease>(kVllmRouterReleases, s.release);
}
/// kv_aware. Both legs may be one object.
std::unique_ptr<LegPolicy> make_vllm_kv_aware(const VllmRouterSettings& s,
                                              const RandomStream& random);

std::unique_ptr<Balancer> make_vllm_router(VllmRouterPolicy policy,
                                           const VllmRouterSettings& settings,
                                           const RandomStream& random);

struct VllmRouterFamily {
  using Settings = VllmRouterSettings;
  static constexpr FamilyFacts facts = {.section = "vllm_router",
                                        .settings = "Settings of the vllm-router-* balancers.",
                                        .product = "vLLM router",
                                        .release = "0.1.15 to 0.1.17",
                                        .disaggregation = Disaggregation::kPossible};
  static constexpr std::span<const ReleaseRow> releases = kVllmRouterReleases;
  static constexpr auto make = &make_vllm_router;
  static void add_faults(const Settings& settings, std::string_view balancer,
                         std::vector<SettingFault>& faults);
  static constexpr auto policies = std::to_array<PolicyRow<VllmRouterPolicy>>({
      {VllmRouterPolicy::kRandom, "vllm-router-random", "nothing"},
      {VllmRouterPolicy::kRoundRobin, "vllm-router-round-robin", "nothing"},
      {VllmRouterPolicy::kCacheAware, "vllm-router-cache-aware",
       "own requests in flight, text, from 0.1.17 on tokens",
       "text is compared by whole tokens, without the JSON of PD; servers always say the tokens"},
      {VllmRouterPolicy::kPowerOfTwo, "vllm-router-power-of-two",
       "polled requests in the engine, own requests in flight"},
      {VllmRouterPolicy::kConsistentHash, "vllm-router-consistent-hash", "headers, user, text",
       "a simulated prompt hashes by its identity, not by the JSON of its request"},
      {VllmRouterPolicy::kRendezvousHash, "vllm-router-rendezvous-hash", "headers, user, text",
       "a simulated prompt hashes by its identity, not by the JSON of its request"},
      {VllmRouterPolicy::kKvAware, "vllm-router-kv-aware",
       "KV events, own prefill tokens and requests in flight",
       "lower tiers count as host memory; no session affinity", "0.1.17"},
      {VllmRouterPolicy::kStickyLeastLoaded, "vllm-router-sticky-least-loaded",
       "headers, own sessions", "no session is finished early", "0.1.17"},
  });
};

}  // namespace routesim::policies

template <>
struct routesim::EnumNames<routesim::policies::VllmRouterPolicy> {
  static constexpr std::array<std::string_view, 8> value = {
      "random",          "round_robin",     "cache_aware", "power_of_two",
      "consistent_hash", "rendezvous_hash", "kv_aware",    "sticky_least_loaded"};
};
