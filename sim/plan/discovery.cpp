#include "sim/plan/discovery.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/rng.h"

namespace routesim::sim {

namespace {

// Kubernetes tells of a change within about a second: the kubelet looks once a second for
// containers that ended (pkg/kubelet/kubelet.go of 1.36.1, genericPlegRelistPeriod), probes are on
// its clock, and watches follow in milliseconds. A pod that is asked to end is marked before its
// containers get a signal, so routers hear of it sooner than of a crash.
constexpr Duration kKubelet = Duration::seconds(1), kWatch = Duration::milliseconds(100);

constexpr DiscoveryFacts watches_pods(std::string_view of, std::string_view source) {
  return {.of = of, .join = kKubelet, .leave = kWatch, .leave_unseen = kKubelet, .source = source};
}

/// SMG's defaults, and those of vLLM's router, which has the same ancestor. `max_retries` 5 counts
/// tries, the first among them (model_gateway/src/core/retry.rs: try number `max_retries` is the
/// last). Both route every try anew, and a router that finds no server answers itself 503; SMG
/// without any server answers 404, and does not try again (src/routers/http/router.rs).
constexpr DiscoveryFacts with_retries(DiscoveryFacts facts) {
  facts.retries = {.on = RetriedByRouter::kUnserved,
                   .most = 4,
                   .first_back_off = Duration::milliseconds(50),
                   .back_off_factor = 1.5,
                   .jitter = 0.2};
  return facts;
}

/// Pods that are deleted leave at once, those that are not ready when three health checks have
/// failed, one a minute: the third comes after 150 s in the mean.
constexpr DiscoveryFacts kSmg = with_retries(
    {.of = "smg",
     .join = kKubelet,
     .leave = kWatch,
     .leave_unseen = Duration::seconds(150),
     .by_lease = true,
     .by_checks = true,
     .not_simulated = "one habit: SMG sends again to a server that failed three health checks when "
                      "it has passed two, a minute or two after it is back; here at once",
     .source = "smg v1.9.0 model_gateway/src/config/types.rs (RetryConfig), "
               "src/service_discovery.rs (reconcile_pods), src/worker/manager.rs"});

/// A handle that finds a replica dead chooses again, as often as it takes
/// (python/ray/serve/_private/constants.py: RAY_SERVE_ROUTER_RETRY_INITIAL_BACKOFF_S 0.025,
/// multiplier 2, most 0.5; the first at once).
constexpr RouterRetries kRayRetries = {.on = RetriedByRouter::kRefused,
                                       .most = 1'000,
                                       .first_at_once = true,
                                       .first_back_off = Duration::milliseconds(25),
                                       .back_off_factor = 2,
                                       .most_back_off = Duration::milliseconds(500)};

constexpr std::array kFacts = std::to_array<DiscoveryFacts>({
    watches_pods("llm-d, Heimdall",
                 "llm-d-router v0.10.0 pkg/epp/controller/pod_reconciler.go: a pod that is not "
                 "ready, or that ends, is deleted from the datastore"),
    watches_pods(
        "Kubernetes Service",
        "Kubernetes 1.36.1 pkg/controller/endpointslice, pkg/proxy: a pod that is not ready, "
        "or that ends, gets no new connection"),
    {.of = "KubeAI",
     .join = kKubelet,
     .leave = kKubelet,
     .leave_unseen = kKubelet,
     .retries = {.on = RetriedByRouter::kLost, .most = 3, .keeps_tries = true},
     .not_simulated = "one habit: KubeAI sends to pods that end while they answer their probes",
     .source = "kubeai @2f32ef4 internal/loadbalancer/load_balancer.go: pods whose condition is "
               "Ready; internal/manager/run.go, internal/modelproxy/handler.go"},
    watches_pods("envoy",
                 "Envoy 1.39 EDS, fed by endpoint slices; outlier_detection and health_checks are "
                 "absent unless they are configured"),
    kSmg,
    with_retries(watches_pods("vllm_router",
                              "vllm-router 0.1.17 src/config/types.rs (RetryConfig), "
                              "src/service_discovery.rs: a pod that is not ready is removed")),
    watches_pods(
        "production_stack",
        "vllm-stack 0.1.12 src/vllm_router/service_discovery.py: containers that are ready "
        "in pods that do not end; --max-instance-failover-reroute-attempts is 0"),
    watches_pods("aibrix",
                 "aibrix v0.7.0 pkg/cache/informers.go; pkg/utils/pod.go, FilterRoutablePods"),
    {.of = "dynamo",
     .join = kKubelet,
     .leave = kWatch,
     .leave_unseen = Duration::milliseconds(7'500),
     .by_lease = true,
     .finds_dead = true,
     .source = "Dynamo @0f249f5 lib/runtime/src/component/client.rs: report_instance_down; "
               "lib/runtime/src/transports/etcd.rs and etcd/lease.rs: a lease of 10 "
               "s, renewed every 5, that a worker which ends in order revokes; --migration-limit "
               "is 0"},
    {.of = "ray",
     .join = kWatch,
     .leave = kWatch,
     .leave_unseen = Duration::seconds(5),
     .by_lease = true,
     .finds_dead = true,
     .retries = kRayRetries,
     .source =
         "Ray @0016b72 python/ray/serve/_private/constants.py: "
         "DEFAULT_HEALTH_CHECK_PERIOD_S = 10, of which half passes in the mean; an actor that "
         "is dead fails its first check"},
    {.of = "mooncake",
     .join = kKubelet,
     .leave = kKubelet,
     .leave_unseen = kKubelet,
     .source = "none: the paper does not say, and the list of the proxy never changes"},
});

}  // namespace

std::optional<Duration> router_retry(const RouterRetries& facts, RetriedByRouter what, int made,
                                     std::uint64_t seed, std::uint64_t request) {
  if (what > facts.on || made >= facts.most) return std::nullopt;
  if (facts.first_at_once && made-- == 0) return Duration::zero();
  double ms = static_cast<double>(facts.first_back_off.ns()) / 1e6;
  const double most = static_cast<double>(facts.most_back_off.ns()) / 1e6;
  for (int i = 0; i < made && ms < most; ++i) ms *= facts.back_off_factor;
  ms = std::floor(std::min(ms, most));
  RandomStream random(seed, Stream::kRouterRetry, mix64(request, static_cast<std::uint64_t>(made)));
  ms += std::round(ms * facts.jitter * (2 * random.uniform() - 1));
  return Duration::milliseconds(static_cast<std::int64_t>(ms));
}

const DiscoveryFacts& discovery_facts(policies::BalancerKind kind) {
  const policies::BalancerRow& balancer = policies::balancer_row(kind);
  const std::string_view of = balancer.section.empty() ? balancer.product : balancer.section;
  const auto* row = std::find_if(kFacts.begin(), kFacts.end(),
                                 [&](const DiscoveryFacts& f) { return f.of == of; });
  return row == kFacts.end() ? kFacts.front() : *row;
}

}  // namespace routesim::sim
