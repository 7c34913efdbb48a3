// Names of endpoints and storage tiers as small integers, so that no string is touched while a
// request is routed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace routesim::policies {

/// Address <-> EndpointId. Ids count from 0 in order of first appearance and are never reused, so
/// the limit bounds what names arriving over the network can cost.
class EndpointRegistry {
 public:
  explicit EndpointRegistry(std::size_t limit = std::size_t{1} << 20) : limit_(limit) {}
  /// The id of `address`, new if need be; an invalid id once the limit is reached.
  EndpointId intern(std::string_view address);
  /// The id of a known address, otherwise an invalid id.
  EndpointId find(std::string_view address) const;
  /// The address of an id this registry gave out.
  const std::string& address(EndpointId id) const { return addresses_[id.value()]; }
  std::size_t size() const { return addresses_.size(); }

 private:
  std::size_t limit_;
  std::vector<std::string> addresses_;
  std::map<std::string, EndpointId, std::less<>> ids_;
};

/// A storage tier inside the index. 0 is the empty tier of speculative entries.
using TierId = std::uint8_t;
inline constexpr TierId kNoTier = 0;
inline constexpr TierId kGpuTier = 1;
inline constexpr TierId kCpuTier = 2;

/// Tier name (lower case, "" = gpu on the wire) <-> TierId, at most 127 tiers.
class TierRegistry {
 public:
  TierRegistry();
  /// The id of a tier name as written in an event's medium: lower-cased, "" means "gpu". Nothing
  /// when the table is full.
  std::optional<TierId> intern_medium(std::string_view medium);
  /// The id of a name taken literally ("" is kNoTier); nothing when the table is full.
  std::optional<TierId> intern(std::string_view name);
  const std::string& name(TierId id) const { return names_[id]; }
  std::size_t size() const { return names_.size(); }

 private:
  std::vector<std::string> names_;
};

}  // namespace routesim::policies
