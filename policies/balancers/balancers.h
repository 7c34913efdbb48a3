// The registry of balancers. A new family is a folder below this one, and three lines here; a new
// balancer is a row in the header of its family.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/describe.h"
#include "base/diagnostic.h"
#include "base/rng.h"
#include "policies/balancers/aibrix/aibrix.h"
#include "policies/balancers/dynamo/dynamo.h"
#include "policies/balancers/envoy/envoy.h"
#include "policies/balancers/kit/balancer.h"
#include "policies/balancers/kit/family.h"
#include "policies/balancers/kubeai/kubeai.h"
#include "policies/balancers/kubernetes/kubernetes.h"
#include "policies/balancers/mooncake/mooncake.h"
#include "policies/balancers/production_stack/production_stack.h"
#include "policies/balancers/ray/ray.h"
#include "policies/balancers/smg/smg.h"
#include "policies/balancers/vllm_router/vllm_router.h"

namespace routesim::policies {

/// Settings of all balancers by family; each reads its own.
struct BalancerSettings {
  KubernetesSettings kubernetes;
  KubeAiSettings kubeai;
  std::optional<EnvoySettings> envoy;
  std::optional<SmgSettings> smg;
  std::optional<VllmRouterSettings> vllm_router;
  std::optional<ProductionStackSettings> production_stack;
  std::optional<AibrixSettings> aibrix;
  std::optional<DynamoSettings> dynamo;
  std::optional<RaySettings> ray;
  std::optional<MooncakeSettings> mooncake;
};
/// Names every key with its meaning and bounds. The keys of the first two families stand side by
/// side; every other family has a section, named by BalancerRow::section.
void describe(Describer& d, BalancerSettings& s);

/// How a request finds its endpoint: a row of kBalancers. The first nine have names here.
enum class BalancerKind : std::uint8_t {
  kEndpointPicker,  ///< A Scheduler decides, and no balancer is made.
  kRoundRobin,
  kRandom,
  kK8sService,
  kLeastLoad,
  kPrefixHash,
  kExpression,  ///< The simulator makes these three, since they are nobody's product.
  kLibrary,
  kOmniscient
};

/// One balancer: its name in scenarios, the facts that `list balancers` prints, and how it is made.
struct BalancerRow {
  std::string_view name;
  std::string_view section;  ///< Of its settings in `routing`, "" for none of its own.
  std::string_view product;
  std::string_view release;         ///< The release or commit whose source was read.
  std::string_view inputs;          ///< The information it decides on.
  std::string_view approximations;  ///< How it differs from the product, "" if it does not.
  Disaggregation disaggregation = Disaggregation::kNo;
  /// Null for those that someone else makes: a scheduler, or the simulator.
  std::unique_ptr<Balancer> (*make)(const BalancerSettings&, const RandomStream&) = nullptr;
  std::span<const ReleaseRow> releases = {};  ///< The releases that it knows the rules of.
  std::string_view (*stated_release)(const BalancerSettings&) = nullptr;
  std::string_view since = "";  ///< The first of them that has the policy, "" = the first.
};
template <class T, class... Args>
std::unique_ptr<Balancer> new_balancer(const Args&... args) {
  return std::make_unique<T>(args...);
}

/// A family, and the place of its settings in BalancerSettings.
template <class Family, auto kSettings>
struct FamilyIn {
  template <std::size_t kI>
  static constexpr BalancerRow row() {
    const auto& policy = Family::policies[kI];
    return {policy.name,
            Family::facts.section,
            Family::facts.product,
            Family::facts.release,
            policy.inputs,
            policy.approximations,
            policy.needs_prefill ? Disaggregation::kRequired : Family::facts.disaggregation,
            [](const BalancerSettings& s, const RandomStream& random) {
              return Family::make(Family::policies[kI].policy,
                                  (s.*kSettings).value_or(typename Family::Settings()), random);
            },
            Family::releases,
            [](const BalancerSettings& s) -> std::string_view {
              return s.*kSettings ? std::string_view((s.*kSettings)->release) : "";
            },
            policy.since};
  }
  static constexpr auto rows() {
    return []<std::size_t... kI>(std::index_sequence<kI...>) { return std::array{row<kI>()...}; }
    (std::make_index_sequence<Family::policies.size()>());
  }
  static void describe_settings(Describer& d, BalancerSettings& s) {
    field(d, {Family::facts.section, Family::facts.settings}, s.*kSettings);
  }
  /// Settings of the family that do not fit each other, or not the balancer.
  static void add_faults(const BalancerSettings& s, const BalancerRow& balancer,
                         std::vector<SettingFault>& faults) {
    if constexpr (requires { &Family::add_faults; }) {
      if (s.*kSettings || balancer.section == Family::facts.section)
        Family::add_faults((s.*kSettings).value_or(typename Family::Settings()), balancer.name,
                           faults);
    }
  }
};
/// Every family with a section. A new one is a row here, a member above, and an include.
inline constexpr std::tuple kFamilies{
    FamilyIn<EnvoyFamily, &BalancerSettings::envoy>(),
    FamilyIn<SmgFamily, &BalancerSettings::smg>(),
    FamilyIn<VllmRouterFamily, &BalancerSettings::vllm_router>(),
    FamilyIn<ProductionStackFamily, &BalancerSettings::production_stack>(),
    FamilyIn<AibrixFamily, &BalancerSettings::aibrix>(),
    FamilyIn<DynamoFamily, &BalancerSettings::dynamo>(),
    FamilyIn<RayFamily, &BalancerSettings::ray>(),
    FamilyIn<MooncakeFamily, &BalancerSettings::mooncake>()};

inline constexpr std::string_view kKubeAiRelease = "@2f32ef4 (July 2025)";

// clang-format off
inline constexpr std::array kFirstBalancers = std::to_array<BalancerRow>({
    {"endpoint-picker", "", "llm-d, Heimdall", "the era of the document", "as its plugins ask", "",
     Disaggregation::kPossible},
    {"round-robin", "", "any proxy", "", "nothing", "", {},
     [](auto&, auto&) { return new_balancer<RoundRobin>(); }},
    {"random", "", "any proxy", "", "nothing", "", {},
     [](auto&, auto& random) { return new_balancer<Random>(random); }},
    {"k8s-service", "", "Kubernetes Service", "kube-proxy, iptables or IPVS", "connections",
     "a client reuses its most recently idle connection", {},
     [](auto& s, auto& random) { return new_balancer<K8sService>(s.kubernetes, random); }},
    {"least-load", "", "KubeAI", kKubeAiRelease, "own requests in flight, adapters",
     "ties are uniform where KubeAI iterates a hash map", {},
     [](auto&, auto& random) { return new_balancer<LeastLoad>(random); }},
    {"prefix-hash", "", "KubeAI", kKubeAiRelease,
     "own requests in flight, adapters, first characters", "", {},
     [](auto& s, auto&) { return new_balancer<PrefixHash>(s.kubeai); }},
    {"expression", "expression", "yours", "", "the quantities that its formula names", ""},
    {"library", "library", "yours", "", "the quantities that the plug-in asks for", ""},
    {"omniscient", "", "the ceiling", "", "true engines, true caches, true lengths",
     "prices one decision and knows no requests to come", Disaggregation::kPossible},
});
// clang-format on

/// Families one after the other. A row's place is its BalancerKind.
template <std::size_t... kSizes>
constexpr std::array<BalancerRow, (kSizes + ...)> join_balancers(
    const std::array<BalancerRow, kSizes>&... families) {
  std::array<BalancerRow, (kSizes + ...)> all{};
  std::size_t n = 0;
  const auto append = [&](const auto& family) {
    for (const BalancerRow& row : family) all[n++] = row;
  };
  (append(families), ...);
  return all;
}
inline constexpr std::array kBalancers = std::apply(
    [](auto... family) { return join_balancers(kFirstBalancers, family.rows()...); }, kFamilies);

inline const BalancerRow& balancer_row(BalancerKind kind) {
  return kBalancers[static_cast<std::size_t>(kind)];
}

std::optional<BalancerKind> find_balancer(std::string_view name);

/// The release that `kind` follows with these settings, and its rules; "" where all are alike.
std::string release_note(BalancerKind kind, const BalancerSettings& settings);

/// Values out of the bounds that describe() names, and those that do not fit the balancer.
std::vector<SettingFault> setting_faults(BalancerKind kind, const BalancerSettings& settings);

/// Makes a balancer drawing from (seed, Stream::kBalancer, entity). Null, with the reason in
/// `diagnostics`, where a setting has a fault and where someone else makes this kind.
std::unique_ptr<Balancer> make_balancer(BalancerKind kind, const BalancerSettings& settings,
                                        std::uint64_t seed, std::uint64_t entity,
                                        Diagnostics& diagnostics);
/// The same, without a reason.
std::unique_ptr<Balancer> make_balancer(BalancerKind kind, const BalancerSettings& settings,
                                        std::uint64_t seed, std::uint64_t entity = 0);

}  // namespace routesim::policies

template <>
struct routesim::EnumNames<routesim::policies::BalancerKind> {
  static constexpr std::size_t kCount = routesim::policies::kBalancers.size();
  static constexpr std::array<std::string_view, kCount> value = [] {
    std::array<std::string_view, kCount> names;
    for (std::size_t i = 0; i < kCount; ++i) names[i] = routesim::policies::kBalancers[i].name;
    return names;
  }();
};
