// Time and counted quantities as types, so that an instant, a duration, a token and a block
// cannot be mixed up. Time is an integer count of nanoseconds everywhere (design law 3).
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace routesim {

/// A span of simulated time in whole nanoseconds. May be negative (a difference).
class Duration {
 public:
  constexpr Duration() = default;
  static constexpr Duration nanoseconds(std::int64_t n) { return Duration(n); }
  static constexpr Duration microseconds(std::int64_t n) { return Duration(n * 1'000); }
  static constexpr Duration milliseconds(std::int64_t n) { return Duration(n * 1'000'000); }
  static constexpr Duration seconds(std::int64_t n) { return Duration(n * 1'000'000'000); }
  /// Rounds to the nearest nanosecond, halves away from zero; saturates at max().
  static constexpr Duration from_seconds(double s) {
    const double ns = s * 1e9;
    if (ns >= 9.2e18) return max();
    if (ns <= -9.2e18) return Duration(std::numeric_limits<std::int64_t>::min());
    return Duration(static_cast<std::int64_t>(ns < 0 ? ns - 0.5 : ns + 0.5));
  }
  static constexpr Duration max() { return Duration(std::numeric_limits<std::int64_t>::max()); }
  static constexpr Duration zero() { return Duration(0); }

  constexpr std::int64_t ns() const { return ns_; }
  constexpr double to_seconds() const { return static_cast<double>(ns_) * 1e-9; }
  constexpr double to_milliseconds() const { return static_cast<double>(ns_) * 1e-6; }

  constexpr auto operator<=>(const Duration&) const = default;
  constexpr Duration operator+(Duration o) const { return Duration(ns_ + o.ns_); }
  constexpr Duration operator-(Duration o) const { return Duration(ns_ - o.ns_); }
  constexpr Duration operator-() const { return Duration(-ns_); }
  constexpr Duration operator*(std::int64_t k) const { return Duration(ns_ * k); }
  constexpr Duration operator/(std::int64_t k) const { return Duration(ns_ / k); }
  constexpr std::int64_t operator/(Duration o) const { return ns_ / o.ns_; }
  constexpr Duration& operator+=(Duration o) {
    ns_ += o.ns_;
    return *this;
  }
  constexpr Duration& operator-=(Duration o) {
    ns_ -= o.ns_;
    return *this;
  }

 private:
  constexpr explicit Duration(std::int64_t n) : ns_(n) {}
  std::int64_t ns_ = 0;
};

/// An instant of simulated time: nanoseconds since the start of the run. An instant is not a
/// duration: two instants subtract to a Duration, and only a Duration can be added to one.
class SimTime {
 public:
  constexpr SimTime() = default;
  static constexpr SimTime from_ns(std::int64_t n) { return SimTime(n); }
  static constexpr SimTime max() { return SimTime(std::numeric_limits<std::int64_t>::max()); }
  static constexpr SimTime zero() { return SimTime(0); }

  constexpr std::int64_t ns() const { return ns_; }
  constexpr double to_seconds() const { return static_cast<double>(ns_) * 1e-9; }

  constexpr auto operator<=>(const SimTime&) const = default;
  constexpr SimTime operator+(Duration d) const { return SimTime(ns_ + d.ns()); }
  constexpr SimTime operator-(Duration d) const { return SimTime(ns_ - d.ns()); }
  constexpr Duration operator-(SimTime o) const { return Duration::nanoseconds(ns_ - o.ns_); }
  constexpr SimTime& operator+=(Duration d) {
    ns_ += d.ns();
    return *this;
  }

 private:
  constexpr explicit SimTime(std::int64_t n) : ns_(n) {}
  std::int64_t ns_ = 0;
};

/// A count of one kind of thing. Arithmetic stays within the kind; .value() leaves it.
template <class Tag>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(std::int64_t n) : n_(n) {}
  constexpr std::int64_t value() const { return n_; }
  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity operator+(Quantity o) const { return Quantity(n_ + o.n_); }
  constexpr Quantity operator-(Quantity o) const { return Quantity(n_ - o.n_); }
  constexpr Quantity operator*(std::int64_t k) const { return Quantity(n_ * k); }
  constexpr std::int64_t operator/(Quantity o) const { return n_ / o.n_; }
  constexpr Quantity& operator+=(Quantity o) {
    n_ += o.n_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity o) {
    n_ -= o.n_;
    return *this;
  }

 private:
  std::int64_t n_ = 0;
};

using Tokens = Quantity<struct TokensTag>;  ///< Tokens of a prompt or an answer.
using Blocks = Quantity<struct BlocksTag>;  ///< KV-cache blocks of one engine.
using Bytes = Quantity<struct BytesTag>;    ///< Bytes of memory or of a transfer.

}  // namespace routesim
