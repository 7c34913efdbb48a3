// A report page: one self-contained HTML file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/render/chart/numbers.h"
#include "tools/render/page/page_data.h"

namespace routesim::tools {

/// One result on a page: the part between head and foot.
struct PageBody {
  std::string title, body;
  std::vector<ExportTable> data = {};
};

/// The page of these results. Nothing in it makes a request: style, script, drawings and data are
/// inline, and its content-security policy forbids the rest. `block` is the data block of all of
/// them, so the page is a result file too.
std::string render_page(const std::vector<PageBody>& bodies, const std::string& block);

/// The data block of a page, or nothing when `text` is no page of ours.
std::optional<std::string> data_block(std::string_view text);

/// `json` as the element that is a page's data block: compact, and safe inside a script element.
std::string make_data_block(const std::string& json);

/// The style sheet of pages.
std::string_view page_style();

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
/// data block; `–` for nothing. `after` is markup behind the number.
std::string number_cell(const Datum* datum, Unit unit, const std::string& after = {});

/// A `<th>` with the key of a series' colour, and below the name what the column compares with.
std::string series_heading(std::size_t colour, const std::string& name,
                           const std::string& note = {});

}  // namespace routesim::tools
