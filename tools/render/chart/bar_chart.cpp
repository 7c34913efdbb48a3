// Bars, and strips of points by group.
#include <algorithm>
#include <cmath>

#include "base/scalar_parse.h"
#include "tools/render/chart/svg_chart.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

namespace {

/// Room for names to the left of the drawing.
double room_for(std::size_t longest) {
  return std::min(190.0, 16 + kLetter * static_cast<double>(longest));
}

/// `<svg>` whose marks the page's script reads out and downloads as rows of `columns`.
std::string open_rows(double height, const std::string& title, const std::string& columns) {
  std::string out = svg_open(kDrawingWidth, height, title);
  return out.insert(4, " class=\"rows\" data-columns=\"" + html(columns) + "\"");
}

}  // namespace

std::string draw(const BarChart& chart) {
  if (chart.bars.empty()) return {};
  double most = 0;
  std::size_t longest = 0;
  for (const BarChart::Bar& bar : chart.bars) {
    most = std::max(most, bar.value);
    longest = std::max(longest, display_width(bar.name));
  }
  const double left = room_for(longest);
  std::string out = svg_figure(chart.title, chart.subtitle);
  out += open_rows(8 + 20 * static_cast<double>(chart.bars.size()), chart.title, "name\tvalue");
  double y = 4;
  for (const BarChart::Bar& bar : chart.bars) {
    const double length = most > 0 ? (kDrawingWidth - left - 70) * bar.value / most : 0;
    out += svg_label(left - 6, y + 13, bar.name, left - 8);
    const std::string colour = std::to_string(bar.colour % kColours);
    out += "<rect class=\"bar c" + colour + "\" data-row=\"" + html(bar.name) + "\t" +
           number_text(bar.value) + "\" x=\"" + fixed_text(left, 1) + "\" y=\"" +
           fixed_text(y + 2, 1) + "\" width=\"" + fixed_text(std::max(length, 0.5), 1) +
           "\" height=\"14\" rx=\"2\"><title>" +
           html(bar.name + ": " + human(bar.value, chart.unit)) + "</title></rect>";
    out += svg_text(left + length + 6, y + 13, "start", human(bar.value, chart.unit, false));
    y += 20;
  }
  return out + "</svg></figure>";
}

std::string draw(const StripChart& chart) {
  double most = 0;
  std::size_t longest = 0;
  for (const StripChart::Group& group : chart.groups) {
    longest = std::max(longest, display_width(group.name));
    for (const auto& [name, value] : group.points) most = std::max(most, value);
  }
  if (most <= 0) return {};
  constexpr double kStripLine = 26, kStripTop = 8, kNoteRoom = 64;
  const double left = room_for(longest);
  const double bottom = kStripTop + kStripLine * static_cast<double>(chart.groups.size());
  std::string out = svg_figure(chart.title, chart.subtitle);
  out += open_rows(bottom + 38, chart.title, "group\tname\tvalue");
  const std::vector<double> ticks = linear_ticks(0, most, 5);
  const double top = std::max(most, ticks.back());
  const auto x = [&](double value) {
    return left + (kDrawingWidth - left - kNoteRoom) * value / top;
  };
  for (const double tick : ticks) {
    out += svg_line(x(tick), kStripTop, x(tick), bottom, "grid");
    out += svg_text(x(tick), bottom + 15, "middle", human(tick, chart.unit, false));
  }
  out += svg_text((left + kDrawingWidth - kNoteRoom) / 2, bottom + 33, "middle", chart.x_title,
                  "unit");
  double y = kStripTop + kStripLine / 2;
  for (const StripChart::Group& group : chart.groups) {
    out += svg_label(left - 8, y + 4, group.name, left - 10);
    out += "<g class=\"strip c" + std::to_string(group.colour % kColours) + "\">";
    double sum = 0;
    for (const auto& [name, value] : group.points) {
      sum += value;
      std::string mark = svg_marker(group.colour, x(value), y,
                                    group.name + ", " + name + ": " + human(value, chart.unit));
      out += mark.insert(5, " data-row=\"" + html(group.name) + "\t" + html(name) + "\t" +
                                number_text(value) + "\"");
    }
    const double mean = sum / static_cast<double>(std::max<std::size_t>(1, group.points.size()));
    out += svg_line(x(mean), y - 9, x(mean), y + 9, "mean") + "</g>" +
           svg_text(kDrawingWidth - kNoteRoom + 10, y + 4, "start", group.note);
    y += kStripLine;
  }
  return out + "</svg></figure>";
}

}  // namespace routesim::tools
