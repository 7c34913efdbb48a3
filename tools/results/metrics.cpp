#include "tools/results/metrics.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "tools/results/metric_name.h"
#include "tools/results/metric_table.h"
#include "tools/results/report.h"
#include "tools/results/result_record.h"

namespace routesim::tools {

namespace {

using sim::Samples;
using sim::StageResult;

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
  const QuantilesRecord& q = stage.quantiles;
  const std::optional<std::vector<double>>* values = nullptr;
  if (name.metric == "ttft") values = &q.time_to_first_token;
  if (name.metric == "itl") values = &q.inter_token_latency;
  if (name.metric == "tpot") values = &q.time_per_output_token;
  if (name.metric == "request_latency") values = &q.request_latency;
  const std::optional<double> percent = percentile_of(name.statistic);
  if (values == nullptr || !values->has_value() || !percent) return std::nullopt;
  const auto level = std::ranges::find(quantile_levels(), *percent);
  const auto at = static_cast<std::size_t>(level - quantile_levels().begin());
  if (at >= (*values)->size()) return std::nullopt;
  return (**values)[at] * unit_factor(name.unit).value_or(1);
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
