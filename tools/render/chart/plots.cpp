// Lines and fronts, on the same axes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "tools/render/chart/svg.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

// Axes that line charts and scatter plots share.

/// Height of a drawing with two axes.
inline constexpr double kPlotHeight = 270;

struct Extent {
  double low = 0, high = 0;
  bool any = false;
  void add(double v) {
    if (!std::isfinite(v)) return;
    low = any ? std::min(low, v) : v;
    high = any ? std::max(high, v) : v;
    any = true;
  }
};

/// Maps one axis to its pixels.
class AxisScale {
 public:
  AxisScale(const ChartAxis& axis, const Extent& values, double from, double to);

  double at(double value) const;
  const std::vector<double>& ticks() const { return ticks_; }
  const ChartAxis& axis() const { return axis_; }
  /// The pixels of its lowest and its highest value.
  std::pair<double, double> ends() const { return {from_, to_}; }
  /// The data that the page's script needs to turn pixels into values: kind, lowest and highest
  /// value (or their logarithms), their pixels, unit, name.
  std::string str() const;

 private:
  double map(double v) const { return log_ ? std::log10(v) : v; }

  const ChartAxis& axis_;
  bool log_;
  double from_, to_;
  double low_ = 0, high_ = 1;
  std::vector<double> ticks_;
};

namespace {

constexpr double kLeft = 62;
/// A first point that may lie on the vertical axis is moved off its labels.
constexpr double kInset = 9;
constexpr double kRight = 14;
constexpr double kTop = 26;
constexpr double kBottom = 40;

/// The next of 1, 2, 5, 10, ... that is not above (below) `value`.
double round_log(double value, bool up) {
  const double power = std::pow(10, std::floor(std::log10(value)));
  const std::array<double, 4> steps = {1, 2, 5, 10};
  if (up) {
    for (const double step : steps)
      if (step * power >= value * 0.999) return step * power;
  } else {
    for (std::size_t i = steps.size(); i-- > 0;)
      if (steps[i] * power <= value * 1.001) return steps[i] * power;
  }
  return value;
}

/// A tick's label. Minutes are kept along a linear axis that reaches them.
std::string tick_text(double tick, const AxisScale& scale) {
  const ChartAxis& axis = scale.axis();
  const double most = scale.ticks().back();
  if (axis.unit == Unit::kSeconds && !axis.log && most >= 600 && most < 36'000 && tick > 0)
    return human(tick / 60, Unit::kNone) + "\u00a0min";
  return human(tick, axis.unit, false);
}

/// The multiples of `step` from `low` to `high`; rounding loses neither end.
std::vector<double> multiples(double step, double low, double high) {
  std::vector<double> ticks;
  const auto first = static_cast<std::int64_t>(std::ceil(low / step - 1e-9));
  const auto last = static_cast<std::int64_t>(std::floor(high / step + 1e-9));
  for (std::int64_t i = first; i <= last; ++i) ticks.push_back(static_cast<double>(i) * step);
  return ticks;
}

}  // namespace

AxisScale::AxisScale(const ChartAxis& axis, const Extent& values, double from, double to)
    : axis_(axis), log_(axis.log && values.low > 0), from_(from), to_(to) {
  double low = values.low, high = values.high;
  if (axis.min) low = *axis.min;
  if (axis.max) high = *axis.max;
  if (!log_ && axis.from_zero) low = std::min(low, 0.0);
  if (high <= low) high = low + (low == 0 ? 1 : std::abs(low) * 0.1);
  if (log_) {
    low = round_log(low, false);
    high = round_log(high, true);
    ticks_ = log_ticks(low, high);
  } else {
    ticks_ = axis.unit == Unit::kSeconds ? time_ticks(low, high, 6) : linear_ticks(low, high, 6);
    if (axis.unit == Unit::kCount && high - low >= 1)  // There is no half server.
      std::erase_if(ticks_, [](double tick) { return tick != std::round(tick); });
    if (!axis.max && !ticks_.empty()) {
      // The next round number above, so that no line touches the frame.
      const double step = ticks_.size() > 1 ? ticks_[1] - ticks_[0] : high - low;
      if (high > ticks_.back() + step * 1e-9) {
        high = std::min(high + step * 0.35, ticks_.back() + step);
        if (high >= ticks_.back() + step * 0.999) ticks_.push_back(ticks_.back() + step);
      }
    }
  }
  low_ = map(low);
  high_ = map(high);
}

double AxisScale::at(double value) const {
  const double v = log_ ? std::log10(std::max(value, 1e-300)) : value;
  const double share = std::clamp((v - low_) / (high_ - low_), -0.01, 1.01);
  return from_ + share * (to_ - from_);
}

std::string AxisScale::str() const {
  std::string out = log_ ? "log" : "lin";
  for (const double v : {low_, high_, from_, to_}) out.append(" ").append(number_text(v));
  return out + " " + std::string(unit_code(axis_.unit)) + " " + axis_.title;
}

AxisScale horizontal(const ChartAxis& axis, const Extent& values) {
  return {axis, values, axis.from_zero ? kLeft : kLeft + kInset, kDrawingWidth - kRight};
}

AxisScale vertical(const ChartAxis& axis, const Extent& values) {
  return {axis, values, kPlotHeight - kBottom, kTop};
}

std::string draw_axes(const AxisScale& x, const AxisScale& y) {
  std::string out = "<g class=\"ticks\">";
  for (const double tick : y.ticks()) {
    out += svg_line(kLeft, y.at(tick), kDrawingWidth - kRight, y.at(tick), "grid");
    out += svg_text(kLeft - 6, y.at(tick) + 4, "end", tick_text(tick, y));
  }
  double last = -1e9;
  for (const double tick : x.ticks()) {
    const double at = x.at(tick);
    out += svg_line(at, kPlotHeight - kBottom, at, kPlotHeight - kBottom + 4, "axis");
    const std::string text = tick_text(tick, x);
    const double half = kLetter * 0.6 * static_cast<double>(display_width(text));
    if (at - half < last + 6) continue;
    last = at + half;
    out += svg_text(std::min(at, kDrawingWidth - half), kPlotHeight - kBottom + 18, "middle", text);
  }
  return out + "</g>" +
         svg_line(kLeft, kPlotHeight - kBottom, kDrawingWidth - kRight, kPlotHeight - kBottom,
                  "axis") +
         svg_text(kLeft - 6, 12, "start", y.axis().title, "unit", -kLeft + 10) +
         svg_text((kLeft + kDrawingWidth - kRight) / 2, kPlotHeight - 5, "middle", x.axis().title,
                  "unit");
}

std::string draw_goal(double goal, const AxisScale& y) {
  return svg_line(kLeft, y.at(goal), kDrawingWidth - kRight, y.at(goal), "goal");
}

std::vector<double> linear_ticks(double low, double high, int most) {
  const double rough = (high - low) / most;
  if (!(rough > 0) || !std::isfinite(rough)) return {low};
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = power;
  for (const double factor : {1.0, 2.0, 2.5, 5.0, 10.0}) {
    step = factor * power;
    if (step >= rough * 0.999) break;
  }
  return multiples(step, low, high);
}

std::vector<double> time_ticks(double low, double high, int most) {
  if (high - low <= 100) return linear_ticks(low, high, most);
  for (const double unit : {1.0, 60.0, 3600.0})
    for (const double factor : {1.0, 2.0, 5.0, 10.0, 15.0, 30.0}) {
      const double step = unit * factor;
      if (high - low <= step * most) return multiples(step, low, high);
    }
  return linear_ticks(low, high, most);
}

std::vector<double> log_ticks(double low, double high) {
  const int first = static_cast<int>(std::floor(std::log10(low)));
  const int last = static_cast<int>(std::ceil(std::log10(high)));
  const std::vector<double> factors =
      std::log10(high / low) <= 2.2 ? std::vector<double>{1, 2, 5} : std::vector<double>{1};
  std::vector<double> ticks;
  for (int exponent = first; exponent <= last; ++exponent)
    for (const double factor : factors) {
      const double tick = factor * std::pow(10, exponent);
      if (tick >= low * 0.999 && tick <= high * 1.001) ticks.push_back(tick);
    }
  return ticks;
}

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

namespace {

std::string legend(const Scatter& s) {
  std::string out = "<ul class=\"legend\">";
  const auto entry = [&](const std::string& key, const std::string& text) {
    if (!text.empty()) out += "<li>" + key + html(text) + "</li>";
  };
  const auto mark = [](const char* style) {
    return "<svg class=\"key " + std::string(style) +
           "\" viewBox=\"0 0 28 14\" aria-hidden=\"true\">" + svg_marker(0, 14, 7, "") + "</svg>";
  };
  for (std::size_t g = 0; s.groups.size() > 1 && g < s.groups.size(); ++g)
    entry("<svg class=\"key c" + std::to_string(g % kColours) +
              "\" viewBox=\"0 0 28 14\" aria-hidden=\"true\">" + svg_marker(g, 14, 7, "") +
              "</svg>",
          s.groups[g]);
  entry(mark("plain"), s.filled);
  entry(mark("plain measured"), s.empty);
  entry(
      "<svg class=\"key\" viewBox=\"0 0 28 14\" aria-hidden=\"true\"><path class=\"front\" d=\"M1 "
      "11H14V4H27\"/></svg>",
      "front: nothing is better in both");
  if (s.goal)
    entry(
        "<svg class=\"key\" viewBox=\"0 0 28 14\" aria-hidden=\"true\"><path class=\"goal\" "
        "d=\"M1 7H27\"/></svg>",
        s.goal_text);
  return out + "</ul>";
}

/// The point with its numbers for the page's script.
std::string point_mark(const Scatter::Point& p, double x, double y) {
  std::string mark = svg_marker(p.group, x, y, p.tip), values;
  for (const double v : p.values) values += " " + (std::isfinite(v) ? number_text(v) : "-");
  if (!values.empty())
    values =
        std::string(" data-") + (p.may_lead ? "lead" : "aside") + "=\"" + values.substr(1) + "\"";
  return mark.insert(5, " data-row=\"" + html(p.tip) + "\t" + number_text(p.x) + "\t" +
                            number_text(p.y) + "\"" + values);
}

/// What the page's script needs to let a reader choose the axes: the numbers, which two are drawn,
/// and the pixels of the axes.
std::string choices(const Scatter& s, const AxisScale& x, const AxisScale& y) {
  if (s.choices.size() < 3) return {};
  std::string out = " data-choices=\"";
  for (const Scatter::Choice& c : s.choices)
    out += (&c == &s.choices.front() ? "" : ";") + html(c.title) + "\t" +
           std::string(unit_code(c.unit)) + "\t" + (c.less_is_better ? "less" : "more");
  out += "\" data-box=\"" + std::to_string(s.chosen_x) + " " + std::to_string(s.chosen_y);
  for (const auto& [from, to] : {x.ends(), y.ends()})
    out += " " + fixed_text(from, 1) + " " + fixed_text(to, 1);
  return out + "\"";
}

}  // namespace

std::vector<std::size_t> pareto_front(const Scatter& scatter) {
  const auto cost = [&](std::size_t i) {
    const Scatter::Point& p = scatter.points[i];
    return std::pair(scatter.less_x ? p.x : -p.x, scatter.less_y ? p.y : -p.y);
  };
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < scatter.points.size(); ++i)
    if (scatter.points[i].may_lead) order.push_back(i);
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return cost(a) < cost(b); });
  std::vector<std::size_t> front;
  for (const std::size_t i : order)
    if (front.empty() || cost(i).second < cost(front.back()).second) front.push_back(i);
  return front;
}

std::string draw(const Scatter& s) {
  if (s.points.empty()) return {};
  Extent xs, ys;
  for (const Scatter::Point& p : s.points) {
    xs.add(p.x);
    ys.add(p.y);
  }
  if (s.goal) ys.add(*s.goal);
  ChartAxis x_axis = s.x, y_axis = s.y;
  x_axis.from_zero = y_axis.from_zero = true;
  const AxisScale x = horizontal(x_axis, xs), y = vertical(y_axis, ys);
  std::string open = svg_open(kDrawingWidth, kPlotHeight, s.title);
  open.insert(4, " class=\"rows\" data-columns=\"" + html("name\t" + s.x.title + "\t" + s.y.title) +
                     "\"" + choices(s, x, y));
  std::string out = svg_figure(s.title, s.subtitle) + legend(s) + open + draw_axes(x, y);
  if (s.goal) out += draw_goal(*s.goal, y);
  std::string path;
  for (const std::size_t i : pareto_front(s))
    path += (path.empty() ? "M" + fixed_text(x.at(s.points[i].x), 1) + " "
                          : "H" + fixed_text(x.at(s.points[i].x), 1) + "V") +
            fixed_text(y.at(s.points[i].y), 1);
  out += "<path class=\"front\" d=\"" + path + "\"/>";
  for (const Scatter::Point& p : s.points)
    out += "<g class=\"c" + std::to_string(p.group % kColours) +
           (p.hollow ? " measured\">" : "\">") + point_mark(p, x.at(p.x), y.at(p.y)) + "</g>";
  return out + "</svg></figure>";
}

bool spreads_wide(const LineChart& chart) {
  double least = INFINITY;
  double most = 0;
  for (const ChartSeries& s : chart.series)
    for (const ChartPoint& p : s.points) {
      if (p.y <= 0) return false;
      least = std::min(least, p.y);
      most = std::max(most, p.y);
    }
  return most > 12 * least;
}

}  // namespace routesim::tools
