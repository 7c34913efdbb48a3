// A Prometheus: scrapes the metrics of a fleet, keeps them, records rules and answers queries.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "base/units.h"
#include "sim/scaling/fleet_metrics.h"
#include "sim/scaling/prometheus_query.h"

namespace routesim::sim {

/// `le` of a sample that is no bucket.
inline constexpr double kNoLe = -std::numeric_limits<double>::infinity();

struct PromSample {
  std::int64_t pod = kPool;
  double le = kNoLe;
  double value = 0;
};
using PromVector = std::vector<PromSample>;

/// Keeps what it was told to scrape. A scrape costs the series that exist; memory is theirs times
/// the samples of the longest range, and of at least five minutes.
class PrometheusStore {
 public:
  PrometheusStore(std::vector<SeriesId> scraped, Duration longest_range);

  void scrape(SimTime now, const FleetMetrics& fleet);
  /// Stores what a recording rule gave.
  void record(SimTime now, SeriesId rule, const PromVector& result);

  /// The youngest samples of a name that are younger than five minutes and not stale.
  PromVector instant(SeriesId id, std::optional<double> le, SimTime now) const;

  struct Point {
    SimTime at;
    double value = 0;
    bool is_stale = false;  ///< The series ended before this scrape.
  };
  struct Series {
    std::int64_t pod = kPool;
    double le = kNoLe;
    std::deque<Point> points;
  };
  /// All series of a name, ordered by pod and le.
  const std::vector<Series>& series(SeriesId id) const;

 private:
  void append(SimTime now, SeriesId id, const PromVector& samples);
  PromVector scrape_one(SeriesName name, const FleetMetrics& fleet) const;

  std::vector<SeriesId> scraped_;
  Duration keep_;
  std::map<SeriesId, std::vector<Series>> series_;
  std::vector<FleetPod> pods_;  ///< Of the scrape under way.
};

/// The result of a query: of a number, one sample of the pool.
PromVector evaluate(const PromNode& node, const PrometheusStore& store, SimTime now);

}  // namespace routesim::sim
