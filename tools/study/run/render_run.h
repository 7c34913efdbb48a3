// The outputs of `routesim run`, made from its report.
#pragma once

#include <string>
#include <vector>

#include "tools/render/document.h"
#include "tools/results/report.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

// Numbers over many seeds: means with intervals, and how variants differ from the first.

/// Adds how the numbers were made, and the tables: per number of the stages, and for the whole run,
/// every variant's mean with its 95 % interval, and the difference of each later variant to the
/// first, with a verdict.
void add_replications(const ResultSet& set, std::vector<Block>& blocks);

/// How much the text says.
struct TextParts {
  bool tables = true;   ///< By stage, published and by class too; else those of the whole run.
  bool explain = true;  ///< The basis of the numbers and all notes; else a line that counts them.
  bool colour = false;
  std::size_t width = 0;
};

/// For people: the verdict, then simulated beside measured for every variant and the difference
/// between the variants, then the whole run. A last line says how to see what was left out.
std::string render_text(const Report& report, const TextParts& parts = {});

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

}  // namespace routesim::tools
