// The one place where threads are made for experiments.
#pragma once

#include <cstddef>
#include <functional>

namespace routesim::sim {

/// Calls `work(i)` once for every i in [0, count), in up to `jobs` threads (at least 1, which is
/// the caller's own), lower indices first. Returns when all calls have. After a call has thrown,
/// calls that have not begun are left out, and the exception of the lowest index that threw is
/// rethrown, so that the message does not depend on `jobs` where only one call can fail.
void for_each_index(std::size_t count, std::size_t jobs,
                    const std::function<void(std::size_t)>& work);

/// Threads this process may use: what its affinity mask allows; at least 1.
std::size_t default_jobs();

}  // namespace routesim::sim
