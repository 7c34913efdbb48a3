// When the router of each product learns that servers come and go, and what it does for requests
// that meet one that is gone: its defaults, as its source has them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/units.h"
#include "policies/balancers/balancers.h"

namespace routesim::sim {

/// What a router tries again, before anything of an answer has come.
enum class RetriedByRouter : std::uint8_t {
  kNothing,
  kRefused,   ///< A connection that is refused.
  kLost,      ///< That, and one that breaks.
  kUnserved,  ///< That, and a request for which it finds no server.
};

/// A router's retries of its own, as its defaults are. The gateway's are in GatewayConfig. Every
/// try asks the balancer again.
struct RouterRetries {
  RetriedByRouter on = RetriedByRouter::kNothing;
  std::int64_t most = 0;         ///< After the first try.
  bool first_at_once = false;    ///< The first of them has no back-off.
  Duration first_back_off = {};  ///< Before the first that has one, in whole milliseconds.
  double back_off_factor = 1;    ///< Between one and the next.
  Duration most_back_off = Duration::seconds(30);
  double jitter = 0;         ///< Back-offs are so much longer or shorter, drawn evenly.
  bool keeps_tries = false;  ///< Tries that failed count as in flight until the request ends.
};

/// Delays are typical ones, without the time that the network takes.
struct DiscoveryFacts {
  std::string_view of;      ///< The section of a family, or a product that has none.
  Duration join;            ///< From a server that is ready to a router that sends to it.
  Duration leave;           ///< From the end of a server that was asked to end.
  Duration leave_unseen;    ///< From a crash.
  bool by_lease = false;    ///< A lost machine is missed as a crash is; others wait for Kubernetes.
  bool by_checks = false;   ///< The router checks: it never misses a server that is back in time.
  bool finds_dead = false;  ///< It leaves out a server that is gone with the first request lost.
  RouterRetries retries = {};
  std::string_view not_simulated = "";  ///< The part of the above that a run does not act on.
  std::string_view source;              ///< File and release.
};

/// The back-off before the next try of a request that has had `made` retries of the router, drawn
/// from (seed, request, retry); nothing when the router does not try again.
std::optional<Duration> router_retry(const RouterRetries& facts, RetriedByRouter what, int made,
                                     std::uint64_t seed, std::uint64_t request);

/// The facts of a balancer's family or product, those of an endpoint picker for one that is
/// nobody's product. Constant time.
const DiscoveryFacts& discovery_facts(policies::BalancerKind kind);

}  // namespace routesim::sim
