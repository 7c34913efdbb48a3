// active-request-scorer: fewer requests in flight from this router score higher.
// llm-d-router pkg/epp/framework/plugins/scheduling/scorer/activerequest; up to v0.8 and in
// Heimdall generation 1 llm-d-inference-scheduler pkg/plugins/scorer/active_request.go with own
// counters.
#pragma once

#include <deque>
#include <unordered_map>
#include <vector>

#include "base/scalar_parse.h"
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

// Values outside [0, 1] are ignored. From v0.7 to May 2026 a parameter object without the field
// made it 0, because the field was a plain float there.
inline double max_busy_score(const ActiveRequestParameters& p, const PluginSpec& spec,
                             const BuildContext& context) {
  if (p.max_busy_score && *p.max_busy_score >= 0 && *p.max_busy_score <= 1)
    return *p.max_busy_score;
  if (!p.max_busy_score && spec.parameters->is_map() && context.traits().max_busy_score_zero_bug)
    return 0;
  return 1;
}

/// The scorer of releases that count in inflight-load-producer.
class ActiveRequestScorer final : public Scorer {
 public:
  ActiveRequestScorer(const ActiveRequestParameters& p, const PluginSpec& spec,
                      BuildContext& context)
      : idle_threshold_(std::max<std::int64_t>(0, p.idle_threshold.value_or(0))),
        max_busy_score_(max_busy_score(p, spec, context)),
        load_(in_flight_load(context, p.in_flight_producer, spec)) {}
  void score(Cycle&, std::span<const EndpointRow> candidates,
             std::span<double> scores) const override {
    std::int64_t most = 0;
    for (const EndpointRow r : candidates) most = std::max(most, load_->requests(r));
    for (std::size_t i = 0; i < candidates.size(); ++i)
      scores[i] = active_request_score(load_->requests(candidates[i]), most, idle_threshold_,
                                       max_busy_score_);
  }

 private:
  std::int64_t idle_threshold_;
  double max_busy_score_;
  const InFlightLoad* load_;
};

/// The scorer of older releases, with its own counters: +1 for the first target of every profile,
/// -1 when the response completes or the time-out passes. The maximum is over every endpoint it
/// tracks, candidates or not. Heimdall is closed and taken to release every target.
class OwnCountsActiveRequestScorer : public Scorer {
 public:
  OwnCountsActiveRequestScorer(const ActiveRequestParameters& p, const PluginSpec& spec,
                               BuildContext& context)
      : idle_threshold_(0), max_busy_score_(1) {
    context.needs().in_flight = true;
    const ActiveRequestCounts counts = context.traits().active_requests;
    releases_all_ = context.distribution() == Distribution::kHeimdall ||
                    (counts != ActiveRequestCounts::kOwnUntilHeaders &&
                     counts != ActiveRequestCounts::kOwnPrimary);
    if (counts == ActiveRequestCounts::kOwnWithThreshold) {
      idle_threshold_ = std::max<std::int64_t>(0, p.idle_threshold.value_or(0));
      max_busy_score_ = max_busy_score(p, spec, context);
    } else if (p.idle_threshold || p.max_busy_score) {
      context.error(spec, p.idle_threshold ? "idleThreshold" : "maxBusyScore",
                    "does not exist in era " + std::string(policies::name(context.era())));
    }
    // An unparsable time-out falls back to the default, as upstream does.
    const std::optional<Duration> timeout = go_duration(p.request_timeout);
    if (timeout && *timeout > Duration::zero()) timeout_ = *timeout;
  }
  void score(Cycle&, std::span<const EndpointRow> candidates,
             std::span<double> scores) const override {
    std::int64_t most = 0;
    for (const Counter& c : counts_) most = std::max(most, c.requests);
    for (std::size_t i = 0; i < candidates.size(); ++i)
      scores[i] =
          active_request_score(count(candidates[i]), most, idle_threshold_, max_busy_score_);
  }
  void on_routed(const RequestView& request, const Decision& decision,
                 const EndpointTable& endpoints, SimTime now) override {
    if (counts_.size() < endpoints.rows()) counts_.resize(endpoints.rows());
    std::vector<Target>& targets = live_[request.id];
    for (const ProfileResult& result : decision.profiles) {
      if (!result.has_target()) continue;
      Counter& counter = counts_[result.targets.front()];
      ++counter.requests;
      const bool primary = EndpointId(result.targets.front()) == decision.primary;
      targets.push_back({result.targets.front(), counter.generation, primary});
    }
    due_.push_back({now + timeout_, request.id});
  }
  void on_completed(std::uint64_t request, SimTime) override { release(request, releases_all_); }
  void on_endpoint_removed(EndpointRow row, SimTime) override {
    if (row >= counts_.size()) return;
    counts_[row] = {.requests = 0, .generation = counts_[row].generation + 1};
  }
  void advance(SimTime now) override {
    // Entries of requests that have completed leave the queue as soon as they reach its front.
    while (!due_.empty() && live_.find(due_.front().request) == live_.end()) due_.pop_front();
    if (now - last_sweep_ < timeout_) return;  // The sweeper runs once per time-out.
    last_sweep_ = now;
    for (; !due_.empty() && due_.front().at <= now; due_.pop_front())
      release(due_.front().request, true);
  }
  std::int64_t count(EndpointRow r) const { return r < counts_.size() ? counts_[r].requests : 0; }
  Duration timeout() const { return timeout_; }

 protected:
  /// Takes a request off all its targets' counters, or off the primary one's.
  void release(std::uint64_t request, bool all) {
    const auto it = live_.find(request);
    if (it == live_.end()) return;
    std::erase_if(it->second, [&](const Target& t) {
      if (!all && !t.primary) return false;
      if (counts_[t.row].generation == t.generation) --counts_[t.row].requests;
      return true;
    });
    if (it->second.empty()) live_.erase(it);
  }

 private:
  std::int64_t idle_threshold_;
  double max_busy_score_;
  bool releases_all_ = true;
  Duration timeout_ = Duration::seconds(120);
  struct Counter {
    std::int64_t requests = 0;
    std::uint32_t generation = 0;  // Grows when the row changes owner, so late releases miss.
  };
  struct Target {
    EndpointRow row;
    std::uint32_t generation;
    bool primary;
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

/// The scorer of v0.3, whose PostResponse hook runs at the headers of the answer
/// (gateway-api-inference-extension v1.0.0, handlers/server.go). vLLM sends those of a stream as
/// soon as it has read the request, so a request counts for some ten milliseconds.
class UntilHeadersActiveRequestScorer final : public OwnCountsActiveRequestScorer {
 public:
  using OwnCountsActiveRequestScorer::OwnCountsActiveRequestScorer;
  void on_response_started(std::uint64_t request, SimTime) override { release(request, false); }
};

}  // namespace routesim::policies
