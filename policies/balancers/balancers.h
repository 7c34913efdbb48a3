// The registry of balancers. A new family is one file beside this one, with its settings; a new
// balancer is one row here.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/describe.h"
#include "base/diagnostic.h"
#include "base/rng.h"
#include "policies/balancers/aibrix/aibrix.h"
#include "policies/balancers/dynamo/dynamo.h"
#include "policies/balancers/envoy/envoy.h"
#include "policies/balancers/kit/balancer.h"
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
inline void describe(Describer& d, BalancerSettings& s) {
  describe(d, s.kubernetes);
  describe(d, s.kubeai);
  field(d, {"envoy", "Settings of the envoy-* balancers."}, s.envoy);
  field(d, {"smg", "Settings of the smg-* balancers."}, s.smg);
  field(d, {"vllm_router", "Settings of the vllm-router-* balancers."}, s.vllm_router);
  field(d, {"production_stack", "Settings of the production-stack-* balancers."},
        s.production_stack);
  field(d, {"aibrix", "Settings of the aibrix-* balancers."}, s.aibrix);
  field(d, {"dynamo", "Settings of the dynamo-* balancers."}, s.dynamo);
  field(d, {"ray", "Settings of the ray-* balancers."}, s.ray);
  field(d, {"mooncake", "Settings of mooncake-conductor."}, s.mooncake);
}

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

/// The role a balancer can play beside plain balancing.
enum class Disaggregation : std::uint8_t {
  kNo,        ///< Sends every request to one server.
  kPossible,  ///< Chooses a prefill server, too, where there are some.
  kRequired,  ///< Serves nothing without prefill servers.
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

/// A product whose policies share settings: `kSettings` of BalancerSettings, handed to `kMake`.
template <auto kSettings, auto kMake, const auto& kReleases>
struct BalancerFamily {
  std::string_view section, product, release;
  Disaggregation disaggregation = Disaggregation::kNo;

  template <auto kPolicy>
  constexpr BalancerRow row(std::string_view name, std::string_view inputs,
                            std::string_view approximations = "") const {
    return {name,
            section,
            product,
            release,
            inputs,
            approximations,
            disaggregation,
            [](const BalancerSettings& s, const RandomStream& random) {
              using Settings = typename std::remove_cvref_t<decltype(s.*kSettings)>::value_type;
              return kMake(kPolicy, (s.*kSettings).value_or(Settings()), random);
            },
            kReleases,
            [](const BalancerSettings& s) -> std::string_view {
              return s.*kSettings ? std::string_view((s.*kSettings)->release) : "";
            }};
  }
};
constexpr BalancerRow disaggregated(BalancerRow row, Disaggregation how) {
  row.disaggregation = how;
  return row;
}

constexpr BalancerRow since_release(BalancerRow row, std::string_view release) {
  row.since = release;
  return row;
}

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

inline constexpr BalancerFamily<&BalancerSettings::envoy, &make_envoy, kEnvoyReleases> kEnvoy = {
    "envoy", "Envoy", "sources of August 2026 (@12ca3fdb, @0a31a547, …)"};
inline constexpr BalancerFamily<&BalancerSettings::smg, &make_smg, kSmgReleases> kSmg = {
    "smg", "SGLang gateway", "sglang-router 0.2 to 0.3.2, smg to 1.13.0",
    Disaggregation::kPossible};
inline constexpr BalancerFamily<&BalancerSettings::vllm_router, &make_vllm_router,
                                kVllmRouterReleases>
    kVllmRouter = {"vllm_router", "vLLM router", "0.1.15 to 0.1.17", Disaggregation::kPossible};
inline constexpr BalancerFamily<&BalancerSettings::production_stack, &make_production_stack,
                                kProductionStackReleases>
    kProductionStack = {"production_stack", "vLLM production stack", "0.1.12 (@a6c01db0)"};
inline constexpr BalancerFamily<&BalancerSettings::aibrix, &make_aibrix, kAibrixReleases> kAibrix =
    {"aibrix", "AIBrix", "0.7.0 (@e3e10f9e)"};
inline constexpr BalancerFamily<&BalancerSettings::dynamo, &make_dynamo, kDynamoReleases> kDynamo =
    {"dynamo", "NVIDIA Dynamo", "0.9 to 1.6.1", Disaggregation::kPossible};
inline constexpr BalancerFamily<&BalancerSettings::ray, &make_ray, kRayReleases> kRay = {
    "ray", "Ray Serve LLM", "2.49 to 2.60"};
inline constexpr BalancerFamily<&BalancerSettings::mooncake, &make_mooncake, kMooncakeReleases>
    kMooncake = {"mooncake", "Mooncake", "FAST '25 paper; proxy @1d9dff9a (2026)",
                 Disaggregation::kPossible};

inline constexpr std::array kEnvoyBalancers = std::to_array<BalancerRow>({
    kEnvoy.row<EnvoyPolicy::kRoundRobin>("envoy-round-robin", "weights", "one worker thread"),
    kEnvoy.row<EnvoyPolicy::kLeastRequest>("envoy-least-request", "own requests in flight, weights",
                                           "one worker thread"),
    kEnvoy.row<EnvoyPolicy::kRingHash>("envoy-ring-hash", "headers or cookies, weights"),
    kEnvoy.row<EnvoyPolicy::kMaglev>("envoy-maglev", "headers or cookies, weights"),
    kEnvoy.row<EnvoyPolicy::kRandom>("envoy-random", "nothing"),
});
inline constexpr std::array kSmgBalancers = std::to_array<BalancerRow>({
    kSmg.row<SmgPolicy::kRandom>("smg-random", "nothing"),
    kSmg.row<SmgPolicy::kRoundRobin>("smg-round-robin", "nothing"),
    kSmg.row<SmgPolicy::kPassthrough>("smg-passthrough",
                                      "nothing: the first server gets everything"),
    kSmg.row<SmgPolicy::kPowerOfTwo>(
        "smg-power-of-two", "polled queue and KV usage, else own requests in flight",
        "before 1.13 KV usage stands for tokens; from then on as smg-least-load"),
    kSmg.row<SmgPolicy::kLeastLoad>(
        "smg-least-load", "polled queue and KV usage, tokens sent since",
        "a waiting request counts 1,024 uncached tokens, and every server makes 2,000 tokens/s"),
    kSmg.row<SmgPolicy::kCacheAware>(
        "smg-cache-aware", "own requests in flight, text, tokens or KV events, polled queues",
        "text is compared by whole tokens; with KV events, the size of trees breaks no ties, and "
        "servers without a cache get no share of their own; expected waits as smg-least-load"),
    kSmg.row<SmgPolicy::kPrefixHash>("smg-prefix-hash",
                                     "own requests in flight, first tokens or characters"),
    kSmg.row<SmgPolicy::kConsistentHashing>("smg-consistent-hashing", "headers"),
    kSmg.row<SmgPolicy::kManual>("smg-manual", "a header, own requests in flight"),
    kSmg.row<SmgPolicy::kBucket>("smg-bucket",
                                 "lengths of texts; at random without prefill servers"),
});
inline constexpr std::array kVllmRouterBalancers = std::to_array<BalancerRow>({
    kVllmRouter.row<VllmRouterPolicy::kRandom>("vllm-router-random", "nothing"),
    kVllmRouter.row<VllmRouterPolicy::kRoundRobin>("vllm-router-round-robin", "nothing"),
    kVllmRouter.row<VllmRouterPolicy::kCacheAware>(
        "vllm-router-cache-aware", "own requests in flight, text, from 0.1.17 on tokens",
        "text is compared by whole tokens, without the JSON of PD; servers always say the tokens"),
    kVllmRouter.row<VllmRouterPolicy::kPowerOfTwo>(
        "vllm-router-power-of-two", "polled requests in the engine, own requests in flight"),
    kVllmRouter.row<VllmRouterPolicy::kConsistentHash>(
        "vllm-router-consistent-hash", "headers, user, text",
        "a simulated prompt hashes by its identity, not by the JSON of its request"),
    kVllmRouter.row<VllmRouterPolicy::kRendezvousHash>(
        "vllm-router-rendezvous-hash", "headers, user, text",
        "a simulated prompt hashes by its identity, not by the JSON of its request"),
    since_release(
        kVllmRouter.row<VllmRouterPolicy::kKvAware>(
            "vllm-router-kv-aware", "KV events, own prefill tokens and requests in flight",
            "lower tiers count as host memory; no session affinity"),
        "0.1.17"),
    since_release(kVllmRouter.row<VllmRouterPolicy::kStickyLeastLoaded>(
                      "vllm-router-sticky-least-loaded", "headers, own sessions",
                      "no session is finished early"),
                  "0.1.17"),
});
inline constexpr std::array kProductionStackBalancers = std::to_array<BalancerRow>({
    kProductionStack.row<ProductionStackPolicy::kRoundRobin>("production-stack-roundrobin",
                                                             "nothing", ""),
    kProductionStack.row<ProductionStackPolicy::kSession>("production-stack-session",
                                                          "a header, own request starts",
                                                          "the session is never in the body"),
    kProductionStack.row<ProductionStackPolicy::kPrefixAware>(
        "production-stack-prefixaware", "text sent before", "one text instead of messages"),
    kProductionStack.row<ProductionStackPolicy::kKvAware>(
        "production-stack-kvaware", "KV events, a header, own request starts",
        "KV events of the engines stand for LMCache's controller"),
    kProductionStack.row<ProductionStackPolicy::kLoadAware>(
        "production-stack-loadaware", "KV events, own requests in flight, a header",
        "as production-stack-kvaware; chats are looked up, too; from release 0.1.13"),
    disaggregated(kProductionStack.row<ProductionStackPolicy::kDisaggregatedPrefill>(
                      "production-stack-disaggregated-prefill", "roles",
                      "disaggregated_prefill_orchestrated; the plain one needs two requests of the "
                      "client and "
                      "always takes the first server of a role"),
                  Disaggregation::kRequired),
});
inline constexpr std::array kAibrixBalancers = std::to_array<BalancerRow>({
    kAibrix.row<AibrixPolicy::kRandom>("aibrix-random", "nothing", ""),
    kAibrix.row<AibrixPolicy::kLeastRequest>("aibrix-least-request", "own requests in flight",
                                             "pods have one port"),
    kAibrix.row<AibrixPolicy::kLeastKvCache>("aibrix-least-kv-cache",
                                             "nothing; KV usage with metrics_as_intended",
                                             "random, because vLLM V1 lacks cpu_cache_usage_perc"),
    kAibrix.row<AibrixPolicy::kLeastGpuCache>(
        "aibrix-least-gpu-cache", "nothing; KV usage with metrics_as_intended",
        "random, because vLLM 0.12 lacks gpu_cache_usage_perc"),
    kAibrix.row<AibrixPolicy::kLeastLatency>(
        "aibrix-least-latency", "mean times of prefill and decode",
        "the gateway's own times, queue included, for the engine's histograms; the product decides "
        "at random without Prometheus"),
    kAibrix.row<AibrixPolicy::kThroughput>(
        "aibrix-throughput", "nothing; tokens of completed requests with metrics_as_intended",
        "random, because the averages are read as 0; means since the start, not of a day"),
    kAibrix.row<AibrixPolicy::kPowerOfTwo>(
        "aibrix-power-of-two", "own requests in flight",
        "each router counts alone, where the product shares Redis"),
    kAibrix.row<AibrixPolicy::kPrefixCache>(
        "aibrix-prefix-cache", "text sent before, own requests in flight", "no KV events"),
    kAibrix.row<AibrixPolicy::kPrefixCachePreble>("aibrix-prefix-cache-preble",
                                                  "text sent before, own requests in flight",
                                                  "the load's tokens stand for cl100k_base"),
    kAibrix.row<AibrixPolicy::kVtcBasic>("aibrix-vtc-basic", "users, text length, running requests",
                                         "a session stands for a user where the load has none"),
    disaggregated(kAibrix.row<AibrixPolicy::kPd>(
                      "aibrix-pd", "text sent before, own requests in flight, KV usage, roles",
                      "no prompt length buckets, combined pods or conductor scores; a "
                      "prefill ends with the first token"),
                  Disaggregation::kRequired),
    kAibrix.row<AibrixPolicy::kSlo>(
        "aibrix-slo", "profiles of the GPU optimizer, prompt lengths, own requests in flight",
        "slo-least-load-pulling; least-request without profiles; each router has a queue of its "
        "own; a request waits for its own turn, up to 0.1 ms where another one is more urgent; the "
        "load's tokens stand for cl100k_base"),
    kAibrix.row<AibrixPolicy::kLeastBusyTime>(
        "aibrix-least-busy-time", "nothing",
        "random, because no engine exports gpu_busy_time_ratio"),
    kAibrix.row<AibrixPolicy::kSessionAffinity>(
        "aibrix-session-affinity", "headers", "clients name their session by x-aibrix-session-key"),
});
inline constexpr std::array kDynamoBalancers = std::to_array<BalancerRow>({
    kDynamo.row<DynamoPolicy::kKv>(
        "dynamo-kv", "announced or own cached blocks, own blocks and prefill tokens in flight",
        "in PD a prefill ends at the first token; lower tiers count as host memory; the queue is "
        "first come, first served"),
    kDynamo.row<DynamoPolicy::kRoundRobin>("dynamo-round-robin", "nothing"),
    kDynamo.row<DynamoPolicy::kRandom>("dynamo-random", "nothing"),
    kDynamo.row<DynamoPolicy::kPowerOfTwo>(
        "dynamo-power-of-two", "own requests in flight",
        "in PD the prefill worker's count falls at the end of the answer"),
    kDynamo.row<DynamoPolicy::kLeastLoaded>(
        "dynamo-least-loaded", "own requests in flight",
        "in PD the prefill worker's count falls at the end of the answer"),
});
inline constexpr std::array kRayBalancers = std::to_array<BalancerRow>({
    kRay.row<RayPolicy::kPowerOfTwo>(
        "ray-power-of-two", "own requests in flight, as last told by the replica",
        "each router counts alone, where replicas tell it all their requests; probes take no time; "
        "no multiplexing, locality or sessions"),
    kRay.row<RayPolicy::kPrefixCacheAffinity>(
        "ray-prefix-cache-affinity", "text sent before, own requests in flight",
        "as ray-power-of-two; each router has a tree of its own, where the product's share one; "
        "equals go to the first replica, where the product has the order of a Python set"),
});
inline constexpr std::array kMooncakeBalancers = std::to_array<BalancerRow>({
    kMooncake.row<MooncakePolicy::kConductor>(
        "mooncake-conductor", "announced cached blocks, own prefills under way, decodes in flight",
        "prefill times are a given polynomial; a prefill counts in full until its first token; "
        "transfers know no congestion, and kv_tiers decides whether they happen; no prediction of "
        "decode load; SLOs only where set"),
    kMooncake.row<MooncakePolicy::kProxy>(
        "mooncake-proxy", "announced cached blocks",
        "decode servers are taken in turn at dispatch, not at the end of a prefill"),
});

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
inline constexpr std::array kBalancers =
    join_balancers(kFirstBalancers, kEnvoyBalancers, kSmgBalancers, kVllmRouterBalancers,
                   kProductionStackBalancers, kAibrixBalancers, kDynamoBalancers, kRayBalancers,
                   kMooncakeBalancers);

inline const BalancerRow& balancer_row(BalancerKind kind) {
  return kBalancers[static_cast<std::size_t>(kind)];
}

/// The balancer of a name.
std::optional<BalancerKind> find_balancer(std::string_view name);

/// The release whose rules `kind` follows with these settings, and what they are; "" where all
/// releases are alike.
std::string release_note(BalancerKind kind, const BalancerSettings& settings);

/// A value that a balancer cannot be made with.
struct SettingFault {
  std::string key;  ///< `smg.release`.
  std::string message;
  std::string hint;
};
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
