// The registry of balancers. A new family is one file beside this one, with its
// settings; a new balancer is one enumerator and one row here.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/describe.h"
#include "base/rng.h"
#include "policies/balancers/aibrix.h"
#include "policies/balancers/balancer.h"
#include "policies/balancers/envoy.h"
#include "policies/balancers/kubeai.h"
#include "policies/balancers/kubernetes.h"
#include "policies/balancers/smg.h"
#include "policies/balancers/vllm_router.h"
#include "policies/balancers/production_stack.h"

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
  std::unique_ptr<Balancer> (*make)(const BalancerSettings&, const RandomStream&) = nullptr;
};
template <class T, class... Args>
std::unique_ptr<Balancer> new_balancer(const Args&... args) {
  return std::make_unique<T>(args...);
}

inline constexpr std::string_view kEnvoyRelease =
    "sources of August 2026 (@12ca3fdb, @0a31a547, …)";
inline constexpr std::string_view kSmgRelease = "smg @73da68ca (August 2026)";
inline constexpr std::string_view kVllmRouterRelease = "sources of 2026 (@16917f49, @080589a0, …)";
inline constexpr std::string_view kProductionStackRelease = "@a6c01db0 (August 2026)";
inline constexpr std::string_view kAibrixRelease = "@e3e10f9e (August 2026)";
inline constexpr std::string_view kKubeAiRelease = "@2f32ef4 (July 2025)";

// clang-format off
inline constexpr std::array kBalancers = std::to_array<BalancerRow>({
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
    {"prefix-hash", "", "KubeAI", kKubeAiRelease, "own requests in flight, adapters, first characters",
     "", {}, [](auto& s, auto&) { return new_balancer<PrefixHash>(s.kubeai); }},
    {"expression", "expression", "yours", "", "the quantities that its formula names", ""},
    {"library", "library", "yours", "", "the quantities that the plug-in asks for", ""},
    {"omniscient", "", "the ceiling", "", "true engines, true caches, true lengths",
     "prices one decision and knows no requests to come", Disaggregation::kPossible},
    {"envoy-round-robin", "envoy", "Envoy", kEnvoyRelease, "weights", "one worker thread", {},
     [](auto& s, auto& random) { return make_envoy(EnvoyPolicy::kRoundRobin, s.envoy.value_or(EnvoySettings()), random); }},
    {"envoy-least-request", "envoy", "Envoy", kEnvoyRelease, "own requests in flight, weights",
     "one worker thread", {},
     [](auto& s, auto& random) { return make_envoy(EnvoyPolicy::kLeastRequest, s.envoy.value_or(EnvoySettings()), random); }},
    {"envoy-ring-hash", "envoy", "Envoy", kEnvoyRelease, "headers or cookies, weights", "", {},
     [](auto& s, auto& random) { return make_envoy(EnvoyPolicy::kRingHash, s.envoy.value_or(EnvoySettings()), random); }},
    {"envoy-maglev", "envoy", "Envoy", kEnvoyRelease, "headers or cookies, weights", "", {},
     [](auto& s, auto& random) { return make_envoy(EnvoyPolicy::kMaglev, s.envoy.value_or(EnvoySettings()), random); }},
    {"envoy-random", "envoy", "Envoy", kEnvoyRelease, "nothing", "", {},
     [](auto& s, auto& random) { return make_envoy(EnvoyPolicy::kRandom, s.envoy.value_or(EnvoySettings()), random); }},
    {"smg-random", "smg", "SGLang gateway", kSmgRelease, "nothing", "", Disaggregation::kPossible,
     [](auto& s, auto& random) { return make_smg(SmgPolicy::kRandom, s.smg.value_or(SmgSettings()), random); }},
    {"smg-round-robin", "smg", "SGLang gateway", kSmgRelease, "nothing", "", Disaggregation::kPossible,
     [](auto& s, auto& random) { return make_smg(SmgPolicy::kRoundRobin, s.smg.value_or(SmgSettings()), random); }},
    {"smg-passthrough", "smg", "SGLang gateway", kSmgRelease, "nothing: the first server gets everything", "",
     Disaggregation::kPossible,
     [](auto& s, auto& random) { return make_smg(SmgPolicy::kPassthrough, s.smg.value_or(SmgSettings()), random); }},
    {"smg-power-of-two", "smg", "SGLang gateway", kSmgRelease, "polled KV usage, else own requests in flight",
     "", Disaggregation::kPossible,
     [](auto& s, auto& random) { return make_smg(SmgPolicy::kPowerOfTwo, s.smg.value_or(SmgSettings()), random); }},
    {"smg-least-load", "smg", "SGLang gateway", kSmgRelease, "polled queue and KV usage, tokens sent since",
     "a waiting request counts 1,024 uncached tokens, and every server makes 2,000 tokens/s", Disaggregation::kPossible,
     [](auto& s, auto& random) { return make_smg(SmgPolicy::kLeastLoad, s.smg.value_or(SmgSettings()), random); }},
    {"smg-cache-aware", "smg", "SGLang gateway", kSmgRelease, "own requests in flight, text, tokens or KV events",
     "text is compared by whole tokens; with KV events, servers with equal overlap and load do not differ by the size of their trees",
     Disaggregation::kPossible,
     [](auto& s, auto& random) { return make_smg(SmgPolicy::kCacheAware, s.smg.value_or(SmgSettings()), random); }},
    {"smg-prefix-hash", "smg", "SGLang gateway", kSmgRelease, "own requests in flight, first tokens", "",
     Disaggregation::kPossible,
     [](auto& s, auto& random) { return make_smg(SmgPolicy::kPrefixHash, s.smg.value_or(SmgSettings()), random); }},
    {"smg-consistent-hashing", "smg", "SGLang gateway", kSmgRelease, "headers", "", Disaggregation::kPossible,
     [](auto& s, auto& random) { return make_smg(SmgPolicy::kConsistentHashing, s.smg.value_or(SmgSettings()), random); }},
    {"smg-manual", "smg", "SGLang gateway", kSmgRelease, "a header, own requests in flight", "",
     Disaggregation::kPossible,
     [](auto& s, auto& random) { return make_smg(SmgPolicy::kManual, s.smg.value_or(SmgSettings()), random); }},
    {"smg-bucket", "smg", "SGLang gateway", kSmgRelease, "lengths of texts; at random without prefill servers", "",
     Disaggregation::kPossible,
     [](auto& s, auto& random) { return make_smg(SmgPolicy::kBucket, s.smg.value_or(SmgSettings()), random); }},
    {"vllm-router-random", "vllm_router", "vLLM router", kVllmRouterRelease, "nothing", "",
     Disaggregation::kPossible,
     [](auto& s, auto& random) { return make_vllm_router(VllmRouterPolicy::kRandom, s.vllm_router.value_or(VllmRouterSettings()), random); }},
    {"vllm-router-round-robin", "vllm_router", "vLLM router", kVllmRouterRelease, "nothing", "",
     Disaggregation::kPossible,
     [](auto& s, auto& random) { return make_vllm_router(VllmRouterPolicy::kRoundRobin, s.vllm_router.value_or(VllmRouterSettings()), random); }},
    {"vllm-router-cache-aware", "vllm_router", "vLLM router", kVllmRouterRelease, "own requests in flight, text, headers", "text is compared by whole tokens, and in PD without the JSON around it; no map of sessions",
     Disaggregation::kPossible,
     [](auto& s, auto& random) { return make_vllm_router(VllmRouterPolicy::kCacheAware, s.vllm_router.value_or(VllmRouterSettings()), random); }},
    {"vllm-router-power-of-two", "vllm_router", "vLLM router", kVllmRouterRelease, "polled requests in the engine, own requests in flight", "",
     Disaggregation::kPossible,
     [](auto& s, auto& random) { return make_vllm_router(VllmRouterPolicy::kPowerOfTwo, s.vllm_router.value_or(VllmRouterSettings()), random); }},
    {"vllm-router-consistent-hash", "vllm_router", "vLLM router", kVllmRouterRelease, "headers, user, text", "a simulated prompt hashes by its identity, not by the JSON of its request",
     Disaggregation::kPossible,
     [](auto& s, auto& random) { return make_vllm_router(VllmRouterPolicy::kConsistentHash, s.vllm_router.value_or(VllmRouterSettings()), random); }},
    {"vllm-router-rendezvous-hash", "vllm_router", "vLLM router", kVllmRouterRelease, "headers, user, text", "a simulated prompt hashes by its identity, not by the JSON of its request",
     Disaggregation::kPossible,
     [](auto& s, auto& random) { return make_vllm_router(VllmRouterPolicy::kRendezvousHash, s.vllm_router.value_or(VllmRouterSettings()), random); }},
    {"production-stack-roundrobin", "production_stack", "vLLM production stack", kProductionStackRelease,
     "nothing", "", {},
     [](auto& s, auto& random) { return make_production_stack(ProductionStackPolicy::kRoundRobin, s.production_stack.value_or(ProductionStackSettings()), random); }},
    {"production-stack-session", "production_stack", "vLLM production stack", kProductionStackRelease,
     "a header, own request starts", "the session is never in the body", {},
     [](auto& s, auto& random) { return make_production_stack(ProductionStackPolicy::kSession, s.production_stack.value_or(ProductionStackSettings()), random); }},
    {"production-stack-prefixaware", "production_stack", "vLLM production stack", kProductionStackRelease,
     "text sent before", "one text instead of messages", {},
     [](auto& s, auto& random) { return make_production_stack(ProductionStackPolicy::kPrefixAware, s.production_stack.value_or(ProductionStackSettings()), random); }},
    {"production-stack-kvaware", "production_stack", "vLLM production stack", kProductionStackRelease,
     "KV events, a header, own request starts", "KV events of the engines stand for LMCache's controller; chats, which the product does not tokenise, are looked up too", {},
     [](auto& s, auto& random) { return make_production_stack(ProductionStackPolicy::kKvAware, s.production_stack.value_or(ProductionStackSettings()), random); }},
    {"production-stack-loadaware", "production_stack", "vLLM production stack", kProductionStackRelease,
     "KV events, own requests in flight, a header", "as production-stack-kvaware; from release 0.1.13", {},
     [](auto& s, auto& random) { return make_production_stack(ProductionStackPolicy::kLoadAware, s.production_stack.value_or(ProductionStackSettings()), random); }},
    {"production-stack-disaggregated-prefill", "production_stack", "vLLM production stack", kProductionStackRelease,
     "roles", "disaggregated_prefill_orchestrated; plain disaggregated_prefill needs two requests of the client and always takes the first server of a role", Disaggregation::kRequired,
     [](auto& s, auto& random) { return make_production_stack(ProductionStackPolicy::kDisaggregatedPrefill, s.production_stack.value_or(ProductionStackSettings()), random); }},
    {"aibrix-random", "aibrix", "AIBrix", kAibrixRelease, "nothing",
     "", {},
     [](auto& s, auto& random) { return make_aibrix(AibrixPolicy::kRandom, s.aibrix.value_or(AibrixSettings()), random); }},
    {"aibrix-least-request", "aibrix", "AIBrix", kAibrixRelease, "own requests in flight",
     "pods have one port", {},
     [](auto& s, auto& random) { return make_aibrix(AibrixPolicy::kLeastRequest, s.aibrix.value_or(AibrixSettings()), random); }},
    {"aibrix-least-kv-cache", "aibrix", "AIBrix", kAibrixRelease, "nothing; KV usage with metrics_as_intended",
     "random, because vLLM V1 lacks cpu_cache_usage_perc", {},
     [](auto& s, auto& random) { return make_aibrix(AibrixPolicy::kLeastKvCache, s.aibrix.value_or(AibrixSettings()), random); }},
    {"aibrix-least-gpu-cache", "aibrix", "AIBrix", kAibrixRelease, "nothing; KV usage with metrics_as_intended",
     "random, because vLLM 0.12 lacks gpu_cache_usage_perc", {},
     [](auto& s, auto& random) { return make_aibrix(AibrixPolicy::kLeastGpuCache, s.aibrix.value_or(AibrixSettings()), random); }},
    {"aibrix-least-latency", "aibrix", "AIBrix", kAibrixRelease, "mean times of prefill and decode",
     "times as the gateway sees them, queue included, not the engine's histograms; the product decides at random without Prometheus", {},
     [](auto& s, auto& random) { return make_aibrix(AibrixPolicy::kLeastLatency, s.aibrix.value_or(AibrixSettings()), random); }},
    {"aibrix-throughput", "aibrix", "AIBrix", kAibrixRelease, "nothing; tokens of completed requests with metrics_as_intended",
     "random, because the averages are read as 0; means since the start, not of a day", {},
     [](auto& s, auto& random) { return make_aibrix(AibrixPolicy::kThroughput, s.aibrix.value_or(AibrixSettings()), random); }},
    {"aibrix-power-of-two", "aibrix", "AIBrix", kAibrixRelease, "own requests in flight",
     "each router counts alone, where the product shares Redis", {},
     [](auto& s, auto& random) { return make_aibrix(AibrixPolicy::kPowerOfTwo, s.aibrix.value_or(AibrixSettings()), random); }},
    {"aibrix-prefix-cache", "aibrix", "AIBrix", kAibrixRelease, "text sent before, own requests in flight",
     "bytes of text are about the characters of tokens; no KV events", {},
     [](auto& s, auto& random) { return make_aibrix(AibrixPolicy::kPrefixCache, s.aibrix.value_or(AibrixSettings()), random); }},
    {"aibrix-prefix-cache-preble", "aibrix", "AIBrix", kAibrixRelease, "text sent before, own requests in flight",
     "the load's tokens stand for cl100k_base", {},
     [](auto& s, auto& random) { return make_aibrix(AibrixPolicy::kPrefixCachePreble, s.aibrix.value_or(AibrixSettings()), random); }},
    {"aibrix-vtc-basic", "aibrix", "AIBrix", kAibrixRelease, "users, text length, running requests",
     "a session stands for a user where the load has none", {},
     [](auto& s, auto& random) { return make_aibrix(AibrixPolicy::kVtcBasic, s.aibrix.value_or(AibrixSettings()), random); }},
    {"aibrix-pd", "aibrix", "AIBrix", kAibrixRelease, "text sent before, own requests in flight, KV usage, roles",
     "no prompt length buckets, combined pods or conductor scores; a prefill ends with the first token", Disaggregation::kRequired,
     [](auto& s, auto& random) { return make_aibrix(AibrixPolicy::kPd, s.aibrix.value_or(AibrixSettings()), random); }},
});
// clang-format on

inline const BalancerRow& balancer_row(BalancerKind kind) {
  return kBalancers[static_cast<std::size_t>(kind)];
}

/// Makes a balancer drawing from (seed, Stream::kBalancer, entity).
/// The row of `kind` can make it, and `settings` are within the bounds that
/// describe() names.
inline std::unique_ptr<Balancer> make_balancer(BalancerKind kind, const BalancerSettings& settings,
                                               std::uint64_t seed, std::uint64_t entity = 0) {
  return balancer_row(kind).make(settings, RandomStream(seed, Stream::kBalancer, entity));
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
