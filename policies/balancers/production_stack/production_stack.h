// The routing logic of the vLLM production stack (vllm-project/production-stack,
// src/vllm_router/routers/routing_logic.py).
#pragma once

#include "policies/balancers/kit/family.h"

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

struct ProductionStackFamily {
  using Settings = ProductionStackSettings;
  static constexpr FamilyFacts facts = {.section = "production_stack",
                                        .settings = "Settings of the production-stack-* balancers.",
                                        .product = "vLLM production stack",
                                        .release = "0.1.12 (@a6c01db0)"};
  static constexpr std::span<const ReleaseRow> releases = kProductionStackReleases;
  static constexpr auto make = &make_production_stack;
  static void add_faults(const Settings& settings, std::string_view balancer,
                         std::vector<SettingFault>& faults);
  static constexpr auto policies = std::to_array<PolicyRow<ProductionStackPolicy>>({
      {ProductionStackPolicy::kRoundRobin, "production-stack-roundrobin", "nothing"},
      {ProductionStackPolicy::kSession, "production-stack-session", "a header, own request starts",
       "the session is never in the body"},
      {ProductionStackPolicy::kPrefixAware, "production-stack-prefixaware", "text sent before",
       "one text instead of messages"},
      {ProductionStackPolicy::kKvAware, "production-stack-kvaware",
       "KV events, a header, own request starts",
       "KV events of the engines stand for LMCache's controller"},
      {ProductionStackPolicy::kLoadAware, "production-stack-loadaware",
       "KV events, own requests in flight, a header",
       "as production-stack-kvaware; chats are looked up, too; from release 0.1.13"},
      {ProductionStackPolicy::kDisaggregatedPrefill, "production-stack-disaggregated-prefill",
       "roles",
       "disaggregated_prefill_orchestrated; the plain one needs two requests of the "
       "client and "
       "always takes the first server of a role",
       "", true},
  });
};

}  // namespace routesim::policies
