// The routing logic of the vLLM production stack (vllm-project/production-stack,
// src/vllm_router/routers/routing_logic.py).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "base/describe.h"
#include "base/rng.h"
#include "policies/balancers/kit/balancer.h"
#include "policies/balancers/kit/releases.h"

namespace routesim::policies {

inline constexpr std::array kProductionStackReleases =
    std::to_array<ReleaseRow>({{"0.1.12", "", "the only rules that are known (@a6c01db0)"}});

/// Settings under the names of the router's flags.
struct ProductionStackSettings {
  std::string release;
  std::string session_key;
  Duration request_stats_window = Duration::seconds(60);
  std::int64_t kv_aware_threshold = 2000;    ///< Tokens.
  std::int64_t prefix_min_match_length = 0;  ///< Characters.
  double loadaware_beta = 1.0;
  std::int64_t lmcache_chunk_size = 256;  ///< Tokens; LMCache's `chunk_size`.
};
void describe(Describer& d, ProductionStackSettings& s);

enum class ProductionStackPolicy : std::uint8_t {
  kRoundRobin,
  kSession,
  kPrefixAware,
  kKvAware,
  kLoadAware,
  kDisaggregatedPrefill,
};

std::unique_ptr<Balancer> make_production_stack(ProductionStackPolicy policy,
                                                const ProductionStackSettings& settings,
                                                const RandomStream& random);

}  // namespace routesim::policies
