#include "tools/study/experiment/threads.h"

#ifdef __linux__
#include <sched.h>
#endif

#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

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
  const std::size_t threads = std::min(jobs, count);
  if (threads <= 1) {
    drain();
  } else {
    // An arena of its own, so that a thread that waits here takes no work of another call. Where
    // the system allows fewer threads, those that run take all indices.
    const tbb::global_control allowed(tbb::global_control::max_allowed_parallelism, threads);
    tbb::task_arena arena(static_cast<int>(threads));
    arena.execute([&] {
      tbb::task_group others;
      for (std::size_t i = 1; i < threads; ++i) others.run(drain);
      drain();
      others.wait();
    });
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
