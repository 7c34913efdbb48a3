// The SGLang model gateway, now SMG: ten policies, with a policy of its own for each leg where
// prompts are computed by other servers. Sources read: src/policies of sglang-router 0.3.2,
// model_gateway/src/policies of lightseekorg/smg @73da68ca and of smg 1.10.1, 1.12.0 and 1.13.0.
#pragma once

#include "policies/balancers/kit/circuit_breakers.h"
#include "policies/balancers/kit/family.h"

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

/// In the order of kSmgReleases.
enum class SmgRelease : std::uint8_t { k0_2, k0_3, k1_5, k1_10, k1_12, k1_13 };
inline constexpr std::array kSmgReleases = std::to_array<ReleaseRow>({
    {"0.2.0", "2025-09", "a prompt without an owner goes to the smallest tree (sglang #10773)"},
    {"0.3.0", "2025-12",
     "a prompt without an owner goes to the fewest requests in flight, then to the first (sglang "
     "#14650); power_of_two draws where the load poll fails"},
    {"1.5.0", "2026-06",
     "equal loads go to the fewest requests ever (smg #1714); vLLM's metrics are polled"},
    {"1.10.0", "", "all holders compete by expected wait, each behind its own spill gate"},
    {"1.12.0", "", "ties are drawn, overload protection, a rotation for each set of servers"},
    {"1.13.0", "", "the gate follows the mean load, running requests count, API keys are no keys"},
});

enum class SmgAssignment : std::uint8_t { kRandom, kMinLoad, kMinGroup };

/// power-of-two compares two servers, or all of them, by requests in flight first.
enum class SmgLoadMetric : std::uint8_t { kExpectedWait, kRequests, kLeastRequests };

/// Settings under the names of the gateway's flags, with the values that its command line gives.
struct SmgSettings {
  std::optional<SmgPolicy> prefill_policy, decode_policy;
  bool grpc = false;
  bool kv_events = false;
  std::string release;
  double cache_threshold = 0.3;
  std::int64_t balance_abs_threshold = 64;
  double balance_rel_threshold = 1.5;
  Duration eviction_interval = Duration::seconds(120);
  std::int64_t max_tree_size = 67'108'864;
  double balance_token_usage_threshold = 1;
  double overload_token_usage_threshold = 1;
  std::optional<bool> load_monitor;
  Duration load_monitor_interval = Duration::seconds(10);
  std::int64_t prefix_token_count = 256;
  double prefix_hash_load_factor = 1.25;
  std::int64_t prefix_hash_balance_abs_threshold = 10;
  std::vector<std::int64_t> cache_boundaries;
  double least_load_kv_pressure_weight = 0.15;  ///< Seconds.
  double least_load_default_throughput = 2000;  ///< Tokens/s.
  std::int64_t least_load_mean_prefill_tokens = 1024;
  std::int64_t least_load_max_waiting_requests = 0;
  SmgLoadMetric power_of_two_load_metric = SmgLoadMetric::kExpectedWait;
  bool worker_overload_protection = true;
  std::int64_t worker_overload_waiting_requests = 8;
  double worker_overload_token_usage = 0.8;
  SmgAssignment assignment_mode = SmgAssignment::kRandom;
  Duration max_idle = Duration::seconds(14'400);
  Duration bucket_adjust_interval = Duration::seconds(5);
  CircuitBreakerSettings breaker;
};
void describe(Describer& d, SmgSettings& s);

std::unique_ptr<Balancer> make_smg(SmgPolicy policy, const SmgSettings& settings,
                                   const RandomStream& random);

struct SmgFamily {
  using Settings = SmgSettings;
  static constexpr FamilyFacts facts = {.section = "smg",
                                        .settings = "Settings of the smg-* balancers.",
                                        .product = "SGLang gateway",
                                        .release = "sglang-router 0.2 to 0.3.2, smg to 1.13.0",
                                        .disaggregation = Disaggregation::kPossible};
  static constexpr std::span<const ReleaseRow> releases = kSmgReleases;
  static constexpr auto make = &make_smg;
  static constexpr auto policies = std::to_array<PolicyRow<SmgPolicy>>({
      {SmgPolicy::kRandom, "smg-random", "nothing"},
      {SmgPolicy::kRoundRobin, "smg-round-robin", "nothing"},
      {SmgPolicy::kPassthrough, "smg-passthrough", "nothing: the first server gets everything"},
      {SmgPolicy::kPowerOfTwo, "smg-power-of-two",
       "polled queue and KV usage, else own requests in flight",
       "before 1.13 KV usage stands for tokens; from then on as smg-least-load"},
      {SmgPolicy::kLeastLoad, "smg-least-load", "polled queue and KV usage, tokens sent since",
       "a waiting request counts 1,024 uncached tokens, and every server makes 2,000 tokens/s"},
      {SmgPolicy::kCacheAware, "smg-cache-aware",
       "own requests in flight, text, tokens or KV events, polled queues",
       "text is compared by whole tokens; with KV events, the size of trees breaks no ties, and "
       "servers without a cache get no share of their own; expected waits as smg-least-load"},
      {SmgPolicy::kPrefixHash, "smg-prefix-hash",
       "own requests in flight, first tokens or characters"},
      {SmgPolicy::kConsistentHashing, "smg-consistent-hashing", "headers"},
      {SmgPolicy::kManual, "smg-manual", "a header, own requests in flight"},
      {SmgPolicy::kBucket, "smg-bucket", "lengths of texts; at random without prefill servers"},
  });
};

}  // namespace routesim::policies

template <>
struct routesim::EnumNames<routesim::policies::SmgPolicy> {
  static constexpr std::array<std::string_view, 10> value = {
      "random",      "round_robin", "passthrough",        "power_of_two", "least_load",
      "cache_aware", "prefix_hash", "consistent_hashing", "manual",       "bucket"};
};
template <>
struct routesim::EnumNames<routesim::policies::SmgLoadMetric> {
  static constexpr std::array<std::string_view, 3> value = {"expected_wait", "requests",
                                                            "least_requests"};
};
template <>
struct routesim::EnumNames<routesim::policies::SmgAssignment> {
  static constexpr std::array<std::string_view, 3> value = {"random", "min_load", "min_group"};
};
