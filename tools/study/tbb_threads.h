// What is left of TBB for parallel.cpp: a file of its own, because it is compiled without
// ThreadSanitizer (see parallel.cpp).
#pragma once

#include <cstddef>

namespace routesim::sim {

/// Calls `work(data)` `threads` times (at least once), at the same time where the machine has the
/// cores, and returns when all calls have. `work` must not throw.
void run_in_threads(std::size_t threads, void (*work)(void* data), void* data);

}  // namespace routesim::sim
