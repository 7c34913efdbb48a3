#include "tools/render/dot_plot.h"

#include <algorithm>
#include <cmath>

#include "tools/render/numbers.h"
#include "tools/render/svg_chart.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

namespace {

struct Look {
  const char* style;
  std::size_t shape;
};

Look look_of(DotPlot::Style style) {
  if (style == DotPlot::Style::kGood) return {"good", 0};
  return style == DotPlot::Style::kBad ? Look{"bad", 2} : Look{"unsure", 1};
}

}  // namespace

std::string draw(const DotPlot& plot) {
  if (plot.rows.empty()) return {};
  constexpr double kWidth = 900, kLine = 22, kTop = 16, kGlyph = 6.8;
  double span = 1;
  std::size_t name = 0;
  std::size_t text = 0;
  for (const DotPlot::Row& row : plot.rows) {
    for (const std::optional<double>& v : {std::optional(row.percent), row.low, row.high})
      if (v) span = std::max(span, std::min(kMostPercent, std::abs(*v)));
    name = std::max(name, display_width(row.name));
    text = std::max(text, display_width(row.text));
  }
  const double left = std::min(400.0, 20 + kGlyph * static_cast<double>(name));
  const double right = kWidth - std::min(220.0, 16 + kGlyph * static_cast<double>(text));
  const auto at = [&](double v) {
    return left + (std::clamp(v / span, -1.0, 1.0) + 1) / 2 * (right - left);
  };
  const double bottom = kTop + kLine * static_cast<double>(plot.rows.size());
  std::string out = "<figure class=\"wide\"><figcaption><strong>" + html(plot.title) +
                    "</strong><span>" + html(plot.subtitle) + "</span></figcaption>" +
                    svg_open(kWidth, bottom + 26, plot.title);
  for (const double tick : linear_ticks(-span, span, 6)) {
    out += svg_line(at(tick), kTop - 6, at(tick), bottom, tick == 0 ? "axis" : "grid");
    out += svg_text(at(tick), bottom + 18, "middle", human(tick, Unit::kPercent));
  }
  double y = kTop + kLine / 2;
  for (const DotPlot::Row& row : plot.rows) {
    const Look look = look_of(row.style);
    out += svg_text(left - 8, y + 4, "end", row.name) + "<g class=\"dot " + look.style + "\">";
    if (row.low && row.high) out += svg_line(at(*row.low), y, at(*row.high), y, "interval");
    out += svg_marker(look.shape, at(row.percent), y, row.name + ": " + row.text) + "</g>" +
           svg_text(right + 8, y + 4, "start", row.text);
    y += kLine;
  }
  return out + "</svg></figure>";
}

}  // namespace routesim::tools
