// The servers of a balancer that has prefill and decode servers, by role.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policies/balancers/kit/balancer.h"

namespace routesim::policies {

/// Healthy prefill servers, and all the other healthy ones.
class RolePools : public Balancer {
 public:
  void set_endpoints(std::span<const BalancerEndpoint> endpoints) override {
    Balancer::set_endpoints(endpoints);
    prefill_.clear();
    decode_.clear();
    for (std::uint32_t i = 0; i < size(); ++i)
      if (endpoints[i].healthy)
        (endpoints[i].role == ServerRole::kPrefill ? prefill_ : decode_).push_back(i);
  }

 protected:
  /// Indexes of endpoints that may be chosen, in their order.
  const std::vector<std::uint32_t>& prefill() const { return offered(prefill_); }
  const std::vector<std::uint32_t>& decode() const { return offered(decode_); }

 private:
  std::vector<std::uint32_t> prefill_, decode_;
};

}  // namespace routesim::policies
