#include "tools/render/svg_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tools/results/text_table.h"

namespace routesim::tools {

namespace {

std::string number(double v) { return fixed_text(v, 1); }

std::string shape(std::size_t which, double x, double y) {
  std::string path;
  // One corner: a command letter and a point relative to the middle.
  const auto to = [&](char command, double dx, double dy) {
    path += command;
    path.append(number(x + dx)).append(" ").append(number(y + dy));
  };
  if (which == kMeasuredShape) {
    to('M', 0, -5.5);
    to('L', 5.5, 0);
    to('L', 0, 5.5);
    to('L', -5.5, 0);
    return path.append("Z");
  }
  switch (which % 4) {
    case 0:  // a disc
      to('M', -3.2, 0);
      return path.append("a3.2 3.2 0 1 0 6.4 0a3.2 3.2 0 1 0 -6.4 0Z");
    case 1:  // a square
      to('M', -3, -3);
      return path.append("h6v6h-6Z");
    case 2:  // a triangle
      to('M', 0, -4);
      to('L', 3.8, 3);
      to('L', -3.8, 3);
      return path.append("Z");
    default:  // a cross
      to('M', -1.2, -3.8);
      return path.append("h2.4v2.6h2.6v2.4h-2.6v2.6h-2.4v-2.6h-2.6v-2.4h2.6Z");
  }
}

constexpr double kWidth = 440;
constexpr double kHeight = 270;
constexpr double kLeft = 54;
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

/// Maps one axis to its pixels.
class AxisScale {
 public:
  AxisScale(const ChartAxis& axis, double low, double high, double from, double to)
      : log_(axis.log && low > 0), from_(from), to_(to) {
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

  double at(double value) const {
    const double v = log_ ? std::log10(std::max(value, 1e-300)) : value;
    const double share = std::clamp((v - low_) / (high_ - low_), -0.01, 1.01);
    return from_ + share * (to_ - from_);
  }
  const std::vector<double>& ticks() const { return ticks_; }

 private:
  double map(double v) const { return log_ ? std::log10(v) : v; }

  bool log_;
  double from_, to_;
  double low_ = 0, high_ = 1;
  std::vector<double> ticks_;
};

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

/// A tick's label. Minutes are kept along a linear axis that reaches them.
std::string tick_text(double tick, const std::vector<double>& ticks, const ChartAxis& axis) {
  const double most = ticks.back();
  if (axis.unit == Unit::kSeconds && !axis.log && most >= 600 && most < 36'000 && tick > 0)
    return human(tick / 60, Unit::kNone) + "\u00a0min";
  return human(tick, axis.unit, false);
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
  }

  bool empty() const { return !x_.any || !y_.any; }

  std::string str() {
    const AxisScale x(chart_.x, x_.low, x_.high, kLeft, kWidth - kRight);
    const AxisScale y(chart_.y, y_.low, y_.high, kHeight - kBottom, kTop);
    out_ = svg_open(kWidth, kHeight, chart_.title);
    if (chart_.thin) out_ += "<g class=\"thin\">";
    grid(x, y);
    for (const ChartSeries& s : chart_.series) series(s, x, y);
    return out_ + (chart_.thin ? "</g></svg>" : "</svg>");
  }

 private:
  void grid(const AxisScale& x, const AxisScale& y) {
    for (const double tick : y.ticks()) {
      out_ += svg_line(kLeft, y.at(tick), kWidth - kRight, y.at(tick), "grid");
      out_ += svg_text(kLeft - 6, y.at(tick) + 4, "end", tick_text(tick, y.ticks(), chart_.y));
    }
    double last = -1e9;
    for (const double tick : x.ticks()) {
      const double at = x.at(tick);
      out_ += svg_line(at, kHeight - kBottom, at, kHeight - kBottom + 4, "axis");
      const std::string text = tick_text(tick, x.ticks(), chart_.x);
      const double half = 3.4 * static_cast<double>(display_width(text));
      if (at - half < last + 6) continue;
      last = at + half;
      out_ += svg_text(std::min(at, kWidth - half), kHeight - kBottom + 18, "middle", text);
    }
    out_ += svg_line(kLeft, kHeight - kBottom, kWidth - kRight, kHeight - kBottom, "axis");
    out_ += svg_text(kLeft - 6, 12, "start", chart_.y.title, "unit", -kLeft + 10);
    out_ += svg_text((kLeft + kWidth - kRight) / 2, kHeight - 5, "middle", chart_.x.title, "unit");
  }

  std::string tip(const ChartSeries& s, const ChartPoint& p) const {
    std::string text = s.name + (s.measured ? ", measured" : "") + ": " +
                       human(p.y, chart_.y.unit) + " at " + human(p.x, chart_.x.unit) +
                       (p.overloaded ? ", overloaded" : "");
    if (p.low && p.high)
      text += " (" + human(*p.low, chart_.y.unit) + " to " + human(*p.high, chart_.y.unit) + ")";
    return text;
  }

  void series(const ChartSeries& s, const AxisScale& x, const AxisScale& y) {
    out_.append("<g class=\"c").append(std::to_string(s.colour % kColours));
    out_.append(s.measured ? " measured\">" : "\">");
    if (!s.measured && s.points.size() > 1) {
      std::string path;
      for (const ChartPoint& p : s.points) {
        if (!std::isfinite(p.y)) continue;
        if (s.steps && !path.empty()) path.append("H").append(fixed_text(x.at(p.x), 1));
        path += (path.empty() ? "M" : s.steps ? "V" : "L");
        if (path.back() != 'V') path.append(fixed_text(x.at(p.x), 1)).append(" ");
        path += fixed_text(y.at(p.y), 1);
      }
      out_.append("<path class=\"line d").append(std::to_string(s.colour % 4));
      out_.append("\" d=\"").append(path).append("\"/>");
    }
    for (const ChartPoint& p : s.points) {
      if (!std::isfinite(p.y)) continue;
      if (p.overloaded) out_ += svg_text(x.at(p.x), y.at(p.y) - 6, "middle", "×");
      if (p.low && p.high)
        out_ += svg_line(x.at(p.x), y.at(*p.low), x.at(p.x), y.at(*p.high), "interval");
      if (s.markers || s.measured || s.points.size() == 1)
        out_ += svg_marker(s.measured ? kMeasuredShape : s.colour, x.at(p.x), y.at(p.y), tip(s, p));
    }
    out_ += "</g>";
  }

  const LineChart& chart_;
  Extent x_, y_;
  std::string out_;
};

std::string legend(const LineChart& chart) {
  if (chart.series.size() < 2) return {};
  std::string out = "<ul class=\"legend\">";
  for (const ChartSeries& s : chart.series)
    out += "<li>" + svg_key(s.colour, s.measured, s.markers) + html(s.name) +
           (s.measured ? " (measured)" : "") + "</li>";
  return out + "</ul>";
}

std::string caption(const std::string& title, const std::string& subtitle) {
  std::string out = "<figcaption><strong>" + html(title) + "</strong>";
  if (!subtitle.empty()) out += "<span>" + html(subtitle) + "</span>";
  return out + "</figcaption>";
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

Drawing draw_lines(const LineChart& chart) {
  LineDrawing drawing(chart);
  if (drawing.empty()) return {};
  return {.svg = drawing.str(), .width = kWidth, .height = kHeight};
}

std::string draw(const LineChart& chart) {
  const Drawing drawing = draw_lines(chart);
  if (drawing.svg.empty()) return {};
  return "<figure>" + caption(chart.title, chart.subtitle) + legend(chart) + drawing.svg +
         "</figure>";
}

std::string draw(const BarChart& chart) {
  if (chart.bars.empty()) return {};
  double most = 0;
  std::size_t longest = 0;
  for (const BarChart::Bar& bar : chart.bars) {
    most = std::max(most, bar.value);
    longest = std::max(longest, display_width(bar.name));
  }
  const double left = std::min(190.0, 16 + 6.8 * static_cast<double>(longest));
  const double height = 8 + 20 * static_cast<double>(chart.bars.size());
  std::string out = "<figure>" + caption(chart.title, chart.subtitle);
  out += svg_open(kWidth, height, chart.title);
  double y = 4;
  for (const BarChart::Bar& bar : chart.bars) {
    const double length = most > 0 ? (kWidth - left - 70) * bar.value / most : 0;
    out += svg_text(left - 6, y + 13, "end", bar.name);
    const std::string colour = std::to_string(bar.colour % kColours);
    out += "<rect class=\"bar c" + colour + "\" x=\"" + fixed_text(left, 1) + "\" y=\"" +
           fixed_text(y + 2, 1) + "\" width=\"" + fixed_text(std::max(length, 0.5), 1) +
           "\" height=\"14\" rx=\"2\"/>";
    out += svg_text(left + length + 6, y + 13, "start", human(bar.value, chart.unit, false));
    y += 20;
  }
  return out + "</svg></figure>";
}

namespace {

/// Position of each cell between the smallest and the largest value, 0..1.
class Shades {
 public:
  explicit Shades(const HeatMap& map) : log_(map.log), flip_(map.low_is_good) {
    for (const auto& row : map.cells)
      for (const std::optional<double>& v : row)
        if (v && (!log_ || *v > 0)) extent_.add(log_ ? std::log10(*v) : *v);
  }
  bool empty() const { return !extent_.any; }
  double of(double value) const {
    const double v = log_ ? std::log10(std::max(value, 1e-300)) : value;
    const double span = extent_.high - extent_.low;
    const double share = span > 0 ? std::clamp((v - extent_.low) / span, 0.0, 1.0) : 0.5;
    return flip_ ? 1 - share : share;
  }

 private:
  bool log_, flip_;
  Extent extent_;
};

/// Cividis, sampled: readable with every kind of colour vision, and in grey.
std::string cividis(double share) {
  constexpr std::array<std::array<double, 3>, 9> kMap = {{{0, 34, 78},
                                                          {26, 56, 111},
                                                          {64, 77, 108},
                                                          {93, 98, 111},
                                                          {122, 121, 119},
                                                          {153, 145, 117},
                                                          {186, 171, 107},
                                                          {221, 199, 86},
                                                          {254, 232, 56}}};
  const double at = share * (kMap.size() - 1);
  const auto low = std::min<std::size_t>(static_cast<std::size_t>(at), kMap.size() - 2);
  std::string out = "rgb(";
  for (std::size_t i = 0; i < 3; ++i) {
    const double v =
        kMap[low][i] + (kMap[low + 1][i] - kMap[low][i]) * (at - static_cast<double>(low));
    out += fixed_text(v, 0) + (i < 2 ? "," : ")");
  }
  return out;
}

}  // namespace

std::string draw(const HeatMap& map) {
  const Shades shades(map);
  if (shades.empty()) return {};
  std::size_t longest = 4;
  for (const std::string& row : map.rows) longest = std::max(longest, display_width(row));
  const double left = std::min(150.0, 14 + 6.8 * static_cast<double>(longest));
  const double cell = (kWidth - left - kRight) / static_cast<double>(map.columns.size());
  const double line = std::clamp(cell * 0.62, 22.0, 40.0);
  const double bottom = kTop + line * static_cast<double>(map.rows.size());
  const bool numbers = cell >= 38;
  std::string out = "<figure>" + caption(map.title, map.subtitle);
  out += svg_open(kWidth, bottom + 38, map.title);
  out += svg_text(8, 14, "start", map.y_title, "unit");
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    const double y = kTop + line * static_cast<double>(r);
    out += svg_text(left - 6, y + line / 2 + 4, "end", map.rows[r]);
    for (std::size_t c = 0; c < map.columns.size(); ++c) {
      const std::optional<double>& value = map.cells[r][c];
      const double x = left + cell * static_cast<double>(c);
      const std::string text = value ? human(*value, map.unit, false) : std::string("no result");
      const double share = value ? shades.of(*value) : 0;
      out += "<rect class=\"cell\" x=\"" + fixed_text(x, 1) + "\" y=\"" + fixed_text(y, 1) +
             "\" width=\"" + fixed_text(cell - 1, 1) + "\" height=\"" + fixed_text(line - 1, 1) +
             "\" fill=\"" + (value ? cividis(share) : "none") + "\"><title>" +
             html(map.rows[r] + ", " + map.columns[c] + ": " + text) + "</title></rect>";
      if (value && numbers)
        out += svg_text(
            x + cell / 2, y + line / 2 + 4, "middle", text,
            std::string(share > 0.55 ? "on-bright" : "on-dark") + (cell < 50 ? " tight" : ""));
    }
  }
  const double widest = 6.8 * 6;
  const auto every = static_cast<std::size_t>(std::ceil(widest / cell));
  for (std::size_t c = 0; c < map.columns.size(); c += every)
    out += svg_text(left + cell * (static_cast<double>(c) + 0.5), bottom + 15, "middle",
                    map.columns[c]);
  out += svg_text((left + kWidth) / 2, bottom + 33, "middle", map.x_title, "unit");
  return out + "</svg></figure>";
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

std::string svg_marker(std::size_t which, double x, double y, const std::string& tip) {
  return fmt::format(R"(<path class="mark" d="{}"><title>{}</title></path>)", shape(which, x, y),
                     html(tip));
}

std::string svg_key(std::size_t colour, bool measured, bool marker) {
  std::string out = fmt::format(R"(<svg class="key c{}{}" viewBox="0 0 28 14" aria-hidden="true">)",
                                colour % kColours, measured ? " measured" : "");
  if (!measured) out += fmt::format(R"(<path class="line d{}" d="M1 7H27"/>)", colour % 4);
  if (measured || marker)
    out += fmt::format(R"(<path class="mark" d="{}"/>)",
                       shape(measured ? kMeasuredShape : colour, 14, 7));
  return out + "</svg>";
}

}  // namespace routesim::tools
