// Metric names as users know them from inference-perf, `vllm bench serve` and published tables,
// resolved to numbers of a simulated stage.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/observe/run_result.h"

namespace routesim::tools {

struct MetricName;
struct StageRecord;
struct VariantRecord;

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
