#include "tools/study/parallel.h"

#include <tbb/info.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>

#include "tools/study/tbb_threads.h"

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

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

/// What crosses from the caller to the threads of TBB and back.
struct Handover {
  IndexQueue& queue;
  char begun = 0;  ///< Only its address is used, and that of `done`.
  char done = 0;
};

#if defined(__SANITIZE_THREAD__)
/// The installed TBB is built without ThreadSanitizer, which therefore does not see that whatever
/// the caller did comes before the work, and the work before the caller goes on.
void before_handing_over(char& what) { __tsan_release(&what); }
void after_taking_over(char& what) { __tsan_acquire(&what); }
#else
void before_handing_over(char&) {}
void after_taking_over(char&) {}
#endif

/// One call per thread, each taking the next index: runs differ in length by orders of magnitude,
/// so ranges would leave threads idle.
void drain_together(IndexQueue& queue, std::size_t threads) {
  Handover handover{.queue = queue};
  before_handing_over(handover.begun);
  run_in_threads(
      threads,
      [](void* data) {
        Handover& taken = *static_cast<Handover*>(data);
        after_taking_over(taken.begun);
        taken.queue.drain();
        before_handing_over(taken.done);
      },
      &handover);
  after_taking_over(handover.done);
}

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
