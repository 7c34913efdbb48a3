// An autoscaler at work: when it looks, what it can see then, and what it asks for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "sim/scaling/autoscaler_config.h"
#include "sim/scaling/fleet_metrics.h"
#include "sim/scaling/hpa.h"
#include "sim/scaling/keda.h"
#include "sim/scaling/prometheus_store.h"

namespace routesim::sim {

/// The autoscaler of one pool, with the Prometheus that it asks. Scrapes, rules, KEDA's rounds and
/// the HPA's syncs have intervals of their own. Their phases are half an interval apart, so that
/// what a sync sees is as old as it is on average: half of the scrape interval, and half of the
/// evaluation interval where there are recording rules.
class Autoscaler {
 public:
  /// `config` has no faults; the objects are created, and the first scrape happens, at `created`.
  Autoscaler(const AutoscalerConfig& config, SimTime created);

  /// The loop calls look() then.
  SimTime next_look() const;
  /// Does all that is due. The new spec.replicas; nothing where they stay.
  std::optional<std::int32_t> look(SimTime now, const FleetMetrics& fleet);

  /// The HPA's answer at its last sync.
  const HpaDecision& last_decision() const { return decision_; }
  /// Says of each query that failed at most of its looks how often it did.
  std::vector<std::string> failing_queries() const;

 private:
  using Values = std::vector<std::optional<double>>;

  struct Clock {
    Duration every;
    SimTime next;
    bool take(SimTime now);
  };

  struct Asked {
    std::string query;
    std::int64_t looks = 0, failures = 0;
  };

  Values ask_triggers(SimTime now);
  KedaScale scale_of(std::int32_t replicas) const;
  HpaReading read_metric(std::size_t metric, SimTime now);
  void count_look(std::size_t query, bool failed);
  void evaluate_rules(SimTime now);
  void sync(SimTime now, std::int32_t replicas);

  AutoscalerPlan plan_;
  std::vector<KedaTriggerConfig> triggers_;
  PrometheusStore store_;
  HpaController hpa_;
  std::optional<KedaOperator> keda_;
  Clock scrapes_, rules_, polls_, syncs_;
  std::vector<Asked> asked_;    ///< By query.
  Values cached_;               ///< What KEDA's last round saw.
  std::vector<FleetPod> pods_;  ///< Of the look under way.
  HpaDecision decision_;
};

}  // namespace routesim::sim
