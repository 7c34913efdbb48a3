// The quantities of servers and requests that formulas and plug-ins read.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "policies/balancers/kit/announced_blocks.h"
#include "policies/balancers/kit/balancer.h"

namespace routesim::sim {

/// The inputs that one policy reads.
struct ViewInputs {
  bool metrics = false;  ///< waiting, running, kv_usage, age.
  bool prefix = false;   ///< prefix_tokens, from KV events.
};

/// One array per quantity, by endpoint. Computes what is asked for, once per decision.
class ServerView {
 public:
  explicit ServerView(ViewInputs inputs) : inputs_(inputs) {}

  policies::BalancerNeeds needs() const {
    return {.metrics = inputs_.metrics, .block_keys = inputs_.prefix, .kv_events = inputs_.prefix};
  }
  policies::PrefixIndex* index() { return inputs_.prefix ? &announced_.index() : nullptr; }

  void set_endpoints(const policies::Balancer& balancer,
                     std::span<const policies::BalancerEndpoint> endpoints);
  /// Brings the arrays up to `request`; `in_flight` is the balancer's own count.
  void update(const policies::BalancerRequest& request, std::span<const std::uint32_t> in_flight);
  void on_sent(const policies::BalancerPick& pick, const policies::BalancerRequest& request);
  void on_completed(const policies::BalancerOutcome& outcome);

  std::size_t size() const { return in_flight.size(); }
  // Read by formulas and plug-ins; NaN is never in them.
  std::vector<double> waiting, running, kv_usage, age;  ///< As last scraped; age in seconds.
  std::vector<double> in_flight, in_flight_tokens;      ///< Own requests, and their prompt tokens.
  std::vector<double> prefix_tokens;  ///< Prompt tokens the server has cached, from the first on.

 private:
  struct Sent {
    std::uint32_t endpoint;
    std::int64_t tokens;
  };
  ViewInputs inputs_;
  policies::AnnouncedBlocks announced_;
  std::vector<std::int64_t> block_size_;
  std::unordered_map<std::uint64_t, Sent> sent_;
};

}  // namespace routesim::sim
