// Changes or errors in percent as points around zero, one line each, with their intervals.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace routesim::tools {

struct DotPlot {
  enum class Style { kGood, kBad, kUnsure };
  struct Row {
    std::string name;
    std::string text;  ///< To the right: the number as people write it.
    Style style = Style::kUnsure;
    double percent = 0;
    std::optional<double> low = {}, high = {};
  };
  std::string title;
  std::string subtitle;
  std::vector<Row> rows = {};
};

/// Values beyond this end at the frame; their number stands beside them.
inline constexpr double kMostPercent = 100;

/// A <figure>; empty when there is no row.
std::string draw(const DotPlot& plot);

}  // namespace routesim::tools
