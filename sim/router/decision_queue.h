// Requests in front of the router processes, each of which decides one at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/units.h"

namespace routesim::sim {

/// First come, first served at each process; requests go to the processes in turn. O(1) each.
class DecisionQueue {
 public:
  explicit DecisionQueue(std::size_t processes) : free_at_(processes, SimTime::zero()) {}

  /// The end of the decision about a request that arrives at `now` and keeps its process busy for
  /// `service`; zero = it never waits. Calls are in order of arrival, but for the gateway's
  /// retries, which queue behind requests on their way to the router.
  SimTime admit(SimTime now, Duration service) {
    if (service == Duration::zero()) return now;
    SimTime& free = free_at_[next_++ % free_at_.size()];
    const SimTime begin = std::max(now, free);
    longest_wait_ = std::max(longest_wait_, begin - now);
    total_wait_s_ += (begin - now).to_seconds();
    free = begin + service;
    total_service_s_ += service.to_seconds();
    return free;
  }
  Duration longest_wait() const { return longest_wait_; }
  double mean_wait_s() const { return next_ > 0 ? total_wait_s_ / static_cast<double>(next_) : 0; }
  double mean_service_s() const {
    return next_ > 0 ? total_service_s_ / static_cast<double>(next_) : 0;
  }

 private:
  std::vector<SimTime> free_at_;
  std::size_t next_ = 0;
  Duration longest_wait_;
  double total_wait_s_ = 0, total_service_s_ = 0;
};

}  // namespace routesim::sim
