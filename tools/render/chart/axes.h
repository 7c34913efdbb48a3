// Axes that line charts and scatter plots share.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tools/render/chart/svg.h"

namespace routesim::tools {

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

/// The scales of a drawing; the axis must outlive them.
AxisScale horizontal(const ChartAxis& axis, const Extent& values);
AxisScale vertical(const ChartAxis& axis, const Extent& values);

/// Grid, ticks and titles.
std::string draw_axes(const AxisScale& x, const AxisScale& y);
/// A line across the drawing.
std::string draw_goal(double goal, const AxisScale& y);

}  // namespace routesim::tools
