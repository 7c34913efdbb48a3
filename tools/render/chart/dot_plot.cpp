#include "tools/render/chart/dot_plot.h"

#include <algorithm>
#include <cmath>

#include "base/scalar_parse.h"
#include "tools/render/chart/numbers.h"
#include "tools/render/chart/svg_chart.h"
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

/// The part of a name that fits into `width`.
std::string shortened(const std::string& name, double width) {
  const auto most = static_cast<std::size_t>(std::max(8.0, width / kLetter));
  if (display_width(name) <= most) return name;
  std::string out;
  std::size_t letters = 0;
  for (const char c : name) {
    const bool starts = (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;  // Of a UTF-8 letter.
    if (starts && ++letters == most) break;
    out += c;
  }
  return out + "…";
}

/// The point with its numbers for the page's script.
std::string marker(const DotPlot::Row& row, const Look& look, double x, double y) {
  const auto number = [](const std::optional<double>& v) { return v ? number_text(*v) : ""; };
  std::string mark = svg_marker(look.shape, x, y, row.name + ": " + row.text);
  return mark.insert(5, " data-row=\"" + html(row.name) + "\t" + number(row.low) + "\t" +
                            number(row.high) + "\t" + number_text(row.percent) + "\"");
}

}  // namespace

std::string draw(const DotPlot& plot) {
  if (plot.rows.empty()) return {};
  constexpr double kWidth = 440, kLine = 36, kTop = 10, kLeft = 14, kRight = 14;
  double span = 1;
  for (const DotPlot::Row& row : plot.rows)
    for (const std::optional<double>& v : {std::optional(row.percent), row.low, row.high})
      if (v) span = std::max(span, std::min(kMostPercent, std::abs(*v)));
  const auto at = [&](double v) {
    return kLeft + (std::clamp(v / span, -1.0, 1.0) + 1) / 2 * (kWidth - kLeft - kRight);
  };
  const double bottom = kTop + kLine * static_cast<double>(plot.rows.size());
  std::string out = svg_figure(plot.title, plot.subtitle);
  std::string open = svg_open(kWidth, bottom + 26, plot.title);
  out += open.insert(4, " class=\"rows\" data-columns=\"name\tlow\thigh\tpercent\"");
  for (const double tick : linear_ticks(-span, span, 4)) {
    out += svg_line(at(tick), kTop - 6, at(tick), bottom, tick == 0 ? "axis" : "grid");
    const std::string text = human(tick, Unit::kPercent);
    const double half = kLetter / 2 * static_cast<double>(display_width(text));
    out += svg_text(std::clamp(at(tick), half, kWidth - half), bottom + 18, "middle", text);
  }
  double y = kTop;
  for (const DotPlot::Row& row : plot.rows) {
    const Look look = look_of(row.style);
    const double room = kWidth - 24 - kLetter * static_cast<double>(display_width(row.text));
    out += svg_text(4, y + 12, "start", shortened(row.name, room), "over") +
           svg_text(kWidth - 4, y + 12, "end", row.text, "over");
    const double middle = y + kLine * 0.64;
    out += std::string("<g class=\"dot ") + look.style + "\">";
    if (row.low && row.high)
      out += svg_line(at(*row.low), middle, at(*row.high), middle, "interval");
    out += marker(row, look, at(row.percent), middle) + "</g>";
    y += kLine;
  }
  return out + "</svg></figure>";
}

}  // namespace routesim::tools
