#include "policies/index/endpoint_registry.h"

#include <algorithm>

namespace routesim::policies {

EndpointId EndpointRegistry::intern(std::string_view address) {
  if (const auto at = ids_.find(address); at != ids_.end()) return at->second;
  if (addresses_.size() >= limit_) return {};
  const EndpointId id(addresses_.size());
  addresses_.emplace_back(address);
  ids_.emplace(addresses_.back(), id);
  return id;
}

EndpointId EndpointRegistry::find(std::string_view address) const {
  const auto at = ids_.find(address);
  return at == ids_.end() ? EndpointId() : at->second;
}

TierRegistry::TierRegistry() : names_{"", "gpu", "cpu"} {}

std::optional<TierId> TierRegistry::intern_medium(std::string_view medium) {
  if (medium.empty()) return kGpuTier;
  std::string lower(medium);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return intern(lower);
}

std::optional<TierId> TierRegistry::intern(std::string_view name) {
  const auto at = std::find(names_.begin(), names_.end(), name);
  if (at == names_.end() && names_.size() > 127) return std::nullopt;
  const auto id = static_cast<TierId>(at - names_.begin());
  if (at == names_.end()) names_.emplace_back(name);
  return id;
}

}  // namespace routesim::policies
