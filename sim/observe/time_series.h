// The state of every server over time, sampled on a fixed grid of simulated time in bounded
// memory.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/observe/observer.h"

namespace routesim::sim {

/// One endpoint at one grid point. The counters run from the start of the run, so rates over any
/// stretch of the grid are differences of two points.
struct EndpointPoint {
  std::int32_t waiting = 0;       ///< Requests in the engine's waiting queue.
  std::int32_t running = 0;       ///< Requests in the running batch.
  std::int32_t in_flight = 0;     ///< Routed here and not done; PD: until the prefill leg ends.
  std::int64_t used_blocks = 0;   ///< KV blocks referenced by some request.
  std::int64_t query_tokens = 0;  ///< Counter: prompt tokens looked up in the prefix cache.
  std::int64_t hit_tokens = 0;    ///< Counter: of those, found.
  std::int64_t steps = 0;         ///< Counter: engine steps ended.
  Duration busy;                  ///< Counter: time spent in them.
};

struct EndpointSeries {
  std::string name;
  std::string pool;
  std::int64_t usable_blocks = 0;
  std::vector<EndpointPoint> points;  ///< Point i is at i * TimeSeries::interval.

  /// Used blocks over usable ones, 0..1.
  double kv_cache_usage(std::size_t i) const;
  /// The rate of the stretch that ends at point i; negative when nothing was looked up in it (i = 0
  /// included).
  double prefix_hit_rate(std::size_t i) const;
  /// Mean length of the steps that ended in the stretch before point i, seconds; negative when
  /// none did.
  double step_time_s(std::size_t i) const;
};

/// The whole cluster at one grid point.
struct ClusterPoint {
  std::int64_t sent = 0;         ///< Counter: requests sent by the client.
  std::int64_t done = 0;         ///< Counter: ended, failures included.
  std::int64_t failed = 0;       ///< Counter.
  std::int64_t outstanding = 0;  ///< sent - done.
  std::int64_t unrouted = 0;     ///< Outstanding and not yet routed.
};

struct TimeSeries {
  Duration interval;  ///< Between points.
  std::vector<EndpointSeries> endpoints;
  std::vector<ClusterPoint> cluster;

  std::size_t size() const { return cluster.size(); }
  double time_s(std::size_t i) const {
    return (interval * static_cast<std::int64_t>(i)).to_seconds();
  }
};

/// Samples at 0, interval, 2 interval, … When `max_points` are reached every second one is dropped
/// and the interval doubles, which leaves exactly what the doubled interval would have sampled.
class TimeSeriesRecorder final : public Observer {
 public:
  /// `interval` > 0; `max_points` >= 2, rounded up to an even number.
  explicit TimeSeriesRecorder(Duration interval = Duration::milliseconds(100),
                              std::size_t max_points = 600);

  void on_start(const RunView& view) override;
  void on_sent(const workloads::Request& request, SimTime now) override;
  void on_routed(const workloads::Request& request, const Route& route, SimTime now) override;
  void on_prefilled(const workloads::Request& request, SimTime now) override;
  void on_done(const RequestRecord& record) override;
  SimTime next_tick() const override { return next_; }
  void on_tick(SimTime now) override;

  const TimeSeries& series() const { return series_; }
  /// Hands the result over; call after the run.
  TimeSeries take() { return std::move(series_); }

 private:
  void halve();

  TimeSeries series_;
  std::size_t max_points_;
  SimTime next_ = SimTime::max();
  const RunView* view_ = nullptr;
  ClusterPoint now_;
  std::vector<std::int32_t> in_flight_;                         ///< Per endpoint.
  std::unordered_map<std::int64_t, std::uint32_t> prefilling_;  ///< Request to prefill endpoint.
};

}  // namespace routesim::sim
