// The search before the descent: where in the bounds to start.
#include <algorithm>
#include <array>

#include "base/check.h"
#include "models/calibration.h"

namespace routesim::models {

namespace {

constexpr std::array<std::uint64_t, kMostExplored> kPrimes = {2,  3,  5,  7,  11, 13, 17, 19,
                                                              23, 29, 31, 37, 41, 43, 47, 53};
/// The box shrinks to half its width around the best point so many times.
constexpr int kHalvings = 4;

/// The digits of `n` in this base behind the point, mirrored: evenly spread over [0, 1).
double radical_inverse(std::uint64_t n, std::uint64_t base) {
  double value = 0;
  double digit = 1;
  for (; n > 0; n /= base) {
    digit /= static_cast<double>(base);
    value += digit * static_cast<double>(n % base);
  }
  return value;
}

}  // namespace

std::vector<BoundedParameter> explore_objective(std::vector<BoundedParameter> parameters,
                                                const ResidualFunction& residuals, int points) {
  ROUTESIM_CHECK(parameters.size() <= kPrimes.size(), "too many parameters to explore");
  std::vector<double> low, high;
  for (const BoundedParameter& p : parameters) {
    low.push_back(p.low);
    high.push_back(p.high);
  }
  double best_cost = -1;
  for (int i = 0; i < points; ++i) {
    // The last round is as long as the others or longer by the remainder.
    const int round = std::min(kHalvings, i * (kHalvings + 1) / points);
    std::vector<double> x;
    for (std::size_t j = 0; j < parameters.size(); ++j) {
      const double width = (high[j] - low[j]) / static_cast<double>(1 << round);
      const double centre = round == 0 ? (low[j] + high[j]) / 2 : parameters[j].start;
      const double from = std::clamp(centre - width / 2, low[j], high[j] - width);
      x.push_back(from + width * radical_inverse(static_cast<std::uint64_t>(i) + 1, kPrimes[j]));
    }
    double cost = 0;
    for (const double r : residuals(x)) cost += r * r;
    if (best_cost >= 0 && cost >= best_cost) continue;
    best_cost = cost;
    for (std::size_t j = 0; j < parameters.size(); ++j) parameters[j].start = x[j];
  }
  return parameters;
}

}  // namespace routesim::models
