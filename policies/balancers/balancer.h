// The interface of load balancers that are not llm-d's endpoint picker: the
// baselines people compare it with. Each keeps its own in-flight counts, so
// several router replicas are several objects. One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace routesim::policies {

/// A server a balancer can pick.
struct BalancerEndpoint {
  std::string name;                   ///< "namespace/pod" for KubeAI; hashed by prefix-hash.
  std::vector<std::string> adapters;  ///< LoRA adapters it serves.
};

/// The part of a request that a balancer may look at. Views are only read during the call.
struct BalancerRequest {
  std::string_view prefix;   ///< Text whose first characters prefix-hash uses
                             ///< (see prefix_source()).
  std::string_view adapter;  ///< Requested LoRA adapter, "" for the base model.
};

/// A decision. Hand it back unchanged to on_completed().
struct BalancerPick {
  std::uint32_t endpoint = 0;    ///< Index into the endpoints last given to set_endpoints().
  std::uint32_t server = 0;      ///< The same server, whatever set_endpoints() does later.
  std::uint32_t connection = 0;  ///< k8s-service only: which connection carries the request.
};

/// The interface. pick() -> on_sent() -> on_completed() for every request, in
/// event order.
class Balancer {
 public:
  virtual ~Balancer() = default;
  /// Replaces the endpoint set. In-flight counts of endpoints that stay (by
  /// name) are kept; requests in flight at endpoints that left still count in
  /// total_in_flight() until they complete, but not at an endpoint that returns
  /// under the name.
  virtual void set_endpoints(std::span<const BalancerEndpoint> endpoints);
  /// Chooses an endpoint; nothing when none can serve the request (none at all,
  /// or none with the adapter): the caller waits for the set to change.
  virtual std::optional<BalancerPick> pick(const BalancerRequest& request) = 0;
  /// The request went to its pick: counts it as in flight.
  virtual void on_sent(const BalancerPick& pick);
  /// The response is finished (or failed).
  virtual void on_completed(const BalancerPick& pick);

  std::span<const std::uint32_t> in_flight() const { return in_flight_; }
  std::uint64_t total_in_flight() const { return total_; }
  std::size_t size() const { return endpoints_.size(); }

 protected:
  /// True when endpoint i serves `adapter` ("" is served by all).
  bool serves(std::uint32_t i, std::string_view adapter) const;
  const std::vector<BalancerEndpoint>& endpoints() const { return endpoints_; }
  /// The pick of endpoint i.
  BalancerPick pick_of(std::uint32_t i) const { return {.endpoint = i, .server = server_of_[i]}; }
  /// The index of a server now; nothing when it left.
  std::optional<std::uint32_t> index_of(std::uint32_t server) const;

 private:
  std::vector<BalancerEndpoint> endpoints_;
  std::vector<std::uint32_t> in_flight_;  // By index into endpoints_.
  std::vector<std::uint32_t> server_of_;  // Index -> server.
  std::vector<std::uint32_t> index_of_;   // Server -> index, or kGone.
  std::vector<std::uint32_t> gone_load_;  // Server -> in flight while it is gone.
  std::map<std::string, std::uint32_t, std::less<>> servers_;  // Endpoints that are there.
  std::uint64_t total_ = 0;
};

}  // namespace routesim::policies
