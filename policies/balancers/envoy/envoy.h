// Envoy's load balancers (envoyproxy/envoy, source/extensions/load_balancing_policies):
// round_robin, least_request, ring_hash, maglev and random, as one worker thread runs them, and
// which hosts they choose from (common/load_balancer_impl.cc, thread_aware_lb_impl.cc; 1.39).
#pragma once

#include "policies/balancers/kit/family.h"

namespace routesim::policies {

/// How least_request looks for the least active host where all weights are equal.
enum class EnvoySelection : std::uint8_t { kNChoices, kFullScan };
enum class EnvoyHashFunction : std::uint8_t { kXxHash, kMurmurHash2 };

/// config.core.v3.HealthStatus of a host.
enum class EnvoyHealth : std::uint8_t {
  kUnknown,
  kHealthy,
  kUnhealthy,
  kDraining,
  kTimeout,
  kDegraded
};

/// One entry of a route's hash_policy. Exactly one of header, cookie and source_ip is set.
struct EnvoyHashPolicy {
  std::string header;
  std::string cookie;
  bool has_ttl = false;  ///< cookie: Envoy makes one for a client without.
  bool source_ip = false;
  bool terminal = false;
};
void describe(Describer& d, EnvoyHashPolicy& p);

/// Settings under the names of Envoy's API.
struct EnvoySettings {
  std::string release;
  std::vector<double> weights;             ///< By server; 1 where the list ends.
  std::vector<EnvoyHealth> health_status;  ///< By server; unknown where the list ends.
  std::vector<std::string> hash_keys;      ///< By server; "" and where the list ends: its name.
  std::int64_t choice_count = 2;
  EnvoySelection selection_method = EnvoySelection::kNChoices;
  std::optional<double> active_request_bias;
  std::int64_t minimum_ring_size = 1024;
  std::int64_t maximum_ring_size = 8'388'608;
  EnvoyHashFunction hash_function = EnvoyHashFunction::kXxHash;
  std::int64_t table_size = 65'537;      ///< Prime: each host visits all slots.
  std::int64_t hash_balance_factor = 0;  ///< Percent; 0 = no bound on loads.
  double healthy_panic_threshold = 50;   ///< Percent.
  std::vector<EnvoyHashPolicy> hash_policy;
};
void describe(Describer& d, EnvoySettings& s);

/// Envoy takes maglev tables of a prime number of slots only (extensions/load_balancing_policies/
/// maglev/maglev_lb.cc).
bool is_maglev_table_size(std::int64_t slots);

inline constexpr std::array kEnvoyReleases =
    std::to_array<ReleaseRow>({{"1.39.0", "", "the only rules that are known"}});

enum class EnvoyPolicy : std::uint8_t { kRoundRobin, kLeastRequest, kRingHash, kMaglev, kRandom };

std::unique_ptr<Balancer> make_envoy(EnvoyPolicy policy, const EnvoySettings& settings,
                                     const RandomStream& random);

/// XXH64 or Murmur over `bytes`, as Envoy hashes the points of a ring.
std::uint64_t envoy_hash(EnvoyHashFunction function, std::string_view bytes);

struct EnvoyFamily {
  using Settings = EnvoySettings;
  static constexpr FamilyFacts facts = {
      .section = "envoy",
      .settings = "Settings of the envoy-* balancers.",
      .product = "Envoy",
      .release = "sources of August 2026 (@12ca3fdb, @0a31a547, …)"};
  static constexpr std::span<const ReleaseRow> releases = kEnvoyReleases;
  static constexpr auto make = &make_envoy;
  static void add_faults(const Settings& settings, std::string_view balancer,
                         std::vector<SettingFault>& faults);
  static constexpr auto policies = std::to_array<PolicyRow<EnvoyPolicy>>({
      {EnvoyPolicy::kRoundRobin, "envoy-round-robin", "weights", "one worker thread"},
      {EnvoyPolicy::kLeastRequest, "envoy-least-request", "own requests in flight, weights",
       "one worker thread"},
      {EnvoyPolicy::kRingHash, "envoy-ring-hash", "headers or cookies, weights"},
      {EnvoyPolicy::kMaglev, "envoy-maglev", "headers or cookies, weights"},
      {EnvoyPolicy::kRandom, "envoy-random", "nothing"},
  });
};

}  // namespace routesim::policies

template <>
struct routesim::EnumNames<routesim::policies::EnvoySelection> {
  static constexpr std::array<std::string_view, 2> value = {"N_CHOICES", "FULL_SCAN"};
};
template <>
struct routesim::EnumNames<routesim::policies::EnvoyHashFunction> {
  static constexpr std::array<std::string_view, 2> value = {"XX_HASH", "MURMUR_HASH_2"};
};
template <>
struct routesim::EnumNames<routesim::policies::EnvoyHealth> {
  static constexpr std::array<std::string_view, 6> value = {"UNKNOWN",  "HEALTHY", "UNHEALTHY",
                                                            "DRAINING", "TIMEOUT", "DEGRADED"};
};
