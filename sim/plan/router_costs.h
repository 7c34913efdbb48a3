// The cost of a decision in a router where the scenario does not give it.
#pragma once

#include <optional>

#include "policies/endpoint_picker_config.h"
#include "sim/plan/scenario.h"

namespace routesim::sim {

/// RoutingConfig's settings of the same names.
struct RouterCost {
  Duration decision_latency;
  Duration service_time;
  Duration service_time_per_megabyte = Duration::zero();
  Duration decision_latency_per_1000_tokens = Duration::zero();
};

/// One picker decided 324 and 388 requests/s at 25 and 100 requests in flight (llm-d-router pull
/// request 2024): about 357/s. Router processes scale it almost linearly (llm-d-router
/// docs/operations.md, @ebab6879: 3.5 times with four).
inline constexpr Duration kPickerService = Duration::microseconds(2'800);
/// One picker decided 128 to 132 requests/s with prompts of 220 kB at 20 to 200 in flight
/// (llm-d-router issue 1109): 7.75 ms each, of which 2.8 do not depend on the prompt. The limit of
/// the pod's CPUs does not enter: no report has both throughput and CPUs.
inline constexpr Duration kPickerServicePerMegabyte = Duration::microseconds(22'500);

/// Besides its service. Scheduling takes 0.9 to 1.5 ms in the median at 10 to 200 requests/s
/// (llm-d-router test/perf/config/studyanalysis/high_qps_small_token_comparison_analysis.md,
/// @ebab6879), and Envoy's ext_proc with the request's body some 3 ms more (envoy issue 16905),
/// together about 5 ms.
inline constexpr RouterCost kPickerCost = {Duration::milliseconds(2), kPickerService,
                                           kPickerServicePerMegabyte};

/// The same with a tokeniser. vLLM's render service spends 11 ms of CPU time on 10,000 tokens
/// (precise_prefix_scaling_analysis.md, same folder), its tokenise endpoint takes 200 to 300 ms for
/// 100,000 to 200,000 (volcano-sh/kthena issue 1100), and whole published runs with 4,200 to 7,200
/// tokens fit 50 to 60 ms (scenarios/). This is between them: 25 ms at 6,000 tokens, 185 ms at
/// 100,000.
inline constexpr RouterCost kTokenizingPickerCost = {Duration::milliseconds(15), kPickerService,
                                                     kPickerServicePerMegabyte,
                                                     Duration::microseconds(1'700)};

/// A proxy that picks by itself decides in microseconds, and passing it takes some 0.6 ms in
/// public measurements (Envoy, envoy issue 5536: 0.7 ms with its backend; Bifrost,
/// llm-gateway-bench data/overhead.json: 0.62 ms).
inline constexpr RouterCost kProxyCost = {Duration::microseconds(500), Duration::zero()};

/// A Kubernetes Service is no hop. Policies that are no product cost what their scenario says.
inline constexpr RouterCost kFreeCost = {Duration::zero(), Duration::zero()};

/// By the balancer, and for an endpoint picker by whether its document tokenises prompts: it has a
/// precise prefix index, or a token-producer that asks a tokeniser.
RouterCost default_router_cost(const RoutingConfig& routing,
                               const std::optional<policies::EndpointPickerConfig>& document);

/// Fills in what `routing` leaves open.
void set_default_costs(RoutingConfig& routing,
                       const std::optional<policies::EndpointPickerConfig>& document);

}  // namespace routesim::sim
