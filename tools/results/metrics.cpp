#include "tools/results/metrics.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "tools/results/metric_name.h"
#include "tools/results/report.h"
#include "tools/results/result_record.h"

namespace routesim::tools {

namespace {

using sim::StageResult;
using Value = std::optional<double>;

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

template <auto kMember>
Value throughput(const StageRecord& r) {
  return r.lifecycle.successes.throughput.*kMember;
}

/// `n` of the requests sent.
Value share(double n, double requests) { return requests > 0 ? Value(n / requests) : std::nullopt; }
Value share(std::int64_t n, const StageRecord& r) {
  return share(static_cast<double>(n), static_cast<double>(r.lifecycle.load.count));
}

Value sent_per_second(const StageResult& s) {
  const double t = s.send_duration_s();
  return t > 0 ? Value(static_cast<double>(s.requests) / t) : std::nullopt;
}
Value goodput(const StageResult& s) {
  if (!s.good_requests) return std::nullopt;
  return share(static_cast<double>(*s.good_requests), static_cast<double>(s.requests));
}
Value good_per_second(const StageResult& s) {
  if (!s.good_requests) return std::nullopt;
  return s.per_second(static_cast<double>(*s.good_requests));
}

/// A number of the KV tiers, which only a whole run with tiers has.
template <auto kGet>
Value of_tiers(const StageResult& s) {
  return s.tiers ? Value(kGet(*s.tiers)) : std::nullopt;
}
template <auto kGet>
Value recorded_of_tiers(const VariantRecord& r) {
  return r.kv_tiers ? Value(kGet(*r.kv_tiers)) : std::nullopt;
}

double tier_hit_rate(const sim::TierResult& t) { return t.hit_ratio(); }
double tier_loaded_gigabytes(const sim::TierResult& t) { return t.did.loaded_bytes * 1e-9; }
double tier_pulled_gigabytes(const sim::TierResult& t) { return t.did.pulled_bytes * 1e-9; }
double tier_load_wait(const sim::TierResult& t) { return t.did.load_waits.mean_s(); }
double tier_pull_wait(const sim::TierResult& t) { return t.did.pull_waits.mean_s(); }

/// A number of the fleet in time, which only a whole run has.
template <auto kMember>
Value of_fleet(const StageResult& s) {
  return s.fleet.*kMember;
}
Value recorded_servers(const VariantRecord& r) {
  return r.fleet ? Value(r.fleet->mean_servers()) : std::nullopt;
}
Value recorded_lost(const VariantRecord& r) {
  return r.fleet ? Value(static_cast<double>(r.fleet->lost)) : std::nullopt;
}
Value recorded_cost(const VariantRecord& r) { return r.fleet ? r.fleet->cost() : std::nullopt; }
Value recorded_missed(const VariantRecord& r) {
  return r.timeline && r.timeline->goals ? Value(r.timeline->goals->missed_minutes) : std::nullopt;
}

// clang-format off
const std::array<MetricRow, 33> kMetrics = {{
    {.name = "ttft", .key = "ttft", .report_name = "time_to_first_token",
     .quantity = MetricKind::kTime, .better = Better::kSmaller, .title = "TTFT",
     .words = "first token",
     .samples = &StageResult::time_to_first_token,
     .recorded_samples = latency<&LatencyRecord::time_to_first_token>,
     .quantiles = &QuantilesRecord::time_to_first_token,
     .place = "successes/latency/time_to_first_token"},
    {.name = "tpot", .key = "tpot", .report_name = "time_per_output_token",
     .quantity = MetricKind::kTime, .better = Better::kSmaller, .title = "TPOT",
     .words = "time per output token",
     .samples = &StageResult::time_per_output_token,
     .recorded_samples = latency<&LatencyRecord::time_per_output_token>,
     .quantiles = &QuantilesRecord::time_per_output_token,
     .place = "successes/latency/time_per_output_token"},
    {.name = "itl", .key = "itl", .report_name = "inter_token_latency",
     .quantity = MetricKind::kTime, .better = Better::kSmaller, .title = "ITL",
     .words = "gap between tokens",
     .samples = &StageResult::inter_token_latency,
     .recorded_samples = latency<&LatencyRecord::inter_token_latency>,
     .quantiles = &QuantilesRecord::inter_token_latency,
     .place = "successes/latency/inter_token_latency"},
    {.name = "request_latency", .key = "request_latency", .report_name = "e2e_latency",
     .quantity = MetricKind::kTime, .better = Better::kSmaller, .title = "request latency",
     .aliases = {"e2el", "e2e", "latency"},
     .samples = &StageResult::request_latency,
     .recorded_samples = latency<&LatencyRecord::request_latency>,
     .quantiles = &QuantilesRecord::request_latency,
     .place = "successes/latency/request_latency"},
    {.name = "ntpot", .key = "ntpot", .report_name = "normalized_time_per_output_token",
     .quantity = MetricKind::kTime, .better = Better::kSmaller, .title = "latency per output token",
     .samples = &StageResult::normalized_time_per_output_token,
     .recorded_samples = latency<&LatencyRecord::normalized_time_per_output_token>,
     .place = "successes/latency/normalized_time_per_output_token"},
    {.name = "schedule_delay", .key = "schedule_delay",
     .quantity = MetricKind::kTime, .better = Better::kSmaller, .title = "schedule delay",
     .samples = &StageResult::schedule_delay, .recorded_samples = delay,
     .place = "load_summary/schedule_delay"},
    {.name = "input_length", .key = "input_length", .report_name = "prompt_tokens",
     .quantity = MetricKind::kTokens, .title = "input length", .aliases = {"prompt_len"},
     .samples = &StageResult::prompt_tokens,
     .recorded_samples = length<&SuccessesRecord::prompt_len>,
     .place = "successes/prompt_len"},
    {.name = "output_length", .key = "output_length", .report_name = "output_tokens",
     .quantity = MetricKind::kTokens, .title = "output length", .aliases = {"output_len"},
     .samples = &StageResult::output_tokens,
     .recorded_samples = length<&SuccessesRecord::output_len>,
     .place = "successes/output_len"},
    {.name = "output_tokens_per_s", .key = "output_throughput",
     .report_name = "output_tokens_per_sec",
     .quantity = MetricKind::kTokenRate, .better = Better::kLarger, .title = "output tokens/s",
     .words = "output, tokens/s",
     .value = [](const StageResult& s) -> Value {
       return s.per_second(static_cast<double>(s.output_tokens_total)); },
     .recorded = throughput<&ThroughputRecord::output_tokens>,
     .place = "successes/throughput/output_tokens_per_sec"},
    {.name = "input_tokens_per_s", .key = "input_throughput",
     .report_name = "input_tokens_per_sec",
     .quantity = MetricKind::kTokenRate, .better = Better::kLarger, .title = "input tokens/s",
     .value = [](const StageResult& s) -> Value {
       return s.per_second(static_cast<double>(s.prompt_tokens_total)); },
     .recorded = throughput<&ThroughputRecord::input_tokens>,
     .place = "successes/throughput/input_tokens_per_sec"},
    {.name = "total_tokens_per_s", .key = "total_throughput",
     .report_name = "total_tokens_per_sec",
     .quantity = MetricKind::kTokenRate, .better = Better::kLarger, .title = "total tokens/s",
     .aliases = {"total_token_throughput"},
     .value = [](const StageResult& s) -> Value {
       return s.per_second(static_cast<double>(s.prompt_tokens_total) +
                           static_cast<double>(s.output_tokens_total)); },
     .recorded = throughput<&ThroughputRecord::total_tokens>,
     .place = "successes/throughput/total_tokens_per_sec"},
    {.name = "requests_per_s", .key = "request_throughput", .report_name = "requests_per_sec",
     .quantity = MetricKind::kRequestRate, .better = Better::kLarger, .title = "requests/s",
     .words = "requests/s answered",
     .value = [](const StageResult& s) -> Value {
       return s.per_second(static_cast<double>(s.successes)); },
     .recorded = throughput<&ThroughputRecord::requests>,
     .place = "successes/throughput/requests_per_sec"},
    {.name = "requests_sent_per_s", .key = "requests_per_sec_sent",
     .report_name = "achieved_rate",
     .quantity = MetricKind::kRequestRate, .title = "requests/s sent",
     .value = sent_per_second,
     .recorded = [](const StageRecord& r) -> Value {
       if (!r.lifecycle.load.stage) return std::nullopt;
       return r.lifecycle.load.stage->achieved_rate; },
     .recorded_of_run = [](const VariantRecord& r) { return r.summary.requests_sent_per_s; },
     .place = "load_summary/achieved_rate"},
    {.name = "benchmark_duration", .key = "benchmark_duration",
     .quantity = MetricKind::kSpan, .better = Better::kSmaller, .title = "benchmark duration",
     .aliases = {"duration", "benchmark_time"},
     .value = [](const StageResult& s) -> Value { return s.total_time_s(); },
     .recorded = [](const StageRecord& r) -> Value { return r.lifecycle.benchmark_time_s; },
     .place = "benchmark_time_seconds"},
    {.name = "successful_requests", .key = "successful_requests",
     .quantity = MetricKind::kCount, .better = Better::kLarger, .title = "successful requests",
     .aliases = {"completed"},
     .value = [](const StageResult& s) -> Value { return static_cast<double>(s.successes); },
     .recorded = [](const StageRecord& r) -> Value {
       return static_cast<double>(r.lifecycle.successes.count); },
     .place = "successes/count"},
    {.name = "failed_requests", .key = "failed_requests",
     .quantity = MetricKind::kCount, .better = Better::kSmaller, .title = "failed requests",
     .words = "failures",
     .aliases = {"failed"},
     .value = [](const StageResult& s) -> Value { return static_cast<double>(s.failures); },
     .recorded = [](const StageRecord& r) -> Value {
       return static_cast<double>(r.lifecycle.failures.count); },
     .place = "failures/count"},
    {.name = "failure_rate", .key = "failure_rate",
     .quantity = MetricKind::kShare, .better = Better::kSmaller, .title = "failed requests",
     .value = [](const StageResult& s) {
       return share(static_cast<double>(s.failures), static_cast<double>(s.requests)); },
     .recorded = [](const StageRecord& r) { return share(r.lifecycle.failures.count, r); }},
    {.name = "goodput", .key = "goodput",
     .quantity = MetricKind::kShare, .better = Better::kLarger, .title = "goodput",
     .words = "share within goals",
     .value = goodput,
     .recorded = [](const StageRecord& r) {
       return r.goodput ? share(r.goodput->good, r) : std::nullopt; },
     .place = "goodput/percentage"},
    {.name = "good_requests_per_s", .key = "good_request_throughput",
     .quantity = MetricKind::kRequestRate, .better = Better::kLarger, .title = "good requests/s",
     .words = "within goals, req/s",
     .aliases = {"request_goodput"},
     .value = good_per_second,
     .recorded = [](const StageRecord& r) -> Value {
       if (!r.goodput) return std::nullopt;
       return r.goodput->requests_per_s; },
     .place = "goodput/requests_per_sec"},
    {.name = "preemptions", .key = "preemptions",
     .quantity = MetricKind::kCount, .better = Better::kSmaller, .title = "preemptions",
     .value = [](const StageResult& s) -> Value { return static_cast<double>(s.preemptions); },
     .recorded = [](const StageRecord& r) -> Value {
       return static_cast<double>(r.preemptions); },
     .place = "preemptions"},
    {.name = "prefix_cache_hit_rate", .key = "prefix_cache_hit_rate",
     .quantity = MetricKind::kShare, .better = Better::kLarger, .title = "prefix cache hits",
     .aliases = {"prefix_hit_ratio"},
     .value = [](const StageResult& s) -> Value { return s.prefix_hit_ratio(); },
     .recorded = [](const StageRecord& r) -> Value { return r.prefix_hit_ratio; },
     .place = "prefix_hit_ratio"},
    {.name = "kv_cache_usage", .key = "kv_cache_usage",
     .quantity = MetricKind::kUsage, .title = "KV cache in use",
     .value = [](const StageResult& s) -> Value { return s.kv_cache_usage_mean; },
     .place = "kv_cache_usage"},
    {.name = "tier_hit_rate", .key = "tier_hit_rate",
     .quantity = MetricKind::kShare, .better = Better::kLarger, .title = "tier hit rate",
     .words = "hits in tiers",
     .value = of_tiers<tier_hit_rate>,
     .recorded_of_run = recorded_of_tiers<tier_hit_rate>},
    {.name = "tier_loaded_gigabytes", .key = "tier_loaded_gigabytes",
     .quantity = MetricKind::kGigabytes, .title = "tier loaded gigabytes",
     .value = of_tiers<tier_loaded_gigabytes>,
     .recorded_of_run = recorded_of_tiers<tier_loaded_gigabytes>},
    {.name = "tier_pulled_gigabytes", .key = "tier_pulled_gigabytes",
     .quantity = MetricKind::kGigabytes, .title = "tier pulled gigabytes",
     .value = of_tiers<tier_pulled_gigabytes>,
     .recorded_of_run = recorded_of_tiers<tier_pulled_gigabytes>},
    {.name = "tier_load_wait", .key = "tier_load_wait",
     .quantity = MetricKind::kSpan, .better = Better::kSmaller, .title = "tier load wait",
     .words = "wait for a load, mean",
     .value = of_tiers<tier_load_wait>,
     .recorded_of_run = recorded_of_tiers<tier_load_wait>},
    {.name = "tier_pull_wait", .key = "tier_pull_wait",
     .quantity = MetricKind::kSpan, .better = Better::kSmaller, .title = "tier pull wait",
     .words = "wait for a pull, mean",
     .value = of_tiers<tier_pull_wait>,
     .recorded_of_run = recorded_of_tiers<tier_pull_wait>},
    {.name = "fleet_mean_servers", .key = "fleet_mean_servers",
     .quantity = MetricKind::kCount, .better = Better::kSmaller, .title = "servers, mean",
     .value = of_fleet<&sim::FleetNumbers::mean_servers>,
     .recorded_of_run = recorded_servers},
    {.name = "fleet_lost", .key = "fleet_lost",
     .quantity = MetricKind::kCount, .better = Better::kSmaller, .title = "times cut off",
     .value = of_fleet<&sim::FleetNumbers::lost>,
     .recorded_of_run = recorded_lost},
    {.name = "fleet_cost", .key = "fleet_cost",
     .quantity = MetricKind::kCount, .better = Better::kSmaller, .title = "cost, $",
     .value = of_fleet<&sim::FleetNumbers::cost>,
     .recorded_of_run = recorded_cost},
    {.name = "minutes_missed", .key = "minutes_missed",
     .quantity = MetricKind::kCount, .better = Better::kSmaller, .title = "minutes missed",
     .value = of_fleet<&sim::FleetNumbers::missed_minutes>,
     .recorded_of_run = recorded_missed},
    {.name = "overloaded", .key = "overloaded", .better = Better::kSmaller, .title = "overloaded",
     .value = [](const StageResult& s) -> Value { return s.overloaded() ? 1 : 0; },
     .recorded = [](const StageRecord& r) -> Value {
       return r.overloaded ? Value(*r.overloaded ? 1 : 0) : std::nullopt; }},
    // Published tables and pages may state it; no goal or gate is about it.
    {.name = "", .key = "requests", .title = "requests",
     .value = [](const StageResult& s) -> Value { return static_cast<double>(s.requests); },
     .recorded = [](const StageRecord& r) -> Value {
       return static_cast<double>(r.lifecycle.load.count); },
     .place = "load_summary/count"},
}};
// clang-format on

}  // namespace

std::span<const MetricRow> metric_table() { return kMetrics; }

const MetricRow* find_metric(std::string_view key) {
  for (const MetricRow& row : kMetrics)
    if (key == row.key || (!row.report_name.empty() && key == row.report_name)) return &row;
  return nullptr;
}

std::string_view MetricRow::unit() const {
  constexpr std::array<std::string_view, 9> kUnits = {"s",     "tokens", "s",     "tok/s", "req/s",
                                                      "count", "GB",     "ratio", "ratio"};
  return kUnits[static_cast<std::size_t>(quantity)];
}

std::optional<double> percentile_of(std::string_view statistic) {
  if (statistic == "median") return 50;
  if (!statistic.starts_with('p')) return std::nullopt;
  std::string digits(statistic.substr(1));
  std::ranges::replace(digits, 'p', '.');
  double q = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, q, std::chars_format::fixed);
  if (error != std::errc{} || stop != end || !(q >= 0 && q <= 100)) return std::nullopt;
  return q;
}

namespace {

using sim::Samples;
using sim::StageResult;

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
  const MetricRow* const row = find_metric(metric);
  return row != nullptr && row->has_many_values();
}

}  // namespace

std::optional<double> metric_value(const StageResult& stage, std::string_view metric,
                                   std::string_view statistic, std::string_view unit) {
  const std::optional<double> factor = unit_factor(unit);
  if (!factor) return std::nullopt;
  const std::string_view plain = without_remark(statistic);
  const MetricRow* const row = find_metric(metric);
  if (row == nullptr) return std::nullopt;
  std::optional<double> value;
  if (row->has_many_values()) {
    value = statistic_of(stage.*row->samples, plain);
  } else if (row->quantity == MetricKind::kUsage && plain == "max") {
    if (stage.requests > 0) value = stage.kv_cache_usage_max;
  } else if (plain == "mean" || plain == "total" || plain == "count" || plain.empty()) {
    if (stage.requests > 0) value = row->value(stage);
  }
  if (!value || std::isnan(*value)) return std::nullopt;
  return *value * *factor;
}

std::optional<double> record_value(const StageRecord& stage, const MetricName& name) {
  const MetricRow* const row = find_metric(name.metric);
  std::optional<double> value;
  if (row != nullptr && row->has_many_values()) {
    if (const std::optional<SamplesRecord>& d = row->recorded_samples(stage.lifecycle))
      value = statistic_of(*d, name.statistic);
  } else if (row != nullptr && row->quantity == MetricKind::kUsage) {
    if (stage.kv_cache_usage)
      value = name.statistic == "max" ? stage.kv_cache_usage->max : stage.kv_cache_usage->mean;
  } else if (row != nullptr && row->recorded != nullptr) {
    value = row->recorded(stage);
  }
  if (!value || std::isnan(*value)) return std::nullopt;
  return *value * unit_factor(name.unit).value_or(1);
}

std::optional<double> stored_value(const StageRecord& stage, const MetricName& name) {
  if (const std::optional<double> value = record_value(stage, name)) return value;
  const MetricRow* const row = find_metric(name.metric);
  const std::optional<double> percent = percentile_of(name.statistic);
  if (row == nullptr || row->quantiles == nullptr || !percent) return std::nullopt;
  const std::optional<std::vector<double>>& values = stage.quantiles.*row->quantiles;
  const auto level = std::ranges::find(quantile_levels(), *percent);
  const auto at = static_cast<std::size_t>(level - quantile_levels().begin());
  if (!values || at >= values->size()) return std::nullopt;
  return (*values)[at] * unit_factor(name.unit).value_or(1);
}

std::optional<double> stored_value(const VariantRecord& run, const MetricName& name) {
  if (const std::optional<double> value = stored_value(run.summary, name)) return value;
  const MetricRow* const row = find_metric(name.metric);
  if (row == nullptr || row->recorded_of_run == nullptr) return std::nullopt;
  const std::optional<double> value = row->recorded_of_run(run);
  if (!value || std::isnan(*value)) return std::nullopt;
  return *value * unit_factor(name.unit).value_or(1);
}

std::optional<double> in_unit_of(const MetricName& other, const MetricName& name, double value) {
  if (name.metric != other.metric || name.statistic != other.statistic) return std::nullopt;
  const std::optional<double> from = unit_factor(name.unit);
  const std::optional<double> to = unit_factor(other.unit);
  if (!from || !to) return std::nullopt;
  return value / *from * *to;
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
  const MetricRow* const row = find_metric(metric);
  return std::string(row == nullptr ? metric : row->key);
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
