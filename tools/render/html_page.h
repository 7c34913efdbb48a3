// A report page: one self-contained HTML file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/render/numbers.h"
#include "tools/render/page_data.h"
#include "tools/results/output_file.h"
#include "tools/results/report.h"

namespace routesim::tools {

/// The page. Nothing in it makes a request: style, script, drawings and data are inline, and its
/// content-security policy forbids the rest. `data.block` stands in it, so the page is a result
/// file too.
std::string render_page(const PageData& data);

/// The sections of one result: what render_page() puts between head and foot.
std::string run_sections(const PageRun& run);

/// Style sheet, and the script that reads, zooms, sorts and downloads.
std::string_view page_style();
/// The style that figures of comparisons, sweeps and plans add to it.
std::string_view study_style();
std::string_view page_script();

/// A metric that the page shows, and how.
struct Shown {
  std::string_view key;     ///< Into StageView::values.
  std::string_view title;   ///< In tables and on axes.
  std::string_view answer;  ///< How a chart's title begins; empty = not drawn.
  Unit unit = Unit::kNone;
  bool less_is_better = false;
};

/// `<div><table>` of a frame that scrolls in a narrow window. Tables of many columns are smaller;
/// those of words, not numbers, are aligned to the left.
std::string open_table(std::size_t columns, bool words = false);
/// Closes the rows, the table and its frame.
inline constexpr std::string_view kTableEnd = "</tbody></table></div>";

/// A table cell with its number for people, and in attributes the exact number and its place in the
/// data block; `–` for nothing. `after` is markup behind the number, such as a change_note().
std::string number_cell(const Datum* datum, Unit unit, const std::string& after = {});

/// `+12.3 %`; of ratios `+4.0 points`; `–` where there is nothing to divide by.
std::string change_text(double from, double to, Unit unit);

/// The change from `from` to `to` in percent, of ratios in percentage points, and from 1 % on in
/// words whether it is for the better: `+12.3 %, worse`.
std::string change_note(const Datum* from, const Datum* to, const Shown& shown);

/// A `<th>` with the key of a series' colour, and below the name what the column compares with.
std::string series_heading(std::size_t colour, const std::string& name,
                           const std::string& note = {});

/// Tables in base units (seconds, tokens, ratios), one number per row, as CSV (RFC 4180) and the
/// same rows as JSON lines: `summary`, `stages`, `quantiles`, `servers`, `series` of runs,
/// and those of other studies. Tables without rows are left out.
std::vector<FolderFile> export_tables(const PageData& data);

/// The curves over the load of each run as SVG files, `ttft.mean.svg`; of several runs with their
/// numbers, `2-ttft.mean.svg`.
std::vector<FolderFile> export_charts(const PageData& data);

}  // namespace routesim::tools
