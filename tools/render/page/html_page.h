// A report page: one self-contained HTML file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tools/render/chart/numbers.h"

namespace routesim::tools {

// Numbers of a page. Every one keeps the place it has in the page's data block, so that a test (or
// a reader) can hold the tables against the data.

/// One number of the data block.
struct Datum {
  double value = 0;                     ///< In base units: seconds, tokens, ratios.
  std::string path = {};                ///< JSON pointer into the data block.
  std::optional<double> low{}, high{};  ///< 95 % interval over replications, where there is one.
  std::optional<double> raw{};          ///< As it stands in the block, where that has another unit.
};

/// Numbers for other programs: a file of `report --export`.
struct ExportTable {
  using Value = std::variant<std::string, std::optional<double>>;
  std::string name;
  std::vector<std::string> columns;
  std::vector<std::vector<Value>> rows = {};
};

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
