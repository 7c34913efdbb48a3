#include "policies/row_math.h"

#include <array>
#include <limits>

#include "base/vectorize.h"

namespace routesim::policies {
namespace {

/// Comparisons that do not wait for each other, so that they run side by side.
constexpr std::size_t kLanes = 16;

/// Widens the extremes by the values in whole groups of kLanes; returns how
/// many these are.
ROUTESIM_VECTORIZED
std::size_t widen_by_groups(std::span<const double> values, Extremes& e) {
  std::array<double, kLanes> low, high;
  low.fill(e.lowest);
  high.fill(e.highest);
  std::size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (std::size_t k = 0; k < kLanes; ++k) {
      const double v = values[i + k];
      low[k] = v < low[k] ? v : low[k];
      high[k] = v > high[k] ? v : high[k];
    }
  }
  for (std::size_t k = 0; k < kLanes; ++k) {
    e.lowest = low[k] < e.lowest ? low[k] : e.lowest;
    e.highest = high[k] > e.highest ? high[k] : e.highest;
  }
  return i;
}

Extremes widen(std::span<const double> values, Extremes e) {
  std::size_t i = values.size() < kLanes ? 0 : widen_by_groups(values, e);
  for (; i < values.size(); ++i) {
    e.lowest = values[i] < e.lowest ? values[i] : e.lowest;
    e.highest = values[i] > e.highest ? values[i] : e.highest;
  }
  return e;
}

}  // namespace

ROUTESIM_VECTORIZED
void add_clamped(std::span<double> totals, std::span<const double> scores, double weight) {
  for (std::size_t i = 0; i < totals.size(); ++i) totals[i] += clamp_score(scores[i]) * weight;
}

Extremes extremes(std::span<const double> values) { return widen(values, {values[0], values[0]}); }

double highest(std::span<const double> values) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return widen(values, {kInfinity, -kInfinity}).highest;
}

ROUTESIM_VECTORIZED
void scale_down_from(double top, double range, std::span<const double> values,
                     std::span<double> scores) {
  for (std::size_t i = 0; i < values.size(); ++i) scores[i] = (top - values[i]) / range;
}

ROUTESIM_VECTORIZED
std::size_t count_equal(std::span<const double> values, double x) {
  std::size_t n = 0;
  for (const double value : values) n += value == x ? 1 : 0;
  return n;
}

std::size_t position_of(std::span<const double> values, double x, std::size_t skip) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] == x && skip-- == 0) return i;
  return values.size();
}

}  // namespace routesim::policies
