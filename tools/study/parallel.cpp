#include "tools/study/parallel.h"

#include <tbb/info.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <queue>
#include <vector>

#include "base/check.h"
#include "tools/study/tbb_threads.h"

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace routesim::sim {

namespace {

/// Hands out the lowest index that may begin, and remembers the lowest that failed. Threads take
/// one index at a time, which costs a lock: a job is a whole simulation.
class IndexQueue {
 public:
  IndexQueue(std::size_t count, const std::function<void(std::size_t)>& work,
             std::span<const std::size_t> after)
      : work_(work), followers_(after.empty() ? 0 : count), failed_at_(count) {
    for (std::size_t i = 0; i < count; ++i) {
      if (after.empty() || after[i] == kNoJob) {
        ready_.push(i);
      } else {
        ROUTESIM_CHECK(after[i] < i, "a job can only wait for an earlier one");
        followers_[after[i]].push_back(i);
      }
    }
  }

  /// Runs jobs until none is left and none is running. Called by several threads at a time.
  void drain() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return has_ready() || running_ == 0; });
      if (!has_ready()) return;
      const std::size_t i = ready_.top();
      ready_.pop();
      ++running_;
      lock.unlock();
      std::exception_ptr failure;
      try {
        work_(i);
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      finish(i, failure);
    }
  }

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  bool has_ready() const { return !ready_.empty() && ready_.top() < failed_at_; }

  void finish(std::size_t i, const std::exception_ptr& failure) {
    --running_;
    if (failure && i < failed_at_) {
      failed_at_ = i;
      failure_ = failure;
    }
    if (i < followers_.size())
      for (const std::size_t follower : followers_[i]) ready_.push(follower);
    changed_.notify_all();
  }

  const std::function<void(std::size_t)>& work_;
  std::vector<std::vector<std::size_t>> followers_;  ///< By index; empty when none follows any.
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t running_ = 0;
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
                    const std::function<void(std::size_t)>& work,
                    std::span<const std::size_t> after) {
  ROUTESIM_CHECK(after.empty() || after.size() == count, "one entry per job");
  IndexQueue queue(count, work, after);
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
