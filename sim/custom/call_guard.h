// Watches calls into code that is not ours: says which request it was when one crashes or blocks.
#pragma once

#include <cstdint>
#include <string>

#include "base/units.h"

namespace routesim::sim {

/// Marks the calls of one thread. The first one made starts a watching thread and takes the signals
/// that crashes send, for the rest of the process. A guard costs two stores and no clock.
class CallGuard {
 public:
  /// `what` names the code in messages; `timeout` is wall time per call.
  static void watch(const std::string& what, Duration timeout);

  /// A call about `request` begins.
  explicit CallGuard(std::uint64_t request);
  ~CallGuard();
  CallGuard(const CallGuard&) = delete;
  CallGuard& operator=(const CallGuard&) = delete;
};

}  // namespace routesim::sim
