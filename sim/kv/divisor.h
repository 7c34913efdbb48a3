// Division by a number that stays the same for a whole run.
#pragma once

#include <bit>
#include <cstdint>

namespace routesim::sim {

/// Divides numbers that are not negative: with a shift by powers of two, as most block sizes are.
class Divisor {
 public:
  /// `divisor` must be positive.
  explicit Divisor(std::int64_t divisor)
      : divisor_(divisor),
        shift_(std::has_single_bit(static_cast<std::uint64_t>(divisor))
                   ? std::countr_zero(static_cast<std::uint64_t>(divisor))
                   : -1) {}
  std::int64_t divisor() const { return divisor_; }
  std::int64_t quotient(std::int64_t n) const { return shift_ >= 0 ? n >> shift_ : n / divisor_; }
  std::int64_t remainder(std::int64_t n) const { return n - quotient(n) * divisor_; }

 private:
  std::int64_t divisor_;
  int shift_;  ///< -1: not a power of two.
};

}  // namespace routesim::sim
