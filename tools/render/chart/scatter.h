// Points in two numbers, of which some are the best trade: a Pareto front.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tools/render/chart/svg_chart.h"

namespace routesim::tools {

struct Scatter {
  struct Point {
    double x = 0;
    double y = 0;
    std::size_t group = 0;  ///< Into `groups`: colour and shape.
    bool hollow = false;
    bool may_lead = true;  ///< Whether the front may go through it.
    std::string tip = {};
  };
  std::string title;
  std::string subtitle;
  ChartAxis x, y;
  bool less_x = true, less_y = true;  ///< Whether smaller is better.
  std::vector<std::string> groups;
  std::string filled, empty;   ///< What filled and hollow points are; empty = no such key.
  std::optional<double> goal;  ///< On y.
  std::string goal_text;
  std::vector<Point> points;
};

/// Indices of the points that may lead and that no other of these beats in both numbers, the best x
/// first.
std::vector<std::size_t> pareto_front(const Scatter& scatter);

/// A <figure> with the front as a stepped line; empty without points.
std::string draw(const Scatter& scatter);

}  // namespace routesim::tools
