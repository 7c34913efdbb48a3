// Parts that the fits share and that need no linear algebra. Private to models/.
#pragma once

#include <algorithm>
#include <array>

#include "models/calibration.h"

namespace routesim::models {

/// The curve's coefficients in enum order.
inline std::array<double, kCoefficients> to_array(const CostCurveParameters& p) {
  std::array<double, kCoefficients> x{};
  for (std::size_t i = 0; i < kCoefficients; ++i) {
    CurveSample unit;
    unit.features[i] = 1;
    x[i] = predict_ms(p, unit);
  }
  return x;
}

/// A curve with these coefficients; the rest, and θ when no sample shows it, are the prior's.
inline CostCurveParameters from_array(const std::array<double, kCoefficients>& x,
                                      const CostCurveParameters& prior, bool shared_in_data) {
  const auto get = [&x](Coefficient c) { return x[static_cast<std::size_t>(c)]; };
  CostCurveParameters p = prior;
  p.step_ms = get(Coefficient::kStep);
  p.sequence_ms = get(Coefficient::kSequence);
  p.context_us_per_ktok = get(Coefficient::kContext);
  if (shared_in_data && p.context_us_per_ktok > 0)
    p.shared_context_weight =
        std::clamp(get(Coefficient::kSharedContext) / p.context_us_per_ktok, 0.0, 1.0);
  p.prefill_us_per_token = get(Coefficient::kPrefillToken);
  p.prefill_pair_ns = get(Coefficient::kPrefillPair);
  p.prefill_chunk_ms = get(Coefficient::kPrefillChunk);
  p.group_token_us = get(Coefficient::kGroupToken);
  return p;
}

/// The 97.5 % quantile of Student's t with `dof` degrees, by the Cornish-Fisher expansion
/// (Abramowitz and Stegun 26.7.5); within 1 % from 3 degrees on.
inline double t_quantile(double dof) {
  constexpr double z = 1.959963985;
  const double z3 = z * z * z;
  const double z5 = z3 * z * z;
  const double z7 = z5 * z * z;
  const double v = std::max(1.0, dof);
  return z + (z3 + z) / (4 * v) + (5 * z5 + 16 * z3 + 3 * z) / (96 * v * v) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * v * v * v);
}

}  // namespace routesim::models
