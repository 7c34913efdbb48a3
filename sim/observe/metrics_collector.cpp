#include "sim/observe/metrics_collector.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace routesim::sim {

namespace {

/// The share of requests, less two standard errors.
double share_of(std::int64_t some, std::int64_t requests) {
  if (some == 0) return 0;
  const auto all = static_cast<double>(requests);
  const double share = static_cast<double>(some) / all;
  return share - 2 * std::sqrt(share * std::max(0.0, 1 - share) / all);
}

/// Samples of one metric that all stages together keep exactly, so that a week of hours takes no
/// more memory than a day. Few stages have as many each as they like.
constexpr std::size_t kExactSamples = 4 * Samples::kExact;
constexpr std::size_t kFewestExact = 8'192;

StageResult with_exact(std::size_t limit) {
  StageResult s;
  for (Samples* const samples :
       {&s.schedule_delay, &s.request_latency, &s.time_to_first_token, &s.time_per_output_token,
        &s.normalized_time_per_output_token, &s.prompt_tokens, &s.output_tokens})
    *samples = Samples(limit);
  return s;
}

}  // namespace

bool is_turned_away(std::string_view label) {
  return label == "TimeoutError" || label.starts_with("429") || label.starts_with("503");
}

bool client_sees_tokens(const WorkloadConfig& workload) { return traits_of(workload).streams; }

void forget_token_times(RunResult& result) {
  const auto forget = [](StageResult& stage) {
    stage.time_to_first_token = stage.time_per_output_token = stage.inter_token_latency = Samples();
  };
  for (StageResult& stage : result.stages) forget(stage);
  for (StageResult& stage : result.classes) forget(stage);
  forget(result.summary);
  result.notes.emplace_back(
      "the load does not stream (api.streaming): its client has no TTFT, TPOT and ITL");
}

MetricsCollector::MetricsCollector(const std::vector<workloads::StageInfo>& stages,
                                   const WorkloadConfig& workload)
    : output_token_scale_(workload.output_token_scale) {
  const std::size_t each = kExactSamples / std::max<std::size_t>(1, stages.size());
  for (const workloads::StageInfo& info : stages)
    stages_.emplace_back(with_exact(std::clamp(each, kFewestExact, Samples::kExact))).info = info;
  for (const workloads::TrafficClass& c : workload.classes)
    classes_.emplace_back().info.name = c.name;
  growth_.resize(stages_.size());
  turned_away_.resize(stages_.size());
}

std::int64_t MetricsCollector::counted(std::int64_t generated) const {
  return std::max<std::int64_t>(1,
                                std::llround(static_cast<double>(generated) * output_token_scale_));
}

void MetricsCollector::on_sent(const workloads::Request& request, SimTime now) {
  StageResult& s = stage(request.stage);
  count_sent(s, request, now);
  growth_[request.stage.value()].on_sent(now - s.first_send, s.requests - s.successes - s.failures);
  if (!classes_.empty() && s.info.reported)
    count_sent(classes_[request.traffic_class], request, now);
}

void MetricsCollector::count_sent(StageResult& s, const workloads::Request& request,
                                  SimTime now) const {
  ++s.requests;
  s.first_send = std::min(s.first_send, now);
  s.last_send = std::max(s.last_send, now);
  s.schedule_delay.add_nano((now - request.due).ns());
}

SimTime MetricsCollector::first_send() const {
  SimTime first = SimTime::max();
  for (const StageResult& s : stages_)
    if (s.info.reported) first = std::min(first, s.first_send);
  return first;
}

void MetricsCollector::on_gap(StageId id, Duration gap) {
  stage(id).inter_token_latency.add_nano(gap.ns(), 1);
}

void MetricsCollector::on_done(const RequestRecord& r, const char* failure_label) {
  StageResult& s = stages_[static_cast<std::size_t>(r.stage)];
  count_done(s, r, failure_label);
  if (r.outcome == workloads::Outcome::kSuccess)
    growth_[static_cast<std::size_t>(r.stage)].on_answered(r.sent - s.first_send,
                                                           r.first_token - r.sent, r.end - r.sent);
  if (!classes_.empty() && s.info.reported) count_done(classes_[r.traffic_class], r, failure_label);
}

void MetricsCollector::count_done(StageResult& s, const RequestRecord& r,
                                  const char* failure_label) const {
  s.last_end = std::max(s.last_end, r.end + r.held_open);
  s.preemptions += r.preemptions;
  if (r.outcome != workloads::Outcome::kSuccess) {
    ++s.failures;
    ++s.failures_by_label[failure_label];
    return;
  }
  ++s.successes;
  const std::int64_t tokens = counted(r.output_tokens);
  const double answered = (r.end - r.sent).to_seconds();
  const Duration latency = r.end + r.held_open - r.sent;
  const double ttft = (r.first_token - r.sent).to_seconds();
  s.request_latency.add_nano(latency.ns());
  s.held_open += r.held_open;
  s.time_to_first_token.add_nano((r.first_token - r.sent).ns());
  if (tokens > 1) s.time_per_output_token.add((answered - ttft) / static_cast<double>(tokens - 1));
  s.normalized_time_per_output_token.add(latency.to_seconds() / static_cast<double>(tokens));
  s.prompt_tokens.add(static_cast<double>(r.prompt_tokens));
  s.output_tokens.add(static_cast<double>(tokens));
  s.prompt_tokens_total += r.prompt_tokens;
  s.cached_tokens_total += r.cached_tokens;
  s.output_tokens_total += tokens;
}

void MetricsCollector::drop_gaps_without_success() {
  for (StageResult& s : stages_)
    if (s.successes == 0) s.inter_token_latency = Samples();
}

void MetricsCollector::measure_growth() {
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    StageResult& s = stages_[i];
    if (!s.keeps_rate()) continue;
    s.queue_growth = growth_[i].per_second(s.send_duration_s());
    s.most_growth = growth_[i].most_per_second(s.send_duration_s());
    s.turned_away = share_of(turned_away_[i], s.requests);
  }
}

void MetricsCollector::forget_unfinished() {
  // The last stage that began may have more to send.
  const auto last = std::find_if(stages_.rbegin(), stages_.rend(),
                                 [](const StageResult& s) { return s.requests > 0; });
  for (StageResult& s : stages_) {
    const bool is_before = last != stages_.rend() && &s < &*last;
    if (is_before && s.successes + s.failures == s.requests) continue;
    s.kv_cache_usage_mean = std::numeric_limits<double>::quiet_NaN();
    s.kv_cache_usage_max = s.kv_cache_usage_mean;
  }
}

StageResult MetricsCollector::summary() const {
  StageResult all;
  all.info.name = "summary";
  double usage_seconds = 0, seconds = 0;
  for (const StageResult& s : stages_) {
    if (!s.info.reported || s.requests == 0) continue;
    all.requests += s.requests;
    all.successes += s.successes;
    all.failures += s.failures;
    for (const auto& [label, count] : s.failures_by_label) all.failures_by_label[label] += count;
    all.first_send = std::min(all.first_send, s.first_send);
    all.last_send = std::max(all.last_send, s.last_send);
    all.last_end = std::max(all.last_end, s.last_end);
    all.schedule_delay.merge(s.schedule_delay);
    all.request_latency.merge(s.request_latency);
    all.held_open += s.held_open;
    all.time_to_first_token.merge(s.time_to_first_token);
    all.time_per_output_token.merge(s.time_per_output_token);
    all.normalized_time_per_output_token.merge(s.normalized_time_per_output_token);
    all.inter_token_latency.merge(s.inter_token_latency);
    all.prompt_tokens.merge(s.prompt_tokens);
    all.output_tokens.merge(s.output_tokens);
    all.prompt_tokens_total += s.prompt_tokens_total;
    all.cached_tokens_total += s.cached_tokens_total;
    all.output_tokens_total += s.output_tokens_total;
    all.preemptions += s.preemptions;
    all.queue_growth = std::max(all.queue_growth, s.queue_growth);
    all.turned_away = std::max(all.turned_away, s.turned_away);
    // NaN, which is unknown, stays so.
    all.kv_cache_usage_max = std::isnan(s.kv_cache_usage_max)
                                 ? s.kv_cache_usage_max
                                 : std::max(s.kv_cache_usage_max, all.kv_cache_usage_max);
    usage_seconds += s.kv_cache_usage_mean * s.total_time_s();
    seconds += s.total_time_s();
  }
  all.kv_cache_usage_mean = seconds > 0 ? usage_seconds / seconds : 0;
  if (std::isnan(all.kv_cache_usage_max)) all.kv_cache_usage_mean = all.kv_cache_usage_max;
  return all;
}

}  // namespace routesim::sim
