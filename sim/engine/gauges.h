// The gauges that an engine core exports, and those that a scrape of it saw.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"
#include "sim/engine/adapter_slots.h"

namespace routesim::sim {

/// The gauges an engine exports, as of the end of a step.
struct Gauges {
  std::int64_t running = 0;
  std::int64_t waiting = 0;
  std::int64_t free_blocks = 0;
  AdapterGauges adapters;
};

/// The gauges of one engine core as its last scrape saw them. Steps are computed late, so the step
/// loop takes the snapshot when it passes the instant of a scrape, and the reader asks afterwards.
class ScrapeSnapshot {
 public:
  ScrapeSnapshot() = default;
  /// Scrapes happen at `phase` and then once in every `interval`.
  ScrapeSnapshot(Duration phase, Duration interval)
      : next_(SimTime::zero() + phase), phase_(phase), interval_(interval) {}

  const Gauges& gauges() const { return gauges_; }
  SimTime taken_at() const { return taken_at_; }
  /// The instant of the next scrape that has no snapshot.
  SimTime next() const { return next_; }
  /// Keeps the gauges of the last scrape before `now`.
  void take(SimTime now, const Gauges& gauges) {
    taken_at_ = next_;
    if (taken_at_ + interval_ < now)
      taken_at_ = taken_at_ + interval_ * ((now.ns() - 1 - taken_at_.ns()) / interval_.ns());
    next_ = taken_at_ + interval_;
    gauges_ = gauges;
  }
  /// The first scrape after `now`.
  SimTime next_after(SimTime now) const {
    const std::int64_t since = now.ns() - phase_.ns();
    if (since < 0) return SimTime::zero() + phase_;
    return SimTime::from_ns(phase_.ns() + (since / interval_.ns() + 1) * interval_.ns());
  }

 private:
  Gauges gauges_;
  SimTime taken_at_ = SimTime::from_ns(-1);
  SimTime next_;
  Duration phase_;
  Duration interval_;
};

}  // namespace routesim::sim
