#include "policies/plugins/active_request.h"

#include <algorithm>

#include "base/scalar_parse.h"

namespace routesim::policies {
namespace {

// Values outside [0, 1] are ignored. From v0.7 to May 2026 a parameter object without the field
// made it 0, because the field was a plain float there.
double max_busy_score(const ActiveRequestParameters& p, const PluginSpec& spec,
                      const BuildContext& context) {
  if (p.max_busy_score && *p.max_busy_score >= 0 && *p.max_busy_score <= 1)
    return *p.max_busy_score;
  if (!p.max_busy_score && spec.parameters->is_map() && context.traits().max_busy_score_zero_bug)
    return 0;
  return 1;
}

}  // namespace

ActiveRequestScorer::ActiveRequestScorer(const ActiveRequestParameters& p, const PluginSpec& spec,
                                         BuildContext& context)
    : idle_threshold_(std::max<std::int64_t>(0, p.idle_threshold.value_or(0))),
      max_busy_score_(max_busy_score(p, spec, context)),
      load_(in_flight_load(context, p.in_flight_producer, spec)) {}

void ActiveRequestScorer::score(Cycle&, std::span<const EndpointRow> candidates,
                                std::span<double> scores) const {
  std::int64_t most = 0;
  for (const EndpointRow r : candidates) most = std::max(most, load_->requests(r));
  for (std::size_t i = 0; i < candidates.size(); ++i)
    scores[i] = active_request_score(load_->requests(candidates[i]), most, idle_threshold_,
                                     max_busy_score_);
}

OwnCountsActiveRequestScorer::OwnCountsActiveRequestScorer(const ActiveRequestParameters& p,
                                                           const PluginSpec& spec,
                                                           BuildContext& context)
    : idle_threshold_(0), max_busy_score_(1) {
  context.needs().in_flight = true;
  if (context.traits().active_requests == ActiveRequestCounts::kOwnWithThreshold) {
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

void OwnCountsActiveRequestScorer::score(Cycle&, std::span<const EndpointRow> candidates,
                                         std::span<double> scores) const {
  std::int64_t most = 0;
  for (const Counter& c : counts_) most = std::max(most, c.requests);
  for (std::size_t i = 0; i < candidates.size(); ++i)
    scores[i] = active_request_score(count(candidates[i]), most, idle_threshold_, max_busy_score_);
}

void OwnCountsActiveRequestScorer::on_routed(const RequestView& request, const Decision& decision,
                                             const EndpointTable& endpoints, SimTime now) {
  if (counts_.size() < endpoints.rows()) counts_.resize(endpoints.rows());
  std::vector<Target>& targets = live_[request.id];
  for (const ProfileResult& result : decision.profiles) {
    if (!result.has_target()) continue;
    Counter& counter = counts_[result.targets.front()];
    ++counter.requests;
    targets.push_back({result.targets.front(), counter.generation});
  }
  due_.push_back({now + timeout_, request.id});
}

void OwnCountsActiveRequestScorer::on_completed(std::uint64_t request, SimTime) {
  const auto it = live_.find(request);
  if (it == live_.end()) return;
  for (const Target& t : it->second)
    if (counts_[t.row].generation == t.generation) --counts_[t.row].requests;
  live_.erase(it);
}

void OwnCountsActiveRequestScorer::on_endpoint_removed(EndpointRow row, SimTime) {
  if (row >= counts_.size()) return;
  counts_[row] = {.requests = 0, .generation = counts_[row].generation + 1};
}

void OwnCountsActiveRequestScorer::advance(SimTime now) {
  // Entries of requests that have completed leave the queue as soon as they reach its front.
  while (!due_.empty() && live_.find(due_.front().request) == live_.end()) due_.pop_front();
  if (now - last_sweep_ < timeout_) return;  // The sweeper runs once per time-out.
  last_sweep_ = now;
  for (; !due_.empty() && due_.front().at <= now; due_.pop_front())
    on_completed(due_.front().request, now);
}

}  // namespace routesim::policies
