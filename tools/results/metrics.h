// Metric names as users know them from inference-perf, `vllm bench serve` and published tables,
// resolved to numbers of a simulated stage.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "sim/observe/run_result.h"

namespace routesim::tools {

// Published measurements: what a run is compared with.

/// One published number.
struct MeasuredRow {
  std::string experiment;
  std::string policy;
  std::string stage;      ///< The tool's stage number or name; `all` for a summary row.
  std::string rate;       ///< Requests/s as published; may be text (`closed loop`).
  std::string metric;     ///< e.g. `ttft`, `output_throughput`.
  std::string statistic;  ///< e.g. `mean`, `p90`.
  std::string unit;       ///< e.g. `ms`, `tok/s`.
  double value = 0;
  std::string source;
  int line = 0;  ///< Of the file, from 1.
};

/// The run, as the result of a load tool states it. Absent where it says nothing.
struct StatedLoad {
  template <class T>
  struct At {
    T value;
    SourceLocation where;
  };
  std::optional<At<std::string>> model;
  std::optional<At<double>> request_rate;  ///< Infinity: all at once.
  std::optional<At<double>> requests, max_concurrency;
  std::optional<At<double>> input_tokens, output_tokens;  ///< Mean of a completed request.
};

struct MeasuredTable {
  std::string file;
  std::vector<MeasuredRow> rows;
  std::vector<StatedLoad> loads = {};  ///< Of each result of `vllm bench serve` in it.
};

// The one table of metrics: what each is called, which way is better, how it is written, and how to
// get it from a simulated stage and from a result file.

struct SamplesRecord;
struct LifecycleRecord;
struct QuantilesRecord;
struct StageRecord;
struct VariantRecord;

/// The kind of number that a metric is.
enum class MetricKind {
  kTime,         ///< Many values per stage, in seconds.
  kTokens,       ///< Many values per stage, in tokens.
  kSpan,         ///< One value per stage, in seconds.
  kTokenRate,    ///< One value per stage, tokens/s.
  kRequestRate,  ///< One value per stage, requests/s.
  kCount,        ///< One value per stage.
  kGigabytes,    ///< One value per stage, GB.
  kShare,        ///< One value per stage, 0..1.
  kUsage         ///< Mean and maximum of a share.
};

enum class Better { kSmaller, kLarger, kNeither };

struct MetricRow {
  std::string_view name = {};         ///< In output, without unit: `output_tokens_per_s`.
  std::string_view key = {};          ///< In published tables and on pages: `output_throughput`.
  std::string_view report_name = {};  ///< In reports of inference-perf, where that is another.
  MetricKind quantity = MetricKind::kCount;
  Better better = Better::kNeither;
  std::string_view title = {};                ///< On pages: `TTFT`.
  std::string_view words = {};                ///< In sentences: `first token`; empty = `title`.
  std::array<std::string_view, 4> aliases{};  ///< What else people write.

  sim::Samples sim::StageResult::*samples = nullptr;  ///< Of many values.
  const std::optional<SamplesRecord>& (*recorded_samples)(const LifecycleRecord&) = nullptr;
  /// Of those that figures need: what a file lists beside `recorded_samples`.
  std::optional<std::vector<double>> QuantilesRecord::*quantiles = nullptr;
  std::optional<double> (*value)(const sim::StageResult&) = nullptr;  ///< Of one value.
  std::optional<double> (*recorded)(const StageRecord&) = nullptr;    ///< Null: in no file.
  /// Of a whole run, where the record of its stage does not say it.
  std::optional<double> (*recorded_of_run)(const VariantRecord&) = nullptr;
  /// The place of `recorded` in the JSON of a stage, without the statistic; empty = it follows from
  /// other numbers.
  std::string_view place = {};

  bool has_many_values() const {
    return quantity == MetricKind::kTime || quantity == MetricKind::kTokens;
  }
  bool is_time() const { return quantity == MetricKind::kTime || quantity == MetricKind::kSpan; }
  bool is_share() const { return quantity == MetricKind::kShare || quantity == MetricKind::kUsage; }
  /// Its base unit, as CSV writes it.
  std::string_view unit() const;
};

std::span<const MetricRow> metric_table();

/// The percentage of p90, p99.9, p99p9 or median; nothing for other statistics.
std::optional<double> percentile_of(std::string_view statistic);

/// The row with this key, or with this name in reports of inference-perf; null when there is none.
const MetricRow* find_metric(std::string_view key);

struct MetricName;

/// `metric.statistic` of one stage in `unit` (empty = the metric's base unit: seconds, tokens,
/// tokens/s, requests/s, ratio). Metrics are those that find_metric() knows; tiers are of a whole
/// run with KV tiers only. Statistics: mean, min, max, median, pNN (p99, p99.9, p99p9), total,
/// count. Nothing when the name or the unit is unknown or the stage has no such data.
std::optional<double> metric_value(const sim::StageResult& stage, std::string_view metric,
                                   std::string_view statistic, std::string_view unit);

/// The same of a stage in a result file, which has the percentiles that its load tool lists;
/// nothing where the file has no such number.
std::optional<double> record_value(const StageRecord& stage, const MetricName& name);

/// The same with the percentiles that the file lists for its figures, and of a whole run with what
/// only the run has: tiers, the offered rate.
std::optional<double> stored_value(const StageRecord& stage, const MetricName& name);
std::optional<double> stored_value(const VariantRecord& run, const MetricName& name);

/// A value of `name` in the unit of `other`, the same number in another unit; nothing when it is
/// another number.
std::optional<double> in_unit_of(const MetricName& other, const MetricName& name, double value);

/// The same for a row that sums up a ladder: `simple_mean_of_...`,
/// `request_weighted_mean_of_16_stage_means`, `..._p90s`, `mean_over_ladder` (request-weighted for
/// latencies, simple for rates). `stages` are the reported ones.
std::optional<double> ladder_value(std::span<const sim::StageResult* const> stages,
                                   std::string_view metric, std::string_view statistic,
                                   std::string_view unit);

/// One name for each metric: `ttft` for `time_to_first_token`.
std::string canonical_metric(std::string_view metric);

/// A published value in the metric's base unit; nothing for an unknown unit.
std::optional<double> to_base_unit(double value, std::string_view unit);

/// The reported stages of a run, in order.
std::vector<const sim::StageResult*> reported_stages(const sim::RunResult& result);

}  // namespace routesim::tools
