// The registry of balancers. A new family is one file beside this one, with its
// settings; a new balancer is one enumerator and one row here.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/describe.h"
#include "base/rng.h"
#include "policies/balancers/balancer.h"
#include "policies/balancers/kubeai.h"
#include "policies/balancers/kubernetes.h"

namespace routesim::policies {

/// Settings of all balancers by family; each reads its own.
struct BalancerSettings {
  KubernetesSettings kubernetes;
  KubeAiSettings kubeai;
};
/// Names every key with its meaning and bounds; the keys of all families stand
/// side by side.
inline void describe(Describer& d, BalancerSettings& s) {
  describe(d, s.kubernetes);
  describe(d, s.kubeai);
}

/// How a request finds its endpoint: the rows of kBalancers.
enum class BalancerKind : std::uint8_t {
  kEndpointPicker,  ///< A Scheduler decides, and no balancer is made.
  kRoundRobin,
  kRandom,
  kK8sService,
  kLeastLoad,
  kPrefixHash
};

/// One balancer: its name in scenarios, and how it is made.
struct BalancerRow {
  std::string_view name;
  std::unique_ptr<Balancer> (*make)(const BalancerSettings&, const RandomStream&);
};
template <class T, class... Args>
std::unique_ptr<Balancer> new_balancer(const Args&... args) {
  return std::make_unique<T>(args...);
}
inline constexpr std::array<BalancerRow, 6> kBalancers = {{
    {"endpoint-picker", nullptr},
    {"round-robin", [](auto&, auto&) { return new_balancer<RoundRobin>(); }},
    {"random", [](auto&, auto& random) { return new_balancer<Random>(random); }},
    {"k8s-service",
     [](auto& s, auto& random) { return new_balancer<K8sService>(s.kubernetes, random); }},
    {"least-load", [](auto&, auto& random) { return new_balancer<LeastLoad>(random); }},
    {"prefix-hash", [](auto& s, auto&) { return new_balancer<PrefixHash>(s.kubeai); }},
}};

/// Makes a balancer drawing from (seed, Stream::kBalancer, entity).
/// `kind` is not kEndpointPicker, and `settings` are within the bounds that
/// describe() names.
inline std::unique_ptr<Balancer> make_balancer(BalancerKind kind, const BalancerSettings& settings,
                                               std::uint64_t seed, std::uint64_t entity = 0) {
  const RandomStream random(seed, Stream::kBalancer, entity);
  return kBalancers[static_cast<std::size_t>(kind)].make(settings, random);
}

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
