// Everything a run found, in the form the renderers share.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/observe/run_result.h"
#include "sim/observe/time_series.h"
#include "sim/plan/scenario.h"
#include "tools/ingest/measured_csv.h"
#include "tools/render/goodput.h"
#include "tools/render/json_writer.h"
#include "tools/study/capacity_band.h"
#include "tools/study/compare/judgement.h"
#include "tools/study/compare/result_set.h"

namespace routesim::tools {

/// One variant's result, beside the published numbers it is compared with.
struct VariantReport {
  std::string name;
  sim::RunResult result;
  MeasuredTable measured;    ///< Rows of this variant's policy; empty when there are none.
  sim::Scenario scenario{};  ///< What was run.
  std::optional<sim::TimeSeries> series{};  ///< Every server over time, when asked for.
  std::string resolved{};  ///< The resolved scenario as JSON text; empty = left out.
  std::optional<GoodputResult> goodput{};       ///< Against the goals, when there are any.
  std::vector<sim::StageBand> capacity_band{};  ///< Near a knee; else empty.
};

struct Report {
  std::string scenario;
  std::string question;
  std::uint64_t seed = 0;
  std::string version;
  std::string commit;                   ///< Of the build; empty = left out.
  std::string scenario_hash;            ///< Of everything resolved; empty = left out.
  bool interrupted = false;             ///< The last variant is partial, and others may be missing.
  std::vector<VariantReport> variants;  ///< Of the first seed.
  /// The numbers of all seeds, when there are several.
  std::optional<ResultSet> replications{};
  std::vector<Judgement> expectations{};
};

/// The expectations and, of an interrupted run, one that fails: a build server must not take the
/// part that was run for the whole.
std::vector<Judgement> judgements_of(const Report& report);

/// The published value of a stage in the metric's base unit. A row belongs to the stage whose name
/// it carries, or else to the only reported stage with its rate.
std::optional<double> measured_value(const VariantReport& variant, const sim::StageResult& stage,
                                     std::string_view metric, std::string_view statistic);

/// The value of one published row in its metric's base unit, if the row belongs to this stage.
std::optional<double> measured_row_value(const VariantReport& variant, const MeasuredRow& row,
                                         const sim::StageResult& stage);

/// 100 (simulated - measured) / measured.
double error_percent(double simulated, double measured);

/// Percentages at which every result lists quantiles of its latencies, enough to draw a
/// distribution: JSON `quantile_levels`, and per stage `quantiles`.
std::span<const double> quantile_levels();

/// What the variants rest on and how far such results were off published numbers: a line for all
/// variants of which the same is true.
std::vector<std::string> trust_lines(const Report& report);

/// How far kCapacityBand of the KV blocks moves the variant: a sentence, empty away from a knee.
std::string capacity_text(const VariantReport& variant);

/// A table for people: per metric, simulated beside measured for every variant, and the difference
/// between the variants; then the summary rows.
std::string render_text(const Report& report);

/// One JSON object; its stages are inference-perf lifecycle reports.
std::string render_json(const Report& report);

/// Markdown for a pull request: expectations, then the numbers of every variant with intervals.
std::string render_markdown(const Report& report);

/// Tidy CSV: one number per row, beside the published one where there is one.
std::string render_csv(const Report& report);

/// CSV of every server over time: one row per variant, endpoint and grid point. Rates of a stretch
/// in which nothing happened are empty. Only the header when no variant has a series; kPartialLine
/// at the end when the run was interrupted.
std::string render_series_csv(const Report& report);

/// The same as one JSON object per variant: columns, with null for such rates.
void write_series(JsonWriter& json, const sim::TimeSeries& series);

/// The last line of a CSV file whose run was interrupted.
inline constexpr std::string_view kPartialLine = "# interrupted: the results are partial\n";

/// `text` as a CSV field: quoted when it holds a comma, a quote or a line break (RFC 4180).
std::string csv_field(const std::string& text);  ///< Text as a cell that holds just this text.

}  // namespace routesim::tools
