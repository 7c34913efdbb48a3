// How fast the time to first token grows while a stage sends: whether its queue ever ends.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"

namespace routesim::sim {

/// Times to first token of one stage by when their requests were sent, in at most kBins bins of
/// equal width. Whole numbers, so the order of additions cannot change a result. O(1) per request.
class QueueGrowth {
 public:
  /// A request that was sent `since_first_send` after the stage's first one.
  void add(Duration since_first_send, Duration ttft);

  /// Mean time to first token of the last third of the `send_s` seconds in which the stage sent,
  /// less that of the middle third, less two standard errors, in seconds per second. Bins decide
  /// where a third begins, so it is off by at most one of 120. 0 with fewer than 10 requests in
  /// either third.
  double per_second(double send_s) const;

 private:
  __extension__ using Wide = __int128;
  static constexpr std::size_t kBins = 240;

  struct Bin {
    std::int64_t requests = 0;
    Wide sum_ns = 0;
    Wide squares = 0;  ///< Of microseconds.
  };
  struct Mean;

  Mean mean_between(double from_s, double to_s) const;

  std::int64_t width_ns_ = 1'000'000;
  std::vector<Bin> bins_;
};

}  // namespace routesim::sim
