// The one table of metrics: what each is called, which way is better, how it is written, and how to
// get it from a simulated stage and from a result file.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "sim/observe/run_result.h"

namespace routesim::tools {

struct SamplesRecord;
struct LifecycleRecord;
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
};

std::span<const MetricRow> metric_table();

/// The row with this key, or with this name in reports of inference-perf; null when there is none.
const MetricRow* find_metric(std::string_view key);

}  // namespace routesim::tools
