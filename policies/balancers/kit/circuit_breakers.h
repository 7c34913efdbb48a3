// The circuit breakers of routers that keep one for each server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/describe.h"
#include "base/units.h"

namespace routesim::policies {

/// Settings under the names of the routers' flags.
struct CircuitBreakerSettings {
  bool disable_circuit_breaker = false;
  std::int64_t cb_failure_threshold = 10, cb_success_threshold = 3;
  Duration cb_timeout_duration = Duration::seconds(60);
  bool operator==(const CircuitBreakerSettings&) const = default;
};
inline void describe(Describer& d, CircuitBreakerSettings& s) {
  constexpr IntRange kCount{1, 1'000'000'000};
  field(d, {"disable_circuit_breaker", "Servers that fail get requests all the same."},
        s.disable_circuit_breaker);
  field(d, {"cb_failure_threshold", "Failures of a server in a row that open its circuit breaker."},
        s.cb_failure_threshold, kCount);
  field(d, {"cb_success_threshold", "Answers in a row that close it when it is half-open."},
        s.cb_success_threshold, kCount);
  field(d, {"cb_timeout_duration", "It lets nothing through for so long; then it is half-open."},
        s.cb_timeout_duration);
}

/// The breakers of one router process, by BalancerPick::server, so that a server that leaves and
/// returns has a new one. As model_gateway/src/worker/circuit_breaker.rs of smg v1.9.0 and
/// src/core/circuit_breaker.rs of vllm-router 0.1.15 to 0.1.17: their time window is read and never
/// used, and a half-open breaker lets every request through. O(1) each.
class CircuitBreakers {
 public:
  explicit CircuitBreakers(const CircuitBreakerSettings& rules) : rules_(rules) {}

  /// False: every server may get requests.
  bool any_open() const { return open_ > 0; }
  /// The server may get requests. An open breaker whose time is over becomes half-open.
  bool lets_through(std::uint32_t server, SimTime now) {
    if (server >= breakers_.size() || breakers_[server].state != State::kOpen) return true;
    if (now - breakers_[server].since < rules_.cb_timeout_duration) return false;
    breakers_[server] = {.state = State::kHalfOpen};
    --open_;
    return true;
  }
  /// A server has answered, or failed to. True: its breaker opens.
  bool record(std::uint32_t server, bool success, SimTime now) {
    if (server >= breakers_.size()) {
      if (success || rules_.disable_circuit_breaker) return false;
      breakers_.resize(std::size_t{server} + 1);
    }
    Breaker& b = breakers_[server];
    if (success) {
      b.failures = 0;
      if (++b.successes >= rules_.cb_success_threshold && b.state == State::kHalfOpen) b = {};
      return false;
    }
    b.successes = 0;
    ++b.failures;
    const bool bears = b.state == State::kClosed && b.failures < rules_.cb_failure_threshold;
    if (bears || b.state == State::kOpen) return false;
    b.state = State::kOpen;
    b.since = now;
    ++open_;
    return true;
  }

 private:
  enum class State : std::uint8_t { kClosed, kOpen, kHalfOpen };
  struct Breaker {
    State state = State::kClosed;
    std::int64_t failures = 0, successes = 0;  ///< In a row.
    SimTime since{};                           ///< Open.
  };
  CircuitBreakerSettings rules_;
  std::vector<Breaker> breakers_;  ///< As many as the last server that failed needs.
  std::size_t open_ = 0;           ///< Breakers, those of servers that left among them.
};

}  // namespace routesim::policies
