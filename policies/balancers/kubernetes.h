// Kubernetes Services, and the plain rotation and random choice that other
// proxies make.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/describe.h"
#include "base/rng.h"
#include "policies/balancers/balancer.h"

namespace routesim::policies {

/// How kube-proxy spreads new connections.
enum class ServiceMode : std::uint8_t {
  kIptables,        ///< Uniformly at random.
  kIpvsRoundRobin,  ///< In rotation.
};

}  // namespace routesim::policies

template <>
struct routesim::EnumNames<routesim::policies::ServiceMode> {
  static constexpr std::array<std::string_view, 2> value = {"iptables", "ipvs-rr"};
};

namespace routesim::policies {

/// Settings of k8s-service.
struct KubernetesSettings {
  ServiceMode service_mode = ServiceMode::kIptables;
  /// A Service is a layer-4 balancer, so a kept-alive connection stays with its
  /// endpoint. 1 = a new connection per request.
  std::int64_t requests_per_connection = 1;
};
inline void describe(Describer& d, KubernetesSettings& s) {
  field(d, {"service_mode", "k8s-service: kube-proxy's mode."}, s.service_mode);
  field(d,
        {"requests_per_connection",
         "k8s-service: requests a client sends over one connection "
         "before it opens another."},
        s.requests_per_connection, IntRange{1, 1'000'000'000});
}

/// Strict rotation over the endpoints in their given order.
class RoundRobin final : public Balancer {
 public:
  BalancerAnswer pick(const BalancerRequest& request) override {
    for (std::size_t tries = 0; tries < size(); ++tries) {
      const auto i = static_cast<std::uint32_t>(next_++ % size());
      if (serves(i, request.adapter)) return pick_of(i);
    }
    return std::nullopt;
  }

 private:
  std::uint64_t next_ = 0;
};

/// Uniform over the endpoints that serve the request.
class Random final : public Balancer {
 public:
  explicit Random(RandomStream random) : random_(random) {}
  BalancerAnswer pick(const BalancerRequest& request) override {
    if (request.adapter.empty()) {
      if (size() == 0) return std::nullopt;
      return pick_of(static_cast<std::uint32_t>(random_.below(size())));
    }
    able_.clear();
    for (std::uint32_t i = 0; i < size(); ++i)
      if (serves(i, request.adapter)) able_.push_back(i);
    if (able_.empty()) return std::nullopt;
    return pick_of(able_[random_.below(able_.size())]);
  }

 private:
  RandomStream random_;
  std::vector<std::uint32_t> able_;
};

/// A Kubernetes Service: kube-proxy chooses a backend when a connection opens, and every request on
/// that connection follows. A client takes its most recently idle connection first, as HTTP pools
/// do. The Service knows nothing of adapters.
class K8sService final : public Balancer {
 public:
  K8sService(const KubernetesSettings& settings, RandomStream random)
      : mode_(settings.service_mode), reuse_(settings.requests_per_connection), random_(random) {}

  BalancerAnswer pick(const BalancerRequest&) override {
    if (size() == 0) return std::nullopt;
    while (!idle_.empty()) {
      const std::uint32_t c = idle_.back();
      idle_.pop_back();
      if (const auto i = index_of(connections_[c].server)) {
        BalancerPick pick = pick_of(*i);
        pick.connection = c;
        return pick;
      }
      free_.push_back(c);  // Its server is gone, so the connection is closed.
    }
    return open();
  }

  void on_sent(const BalancerPick& pick, const BalancerRequest& request) override {
    Balancer::on_sent(pick, request);
    ++connections_[pick.connection].used;
  }

  void on_completed(const BalancerPick& pick, const BalancerOutcome& outcome) override {
    Balancer::on_completed(pick, outcome);
    const bool more = connections_[pick.connection].used < reuse_;
    (more ? idle_ : free_).push_back(pick.connection);
  }

 private:
  struct Connection {
    std::uint32_t server = 0;
    std::uint32_t used = 0;  ///< Requests sent over it.
  };

  BalancerPick open() {
    const std::uint64_t backend =
        mode_ == ServiceMode::kIptables ? random_.below(size()) : rotation_++ % size();
    BalancerPick pick = pick_of(static_cast<std::uint32_t>(backend));
    if (free_.empty()) {
      pick.connection = static_cast<std::uint32_t>(connections_.size());
      connections_.emplace_back();
    } else {
      pick.connection = free_.back();
      free_.pop_back();
    }
    connections_[pick.connection] = {.server = pick.server, .used = 0};
    return pick;
  }

  ServiceMode mode_;
  std::int64_t reuse_;
  RandomStream random_;
  std::uint64_t rotation_ = 0;
  std::vector<Connection> connections_;
  std::vector<std::uint32_t> idle_;  // Open and unused, most recent last.
  std::vector<std::uint32_t> free_;  // Closed: numbers to reuse.
};

}  // namespace routesim::policies
