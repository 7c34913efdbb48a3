// Small statistics of the fits. Private to models/.
#pragma once

#include <algorithm>

namespace routesim::models {

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
