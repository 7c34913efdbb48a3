// active-request-scorer: fewer requests in flight from this router score higher.
// llm-d-router pkg/epp/framework/plugins/scheduling/scorer/activerequest; up to v0.8 and in
// Heimdall generation 1 llm-d-inference-scheduler pkg/plugins/scorer/active_request.go with own
// counters.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/describe.h"
#include "policies/plugins/inflight_load.h"

namespace routesim::policies {

struct ActiveRequestParameters {
  std::optional<std::int64_t> idle_threshold;
  std::optional<double> max_busy_score;
  std::string in_flight_producer;
  std::string request_timeout;
};
inline void describe(Describer& d, ActiveRequestParameters& p) {
  field(d, {"idleThreshold", "Endpoints with at most this many requests score 1 (default 0)."},
        p.idle_threshold);
  field(d, {"maxBusyScore", "Best score of a busy endpoint, 0..1; other values are ignored."},
        p.max_busy_score);
  field(d, {"inFlightLoadProducerName", "Instance that counts requests; empty = the default."},
        p.in_flight_producer);
  field(d, {"requestTimeout", "Own counters only: when an unfinished request stops counting."},
        p.request_timeout);
}

/// `count` requests at an endpoint, `most` at the busiest: 1 up to `idle_threshold`, then
/// (most - count)/most * max_busy_score.
inline double active_request_score(std::int64_t count, std::int64_t most,
                                   std::int64_t idle_threshold, double max_busy_score) {
  if (count <= idle_threshold || most <= 0) return 1.0;
  return static_cast<double>(most - count) / static_cast<double>(most) * max_busy_score;
}

/// The scorer of releases that count in inflight-load-producer.
class ActiveRequestScorer final : public Scorer {
 public:
  ActiveRequestScorer(const ActiveRequestParameters& p, const PluginSpec& spec,
                      BuildContext& context);
  void score(Cycle& cycle, std::span<const EndpointRow> candidates,
             std::span<double> scores) const override;

 private:
  std::int64_t idle_threshold_;
  double max_busy_score_;
  const InFlightLoad* load_;
};

/// The scorer of older releases, with its own counters: +1 for the first target of every profile,
/// -1 when the response completes or the time-out passes. The maximum is over every endpoint it
/// tracks, candidates or not.
class OwnCountsActiveRequestScorer final : public Scorer {
 public:
  OwnCountsActiveRequestScorer(const ActiveRequestParameters& p, const PluginSpec& spec,
                               BuildContext& context);
  void score(Cycle& cycle, std::span<const EndpointRow> candidates,
             std::span<double> scores) const override;
  void on_routed(const RequestView& request, const Decision& decision, const EndpointTable&,
                 SimTime now) override;
  void on_completed(std::uint64_t request, SimTime now) override;
  void on_endpoint_removed(EndpointRow row, SimTime now) override;
  void advance(SimTime now) override;
  std::int64_t count(EndpointRow r) const { return r < counts_.size() ? counts_[r].requests : 0; }
  Duration timeout() const { return timeout_; }

 private:
  std::int64_t idle_threshold_;
  double max_busy_score_;
  Duration timeout_ = Duration::seconds(120);
  struct Counter {
    std::int64_t requests = 0;
    std::uint32_t generation = 0;  // Grows when the row changes owner, so late releases miss.
  };
  struct Target {
    EndpointRow row;
    std::uint32_t generation;
  };
  std::vector<Counter> counts_;
  std::unordered_map<std::uint64_t, std::vector<Target>> live_;  // Never iterated.
  struct Due {
    SimTime at;
    std::uint64_t request;
  };
  std::deque<Due> due_;
  SimTime last_sweep_;
};

}  // namespace routesim::policies
