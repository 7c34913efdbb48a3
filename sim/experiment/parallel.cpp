#include "sim/experiment/parallel.h"

#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace routesim::sim {

namespace {

/// Hands out indices in their order, and remembers the first that failed.
class IndexQueue {
 public:
  IndexQueue(std::size_t count, const std::function<void(std::size_t)>& work)
      : count_(count), work_(work), failed_at_(count) {}

  void drain() {
    // Whoever takes an index runs it, so every index below one that failed is run too.
    while (!failed_) {
      const std::size_t i = next_++;
      if (i >= count_) return;
      try {
        work_(i);
      } catch (...) {
        failed_ = true;
        const std::lock_guard lock(mutex_);
        if (i >= failed_at_) continue;
        failed_at_ = i;
        failure_ = std::current_exception();
      }
    }
  }

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::size_t count_;
  const std::function<void(std::size_t)>& work_;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::size_t failed_at_;
  std::exception_ptr failure_;
};

#if defined(__SANITIZE_THREAD__)
/// Plain threads, because ThreadSanitizer does not see how the installed TBB, which is built
/// without it, hands work over and back, and would call all that a race.
void drain_together(IndexQueue& queue, std::size_t threads) {
  std::vector<std::jthread> others;
  for (std::size_t i = 1; i < threads; ++i) others.emplace_back([&queue] { queue.drain(); });
  queue.drain();
}
#else
/// One task per thread, each taking the next index: runs differ in length by orders of magnitude,
/// so ranges would leave threads idle. More threads than cores are allowed; without the limit
/// raised, TBB would warn on standard error when there are.
void drain_together(IndexQueue& queue, std::size_t threads) {
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
  tbb::task_arena arena(static_cast<int>(threads));
  arena.execute([&] {
    tbb::parallel_for(
        std::size_t{0}, threads, [&](std::size_t) { queue.drain(); }, tbb::simple_partitioner());
  });
}
#endif

}  // namespace

void for_each_index(std::size_t count, std::size_t jobs,
                    const std::function<void(std::size_t)>& work) {
  IndexQueue queue(count, work);
  const std::size_t threads = std::min(std::max<std::size_t>(jobs, 1), count);
  if (threads <= 1) {
    queue.drain();
  } else {
    drain_together(queue, threads);
  }
  queue.rethrow();
}

std::size_t default_jobs() {
  return static_cast<std::size_t>(std::max(1, tbb::info::default_concurrency()));
}

}  // namespace routesim::sim
