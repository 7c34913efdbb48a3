#include "tools/render/html_parts.h"

#include <cmath>

#include "base/scalar_parse.h"
#include "tools/render/svg_chart.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

std::string number_cell(const Datum* datum, Unit unit) {
  if (datum == nullptr) return "<td>–</td>";
  std::string out = "<td data-path=\"" + html(datum->path) + "\" data-value=\"" +
                    number_text(datum->raw.value_or(datum->value)) + "\">" +
                    human(datum->value, unit, false);
  if (datum->low && datum->high && *datum->low < *datum->high)
    out += " <small>" + human(*datum->low, unit, false) + " … " + human(*datum->high, unit, false) +
           "</small>";
  return out + "</td>";
}

std::string change_text(double from, double to, Unit unit) {
  if (unit == Unit::kRatio) return signed_percent(100 * (to - from)) + " points";
  return from == 0 ? "–" : signed_percent(100 * (to - from) / from) + " %";
}

std::string change_cell(const Datum* from, const Datum* to, const Shown& shown) {
  if (from == nullptr || to == nullptr) return "<td>–</td>";
  const double scale = shown.unit == Unit::kRatio ? 1 : std::abs(from->value);
  const double change = to->value - from->value;
  const std::string text = change_text(from->value, to->value, shown.unit);
  if (std::abs(change) < 0.01 * scale || scale == 0) return "<td>" + text + "</td>";
  const bool good = (change < 0) == shown.less_is_better;
  return std::string("<td class=\"") + (good ? "good" : "bad") + "\">" + text + "</td>";
}

std::string series_heading(std::size_t colour, const std::string& name, std::size_t columns) {
  std::string out = "<th";
  if (columns > 1) out += " colspan=\"" + std::to_string(columns) + "\"";
  return out + ">" + svg_key(colour, false, true) + html(name) + "</th>";
}

}  // namespace routesim::tools
