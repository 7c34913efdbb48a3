// The outcome of routing one request.
#pragma once

#include <cstdint>
#include <optional>

#include "base/ids.h"
#include "base/units.h"
#include "policies/balancers/balancers.h"
#include "policies/views.h"

namespace routesim::sim {

struct Route {
  bool routed = false;
  bool held = false;                        ///< No decision yet: the request waits at the router.
  Duration retry_after = Duration::zero();  ///< While held; zero = when something changes.
  EndpointId endpoint;                      ///< Serves the request (decodes it).
  std::optional<EndpointId> prefill;        ///< Computes the prompt first, when disaggregated.
  /// Its tier has more of the prompt than the server that computes it.
  std::optional<EndpointId> pull_source;
  std::uint32_t instance = 0;   ///< Which router process decided,
  std::uint32_t life = 0;       ///< and how often it had been started again.
  policies::BalancerPick pick;  ///< For the balancers.
  int http_status = 200;        ///< Of a refusal, otherwise 200.
  double regret_s = 0;          ///< Where decisions are priced: the price above the best one.
  policies::LatencyPrediction predicted;   ///< At `endpoint`, where a plugin predicts.
  std::int64_t predicted_hit_tokens = -1;  ///< At `endpoint`; -1 without a prefix index.
};

}  // namespace routesim::sim
