// Numbers of servers that outlive their absence, for products that remember servers by name.
#pragma once

#include "policies/balancers/kit/balancer.h"

namespace routesim::policies {

/// A server that leaves and returns under its name gets its old number.
class NamedServers {
 public:
  void set(std::span<const BalancerEndpoint> endpoints) {
    number_of_.clear();
    index_of_.assign(index_of_.size(), std::nullopt);
    for (std::uint32_t i = 0; i < endpoints.size(); ++i) note(endpoints[i].name, i);
  }
  /// Endpoint i has this name from now on.
  void note(const std::string& name, std::uint32_t i) {
    const auto next = static_cast<std::uint32_t>(index_of_.size());
    const auto [at, is_new] = numbers_.try_emplace(name, next);
    if (is_new) index_of_.emplace_back();
    index_of_[at->second] = i;
    if (i >= number_of_.size()) number_of_.resize(i + std::size_t{1});
    number_of_[i] = at->second;
  }
  std::uint32_t number(std::uint32_t i) const { return number_of_[i]; }
  /// The endpoint with that number in the present set, if it is there.
  std::optional<std::uint32_t> index(std::uint32_t number) const { return index_of_[number]; }

 private:
  std::map<std::string, std::uint32_t, std::less<>> numbers_;
  std::vector<std::uint32_t> number_of_;                ///< By index.
  std::vector<std::optional<std::uint32_t>> index_of_;  ///< By number.
};

}  // namespace routesim::policies
