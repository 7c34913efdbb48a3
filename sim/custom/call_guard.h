// Watches calls into code that is not ours: says which request it was when one crashes or blocks.
#pragma once

#include <cstdint>
#include <string>

#include "base/units.h"

namespace routesim::sim {

/// Code that is called, and how long one call may take in wall time. Outlives the calls.
struct WatchedCode {
  std::string name;  ///< In messages.
  Duration timeout;
};

/// Marks one call of this thread. A guard costs a few stores and no clock. Code that crashes,
/// blocks or ends the process during a call ends it with exit code 3 and a message.
class CallGuard {
 public:
  /// Starts the watching thread and takes the signals that crashes send, for the rest of the
  /// process. Later calls do nothing.
  static void watch();

  /// A call into `code` about `request` begins.
  CallGuard(const WatchedCode& code, std::uint64_t request);
  /// A call into `code` begins while it `is` "loaded", "made" or "ended"; the text is a literal.
  CallGuard(const WatchedCode& code, const char* is);
  ~CallGuard();
  CallGuard(const CallGuard&) = delete;
  CallGuard& operator=(const CallGuard&) = delete;
};

}  // namespace routesim::sim
