// NVIDIA Dynamo's frontend (ai-dynamo/dynamo, lib/kv-router and the push router): the modes kv,
// round-robin, random, power-of-two and least-loaded.
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

/// Which queue threshold holds where its key is absent, and what a refusal says. Pull request 11599
/// switched the queue off; thresholds of busy workers are off in all of them, as the guides to
/// request rejection of 1.2.1 and 1.3.0 say.
enum class DynamoRelease : std::uint8_t {
  k0_9,  ///< No queue.
  k1_0,  ///< At 4 times max_num_batched_tokens.
  k1_2,  ///< At 16 times.
  k1_3,  ///< No queue; refusals with status 529 instead of 503, ties of least-loaded at random.
};

/// Settings under the names of the frontend's flags, without the leading dashes.
struct DynamoSettings {
  DynamoRelease release = DynamoRelease::k1_3;
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

}  // namespace routesim::policies

template <>
struct routesim::EnumNames<routesim::policies::DynamoRelease> {
  static constexpr std::array<std::string_view, 4> value = {"0.9", "1.0", "1.2", "1.3"};
};
