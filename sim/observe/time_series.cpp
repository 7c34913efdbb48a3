#include "sim/observe/time_series.h"

#include "base/check.h"
#include "sim/engine/replica.h"
#include "sim/plan/resolve.h"
#include "sim/router/router.h"

namespace routesim::sim {

double EndpointSeries::kv_cache_usage(std::size_t i) const {
  return static_cast<double>(points[i].used_blocks) / static_cast<double>(usable_blocks);
}

double EndpointSeries::prefix_hit_rate(std::size_t i) const {
  if (i == 0) return -1;
  const std::int64_t asked = points[i].query_tokens - points[i - 1].query_tokens;
  if (asked <= 0) return -1;
  return static_cast<double>(points[i].hit_tokens - points[i - 1].hit_tokens) /
         static_cast<double>(asked);
}

double EndpointSeries::step_time_s(std::size_t i) const {
  if (i == 0) return -1;
  const std::int64_t steps = points[i].steps - points[i - 1].steps;
  if (steps <= 0) return -1;
  return (points[i].busy - points[i - 1].busy).to_seconds() / static_cast<double>(steps);
}

TimeSeriesRecorder::TimeSeriesRecorder(Duration interval, std::size_t max_points)
    : max_points_(max_points + max_points % 2) {
  ROUTESIM_CHECK(interval > Duration::zero() && max_points >= 2, "a time series needs a grid");
  series_.interval = interval;
}

void TimeSeriesRecorder::on_start(const RunView& view) {
  view_ = &view;
  for (const EndpointHome& home : view.endpoints) {
    const ResolvedPool& pool = view.plan.pools[home.pool];
    series_.endpoints.push_back({.name = home.name,
                                 .pool = pool.config.name,
                                 .usable_blocks = pool.rules.num_gpu_blocks - 1,
                                 .points = {}});
  }
  in_flight_.assign(view.endpoints.size(), 0);
  next_ = SimTime::zero();
}

void TimeSeriesRecorder::on_sent(const workloads::Request&, SimTime) {
  ++now_.sent;
  ++now_.unrouted;
}

void TimeSeriesRecorder::on_routed(const workloads::Request& request, const Route& route, SimTime) {
  --now_.unrouted;
  ++in_flight_[route.endpoint.value()];
  if (!route.prefill) return;
  ++in_flight_[route.prefill->value()];
  prefilling_.emplace(request.id.value(), route.prefill->value());
}

void TimeSeriesRecorder::on_prefilled(const workloads::Request& request, SimTime) {
  const auto it = prefilling_.find(request.id.value());
  if (it == prefilling_.end()) return;
  --in_flight_[it->second];
  prefilling_.erase(it);
}

void TimeSeriesRecorder::on_done(const RequestRecord& record) {
  ++now_.done;
  if (record.outcome != workloads::Outcome::kSuccess) ++now_.failed;
  if (record.endpoint < 0) {
    --now_.unrouted;
    return;
  }
  --in_flight_[static_cast<std::size_t>(record.endpoint)];
  const auto it = prefilling_.find(record.id);
  if (it == prefilling_.end()) return;
  --in_flight_[it->second];
  prefilling_.erase(it);
}

void TimeSeriesRecorder::on_tick(SimTime) {
  for (std::size_t e = 0; e < view_->endpoints.size(); ++e) {
    const EndpointHome& home = view_->endpoints[e];
    const Replica& replica = *view_->replicas[home.replica];
    const BatchScheduler& s = replica.scheduler(home.rank);
    series_.endpoints[e].points.push_back(
        {.waiting = static_cast<std::int32_t>(s.waiting()),
         .running = static_cast<std::int32_t>(s.running()),
         .in_flight = in_flight_[e],
         .used_blocks = s.kv().used_blocks(),
         .query_tokens = replica.totals(home.rank).counters.prefix_query_tokens,
         .hit_tokens = replica.totals(home.rank).counters.prefix_hit_tokens,
         .steps = replica.steps() - (replica.stepping() ? 1 : 0),
         .busy = replica.busy()});
  }
  now_.outstanding = now_.sent - now_.done;
  series_.cluster.push_back(now_);
  if (series_.size() >= max_points_) halve();
  next_ = SimTime::zero() + series_.interval * static_cast<std::int64_t>(series_.size());
}

namespace {

template <class T>
void keep_even(std::vector<T>& points) {
  for (std::size_t i = 0; 2 * i < points.size(); ++i) points[i] = points[2 * i];
  points.resize(points.size() / 2);
}

}  // namespace

// The point just taken has an odd index and goes: the next one is one old interval away.
void TimeSeriesRecorder::halve() {
  for (EndpointSeries& endpoint : series_.endpoints) keep_even(endpoint.points);
  keep_even(series_.cluster);
  series_.interval = series_.interval * 2;
}

}  // namespace routesim::sim
