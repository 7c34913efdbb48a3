// The request routers of Ray Serve LLM (ray-project/ray): PowerOfTwoChoicesRequestRouter and
// PrefixCacheAffinityRouter. Read: python/ray/serve/_private/request_router/{request_router.py
// @5545be38 and pull request 61755, pow_2_router.py @04287e4b, common.py @03cc766a} and
// python/ray/llm/_internal/serve/{routing_policies/prefix_aware/{prefix_aware_router.py @06c16f2f,
// prefix_tree.py @19a1eaa3}, constants.py @1aa63017}.
#pragma once

#include "policies/balancers/kit/family.h"

namespace routesim::policies {

/// In the order of kRayReleases.
enum class RayRelease : std::uint8_t { k2_49, k2_54, k2_55, k2_60 };
inline constexpr std::array kRayReleases = std::to_array<ReleaseRow>({
    {"2.49.0", "", "known queue lengths fall only when a replica is asked"},
    {"2.54.0", "", "an imbalanced_threshold that is absent is infinite; before, it is 10"},
    {"2.55.0", "", "known queue lengths fall when a request ends, too (pull request 61755)"},
    {"2.60.0", "", "as 2.55: known queue lengths fall when a request ends, too"},
});

/// Settings under the names of Ray: of the deployment, of its request_router_config and the
/// request_router_kwargs in it, and of environment variables without RAY_SERVE_ and in lower case.
struct RaySettings {
  std::string release;
  std::int64_t max_ongoing_requests = 1'000'000'000;
  double initial_backoff_s = 0.025;
  double backoff_multiplier = 2;
  double max_backoff_s = 0.5;
  double queue_length_cache_timeout_s = 10;
  std::optional<bool> decrement_queue_len_cache;

  std::optional<double> imbalanced_threshold;  ///< Absent = as the release has it.
  double match_rate_threshold = 0.1;
  bool do_eviction = false;
  std::int64_t eviction_threshold_chars = 400'000;
  std::int64_t eviction_target_chars = 360'000;
  double eviction_interval_secs = 10;
};
void describe(Describer& d, RaySettings& s);

enum class RayPolicy : std::uint8_t { kPowerOfTwo, kPrefixCacheAffinity };

std::unique_ptr<Balancer> make_ray(RayPolicy policy, const RaySettings& settings,
                                   const RandomStream& random);

struct RayFamily {
  using Settings = RaySettings;
  static constexpr FamilyFacts facts = {.section = "ray",
                                        .settings = "Settings of the ray-* balancers.",
                                        .product = "Ray Serve LLM",
                                        .release = "2.49 to 2.60"};
  static constexpr std::span<const ReleaseRow> releases = kRayReleases;
  static constexpr auto make = &make_ray;
  static constexpr auto policies = std::to_array<PolicyRow<RayPolicy>>({
      {RayPolicy::kPowerOfTwo, "ray-power-of-two",
       "own requests in flight, as last told by the replica",
       "each router counts alone, where replicas tell it all their requests; probes take no time; "
       "no multiplexing, locality or sessions"},
      {RayPolicy::kPrefixCacheAffinity, "ray-prefix-cache-affinity",
       "text sent before, own requests in flight",
       "as ray-power-of-two; each router has a tree of its own, where the product's share one; "
       "equals go to the first replica, where the product has the order of a Python set"},
  });
};

}  // namespace routesim::policies
