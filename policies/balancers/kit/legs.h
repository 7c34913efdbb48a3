// Routers that choose one server per leg of a request: a server for all of it, or one for the
// prompt and then one for the answer, each by a policy over the servers of its own leg.
#pragma once

#include <algorithm>
#include <memory>

#include "base/rng.h"
#include "policies/balancers/kit/announced_blocks.h"
#include "policies/balancers/kit/balancer.h"
#include "policies/balancers/kit/circuit_breakers.h"
#include "policies/balancers/kit/named_servers.h"

namespace routesim::policies {

/// The servers of one leg, as a policy sees them. Indexes count the balancer's endpoints.
struct Leg {
  std::string_view name = {};  ///< "", "prefill" or "decode".
  std::span<const BalancerEndpoint> endpoints = {};
  std::span<const std::uint32_t> in_flight = {};  ///< By endpoint.
  std::vector<std::uint32_t> workers = {};        ///< Of this leg, in the order of registration.
  std::vector<std::uint32_t> healthy = {};        ///< Those of them that may get requests.
  std::vector<bool> has = {};                     ///< By endpoint: whether it is a worker.
  std::optional<std::uint32_t> forced = {};       ///< See settle().

  bool can_serve(std::uint32_t endpoint) const {
    return std::binary_search(healthy.begin(), healthy.end(), endpoint);
  }
  std::uint32_t load(std::uint32_t endpoint) const { return in_flight[endpoint]; }
  const std::string& url(std::uint32_t endpoint) const { return endpoints[endpoint].name; }
  /// The endpoint that gets the request where a policy chose `chosen`. Policies settle what they
  /// choose before they remember it.
  std::uint32_t settle(std::uint32_t chosen) const { return forced.value_or(chosen); }
};

/// A policy of one leg, or of both where a product shares one object.
class LegPolicy {
 public:
  virtual ~LegPolicy() = default;
  virtual BalancerNeeds needs() const { return {}; }
  /// The servers of a leg have changed. Comes before the first pick() for the leg.
  virtual void on_workers(const Leg& /*leg*/) {}
  /// An endpoint of the leg, or nothing. leg.healthy is not empty.
  virtual std::optional<std::uint32_t> pick(const Leg& leg, const BalancerRequest& request) = 0;
  virtual void on_sent(const Leg& /*leg*/, std::uint32_t /*endpoint*/,
                       const BalancerRequest& /*request*/) {}
  virtual void on_first_token(std::uint64_t /*id*/) {}
  virtual void on_completed(const Leg& /*leg*/, std::uint64_t /*id*/) {}
  /// Gives a policy whose needs() name KV events the blocks that they announce.
  virtual void use_blocks(AnnouncedBlocks* /*blocks*/) {}
};

/// Servers that report so much get nothing while another one is free, and the least loaded of all
/// gets the request if none is (model_gateway/src/worker/overload.rs of smg 1.12.0).
struct LegOverload {
  double waiting = 0, kv_usage = 0;
  Duration interval{};  ///< Between two polls of what they report.
  RandomStream random;
};

/// The policies of a router's legs; two of them may be one object.
struct LegPolicies {
  std::shared_ptr<LegPolicy> single;  ///< Without prefill servers.
  std::shared_ptr<LegPolicy> prefill, decode;
  std::optional<LegOverload> overload = {};
  CircuitBreakerSettings breaker = {};
  bool breaks_with_prefill = true;  ///< Breakers count where prefill servers are, too.
};

/// Chooses leg by leg. A server with a role makes the router disaggregated for good: then it needs
/// a server of each leg (select_pd_pair of SMG's pd_router.rs, vllm_pd_router.rs).
class LegBalancer final : public Balancer {
 public:
  explicit LegBalancer(LegPolicies policies);

  void set_endpoints(std::span<const BalancerEndpoint> endpoints) override;
  BalancerNeeds needs() const override;
  PrefixIndex* prefix_index() override { return blocks_ ? &blocks_->index() : nullptr; }
  BalancerAnswer pick(const BalancerRequest& request) override;
  void on_sent(const BalancerPick& pick, const BalancerRequest& request = {}) override;
  void on_first_token(const BalancerPick& pick, std::uint64_t id, SimTime now) override;
  bool on_outcome(std::uint32_t server, bool success, SimTime now) override;
  void on_completed(const BalancerPick& pick, const BalancerOutcome& outcome = {}) override;

 private:
  std::optional<std::uint32_t> pick_leg(LegPolicy& policy, const Leg& whole,
                                        std::optional<std::uint32_t> forced,
                                        const BalancerRequest& request);

  LegPolicies policies_;
  std::optional<AnnouncedBlocks> blocks_;
  CircuitBreakers breakers_;
  bool disaggregated_ = false;
  Leg prefill_, decode_;  ///< decode_ is the only leg of a router that is not disaggregated.
};

/// The workers of one leg or two by name. A server keeps its number when it leaves and comes back.
class TenantNames {
 public:
  void update(const Leg& leg) {
    for (const std::uint32_t w : leg.workers) names_.note(leg.url(w), w);
  }
  std::uint32_t tenant(std::uint32_t endpoint) const { return names_.number(endpoint); }
  /// The endpoint of a tenant, if it is a worker of the leg now.
  std::optional<std::uint32_t> endpoint(const Leg& leg, std::uint32_t tenant) const {
    const auto e = names_.index(tenant);
    return e && *e < leg.has.size() && leg.has[*e] && this->tenant(*e) == tenant ? e : std::nullopt;
  }

 private:
  NamedServers names_;
};

/// Uniform over the healthy workers.
class RandomLeg final : public LegPolicy {
 public:
  explicit RandomLeg(const RandomStream& random) : random_(random) {}
  std::optional<std::uint32_t> pick(const Leg& leg, const BalancerRequest&) override {
    return leg.healthy[random_.below(leg.healthy.size())];
  }

 private:
  RandomStream random_;
};

/// One counter over the healthy workers of all its legs.
class RoundRobinLeg final : public LegPolicy {
 public:
  std::optional<std::uint32_t> pick(const Leg& leg, const BalancerRequest&) override {
    return leg.healthy[count_++ % leg.healthy.size()];
  }

 private:
  std::uint64_t count_ = 0;
};

/// The first healthy worker with the least requests in flight.
std::uint32_t least_loaded(const Leg& leg);

/// The imbalance rule of cache-aware routers: the loads differ by more than `absolute`, and the
/// larger is more than `relative` times the smaller one, in 32-bit numbers as in the product.
inline bool imbalanced(std::uint64_t least, std::uint64_t most, std::int64_t absolute,
                       double relative) {
  return most - least > static_cast<std::uint64_t>(absolute) &&
         static_cast<float>(most) > static_cast<float>(least) * static_cast<float>(relative);
}

/// Periodic work that is done at the first decision after it was due: nothing in between sees it.
class Periodic {
 public:
  explicit Periodic(Duration interval) : interval_(interval) {}  ///< Zero = never.
  /// True when the time has passed a whole number of intervals since the last call.
  bool due(SimTime now);
  /// The last of those times.
  SimTime last() const { return last_; }

 private:
  Duration interval_;
  SimTime last_;
};

}  // namespace routesim::policies
