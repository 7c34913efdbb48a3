// inference-perf's load.sweep: a burst shows at which rate the servers drain, and stages of rates
// up to that one follow. Private to workloads/.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "workloads/load_generator.h"
#include "workloads/load_stages.h"

namespace routesim::workloads {

/// How the rates of a sweep's stages are spaced.
enum class RateSpacing { kGeometric, kLinear };

/// Samples the requests in flight every half second from the start of a stage on.
class DrainProbe {
 public:
  /// Samples at `until` or later do not count.
  explicit DrainProbe(Duration until) : until_(until) {}

  /// Tells that `in_flight` requests are under way from `at` (since the start) on. A sample at `at`
  /// is from before. `at` never goes back.
  void see(Duration at, std::int64_t in_flight);
  /// Drain rates, per second, of the half seconds that ended with fewer requests in flight than
  /// they began with. No sample is taken at `end`, the end of the stage.
  std::vector<double> drain_rates(Duration end);

 private:
  void sample_before(Duration end);

  Duration until_;
  Duration next_;  // Time of the next sample.
  std::int64_t now_ = 0, last_ = 0;
  std::vector<double> rates_;
};

/// numpy's percentile, between values by linear interpolation. `values` is not empty; `percent` is
/// in 0..100.
double percentile_of(std::vector<double> values, double percent);

/// Rates of `stages` stages up to about `saturation` requests/s, to two digits: linear from 1 on;
/// geometric the other way round, densest at the saturation: 1 + saturation - g, where g goes
/// geometrically from the saturation to 1.
std::vector<double> sweep_rates(RateSpacing spacing, double saturation, std::int64_t stages);

struct SweepSettings {
  RateSpacing spacing = RateSpacing::kGeometric;
  std::int64_t stages = 5;
  double stage_duration_s = 180;
  double timeout_s = 60;              ///< Limit of the probe, from a second after its start on.
  double saturation_percentile = 95;  ///< Percentile of the probe's drain rates, 0..100.
  Duration grace{};                   ///< Requests in flight when a probe is cut may take this.
  std::function<std::unique_ptr<ArrivalStream>(std::size_t stage, double rate)> arrivals{};
};

/// Follows stage 0 of a load, the probe, and then makes the stages from 1 on. A probe that takes
/// too long is cut: the tool looks every second, and sends no more.
class RateSweep {
 public:
  explicit RateSweep(SweepSettings settings);

  /// From the start of a probe to the instant at which it is cut.
  Duration probe_limit() const { return limit_; }
  /// From the start of a probe to the instant at which requests still in flight are cancelled.
  Duration probe_deadline() const { return limit_ + settings_.grace; }
  /// When a probe whose last request ended at `last` is seen to be over: at a whole second, and one
  /// at least after a cut. Both since its start.
  Duration probe_end(Duration last) const;
  void see(Duration at, std::int64_t in_flight) { probe_.see(at, in_flight); }
  /// The probe is over. False when its samples tell nothing: the tool gives up then.
  bool finish_probe(Duration end);
  /// Arrivals of a stage, from 1 on, whose rate and count of requests are known now.
  std::unique_ptr<ArrivalStream> start_stage(std::size_t stage, StageInfo& info) const;
  /// The finding in a sentence. Empty before the end of the probe.
  const std::string& note() const { return note_; }

 private:
  SweepSettings settings_;
  Duration limit_;
  DrainProbe probe_;
  std::vector<double> rates_;
  std::string note_;
};

}  // namespace routesim::workloads
