// Inverse min-max normalisation over the candidates: the smallest value scores 1, the largest 0,
// equal values 1. Used by queue-scorer and running-requests-size-scorer of the llm-d router.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "policies/views.h"

namespace routesim::policies {

struct Extremes {
  double lowest;
  double highest;
};

/// Smallest and largest of at least one value. Four independent lanes, because one chain of
/// comparisons would wait for itself.
inline Extremes extremes(std::span<const double> values) {
  std::array<double, 4> low, high;
  low.fill(values[0]);
  high.fill(values[0]);
  std::size_t i = 0;
  for (; i + 4 <= values.size(); i += 4) {
    for (std::size_t lane = 0; lane < 4; ++lane) {
      const double v = values[i + lane];
      low[lane] = v < low[lane] ? v : low[lane];
      high[lane] = v > high[lane] ? v : high[lane];
    }
  }
  for (; i < values.size(); ++i) {
    low[0] = std::min(low[0], values[i]);
    high[0] = std::max(high[0], values[i]);
  }
  return {std::min(std::min(low[0], low[1]), std::min(low[2], low[3])),
          std::max(std::max(high[0], high[1]), std::max(high[2], high[3]))};
}

/// scores[i] = (max - x)/(max - min) for x = values[i].
inline void inverse_min_max(std::span<const double> values, std::span<double> scores) {
  if (values.empty()) return;
  const auto [lowest, highest] = extremes(values);
  if (highest == lowest) {
    std::fill(scores.begin(), scores.end(), 1.0);
    return;
  }
  const double top = highest;
  const double range = highest - lowest;
  for (std::size_t i = 0; i < values.size(); ++i) scores[i] = (top - values[i]) / range;
}

}  // namespace routesim::policies
