// Metrics as people write them: `ttft_ms.p99`, `output_tokens_per_s`, vllm's `p99_ttft_ms`,
// inference-perf's `time_to_first_token.p99`. The one place that knows these names, for `run
// --until`, `expect`, `compare`, `sweep` and `plan`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/scalar_parse.h"
#include "sim/observe/run_result.h"
#include "tools/results/statistics.h"

namespace routesim::tools {

/// One number of a stage: what, which statistic of it, in which unit, and which way it improves.
struct MetricName {
  /// The one spelling used in output: `ttft_ms.p99`, `ttft_s.mean`, `output_tokens_per_s`.
  std::string text;
  std::string metric;     ///< As metric_value() knows it: `ttft`, `output_throughput`.
  std::string statistic;  ///< `mean`, `median`, `min`, `max`, `std`, `p99`, `p99.9`.
  std::string unit;       ///< `s`, `ms`, `us`, `%`, or empty for the metric's base unit.
  sim::Direction direction = sim::Direction::kSmallerIsBetter;
  /// Whether one direction is better at all: nobody wants longer prompts, or shorter ones.
  bool has_direction = true;
  bool operator==(const MetricName& other) const { return text == other.text; }
};

/// `METRIC[_UNIT][.STATISTIC]`. Times take `_s` (the default), `_ms` or `_us` and need a statistic;
/// shares take `_percent`; rates and counts have one value per stage, so they need none.
Parsed<MetricName> parse_metric_name(std::string_view text);

/// The metric of a stage or of a whole run, in its unit; nothing when the stage has no such data.
std::optional<double> metric_value(const sim::StageResult& stage, const MetricName& name);

/// The share of requests that met every latency goal: `goodput`.
MetricName goodput_metric();

/// Whether the metric exists only where latency goals say which requests are good.
bool needs_goals(const MetricName& name);

/// Whether it is about the fleet over the whole run, so that no stage has it.
bool is_of_run(const MetricName& name);

/// Which runs have the metric: `only pools with engine.kv_tiers have it`. Empty: every run.
std::string owners_of(const MetricName& name);

/// The metrics that results list with intervals: latencies in ms as mean, median, p90, p95 and p99,
/// then rates, hit rate and failures.
const std::vector<MetricName>& standard_metrics();

// A bound on one metric: what plans and pages of sweeps are held to.

/// `ttft_ms.p90 < 500`, `output_tokens_per_s > 6000`; `<=` and `>=` mean the same.
struct MetricGoal {
  std::string text = {};  ///< In one spelling.
  MetricName metric;
  bool upper = true;  ///< The number must stay below the bound, not above.
  double bound = 0;   ///< In the unit of the metric's name.

  bool holds(double value) const { return upper ? value <= bound : value >= bound; }
};

Parsed<MetricGoal> parse_metric_goal(std::string_view text);

}  // namespace routesim::tools
