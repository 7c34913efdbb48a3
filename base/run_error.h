// A run that cannot go on because of its input.
#pragma once

#include <stdexcept>
#include <utility>

#include "base/diagnostic.h"

namespace routesim {

/// Thrown in a run when its input is at fault, not the simulator: exit code 2.
class RunError : public std::runtime_error {
 public:
  explicit RunError(Diagnostic d) : std::runtime_error(d.message), diagnostic_(std::move(d)) {}
  /// Tells what is wrong. It has a place once it has passed Simulation::run().
  const Diagnostic& diagnostic() const { return diagnostic_; }
  Diagnostic& diagnostic() { return diagnostic_; }

 private:
  Diagnostic diagnostic_;
};

}  // namespace routesim
