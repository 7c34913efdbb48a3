// How far the simulated clock goes, and what a run says that would go beyond it.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "base/diagnostic.h"
#include "base/units.h"

namespace routesim::sim {

/// No event is handled at or after this instant. The ends of engine steps are counted in 2^-10 ns,
/// which 64 bits hold for 104 days.
inline constexpr SimTime kEndOfTime =
    SimTime::zero() + Duration::seconds(std::int64_t{103} * 86'400);

/// Thrown when a run asks for more than the clock holds: its input is at fault, not the simulator.
class ClockError : public std::runtime_error {
 public:
  explicit ClockError(Diagnostic d) : std::runtime_error(d.message), diagnostic_(std::move(d)) {}
  /// Tells what is wrong. It has a place once it has passed Simulation::run().
  const Diagnostic& diagnostic() const { return diagnostic_; }

 private:
  Diagnostic diagnostic_;
};

}  // namespace routesim::sim
