#include "tools/render/chart/scatter.h"

#include <algorithm>
#include <cmath>

#include "base/scalar_parse.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

namespace {

constexpr double kScatterWidth = 440, kScatterHeight = 280, kScatterLeft = 54, kScatterRight = 14,
                 kScatterTop = 26, kScatterBottom = 40;

/// A number's place along an axis.
class ScatterScale {
 public:
  ScatterScale(const ChartAxis& axis, double low, double high, double from, double to)
      : log_(axis.log && low > 0), unit_(axis.unit), from_(from), to_(to) {
    if (log_) {
      low_ = std::log10(low / 1.3);
      high_ = std::log10(high * 1.3);
      ticks_ = log_ticks(low / 1.3, high * 1.3);
    } else {
      low_ = 0;
      high_ = high > 0 ? high * 1.08 : 1;
      ticks_ = axis.unit == Unit::kSeconds ? time_ticks(0, high_, 5) : linear_ticks(0, high_, 5);
    }
  }
  double at(double v) const {
    const double value = log_ ? std::log10(std::max(v, 1e-300)) : v;
    return from_ + std::clamp((value - low_) / (high_ - low_), 0.0, 1.0) * (to_ - from_);
  }
  const std::vector<double>& ticks() const { return ticks_; }
  std::string text(double tick) const { return human(tick, unit_, false); }

 private:
  bool log_;
  Unit unit_;
  double from_, to_;
  double low_ = 0, high_ = 1;
  std::vector<double> ticks_;
};

std::string grid(const Scatter& s, const ScatterScale& x, const ScatterScale& y) {
  std::string out;
  for (const double tick : y.ticks()) {
    out += svg_line(kScatterLeft, y.at(tick), kScatterWidth - kScatterRight, y.at(tick), "grid");
    out += svg_text(kScatterLeft - 6, y.at(tick) + 4, "end", y.text(tick));
  }
  for (const double tick : x.ticks()) {
    out += svg_line(x.at(tick), kScatterHeight - kScatterBottom, x.at(tick),
                    kScatterHeight - kScatterBottom + 4, "axis");
    out += svg_text(x.at(tick), kScatterHeight - kScatterBottom + 18, "middle", x.text(tick));
  }
  out += svg_line(kScatterLeft, kScatterHeight - kScatterBottom, kScatterWidth - kScatterRight,
                  kScatterHeight - kScatterBottom, "axis");
  return out + svg_text(10, 12, "start", s.y.title, "unit") +
         svg_text((kScatterLeft + kScatterWidth - kScatterRight) / 2, kScatterHeight - 5, "middle",
                  s.x.title, "unit");
}

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
std::string point(const Scatter::Point& p, double x, double y) {
  std::string mark = svg_marker(p.group, x, y, p.tip);
  return mark.insert(
      5, " data-row=\"" + html(p.tip) + "\t" + number_text(p.x) + "\t" + number_text(p.y) + "\"");
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
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return cost(a) < cost(b); });
  std::vector<std::size_t> front;
  for (const std::size_t i : order)
    if (front.empty() || cost(i).second < cost(front.back()).second) front.push_back(i);
  return front;
}

std::string draw(const Scatter& s) {
  if (s.points.empty()) return {};
  double x_low = s.points[0].x, x_high = x_low, y_low = s.points[0].y, y_high = y_low;
  for (const Scatter::Point& p : s.points) {
    x_low = std::min(x_low, p.x);
    x_high = std::max(x_high, p.x);
    y_low = std::min(y_low, p.y);
    y_high = std::max(y_high, p.y);
  }
  if (s.goal) {
    y_low = std::min(y_low, *s.goal);
    y_high = std::max(y_high, *s.goal);
  }
  const ScatterScale x(s.x, x_low, x_high, kScatterLeft, kScatterWidth - kScatterRight);
  const ScatterScale y(s.y, y_low, y_high, kScatterHeight - kScatterBottom, kScatterTop);
  std::string open = svg_open(kScatterWidth, kScatterHeight, s.title);
  open.insert(
      4, " class=\"rows\" data-columns=\"" + html("name\t" + s.x.title + "\t" + s.y.title) + "\"");
  std::string out = svg_figure(s.title, s.subtitle) + legend(s) + open + grid(s, x, y);
  if (s.goal)
    out +=
        svg_line(kScatterLeft, y.at(*s.goal), kScatterWidth - kScatterRight, y.at(*s.goal), "goal");
  std::string path;
  for (const std::size_t i : pareto_front(s))
    path += (path.empty() ? "M" + fixed_text(x.at(s.points[i].x), 1) + " "
                          : "H" + fixed_text(x.at(s.points[i].x), 1) + "V") +
            fixed_text(y.at(s.points[i].y), 1);
  out += "<path class=\"front\" d=\"" + path + "\"/>";
  for (const Scatter::Point& p : s.points)
    out += "<g class=\"c" + std::to_string(p.group % kColours) +
           (p.hollow ? " measured\">" : "\">") + point(p, x.at(p.x), y.at(p.y)) + "</g>";
  return out + "</svg></figure>";
}

}  // namespace routesim::tools
