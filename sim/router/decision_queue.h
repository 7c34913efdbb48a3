// Requests in front of the router processes, each of which decides one at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.h"

namespace routesim::sim {

/// First come, first served at each process. Requests go to the processes in turn, or all to the
/// leader. O(1) each.
class DecisionQueue {
 public:
  explicit DecisionQueue(std::size_t processes)
      : free_at_(processes, SimTime::zero()), stopped_(processes) {}

  /// A decision: when it ends, and in which process.
  struct Turn {
    SimTime end;
    std::uint32_t process = 0;
  };
  /// A request that arrives at `now` and keeps its process busy for `service`; zero = it never
  /// waits. Processes that do not run are passed over while one runs. Calls are in order of
  /// arrival, but for the gateway's retries, which queue behind requests on their way to the
  /// router.
  Turn admit(SimTime now, Duration service) {
    for (std::size_t i = 1; i < stopped_.size() && stopped_[next_ % stopped_.size()]; ++i) ++next_;
    const auto next = static_cast<std::uint32_t>(next_++ % free_at_.size());
    const std::uint32_t process = leader_.value_or(next);
    if (service == Duration::zero()) return {now, process};
    SimTime& free = free_at_[process];
    const SimTime begin = std::max(now, free);
    ++served_;
    longest_wait_ = std::max(longest_wait_, begin - now);
    total_wait_s_ += (begin - now).to_seconds();
    free = begin + service;
    total_service_s_ += service.to_seconds();
    return {free, process};
  }
  /// A process ends with its queue, or another one takes its place, whose queue is empty.
  void set_stopped(std::uint32_t process, bool stopped) {
    stopped_[process] = stopped;
    free_at_[process] = SimTime::zero();
  }
  /// The process that serves alone; nothing where none is elected.
  void set_leader(std::optional<std::uint32_t> process) { leader_ = process; }
  std::optional<std::uint32_t> leader() const { return leader_; }
  Duration longest_wait() const { return longest_wait_; }
  double mean_wait_s() const { return mean(total_wait_s_); }
  double mean_service_s() const { return mean(total_service_s_); }

 private:
  double mean(double total_s) const {
    return served_ > 0 ? total_s / static_cast<double>(served_) : 0;
  }
  std::vector<SimTime> free_at_;
  std::vector<bool> stopped_;
  std::optional<std::uint32_t> leader_;
  std::size_t next_ = 0, served_ = 0;
  Duration longest_wait_;
  double total_wait_s_ = 0, total_service_s_ = 0;
};

}  // namespace routesim::sim
