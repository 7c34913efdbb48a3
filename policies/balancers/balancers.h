// Load balancers that are not llm-d's endpoint picker: the baselines people compare it with. Each
// keeps its own in-flight counts, so several router replicas are several objects.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/describe.h"
#include "base/rng.h"

namespace routesim::policies {

/// A server a balancer can pick.
struct BalancerEndpoint {
  std::string name;                   ///< "namespace/pod" for KubeAI; hashed by prefix-hash.
  std::vector<std::string> adapters;  ///< LoRA adapters it serves.
};

/// What a balancer may look at. Views are only read during the call.
struct BalancerRequest {
  std::string_view prefix;  ///< Text whose first characters prefix-hash uses (see prefix_source()).
  std::string_view adapter;  ///< Requested LoRA adapter, "" for the base model.
};

/// A decision. Hand it back unchanged to on_completed().
struct BalancerPick {
  std::uint32_t endpoint = 0;    ///< Index into the endpoints last given to set_endpoints().
  std::uint32_t server = 0;      ///< The same server, whatever set_endpoints() does later.
  std::uint32_t connection = 0;  ///< k8s-service only: which connection carries the request.
};

/// The interface. pick() -> on_sent() -> on_completed() for every request, in event order.
class Balancer {
 public:
  virtual ~Balancer() = default;
  /// Replaces the endpoint set. In-flight counts of endpoints that stay (by name) are kept;
  /// requests in flight at endpoints that left still count in total_in_flight() until they
  /// complete, but not at an endpoint that returns under the name.
  virtual void set_endpoints(std::span<const BalancerEndpoint> endpoints);
  /// Chooses an endpoint; nothing when none can serve the request (none at all, or none with the
  /// adapter): the caller waits for the set to change.
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
  /// Where a server is now; nothing when it left.
  std::optional<std::uint32_t> index_of(std::uint32_t server) const;

 private:
  std::vector<BalancerEndpoint> endpoints_;
  std::vector<std::uint32_t> in_flight_;  // By index into endpoints_.
  std::vector<std::uint32_t> server_of_;  // Index -> server.
  std::vector<std::uint32_t> index_of_;   // Server -> index, or kGone.
  std::vector<std::uint32_t> gone_load_;  // Server -> in flight while it is gone.
  std::map<std::string, std::uint32_t, std::less<>> servers_;  // Of the endpoints that are there.
  std::uint64_t total_ = 0;
};

/// How a request finds its endpoint.
enum class BalancerKind : std::uint8_t {
  kEndpointPicker,  ///< A Scheduler decides, and no balancer is made.
  kRoundRobin,
  kRandom,
  kK8sService,
  kLeastLoad,
  kPrefixHash
};

/// How kube-proxy spreads new connections.
enum class ServiceMode : std::uint8_t {
  kIptables,        ///< Uniformly at random.
  kIpvsRoundRobin,  ///< In rotation.
};

/// Settings of all balancers; each reads its own.
struct BalancerSettings {
  ServiceMode service_mode = ServiceMode::kIptables;  ///< k8s-service.
  /// k8s-service: a Service is a layer-4 balancer, so a kept-alive connection stays with its
  /// endpoint. 1 = a new connection per request.
  std::int64_t requests_per_connection = 1;
  std::int64_t prefix_char_length = 100;  ///< prefix-hash: code points of the prompt.
  std::int64_t mean_load_factor = 125;    ///< prefix-hash: percent (KubeAI meanLoadFactor).
  std::int64_t hash_replication = 256;    ///< prefix-hash.
};
/// Names every key with its meaning and bounds.
void describe(Describer& d, BalancerSettings& c);

/// Makes a balancer drawing from (seed, Stream::kBalancer, entity).
/// `kind` is not kEndpointPicker, and `settings` are within the bounds that describe() names.
std::unique_ptr<Balancer> make_balancer(BalancerKind kind, const BalancerSettings& settings,
                                        std::uint64_t seed, std::uint64_t entity = 0);

// ---- KubeAI's request side
// -----------------------------------------------------------------------

/// The first `code_points` Unicode code points of `text` (invalid bytes count one each).
std::string_view first_code_points(std::string_view text, std::size_t code_points);

struct ChatMessage {
  std::string_view role;
  std::string_view content;  ///< Array content: its text parts, concatenated.
};
/// The text the prefix is taken from: the first user message's content, "" without one.
std::string_view prefix_source(std::span<const ChatMessage> messages);

/// "model_adapter" split at the first "_"; no adapter without one.
struct ModelAndAdapter {
  std::string_view model;
  std::string_view adapter;
};
ModelAndAdapter split_model_adapter(std::string_view model_field);

/// KubeAI's bounded-load test: total = 0, or load <= (total + 1) / n * factor.
bool chwbl_load_ok(std::uint64_t load, std::uint64_t total, std::size_t n, double factor);

/// A consistent-hash ring: replication points XXH64(name + decimal(i)) per endpoint.
class HashRing {
 public:
  HashRing() = default;
  HashRing(std::span<const BalancerEndpoint> endpoints, std::uint32_t replication);
  /// Position of the first point >= hash, wrapping to 0. The ring must not be empty.
  std::size_t locate(std::uint64_t hash) const;
  std::uint32_t owner(std::size_t position) const { return owners_[position]; }
  std::size_t size() const { return hashes_.size(); }

 private:
  std::vector<std::uint64_t> hashes_;
  std::vector<std::uint32_t> owners_;
};

}  // namespace routesim::policies

template <>
struct routesim::EnumNames<routesim::policies::BalancerKind> {
  static constexpr std::array<std::string_view, 6> value = {
      "endpoint-picker", "round-robin", "random", "k8s-service", "least-load", "prefix-hash"};
};
template <>
struct routesim::EnumNames<routesim::policies::ServiceMode> {
  static constexpr std::array<std::string_view, 2> value = {"iptables", "ipvs-rr"};
};
