// How long an engine computed batches outside the range its step times were fitted on.
#pragma once

#include <algorithm>
#include <cstdint>

#include "models/latency_model.h"

namespace routesim::sim {

/// One per engine. Adds up the time of steps whose batch the latency model calls extrapolated; a
/// model that was not fitted costs nothing.
class RangeWatch {
 public:
  explicit RangeWatch(const models::LatencyModel& latency)
      : latency_(&latency), watches_(latency.trust({}) == models::Trust::kFitted) {}

  bool is_outside(const models::BatchShape& shape) const {
    return watches_ && latency_->trust(shape) == models::Trust::kExtrapolated;
  }

  /// A step of `ticks` with this batch.
  void add_step(const models::BatchShape& shape, std::int64_t ticks) {
    if (is_outside(shape)) ticks_ += ticks;
  }

  /// A step of `ticks` of which somebody else has seen that it was outside.
  void add_outside(std::int64_t ticks) { ticks_ += ticks; }

  /// A stretch of at most `steps` decode steps begins with `shape`, whose context grows by one
  /// token per sequence and step: once outside, the rest of it is. O(log steps).
  void begin_stretch(models::BatchShape shape, std::int64_t steps) {
    inside_ = steps;
    if (!watches_ || steps == 0) return;
    const std::int64_t context = shape.decode_context;
    const auto outside_at = [&](std::int64_t step) {
      shape.decode_context = context + step * shape.decode_requests;
      return is_outside(shape);
    };
    if (!outside_at(steps - 1)) return;
    std::int64_t first = 0;
    for (std::int64_t last = steps - 1; first < last;) {
      const std::int64_t middle = first + (last - first) / 2;
      outside_at(middle) ? last = middle : first = middle + 1;
    }
    inside_ = first;
  }

  /// Steps `from` to `to` - 1 of the stretch were executed, as long as `run` says.
  void add_stretch(const models::DecodeRun& run, std::int64_t from, std::int64_t to) {
    from = std::max(from, inside_);
    if (from >= to) return;
    const std::int64_t n = to - from;
    ticks_ += n * (run.first + from * run.increment) + run.increment * (n * (n - 1) / 2);
  }

  /// The ticks of all steps outside. A clock's time fits, so this does.
  std::int64_t ticks() const { return ticks_; }

 private:
  const models::LatencyModel* latency_;
  bool watches_;
  std::int64_t inside_ = 0;  ///< Steps of the stretch before the first one outside.
  std::int64_t ticks_ = 0;
};

}  // namespace routesim::sim
