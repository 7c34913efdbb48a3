// Mooncake's global scheduler: Conductor, as its paper describes it, and the proxy of its
// repository. Read: Qin et al., "Mooncake: Trading More Storage for Less Computation" (FAST '25),
// section 4 and algorithm 1; kvcache-ai/Mooncake
// mooncake-conductor/example/cache_aware_disagg_proxy.py @1d9dff9a. The paper's scheduler is not
// published: the conductor of the repository is an index of caches that proxies ask.
#pragma once

#include "policies/balancers/kit/family.h"

namespace routesim::policies {

/// Settings of Conductor. Names of algorithm 1 where it has them; the coefficients stand for its
/// regression over measured prefills, of which the paper publishes none.
struct MooncakeSettings {
  std::string release;
  std::optional<double> kvcache_balancing_threshold;
  std::optional<Duration> ttft_slo, tbt_slo;
  double prefill_base_ms = 0;
  double prefill_ms_per_token = 0.1;
  double prefill_ms_per_token_squared = 0;
  double transfer_ms_per_token = 0.0033;  ///< 320 KiB a token (LLaMA2-70B) at 800 Gbit/s.
  double tbt_base_ms = 0;
  double tbt_ms_per_request = 0;
};
void describe(Describer& d, MooncakeSettings& s);

inline constexpr std::array kMooncakeReleases =
    std::to_array<ReleaseRow>({{"0.3.0", "", "the only rules that are known (@1d9dff9a)"}});

enum class MooncakePolicy : std::uint8_t { kConductor, kProxy };

std::unique_ptr<Balancer> make_mooncake(MooncakePolicy policy, const MooncakeSettings& settings,
                                        const RandomStream& random);

struct MooncakeFamily {
  using Settings = MooncakeSettings;
  static constexpr FamilyFacts facts = {.section = "mooncake",
                                        .settings = "Settings of mooncake-conductor.",
                                        .product = "Mooncake",
                                        .release = "FAST '25 paper; proxy @1d9dff9a (2026)",
                                        .disaggregation = Disaggregation::kPossible};
  static constexpr std::span<const ReleaseRow> releases = kMooncakeReleases;
  static constexpr auto make = &make_mooncake;
  static constexpr auto policies = std::to_array<PolicyRow<MooncakePolicy>>({
      {MooncakePolicy::kConductor, "mooncake-conductor",
       "announced cached blocks, own prefills under way, decodes in flight",
       "prefill times are a given polynomial; a prefill counts in full until its first token; "
       "transfers know no congestion, and kv_tiers decides whether they happen; no prediction of "
       "decode load; SLOs only where set"},
      {MooncakePolicy::kProxy, "mooncake-proxy", "announced cached blocks",
       "decode servers are taken in turn at dispatch, not at the end of a prefill"},
  });
};

}  // namespace routesim::policies
