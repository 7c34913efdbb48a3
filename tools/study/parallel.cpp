#include "tools/study/parallel.h"

#ifdef __linux__
#include <sched.h>
#endif

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <queue>
#include <system_error>
#include <thread>
#include <vector>

#include "base/check.h"

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

}  // namespace

void for_each_index(std::size_t count, std::size_t jobs,
                    const std::function<void(std::size_t)>& work,
                    std::span<const std::size_t> after) {
  ROUTESIM_CHECK(after.empty() || after.size() == count, "one entry per job");
  IndexQueue queue(count, work, after);
  const std::size_t threads = std::min(std::max<std::size_t>(jobs, 1), count);
  {
    // The caller is one of the threads; the others are joined at the end of this block.
    std::vector<std::jthread> others;
    try {
      for (std::size_t i = 1; i < threads; ++i) others.emplace_back([&queue] { queue.drain(); });
    } catch (const std::system_error&) {
      // The system allows no more threads: those that run take all jobs.
    }
    queue.drain();
  }
  queue.rethrow();
}

std::size_t default_jobs() {
#ifdef __linux__
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) == 0)
    return static_cast<std::size_t>(std::max(1, CPU_COUNT(&allowed)));
#endif
  return std::max<std::size_t>(1, std::thread::hardware_concurrency());
}

}  // namespace routesim::sim
