// Bars, points by group, and changes around zero: rows of marks along one axis.
#include <algorithm>
#include <cmath>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "tools/render/chart/svg.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

namespace {

struct RowMark {
  double at = 0;
  std::optional<double> low = {}, high = {};
  std::string tip;
  std::string data;  ///< Its cells in the table that the page's script downloads.
};

struct ChartRow {
  std::string name = {};
  std::string note = {};   ///< To the right.
  std::string style = {};  ///< Classes.
  std::size_t shape = 0;
  std::vector<RowMark> marks = {};
  bool bar = false;  ///< The mark is a bar from zero.
  std::optional<double> mean = {};
};

struct RowChart {
  std::string title, subtitle, x_title = {};
  std::string columns = {};  ///< Of the table to download.
  Unit unit = Unit::kNone;
  double low = 0, high = 0;
  bool names_above = false;  ///< Names are sentences: they stand above their marks.
  std::vector<ChartRow> rows = {};
};

/// Draws the rows below each other; marks beyond the axis stand at its end.
class RowDrawing {
 public:
  explicit RowDrawing(const RowChart& chart)
      : chart_(chart),
        ticks_(linear_ticks(chart.low, chart.high, 4)),
        most_(chart.names_above ? chart.high : std::max(chart.high, ticks_.back())) {
    std::size_t name = 0, note = 0;
    for (const ChartRow& row : chart.rows) {
      name = std::max(name, display_width(row.name));
      note = std::max(note, display_width(row.note));
    }
    if (chart.names_above) return;
    left_ = std::min(230.0, 16 + kLetter * static_cast<double>(name));
    right_ = kDrawingWidth - 14 - 1.2 * kLetter * static_cast<double>(note);  // Phones: larger.
  }

  std::string str() {
    const double line = chart_.names_above ? 36 : 24;
    const double bottom = kTop + line * static_cast<double>(chart_.rows.size());
    out_ = svg_open(kDrawingWidth, bottom + (chart_.x_title.empty() ? 26 : 38), chart_.title);
    out_.insert(4, " class=\"rows\" data-columns=\"" + html(chart_.columns) + "\"");
    for (const double tick : ticks_) {
      out_ += svg_line(x(tick), kTop - 4, x(tick), bottom, tick == 0 ? "axis" : "grid");
      const std::string text = human(tick, chart_.unit, false);
      const double half = 0.62 * kLetter * static_cast<double>(display_width(text));
      out_ +=
          svg_text(std::clamp(x(tick), half, kDrawingWidth - half), bottom + 16, "middle", text);
    }
    if (!chart_.x_title.empty())
      out_ += svg_text((left_ + right_) / 2, bottom + 33, "middle", chart_.x_title, "unit");
    double y = kTop;
    for (const ChartRow& row : chart_.rows) {
      draw_row(row, y, y + line * (chart_.names_above ? 0.64 : 0.5));
      y += line;
    }
    return svg_figure(chart_.title, chart_.subtitle) + out_ + "</svg></figure>";
  }

 private:
  double x(double value) const {
    const double share = (value - chart_.low) / (most_ - chart_.low);
    return left_ + std::clamp(share, 0.0, 1.0) * (right_ - left_);
  }

  void draw_row(const ChartRow& row, double top, double middle) {
    const double note = kLetter * static_cast<double>(display_width(row.note));
    if (chart_.names_above)
      out_ += svg_label(4, top + 12, row.name, kDrawingWidth - 24 - note, "start", "over") +
              svg_text(kDrawingWidth - 4, top + 12, "end", row.note, "over");
    else
      out_ += svg_label(left_ - 8, middle + 4, row.name, left_ - 10) +
              svg_text(right_ + 10, middle + 4, "start", row.note);
    out_ += "<g class=\"" + row.style + "\">";
    for (const RowMark& mark : row.marks) {
      const std::string data = " data-row=\"" + html(mark.data) + "\"";
      const std::string interval =
          mark.low && mark.high ? svg_line(x(*mark.low), middle, x(*mark.high), middle, "interval")
                                : "";
      if (!row.bar) out_ += interval;
      if (row.bar)
        out_ += "<rect class=\"bar\"" + data + " x=\"" + fixed_text(left_, 1) + "\" y=\"" +
                fixed_text(middle - 7, 1) + "\" width=\"" +
                fixed_text(std::max(x(mark.at) - left_, 0.5), 1) +
                "\" height=\"14\" rx=\"2\"><title>" + html(mark.tip) + "</title></rect>" + interval;
      else
        out_ += svg_marker(row.shape, x(mark.at), middle, mark.tip).insert(5, data);
    }
    if (row.mean) out_ += svg_line(x(*row.mean), middle - 9, x(*row.mean), middle + 9, "mean");
    out_ += "</g>";
  }

  static constexpr double kTop = 10;
  const RowChart& chart_;
  std::vector<double> ticks_;
  double most_;
  double left_ = 14, right_ = kDrawingWidth - 14;
  std::string out_;
};

std::string colour_class(std::size_t colour) { return "c" + std::to_string(colour % kColours); }

}  // namespace

std::string draw(const BarChart& chart) {
  if (chart.bars.empty()) return {};
  RowChart rows{.title = chart.title,
                .subtitle = chart.subtitle,
                .x_title = std::string(axis_unit(chart.unit)),
                .columns = "name\tvalue",
                .unit = chart.unit};
  for (const BarChart::Bar& bar : chart.bars) {
    rows.high = std::max({rows.high, bar.value, bar.high.value_or(0)});
    rows.rows.push_back({.name = bar.name,
                         .note = human(bar.value, chart.unit, false),
                         .style = colour_class(bar.colour),
                         .marks = {{.at = bar.value,
                                    .low = bar.low,
                                    .high = bar.high,
                                    .tip = bar.name + ": " + human(bar.value, chart.unit),
                                    .data = bar.name + "\t" + number_text(bar.value)}},
                         .bar = true});
  }
  if (rows.high <= 0) rows.high = 1;
  return RowDrawing(rows).str();
}

std::string draw(const StripChart& chart) {
  RowChart rows{.title = chart.title,
                .subtitle = chart.subtitle,
                .x_title = chart.x_title,
                .columns = "group\tname\tvalue",
                .unit = chart.unit};
  for (const StripChart::Group& group : chart.groups) {
    ChartRow& row = rows.rows.emplace_back();
    row.name = group.name;
    row.note = group.note;
    row.style = "strip " + colour_class(group.colour);
    row.shape = group.colour;
    double sum = 0;
    for (const auto& [name, value] : group.points) {
      sum += value;
      rows.high = std::max(rows.high, value);
      row.marks.push_back({.at = value,
                           .tip = group.name + ", " + name + ": " + human(value, chart.unit),
                           .data = group.name + "\t" + name + "\t" + number_text(value)});
    }
    row.mean = sum / static_cast<double>(std::max<std::size_t>(1, group.points.size()));
  }
  return rows.high > 0 ? RowDrawing(rows).str() : "";
}

std::string draw(const DotPlot& plot) {
  constexpr double kMostPercent = 100;  // Values beyond this end at the frame.
  if (plot.rows.empty()) return {};
  RowChart rows{.title = plot.title,
                .subtitle = plot.subtitle,
                .columns = "name\tlow\thigh\tpercent",
                .unit = Unit::kPercent,
                .high = 1,
                .names_above = true};
  const auto number = [](const std::optional<double>& v) { return v ? number_text(*v) : ""; };
  for (const DotPlot::Row& row : plot.rows) {
    for (const std::optional<double>& v : {std::optional(row.percent), row.low, row.high})
      if (v) rows.high = std::max(rows.high, std::min(kMostPercent, std::abs(*v)));
    const bool good = row.style == DotPlot::Style::kGood, bad = row.style == DotPlot::Style::kBad;
    rows.rows.push_back({.name = row.name,
                         .note = row.text,
                         .style = good  ? "dot good"
                                  : bad ? "dot bad"
                                        : "dot unsure",
                         .shape = good  ? 0U
                                  : bad ? 2U
                                        : 1U,
                         .marks = {{.at = row.percent,
                                    .low = row.low,
                                    .high = row.high,
                                    .tip = row.name + ": " + row.text,
                                    .data = row.name + "\t" + number(row.low) + "\t" +
                                            number(row.high) + "\t" + number_text(row.percent)}}});
  }
  rows.low = -rows.high;
  return RowDrawing(rows).str();
}

}  // namespace routesim::tools
