// Inverse min-max normalisation over the candidates: the smallest value scores 1, the largest 0,
// equal values 1. Used by queue-scorer and running-requests-size-scorer of the llm-d router.
#pragma once

#include <span>

#include "policies/cycle.h"
#include "policies/row_math.h"

namespace routesim::policies {

/// scores[i] = (max - x)/(max - min) for x = values[i].
inline void inverse_min_max(Cycle& cycle, std::span<const double> values,
                            std::span<double> scores) {
  if (values.empty()) return;
  const auto [lowest, highest] = extremes(values);
  if (highest == lowest) {
    cycle.score_alike(1, scores);
    return;
  }
  cycle.score_falling(highest, highest - lowest, values, scores);
}

}  // namespace routesim::policies
