// Names of storage tiers as small integers, so that no string is touched while a request is routed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace routesim::policies {

/// A storage tier inside the index. 0 is the empty tier of speculative entries.
using TierId = std::uint8_t;
inline constexpr TierId kNoTier = 0;
inline constexpr TierId kGpuTier = 1;
inline constexpr TierId kCpuTier = 2;

/// Tier name (lower case, "" = gpu on the wire) <-> TierId, at most 127 tiers.
class TierRegistry {
 public:
  TierRegistry() : names_{"", "gpu", "cpu"} {}
  /// The id of a tier name as written in an event's medium: lower-cased, "" means "gpu". Nothing
  /// when the table is full.
  std::optional<TierId> intern_medium(std::string_view medium) {
    if (medium.empty()) return kGpuTier;
    std::string lower(medium);
    for (char& c : lower)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return intern(lower);
  }
  /// The id of a name taken literally ("" is kNoTier); nothing when the table is full.
  std::optional<TierId> intern(std::string_view name) {
    const auto at = std::find(names_.begin(), names_.end(), name);
    if (at == names_.end() && names_.size() > 127) return std::nullopt;
    const auto id = static_cast<TierId>(at - names_.begin());
    if (at == names_.end()) names_.emplace_back(name);
    return id;
  }
  const std::string& name(TierId id) const { return names_[id]; }
  std::size_t size() const { return names_.size(); }

 private:
  std::vector<std::string> names_;
};

}  // namespace routesim::policies
