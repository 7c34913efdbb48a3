// Inverse min-max normalisation over the candidates: the smallest value scores 1, the largest 0,
// equal values 1. Used by queue-scorer and running-requests-size-scorer of the llm-d router.
#pragma once

#include <algorithm>
#include <span>

#include "policies/views.h"

namespace routesim::policies {

/// scores[i] = (max - x)/(max - min) for x = values[candidates[i]].
inline void inverse_min_max(std::span<const double> values, std::span<const EndpointRow> candidates,
                            std::span<double> scores) {
  if (candidates.empty()) return;
  double lowest = values[candidates[0]];
  double highest = lowest;
  for (const EndpointRow r : candidates) {
    lowest = std::min(lowest, values[r]);
    highest = std::max(highest, values[r]);
  }
  if (highest == lowest) {
    std::fill(scores.begin(), scores.end(), 1.0);
    return;
  }
  const double range = highest - lowest;
  for (std::size_t i = 0; i < candidates.size(); ++i)
    scores[i] = (highest - values[candidates[i]]) / range;
}

}  // namespace routesim::policies
