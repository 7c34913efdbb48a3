// Pieces of HTML that several sections use.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tools/render/numbers.h"
#include "tools/render/page_data.h"

namespace routesim::tools {

/// What the page shows of a metric, and how.
struct Shown {
  std::string_view key;     ///< Into StageView::values.
  std::string_view title;   ///< In tables and on axes.
  std::string_view answer;  ///< How a chart's title begins; empty = not drawn.
  Unit unit = Unit::kNone;
  bool less_is_better = false;
};

/// A table cell with its number for people, and in attributes the exact number and its place in the
/// data block; `–` for nothing.
std::string number_cell(const Datum* datum, Unit unit);

/// `+12.3 %`; of ratios `+4.0 points`; `–` where there is nothing to divide by.
std::string change_text(double from, double to, Unit unit);

/// The change from `from` to `to` in percent, coloured by whether it is for the better.
/// Of ratios it is the difference in percentage points.
std::string change_cell(const Datum* from, const Datum* to, const Shown& shown);

/// A `<th>` with the key of a series' colour.
std::string series_heading(std::size_t colour, const std::string& name, std::size_t columns = 1);

}  // namespace routesim::tools
