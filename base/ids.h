// Strong identifiers: small integers that cannot be exchanged for one another.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace routesim {

/// An index into a table of one kind of entity. Default-constructed ids are invalid.
template <class Tag>
class Id {
 public:
  using Raw = std::uint32_t;
  static constexpr Raw kInvalid = std::numeric_limits<Raw>::max();
  constexpr Id() = default;
  constexpr explicit Id(std::uint64_t raw) : raw_(static_cast<Raw>(raw)) {}
  constexpr Raw value() const { return raw_; }
  constexpr bool valid() const { return raw_ != kInvalid; }
  constexpr auto operator<=>(const Id&) const = default;

 private:
  Raw raw_ = kInvalid;
};

using RequestId = Id<struct RequestTag>;    ///< A client request, in order of due time.
using EndpointId = Id<struct EndpointTag>;  ///< What a router picks: a (replica, DP rank) address.
using StageId = Id<struct StageTag>;        ///< A load stage.
using PoolId = Id<struct PoolTag>;          ///< A pool of identical replicas.

}  // namespace routesim
