#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "tools/render/chart/axes.h"
#include "tools/render/chart/svg.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

namespace {

std::string number(double v) { return fixed_text(v, 1); }

std::string shown_name(const ChartSeries& s) { return s.name + (s.measured ? " (measured)" : ""); }

/// Outlines around the origin. Eight that differ without colour, and the one of measured points.
std::string_view shape(std::size_t which) {
  constexpr std::array<std::string_view, kColours> kShapes = {
      "M-3.2 0a3.2 3.2 0 1 0 6.4 0a3.2 3.2 0 1 0 -6.4 0Z",             // disc
      "M-3 -3h6v6h-6Z",                                                // square
      "M0 -4L3.8 3L-3.8 3Z",                                           // triangle
      "M-1.2 -3.8h2.4v2.6h2.6v2.4h-2.6v2.6h-2.4v-2.6h-2.6v-2.4h2.6Z",  // plus
      "M0 -4.2L4.2 0L0 4.2L-4.2 0Z",                                   // diamond
      "M0 4L3.8 -3L-3.8 -3Z",                                          // triangle, down
      "M-3.6 -2L-2 -3.6L0 -1.6L2 -3.6L3.6 -2L1.6 0L3.6 2L2 3.6L0 1.6L-2 3.6L-3.6 2L-1.6 0Z",  // x
      "M-3.4 -3.6h6.8L-3.4 3.6h6.8Z"};  // hourglass
  return which == kMeasuredShape ? "M0 -5.5L5.5 0L0 5.5L-5.5 0Z" : kShapes[which % kColours];
}

/// A line chart being drawn.
class LineDrawing {
 public:
  explicit LineDrawing(const LineChart& chart) : chart_(chart) {
    for (const ChartSeries& s : chart.series)
      for (const ChartPoint& p : s.points) {
        x_.add(p.x);
        y_.add(p.y);
        if (p.low) y_.add(*p.low);
        if (p.high) y_.add(*p.high);
      }
    if (chart.goal && y_.any) y_.add(*chart.goal);
  }

  bool empty() const { return !x_.any || !y_.any; }

  std::string str() {
    const AxisScale x = horizontal(chart_.x, x_), y = vertical(chart_.y, y_);
    out_ = svg_open(kDrawingWidth, kPlotHeight, chart_.title);
    out_.insert(
        4, " class=\"plot\" data-x=\"" + html(x.str()) + "\" data-y=\"" + html(y.str()) + "\"");
    if (chart_.thin) out_ += "<g class=\"thin\">";
    out_ += draw_axes(x, y);
    if (chart_.goal) out_ += "<g class=\"goal\">" + draw_goal(*chart_.goal, y) + "</g>";
    if (!chart_.events.empty()) {
      out_ += "<g class=\"series\" data-name=\"events\">";
      for (const ChartBand& event : chart_.events) band(event, x, y);
      out_ += "</g>";
    }
    for (const ChartSeries& s : chart_.series) series(s, x, y);
    return out_ + (chart_.thin ? "</g></svg>" : "</svg>");
  }

 private:
  std::string tip(const ChartSeries& s, const ChartPoint& p) const {
    std::string text = s.name + (s.measured ? ", measured" : "") + ": " +
                       human(p.y, chart_.y.unit) + " at " + human(p.x, chart_.x.unit) +
                       (p.overloaded ? ", overloaded" : "");
    if (p.low && p.high)
      text += " (" + human(*p.low, chart_.y.unit) + " to " + human(*p.high, chart_.y.unit) + ")";
    return text;
  }

  /// `x y`, `x y low high`, with a `!` when overloaded.
  static std::string points_text(const ChartSeries& s) {
    std::string out;
    for (const ChartPoint& p : s.points) {
      if (!std::isfinite(p.y)) continue;
      out += (out.empty() ? "" : ";") + number_text(p.x) + " " + number_text(p.y);
      if (p.low && p.high) out += " " + number_text(*p.low) + " " + number_text(*p.high);
      if (p.overloaded) out += "!";
    }
    return out;
  }

  /// The line in parts: those that touch an overloaded point are drawn faded.
  void line(const ChartSeries& s, const AxisScale& x, const AxisScale& y) {
    std::string path;
    const ChartPoint* last = nullptr;
    bool faded = false;
    const std::string style = "line d" + std::to_string(s.colour % kColours);
    const auto put = [&] {
      if (path.find_first_of("LHV", 1) != std::string::npos)
        out_.append("<path class=\"")
            .append(style)
            .append(faded ? " past" : "")
            .append("\" d=\"")
            .append(path)
            .append("\"/>");
    };
    for (const ChartPoint& p : s.points) {
      if (!std::isfinite(p.y)) continue;
      const bool past = last != nullptr && (last->overloaded || p.overloaded);
      if (last == nullptr || past != faded) {
        if (last != nullptr) put();
        const ChartPoint& start = last != nullptr ? *last : p;
        path = "M" + number(x.at(start.x)) + " " + number(y.at(start.y));
        faded = past;
      }
      if (last != nullptr && s.steps)
        path.append("H").append(number(x.at(p.x))).append("V").append(number(y.at(p.y)));
      else if (last != nullptr)
        path.append("L").append(number(x.at(p.x))).append(" ").append(number(y.at(p.y)));
      last = &p;
    }
    if (last != nullptr) put();
  }

  /// Both paths are drawn as lines are, so that a zoom moves them too.
  void band(const ChartBand& b, const AxisScale& x, const AxisScale& y) {
    const auto [low, high] = y.ends();
    const auto path = [&](const char* style, double from, double to) {
      out_ += fmt::format(R"(<path class="line {}" d="M{} {}V{}H{}V{}"><title>{}</title></path>)",
                          style, number(x.at(from)), number(low), number(high), number(x.at(to)),
                          number(low), html(b.text));
    };
    if (b.low && b.high) path("held", *b.low, std::min(*b.high, x_.high));
    path("most", b.at, b.at);
  }

  void series(const ChartSeries& s, const AxisScale& x, const AxisScale& y) {
    out_ += "<g class=\"series c" + std::to_string(s.colour % kColours) +
            (s.measured ? " measured" : "") + "\" data-name=\"" + html(shown_name(s)) +
            "\" data-points=\"" + points_text(s) + "\">";
    if (!s.measured && s.points.size() > 1) line(s, x, y);
    if (s.band) band(*s.band, x, y);
    for (const ChartPoint& p : s.points) {
      if (!std::isfinite(p.y)) continue;
      if (p.low && p.high)
        out_ += svg_line(x.at(p.x), y.at(*p.low), x.at(p.x), y.at(*p.high), "interval");
      if (s.markers || s.measured || s.points.size() == 1)
        out_ += svg_marker(s.measured ? kMeasuredShape : s.colour, x.at(p.x), y.at(p.y), tip(s, p),
                           p.overloaded ? " past" : "");
    }
    out_ += "</g>";
  }

  const LineChart& chart_;
  Extent x_, y_;
  std::string out_;
};

std::string legend(const LineChart& chart) {
  bool past = false, band = false;
  for (const ChartSeries& s : chart.series) band = band || s.band;
  for (const ChartSeries& s : chart.series)
    for (const ChartPoint& p : s.points) past = past || (p.overloaded && !s.measured);
  if (chart.series.size() < 2 && !past && !chart.goal && !band && chart.events.empty()) return {};
  std::string out = "<ul class=\"legend\">";
  for (const ChartSeries& s : chart.series)
    out += "<li data-name=\"" + html(shown_name(s)) + "\">" +
           svg_key(s.colour, s.measured, s.markers) + html(shown_name(s)) + "</li>";
  if (past)
    out +=
        "<li class=\"note\"><svg class=\"key\" viewBox=\"0 0 28 14\" aria-hidden=\"true\">"
        "<path class=\"line past\" d=\"M1 7H27\"/><path class=\"mark past\" "
        "transform=\"translate(14 7)\" d=\"" +
        std::string(shape(0)) + "\"/></svg>faded: overloaded, more is asked than answered</li>";
  if (!chart.events.empty())
    out +=
        "<li data-name=\"events\"><svg class=\"key\" viewBox=\"0 0 28 14\" aria-hidden=\"true\">"
        "<path class=\"line most\" d=\"M14 0V14\"/></svg>events</li>";
  if (band)
    out +=
        "<li class=\"note\"><svg class=\"key\" viewBox=\"0 0 28 14\" aria-hidden=\"true\">"
        "<path class=\"line held\" d=\"M8 14V0H20V14\"/><path class=\"line most\" "
        "d=\"M14 0V14\"/></svg>" +
        html(chart.band_text) + "</li>";
  if (chart.goal)
    out += "<li class=\"note\"><svg class=\"key\" viewBox=\"0 0 28 14\" aria-hidden=\"true\">" +
           svg_line(1, 7, 27, 7, "goal") + "</svg>goal: " + html(chart.goal_text) + "</li>";
  return out + "</ul>";
}

}  // namespace

Drawing draw_lines(const LineChart& chart) {
  LineDrawing drawing(chart);
  if (drawing.empty()) return {};
  return {.svg = drawing.str(), .width = kDrawingWidth, .height = kPlotHeight};
}

std::string draw(const LineChart& chart) {
  const Drawing drawing = draw_lines(chart);
  if (drawing.svg.empty()) return {};
  return svg_figure(chart.title, chart.subtitle) + legend(chart) + drawing.svg + "</figure>";
}

std::string svg_open(double width, double height, const std::string& label) {
  return fmt::format(R"(<svg viewBox="0 0 {} {}" role="img" aria-label="{}">)",
                     fixed_text(width, 0), fixed_text(height, 0), html(label));
}

std::string svg_line(double x1, double y1, double x2, double y2, const std::string& style) {
  return fmt::format(R"(<line class="{}" x1="{}" y1="{}" x2="{}" y2="{}"/>)", style, number(x1),
                     number(y1), number(x2), number(y2));
}

std::string svg_text(double x, double y, const std::string& anchor, const std::string& text,
                     const std::string& style, double shift) {
  return fmt::format(R"(<text{} x="{}" y="{}" text-anchor="{}">{}</text>)",
                     style.empty() ? "" : fmt::format(R"( class="{}")", style), number(x + shift),
                     number(y), anchor, html(text));
}

std::string svg_marker(std::size_t which, double x, double y, const std::string& tip,
                       const std::string& style) {
  return fmt::format(
      R"x(<path class="mark{}" transform="translate({} {})" d="{}"><title>{}</title></path>)x",
      style, number(x), number(y), shape(which), html(tip));
}

std::string svg_key(std::size_t colour, bool measured, bool marker) {
  std::string out = fmt::format(R"(<svg class="key c{}{}" viewBox="0 0 28 14" aria-hidden="true">)",
                                colour % kColours, measured ? " measured" : "");
  if (!measured) out += fmt::format(R"(<path class="line d{}" d="M1 7H27"/>)", colour % kColours);
  if (measured || marker)
    out += fmt::format(R"x(<path class="mark" transform="translate(14 7)" d="{}"/>)x",
                       shape(measured ? kMeasuredShape : colour));
  return out + "</svg>";
}

std::string svg_figure(const std::string& title, const std::string& subtitle) {
  std::string out = "<figure><figcaption><strong>" + html(title) + "</strong>";
  if (!subtitle.empty()) out += "<span>" + html(subtitle) + "</span>";
  return out + "</figcaption>";
}

std::string svg_label(double x, double y, const std::string& text, double width,
                      const std::string& anchor, const std::string& style) {
  const auto fits = static_cast<std::size_t>(std::max(2.0, width / kLetter));
  if (display_width(text) <= fits) return svg_text(x, y, anchor, text, style);
  return svg_text(x, y, anchor, std::string(head_of(text, fits - 1)) + "…", style);
}

}  // namespace routesim::tools
