// Everything a page shows as plain tables, for spreadsheets and scripts.
#pragma once

#include <string>
#include <vector>

#include "tools/render/page_data.h"

namespace routesim::tools {

/// One file of an export.
struct ExportFile {
  std::string name;  ///< `summary.csv`, ...
  std::string content;
};

/// Tables in base units (seconds, tokens, ratios), one number per row, as CSV (RFC 4180) and the
/// same rows as JSON lines: `summary`, `stages`, `quantiles`, `servers`, `series` of runs,
/// `sweep` of sweeps and `plan` of plans. Tables without rows are left out.
std::vector<ExportFile> export_tables(const PageData& data);

/// The curves over the load of each run as SVG files, `ttft.mean.svg`; of several runs with their
/// numbers, `2-ttft.mean.svg`.
std::vector<ExportFile> export_charts(const PageData& data);

}  // namespace routesim::tools
