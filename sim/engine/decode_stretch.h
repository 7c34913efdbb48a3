// Engine steps ahead that only decode.
#pragma once

#include <cstdint>

#include "models/latency_model.h"
#include "sim/engine/gauges.h"

namespace routesim::sim {

/// Steps of one engine core that are certain to be pure decode, with nothing to admit: how many are
/// left, how long each takes, and what the gauges show after the next. A step is scheduled at the
/// boundary, that is the end of a step, before it.
class DecodeStretch {
 public:
  __extension__ using Wide = __int128;

  /// The next `boundaries` boundaries are of this kind; the steps they schedule, and perhaps one
  /// more, take what `run` says.
  void begin(const models::DecodeRun& run, std::int64_t boundaries, const Gauges& next) {
    left_ = boundaries;
    run_ = run;
    index_ = 0;
    gauges_ = next;
  }
  void stop() { left_ = 0; }
  /// So many boundaries have passed.
  void advance(std::int64_t boundaries) {
    left_ -= boundaries;
    index_ += boundaries;
  }

  /// Boundaries still certain to be of this kind.
  std::int64_t left() const { return left_; }
  /// Steps of run() that have been scheduled.
  std::int64_t index() const { return index_; }
  const models::DecodeRun& run() const { return run_; }
  /// Length of the `ahead`-th step that is not scheduled yet.
  std::int64_t ticks(std::int64_t ahead) const {
    return run_.first + (index_ + ahead) * run_.increment;
  }
  /// Length of the next `steps` of them. May lie beyond the clock.
  Wide ticks_of(std::int64_t steps) const {
    return static_cast<Wide>(steps) * ticks(0) +
           static_cast<Wide>(run_.increment) * (static_cast<Wide>(steps) * (steps - 1) / 2);
  }

  /// The gauges as the next boundary, if pure decode, will show them.
  const Gauges& gauges() const { return gauges_; }
  void set_free_blocks(std::int64_t blocks) { gauges_.free_blocks = blocks; }

 private:
  std::int64_t left_ = 0;
  models::DecodeRun run_;
  std::int64_t index_ = 0;
  Gauges gauges_;
};

}  // namespace routesim::sim
