// The number of a run that a published row means.
#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "tools/results/metrics.h"
#include "tools/results/report.h"
#include "tools/study/validate/validation.h"

namespace routesim::tools {

namespace {

using sim::RunResult;
using sim::StageResult;

constexpr std::string_view kPerNode = "_per_node";

/// Publications write rates as `1/s` or per node; the number is the same kind of number.
std::string_view plain_unit(std::string_view unit) {
  if (unit == "1/s") return "";
  if (unit == "tok/s/node") return "tok/s";
  return unit;
}

bool is_rate(const std::string& text, double rate) { return number_from(text) == rate; }

/// The stage a row is about: the one it names, or the only reported one of its rate; `main` is the
/// only reported one.
const StageResult* stage_of(const RunResult& result, const MeasuredRow& row) {
  for (const StageResult& stage : result.stages)
    if (stage.info.name == row.stage) return &stage;
  const std::vector<const StageResult*> reported = reported_stages(result);
  if (row.stage == "main") return reported.size() == 1 ? reported.front() : nullptr;
  const StageResult* found = nullptr;
  for (const StageResult* stage : reported) {
    if (!is_rate(row.rate, stage->info.requested_rate)) continue;
    if (found != nullptr) return nullptr;
    found = stage;
  }
  return found;
}

/// Numbers of a stage that only logs and dashboards publish, in base units.
std::optional<double> log_value(const RunResult& result, const StageResult& stage,
                                std::string_view metric, std::string_view statistic) {
  if (metric == "stage_wall_time") return stage.total_time_s();
  if (metric == "stage_start_offset")
    return (stage.first_send - result.stages.front().first_send).to_seconds();
  if (metric == "send_duration") return stage.send_duration_s();
  if (metric == "requests_total") return static_cast<double>(stage.requests);
  if (metric == "kv_cache_usage" && std::isnan(stage.kv_cache_usage_mean)) return std::nullopt;
  if (metric == "kv_cache_usage" && statistic == "mean") return stage.kv_cache_usage_mean;
  if (metric == "kv_cache_usage" && statistic == "max") return stage.kv_cache_usage_max;
  return std::nullopt;
}

std::optional<double> summary_row(const RunResult& result, const MeasuredRow& row,
                                  const std::string& metric, std::string& why) {
  const std::vector<const StageResult*> stages = reported_stages(result);
  const std::optional<double> value =
      ladder_value(stages, metric, row.statistic, plain_unit(row.unit));
  if (!value) why = "no summary of the stages means this";
  return value;
}

using Words = std::span<const std::string_view>;

constexpr std::array<std::string_view, 10> kTimes = {"ttft",
                                                     "tpot",
                                                     "ntpot",
                                                     "itl",
                                                     "request_latency",
                                                     "schedule_delay",
                                                     "benchmark_duration",
                                                     "stage_wall_time",
                                                     "stage_start_offset",
                                                     "send_duration"};
constexpr std::array<std::string_view, 6> kTimeUnits = {"s",       "ms",       "us",
                                                        "s/token", "ms/token", "s/tok"};
constexpr std::array<std::string_view, 3> kTokenRates = {"output_throughput", "input_throughput",
                                                         "total_throughput"};
constexpr std::array<std::string_view, 2> kTokenRateUnits = {"tok/s", "tokens/s"};
constexpr std::array<std::string_view, 4> kRequestRates = {
    "request_throughput", "requests_per_sec_sent", "achieved_rate", "good_request_throughput"};
constexpr std::array<std::string_view, 1> kRequestRateUnits = {"req/s"};
constexpr std::array<std::string_view, 2> kLengths = {"input_length", "output_length"};
constexpr std::array<std::string_view, 1> kLengthUnits = {"tokens"};
constexpr std::array<std::string_view, 4> kCounts = {"successful_requests", "failed_requests",
                                                     "requests_total", "preemptions"};
constexpr std::array<std::string_view, 1> kCountUnits = {"count"};
constexpr std::array<std::string_view, 4> kShares = {"prefix_cache_hit_rate", "kv_cache_usage",
                                                     "failure_rate", "goodput"};
constexpr std::array<std::string_view, 2> kShareUnits = {"ratio", "%"};

struct Quantity {
  Words metrics;
  Words units;
};
constexpr std::array<Quantity, 6> kQuantities = {{{kTimes, kTimeUnits},
                                                  {kTokenRates, kTokenRateUnits},
                                                  {kRequestRates, kRequestRateUnits},
                                                  {kLengths, kLengthUnits},
                                                  {kCounts, kCountUnits},
                                                  {kShares, kShareUnits}}};

bool has(Words words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Why the row's unit or value is impossible for `metric` (the row's, in the simulator's word): a
/// unit of another quantity, a negative number, a share above one. Empty when nothing is wrong, and
/// for a metric that is not known here. `unit` is the row's, in its plain spelling.
std::string why_impossible(const MeasuredRow& row, std::string_view metric, std::string_view unit) {
  const auto quantity =
      std::find_if(kQuantities.begin(), kQuantities.end(),
                   [metric](const Quantity& q) { return has(q.metrics, metric); });
  if (quantity == kQuantities.end()) return {};
  // Without a unit the number is in the metric's own.
  if (!unit.empty() && !has(quantity->units, unit))
    return printable(row.unit) + " is no unit of " + printable(row.metric);
  const double most = unit == "%" ? 100 : 1;
  if (row.value < 0 || (has(kShares, metric) && row.value > most))
    return "the published value is impossible (" + number_text(row.value) + " " +
           printable(row.unit) + ")";
  return {};
}

}  // namespace

std::string plain_statistic(std::string_view statistic) {
  statistic = statistic.substr(0, statistic.find('('));
  while (statistic.ends_with(' ')) statistic.remove_suffix(1);
  if (statistic == "value" || statistic == "approx" || statistic.starts_with("approx_") ||
      statistic.starts_with("mean over requests"))
    return "mean";
  return std::string(statistic);
}

std::string plain_metric(std::string_view metric) {
  if (metric == "time_per_token") return "ntpot";
  if (metric == "requests_failures") return "failed_requests";
  if (metric == "gpu_kv_cache_usage") return "kv_cache_usage";
  return canonical_metric(metric);
}

std::optional<double> simulated_value(const RunResult& result, std::int64_t nodes,
                                      const MeasuredRow& row, std::string& why) {
  std::string metric = plain_metric(row.metric);
  double share = 1;
  if (metric.ends_with(kPerNode)) {
    metric = plain_metric(metric.substr(0, metric.size() - kPerNode.size()));
    share = 1 / static_cast<double>(nodes);
  }
  why = why_impossible(row, metric, plain_unit(row.unit));
  if (!why.empty()) return std::nullopt;
  if (row.stage == "all") return summary_row(result, row, metric, why);
  const StageResult* stage = stage_of(result, row);
  if (stage == nullptr) {
    why = "the run has no such stage";
    return std::nullopt;
  }
  if (stage->successes == 0) {
    why = "no request of the stage succeeded";
    return std::nullopt;
  }
  const std::string_view unit = plain_unit(row.unit);
  const std::string statistic = plain_statistic(row.statistic);
  std::optional<double> value = metric_value(*stage, metric, statistic, unit);
  if (!value) {
    value = log_value(result, *stage, metric, statistic);
    if (value && unit == "%") *value *= 100;
    if (value && unit == "ms") *value *= 1e3;
  }
  if (!value) {
    why = "a run has no " + row.metric + ", " + row.statistic;
    return std::nullopt;
  }
  return *value * share;
}

}  // namespace routesim::tools
