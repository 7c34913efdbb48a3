// Kubernetes Services, and the plain rotation and random choice that other proxies make.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <optional>
#include <string_view>
#include <vector>

#include "base/describe.h"
#include "base/rng.h"
#include "policies/balancers/kit/balancer.h"

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
    if (request.adapter.empty() && !restricted()) {
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
    while (!idle_.empty() && !index_of(connections_[idle_.back()].server)) {
      free_.push_back(idle_.back());  // Its server is gone, so the connection is closed.
      idle_.pop_back();
    }
    const auto at = last_idle([this](std::uint32_t i) { return offered(i); });
    const std::uint32_t chosen = at != idle_.end() ? *index_of(connections_[*at].server) : draw();
    const std::uint32_t settled = settle(chosen);
    return connect(settled, settled == chosen ? at : last_idle([settled](std::uint32_t i) {
                     return i == settled;
                   }));
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

  using Idle = std::vector<std::uint32_t>::iterator;

  /// The most recently idle connection to an endpoint that `fits`.
  template <class F>
  Idle last_idle(F fits) {
    const auto found = std::find_if(idle_.rbegin(), idle_.rend(), [&](std::uint32_t c) {
      const auto i = index_of(connections_[c].server);
      return i && fits(*i);
    });
    return found == idle_.rend() ? idle_.end() : std::prev(found.base());
  }
  /// The backend of a new connection.
  std::uint32_t draw() {
    if (all_.size() != size()) {
      all_.resize(size());
      std::iota(all_.begin(), all_.end(), 0U);
    }
    const std::vector<std::uint32_t>& backends = offered(all_);
    return backends[mode_ == ServiceMode::kIptables ? random_.below(backends.size())
                                                    : rotation_++ % backends.size()];
  }
  BalancerPick connect(std::uint32_t endpoint, Idle idle) {
    BalancerPick pick = pick_of(endpoint);
    if (idle != idle_.end()) {
      pick.connection = *idle;
      idle_.erase(idle);
      return pick;
    }
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
  std::vector<std::uint32_t> all_;   // Every endpoint.
  std::vector<std::uint32_t> idle_;  // Open and unused, most recent last.
  std::vector<std::uint32_t> free_;  // Closed: numbers to reuse.
};

}  // namespace routesim::policies
