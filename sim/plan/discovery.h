// When the router of each product learns that servers come and go, and what it does for requests
// that meet one that is gone: its defaults, as its source has them.
#pragma once

#include <string_view>

#include "base/units.h"
#include "policies/balancers/balancers.h"

namespace routesim::sim {

/// A router's retries of its own, as its defaults are. The gateway's are in GatewayConfig.
struct RouterRetries {
  int most = 0;                  ///< After the first try; 0 = none.
  std::string_view on = "";      ///< What is tried again, "" = nothing.
  Duration first_back_off = {};  ///< Before the first of them.
  double back_off_factor = 1;    ///< Between one and the next.
};

/// The circuit breaker that a router keeps for each server.
struct CircuitBreaker {
  int failures = 0;    ///< In a row until it opens; 0 = there is none.
  Duration open = {};  ///< Until it lets requests through again.
};

/// Delays are typical ones, without the time that the network takes.
struct DiscoveryFacts {
  std::string_view of;    ///< The section of a family, or a product that has none.
  Duration join;          ///< From a server that is ready to a router that sends to it.
  Duration leave;         ///< From the end of a server that was asked to end.
  Duration leave_unseen;  ///< From a crash.
  RouterRetries retries = {};
  CircuitBreaker breaker = {};
  std::string_view not_simulated = "";  ///< The part of the above that a run does not act on.
  std::string_view source;              ///< File and release.
};

/// The facts of a balancer's family or product, those of an endpoint picker for one that is
/// nobody's product. Constant time.
const DiscoveryFacts& discovery_facts(policies::BalancerKind kind);

}  // namespace routesim::sim
