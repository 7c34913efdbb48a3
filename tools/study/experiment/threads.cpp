#include "tools/study/experiment/threads.h"

#ifdef __linux__
#include <sched.h>
#endif

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace routesim::tools {

void for_each_index(std::size_t count, std::size_t jobs,
                    const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> failed_at{count};  // The lowest index that failed.
  std::mutex mutex;
  std::exception_ptr failure;
  const auto drain = [&] {
    for (std::size_t i = next++; i < failed_at; i = next++) {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (i > failed_at) continue;
        failed_at = i;
        failure = std::current_exception();
      }
    }
  };
  {
    // The caller is one of the threads; the others are joined at the end of this block.
    std::vector<std::jthread> others;
    try {
      for (std::size_t i = 1; i < std::min(jobs, count); ++i) others.emplace_back(drain);
    } catch (const std::system_error&) {
      // The system allows no more threads: those that run take all indices.
    }
    drain();
  }
  if (failure) std::rethrow_exception(failure);
}

std::size_t default_jobs() {
#ifdef __linux__
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) == 0)
    return static_cast<std::size_t>(std::max(1, CPU_COUNT(&allowed)));
#endif
  return std::max<std::size_t>(1, std::thread::hardware_concurrency());
}

}  // namespace routesim::tools
