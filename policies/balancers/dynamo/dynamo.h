// NVIDIA Dynamo's frontend (ai-dynamo/dynamo, lib/kv-router and the push router): the modes kv,
// round-robin, random, power-of-two and least-loaded.
#pragma once

#include "policies/balancers/kit/family.h"

namespace routesim::policies {

/// In the order of kDynamoReleases.
enum class DynamoRelease : std::uint8_t { k0_9, k1_0, k1_1, k1_2, k1_3, k1_4, k1_6 };
/// Busy thresholds are off in all, as the guides to request rejection of 1.2.1 and 1.3.0 say.
inline constexpr std::array kDynamoReleases = std::to_array<ReleaseRow>({
    {"0.9.0", "0.9", "kv: no queue, and ties go to the smaller tree"},
    {"1.0.0", "1.0",
     "kv: requests queue at 4 times max_num_batched_tokens; in P/D a decode worker "
     "that is not registered yet gets nothing (#7836)"},
    {"1.1.0", "1.1", "every decode worker counts (pull request 7919)"},
    {"1.2.0", "1.2", "ties are drawn, in kv and least-loaded (pull request 9516)"},
    {"1.3.0", "1.3", "kv: the queue begins at 16 times; refusals with status 529 instead of 503"},
    {"1.4.0", "", "kv: no queue (pull request 11599)"},
    {"1.6.1", "", "kv: the cost function; policies from --router-policy-config are not simulated"},
});

/// Settings under the names of the frontend's flags, without the leading dashes.
struct DynamoSettings {
  std::string release;
  double overlap_score_credit = 1;
  std::optional<double> overlap_score_weight;  ///< The old flag; it sets the load scale instead.
  double overlap_score_credit_decay = 0;
  double prefill_load_scale = 1;
  double host_cache_hit_weight = 0.75;
  double active_request_weight = 0;
  double temperature = 0;
  bool kv_events = true;
  Duration ttl = Duration::milliseconds(120'000);
  std::optional<Duration> predicted_ttl;
  bool track_active_blocks = true;
  bool track_prefill_tokens = true;
  bool assume_kv_reuse = true;
  // Infinity switches a threshold off.
  std::optional<double> queue_threshold;
  std::optional<double> decode_blocks_threshold;
  std::optional<double> prefill_tokens_threshold;
  std::optional<double> prefill_tokens_threshold_frac;
};
void describe(Describer& d, DynamoSettings& s);

enum class DynamoPolicy : std::uint8_t { kKv, kRoundRobin, kRandom, kPowerOfTwo, kLeastLoaded };

std::unique_ptr<Balancer> make_dynamo(DynamoPolicy policy, const DynamoSettings& settings,
                                      const RandomStream& random);

struct DynamoFamily {
  using Settings = DynamoSettings;
  static constexpr FamilyFacts facts = {.section = "dynamo",
                                        .settings = "Settings of the dynamo-* balancers.",
                                        .product = "NVIDIA Dynamo",
                                        .release = "0.9 to 1.6.1",
                                        .disaggregation = Disaggregation::kPossible};
  static constexpr std::span<const ReleaseRow> releases = kDynamoReleases;
  static constexpr auto make = &make_dynamo;
  static constexpr auto policies = std::to_array<PolicyRow<DynamoPolicy>>({
      {DynamoPolicy::kKv, "dynamo-kv",
       "announced or own cached blocks, own blocks and prefill tokens in flight",
       "in PD a prefill ends at the first token; lower tiers count as host memory; the queue is "
       "first come, first served"},
      {DynamoPolicy::kRoundRobin, "dynamo-round-robin", "nothing"},
      {DynamoPolicy::kRandom, "dynamo-random", "nothing"},
      {DynamoPolicy::kPowerOfTwo, "dynamo-power-of-two", "own requests in flight",
       "in PD the prefill worker's count falls at the end of the answer"},
      {DynamoPolicy::kLeastLoaded, "dynamo-least-loaded", "own requests in flight",
       "in PD the prefill worker's count falls at the end of the answer"},
  });
};

}  // namespace routesim::policies
