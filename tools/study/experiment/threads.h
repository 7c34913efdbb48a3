// The one place where threads are made for experiments.
#pragma once

#include <cstddef>
#include <functional>

namespace routesim::tools {

/// Calls `work(i)` once for every i in [0, count), in up to `jobs` threads (at least 1, which is
/// the caller's own). A thread that is free takes the lowest index that has not begun. Returns when
/// all calls have returned. After call i has thrown, no call above i begins, and every call below i
/// still runs. The exception of the lowest index is rethrown, so `jobs` does not change the error.
void for_each_index(std::size_t count, std::size_t jobs,
                    const std::function<void(std::size_t)>& work);

/// Threads this process may use: what its affinity mask allows; at least 1.
std::size_t default_jobs();

}  // namespace routesim::tools
