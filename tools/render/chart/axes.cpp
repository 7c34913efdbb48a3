#include "tools/render/chart/axes.h"

#include <array>
#include <cstdint>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

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

}  // namespace routesim::tools
