// The SGLang model gateway, now SMG (lightseekorg/smg @73da68ca, model_gateway/src/policies): ten
// policies, with a policy of its own for each leg where prompts are computed by other servers.
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
enum class SmgPolicy : std::uint8_t {
  kRandom,
  kRoundRobin,
  kPassthrough,
  kPowerOfTwo,
  kLeastLoad,
  kCacheAware,
  kPrefixHash,
  kConsistentHashing,
  kManual,
  kBucket
};

/// Where cache_aware sends a prompt that no server is taken to hold. Each era has the name of the
/// month it begins in.
enum class SmgRelease : std::uint8_t {
  kSeptember2025,  ///< sgl-project/sglang #10773: the smallest tree.
  kDecember2025,   ///< #14650: the least requests in flight, then the first.
  kJune2026        ///< smg #1714: then the fewest requests ever.
};

enum class SmgAssignment : std::uint8_t { kRandom, kMinLoad, kMinGroup };

/// Settings under the names of the gateway's flags, with the values that its command line gives.
struct SmgSettings {
  std::optional<SmgPolicy> prefill_policy, decode_policy;
  bool grpc = false;
  bool kv_events = false;
  SmgRelease release = SmgRelease::kJune2026;
  double cache_threshold = 0.3;
  std::int64_t balance_abs_threshold = 64;
  double balance_rel_threshold = 1.5;
  Duration eviction_interval = Duration::seconds(120);
  std::int64_t max_tree_size = 67'108'864;
  double balance_token_usage_threshold = 1;
  double overload_token_usage_threshold = 1;
  bool load_monitor = true;
  Duration load_monitor_interval = Duration::seconds(10);
  std::int64_t prefix_token_count = 256;
  double prefix_hash_load_factor = 1.25;
  SmgAssignment assignment_mode = SmgAssignment::kRandom;
  Duration max_idle = Duration::seconds(14'400);
  Duration bucket_adjust_interval = Duration::seconds(5);
};
void describe(Describer& d, SmgSettings& s);

std::unique_ptr<Balancer> make_smg(SmgPolicy policy, const SmgSettings& settings,
                                   const RandomStream& random);

}  // namespace routesim::policies

template <>
struct routesim::EnumNames<routesim::policies::SmgPolicy> {
  static constexpr std::array<std::string_view, 10> value = {
      "random",      "round_robin", "passthrough",        "power_of_two", "least_load",
      "cache_aware", "prefix_hash", "consistent_hashing", "manual",       "bucket"};
};
template <>
struct routesim::EnumNames<routesim::policies::SmgRelease> {
  static constexpr std::array<std::string_view, 3> value = {"2025-09", "2025-12", "2026-06"};
};
template <>
struct routesim::EnumNames<routesim::policies::SmgAssignment> {
  static constexpr std::array<std::string_view, 3> value = {"random", "min_load", "min_group"};
};
