#include <algorithm>
#include <cmath>

#include "base/scalar_parse.h"
#include "tools/render/chart/axes.h"
#include "tools/render/chart/svg.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

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
std::string point(const Scatter::Point& p, double x, double y) {
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
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return cost(a) < cost(b); });
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
           (p.hollow ? " measured\">" : "\">") + point(p, x.at(p.x), y.at(p.y)) + "</g>";
  return out + "</svg></figure>";
}

}  // namespace routesim::tools
