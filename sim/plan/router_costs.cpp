#include "sim/plan/router_costs.h"

#include <algorithm>

#include "policies/config/make_scheduler.h"

namespace routesim::sim {

namespace {

/// The token-producer without a service estimates tokens from bytes, which costs nothing.
bool asks_tokenizer(const policies::PluginSpec& spec) {
  if (spec.type == "tokenizer") return true;
  if (spec.type != "token-producer" || !spec.parameters->is_map()) return false;
  return spec.parameters->find("vllm") != nullptr ||
         spec.parameters->find("udsTokenizerConfig") != nullptr;
}

bool tokenizes(const policies::EndpointPickerConfig& document) {
  if (std::any_of(document.plugins.begin(), document.plugins.end(), asks_tokenizer)) return true;
  const std::optional<policies::Requirements> needed = policies::requirements(document);
  return needed && needed->precise_index;
}

}  // namespace

RouterCost default_router_cost(const RoutingConfig& routing,
                               const std::optional<policies::EndpointPickerConfig>& document) {
  switch (routing.balancer) {
    case BalancerKind::kEndpointPicker:
      return document && tokenizes(*document) ? kTokenizingPickerCost : kPickerCost;
    case BalancerKind::kK8sService:
    case BalancerKind::kExpression:
    case BalancerKind::kLibrary:
    case BalancerKind::kOmniscient:
      return kFreeCost;
    default:
      // AIBrix's plugins are an ext_proc server in Go, too.
      return policies::balancer_row(routing.balancer).section == "aibrix" ? kPickerCost
                                                                          : kProxyCost;
  }
}

void set_default_costs(RoutingConfig& routing,
                       const std::optional<policies::EndpointPickerConfig>& document) {
  const RouterCost cost = default_router_cost(routing, document);
  const auto fill = [](std::optional<Duration>& base, std::optional<Duration>& growth,
                       Duration usual, Duration usual_growth) {
    if (!growth) growth = base ? Duration::zero() : usual_growth;
    if (!base) base = usual;
  };
  fill(routing.decision_latency, routing.decision_latency_per_1000_tokens, cost.decision_latency,
       cost.decision_latency_per_1000_tokens);
  fill(routing.service_time, routing.service_time_per_megabyte, cost.service_time,
       cost.service_time_per_megabyte);
}

}  // namespace routesim::sim
