#include "tools/results/metrics.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "tools/results/metric_name.h"
#include "tools/results/result_record.h"

namespace routesim::tools {

namespace {

using sim::Samples;
using sim::StageResult;

struct SampledMetric {
  std::string_view name;
  std::string_view long_name;
  Samples StageResult::*samples;
  /// The same in a result file.
  const std::optional<SamplesRecord>& (*recorded)(const LifecycleRecord&);
};

template <auto kMember>
const std::optional<SamplesRecord>& latency(const LifecycleRecord& r) {
  return r.successes.latency.*kMember;
}
template <auto kMember>
const std::optional<SamplesRecord>& length(const LifecycleRecord& r) {
  return r.successes.*kMember;
}
const std::optional<SamplesRecord>& delay(const LifecycleRecord& r) {
  return r.load.schedule_delay;
}

constexpr std::array<SampledMetric, 8> kSampled = {{
    {"ttft", "time_to_first_token", &StageResult::time_to_first_token,
     latency<&LatencyRecord::time_to_first_token>},
    {"tpot", "time_per_output_token", &StageResult::time_per_output_token,
     latency<&LatencyRecord::time_per_output_token>},
    {"ntpot", "normalized_time_per_output_token", &StageResult::normalized_time_per_output_token,
     latency<&LatencyRecord::normalized_time_per_output_token>},
    {"itl", "inter_token_latency", &StageResult::inter_token_latency,
     latency<&LatencyRecord::inter_token_latency>},
    {"request_latency", "e2e_latency", &StageResult::request_latency,
     latency<&LatencyRecord::request_latency>},
    {"schedule_delay", "schedule_delay", &StageResult::schedule_delay, delay},
    {"input_length", "prompt_tokens", &StageResult::prompt_tokens,
     length<&SuccessesRecord::prompt_len>},
    {"output_length", "output_tokens", &StageResult::output_tokens,
     length<&SuccessesRecord::output_len>},
}};

const Samples* sampled(const StageResult& stage, std::string_view metric) {
  for (const SampledMetric& m : kSampled)
    if (metric == m.name || metric == m.long_name) return &(stage.*m.samples);
  return nullptr;
}

/// p90, p99.9 or p99p9.
std::optional<double> percentile_of(std::string_view statistic) {
  if (statistic == "median") return 50;
  if (!statistic.starts_with('p')) return std::nullopt;
  std::string digits(statistic.substr(1));
  for (char& c : digits)
    if (c == 'p') c = '.';
  double q = 0;
  const auto end = digits.data() + digits.size();
  const auto result = std::from_chars(digits.data(), end, q);
  if (result.ec != std::errc{} || result.ptr != end || !(q >= 0 && q <= 100)) return std::nullopt;
  return q;
}

/// Statistics such as `mean(comparison table)` carry a remark that does not change their meaning.
std::string_view without_remark(std::string_view statistic) {
  statistic = statistic.substr(0, statistic.find('('));
  while (statistic.ends_with(' ')) statistic.remove_suffix(1);
  return statistic;
}

std::optional<double> statistic_of(const Samples& samples, std::string_view statistic) {
  if (samples.count() == 0) return std::nullopt;
  if (statistic == "mean" || statistic == "avg") return samples.mean();
  if (statistic == "min") return samples.min();
  if (statistic == "max") return samples.max();
  if (statistic == "std") return samples.stddev();
  if (statistic == "total") return samples.sum();
  if (const std::optional<double> q = percentile_of(statistic)) return samples.percentile(*q);
  return std::nullopt;
}

/// A rate, a count or a ratio: numbers a stage has one of.
std::optional<double> single(const StageResult& stage, std::string_view metric) {
  if (stage.requests == 0) return std::nullopt;
  const auto input = static_cast<double>(stage.prompt_tokens_total);
  const auto output = static_cast<double>(stage.output_tokens_total);
  if (metric == "output_throughput" || metric == "output_tokens_per_sec")
    return stage.per_second(output);
  if (metric == "input_throughput" || metric == "input_tokens_per_sec")
    return stage.per_second(input);
  if (metric == "total_throughput" || metric == "total_tokens_per_sec")
    return stage.per_second(input + output);
  if (metric == "request_throughput" || metric == "requests_per_sec")
    return stage.per_second(static_cast<double>(stage.successes));
  if (metric == "requests_per_sec_sent" || metric == "achieved_rate") {
    const double t = stage.send_duration_s();
    return t > 0 ? std::optional(static_cast<double>(stage.requests) / t) : std::nullopt;
  }
  if (metric == "benchmark_duration") return stage.total_time_s();
  if (metric == "successful_requests") return static_cast<double>(stage.successes);
  if (metric == "failed_requests") return static_cast<double>(stage.failures);
  if (metric == "failure_rate")
    return static_cast<double>(stage.failures) / static_cast<double>(stage.requests);
  if (metric == "goodput" && stage.good_requests)
    return static_cast<double>(*stage.good_requests) / static_cast<double>(stage.requests);
  if (metric == "good_request_throughput" && stage.good_requests)
    return stage.per_second(static_cast<double>(*stage.good_requests));
  if (metric == "preemptions") return static_cast<double>(stage.preemptions);
  if (metric == "overloaded") return stage.overloaded() ? 1 : 0;
  if (metric == "prefix_cache_hit_rate") return stage.prefix_hit_ratio();
  if (metric == "kv_cache_usage") return stage.kv_cache_usage_mean;
  if (metric.starts_with("tier_") && stage.tiers) {
    const sim::TierCounters& did = stage.tiers->did;
    if (metric == "tier_hit_rate") return stage.tiers->hit_ratio();
    if (metric == "tier_loaded_gigabytes") return did.loaded_bytes * 1e-9;
    if (metric == "tier_pulled_gigabytes") return did.pulled_bytes * 1e-9;
    if (metric == "tier_load_wait") return did.load_waits.mean_s();
    if (metric == "tier_pull_wait") return did.pull_waits.mean_s();
  }
  return std::nullopt;
}

/// single() of a stage in a result file.
std::optional<double> recorded_single(const StageRecord& stage, std::string_view metric) {
  const LifecycleRecord& r = stage.lifecycle;
  const ThroughputRecord& throughput = r.successes.throughput;
  const auto share = [&r](std::int64_t n) {
    return r.load.count > 0
               ? std::optional(static_cast<double>(n) / static_cast<double>(r.load.count))
               : std::nullopt;
  };
  if (metric == "output_throughput") return throughput.output_tokens;
  if (metric == "input_throughput") return throughput.input_tokens;
  if (metric == "total_throughput") return throughput.total_tokens;
  if (metric == "request_throughput") return throughput.requests;
  if (metric == "requests_per_sec_sent" && r.load.stage) return r.load.stage->achieved_rate;
  if (metric == "benchmark_duration") return r.benchmark_time_s;
  if (metric == "successful_requests") return static_cast<double>(r.successes.count);
  if (metric == "failed_requests") return static_cast<double>(r.failures.count);
  if (metric == "failure_rate") return share(r.failures.count);
  if (metric == "goodput" && stage.goodput) return share(stage.goodput->good);
  if (metric == "good_request_throughput" && stage.goodput) return stage.goodput->requests_per_s;
  if (metric == "preemptions") return static_cast<double>(stage.preemptions);
  if (metric == "prefix_cache_hit_rate") return stage.prefix_hit_ratio;
  return std::nullopt;
}

std::optional<double> statistic_of(const SamplesRecord& d, std::string_view statistic) {
  if (statistic == "mean") return d.mean;
  if (statistic == "min") return d.min;
  if (statistic == "max") return d.max;
  for (const auto& [name, value] : d.percentiles.items)
    if (name == statistic) return value;
  return std::nullopt;
}

/// The value of one base unit in `unit`; nothing for a unit that does not fit.
std::optional<double> unit_factor(std::string_view unit) {
  constexpr std::array<std::string_view, 11> kBase = {
      "", "s", "s/token", "tok/s", "req/s", "tokens", "count", "ratio", "s/tok", "tokens/s", "GB"};
  for (const std::string_view base : kBase)
    if (unit == base) return 1;
  if (unit == "ms" || unit == "ms/token") return 1e3;
  if (unit == "us") return 1e6;
  if (unit == "%") return 100;
  return std::nullopt;
}

bool is_sampled(std::string_view metric) {
  for (const SampledMetric& m : kSampled)
    if (metric == m.name || metric == m.long_name) return true;
  return false;
}

}  // namespace

std::optional<double> metric_value(const StageResult& stage, std::string_view metric,
                                   std::string_view statistic, std::string_view unit) {
  const std::optional<double> factor = unit_factor(unit);
  if (!factor) return std::nullopt;
  const std::string_view plain = without_remark(statistic);
  std::optional<double> value;
  if (const Samples* samples = sampled(stage, metric)) {
    value = statistic_of(*samples, plain);
  } else if (metric == "kv_cache_usage" && plain == "max") {
    if (stage.requests > 0) value = stage.kv_cache_usage_max;
  } else if (plain == "mean" || plain == "total" || plain == "count" || plain.empty()) {
    value = single(stage, metric);
  }
  if (!value || std::isnan(*value)) return std::nullopt;
  return *value * *factor;
}

std::optional<double> record_value(const StageRecord& stage, const MetricName& name) {
  std::optional<double> value;
  const auto m = std::ranges::find(kSampled, name.metric, &SampledMetric::name);
  if (m != kSampled.end()) {
    if (const std::optional<SamplesRecord>& d = m->recorded(stage.lifecycle))
      value = statistic_of(*d, name.statistic);
  } else if (name.metric == "kv_cache_usage") {
    if (stage.kv_cache_usage)
      value = name.statistic == "max" ? stage.kv_cache_usage->max : stage.kv_cache_usage->mean;
  } else {
    value = recorded_single(stage, name.metric);
  }
  if (!value || std::isnan(*value)) return std::nullopt;
  return *value * unit_factor(name.unit).value_or(1);
}

std::optional<double> ladder_value(std::span<const StageResult* const> stages,
                                   std::string_view metric, std::string_view statistic,
                                   std::string_view unit) {
  const bool weighted = statistic.starts_with("request_weighted_mean") ||
                        (statistic.starts_with("mean_over_ladder") && is_sampled(metric));
  const bool simple = statistic.starts_with("simple_mean") ||
                      (statistic.starts_with("mean_over_ladder") && !is_sampled(metric));
  if (!weighted && !simple) return std::nullopt;
  std::string inner = "mean";
  const std::string_view plain = without_remark(statistic);
  const std::size_t p = plain.rfind("_p");
  if (p != std::string_view::npos && plain.ends_with('s'))
    inner = std::string(plain.substr(p + 1, plain.size() - p - 2));
  double sum = 0;
  double weights = 0;
  for (const StageResult* stage : stages) {
    const std::optional<double> value = metric_value(*stage, metric, inner, unit);
    if (!value) continue;
    const double weight = weighted ? static_cast<double>(stage->requests) : 1;
    sum += *value * weight;
    weights += weight;
  }
  return weights > 0 ? std::optional(sum / weights) : std::nullopt;
}

std::string canonical_metric(std::string_view metric) {
  for (const SampledMetric& m : kSampled)
    if (metric == m.name || metric == m.long_name) return std::string(m.name);
  if (metric == "output_tokens_per_sec") return "output_throughput";
  if (metric == "input_tokens_per_sec") return "input_throughput";
  if (metric == "total_tokens_per_sec") return "total_throughput";
  if (metric == "requests_per_sec") return "request_throughput";
  return std::string(metric);
}

std::optional<double> to_base_unit(double value, std::string_view unit) {
  const std::optional<double> factor = unit_factor(unit);
  return factor ? std::optional(value / *factor) : std::nullopt;
}

std::vector<const StageResult*> reported_stages(const sim::RunResult& result) {
  std::vector<const StageResult*> stages;
  for (const StageResult& stage : result.stages)
    if (stage.info.reported) stages.push_back(&stage);
  return stages;
}

}  // namespace routesim::tools
