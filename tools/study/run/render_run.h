// The outputs of `routesim run`, made from its report.
#pragma once

#include <string>

#include "tools/results/report.h"

namespace routesim::tools {

/// A table for people: per metric, simulated beside measured for every variant, and the difference
/// between the variants; then the summary rows, and last the verdict.
std::string render_text(const Report& report, bool colour = false);

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

/// Per ladder metric and for the whole run: every variant's mean with its 95 % interval, and the
/// paired difference of each later variant to the first, with a verdict.
std::string replications_text(const ResultSet& set);

/// One row per variant, stage and metric.
std::string replications_csv(const ResultSet& set);

}  // namespace routesim::tools
