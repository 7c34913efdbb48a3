#include "policies/row_math.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "sim/base/vectorize.h"

namespace routesim::policies {

ROUTESIM_VECTORIZED
void add_clamped(std::span<double> totals, std::span<const double> scores, double weight) {
  double* const total = totals.data();
  const double* const score = scores.data();
  for (std::size_t i = 0; i < totals.size(); ++i) total[i] += clamp_score(score[i]) * weight;
}

namespace {

/// Two values at once, and four chains of comparisons, because one would wait for itself.
using Pair = double __attribute__((vector_size(16)));
constexpr std::size_t kChains = 4;
constexpr std::size_t kStride = 2 * kChains;

Pair load(const double* p) {
  Pair pair;
  std::memcpy(&pair, p, sizeof pair);
  return pair;
}

}  // namespace

Extremes extremes(std::span<const double> values) {
  const double* const value = values.data();
  Pair low[kChains], high[kChains];
  for (std::size_t k = 0; k < kChains; ++k) low[k] = high[k] = Pair{value[0], value[0]};
  std::size_t i = 0;
  for (; i + kStride <= values.size(); i += kStride) {
    for (std::size_t k = 0; k < kChains; ++k) {
      const Pair v = load(value + i + 2 * k);
      low[k] = v < low[k] ? v : low[k];
      high[k] = v > high[k] ? v : high[k];
    }
  }
  Extremes e{value[0], value[0]};
  for (std::size_t k = 0; k < kChains; ++k) {
    e.lowest = std::min({e.lowest, low[k][0], low[k][1]});
    e.highest = std::max({e.highest, high[k][0], high[k][1]});
  }
  for (; i < values.size(); ++i) {
    e.lowest = std::min(e.lowest, value[i]);
    e.highest = std::max(e.highest, value[i]);
  }
  return e;
}

double highest(std::span<const double> values) {
  constexpr double kLowest = -std::numeric_limits<double>::infinity();
  const double* const value = values.data();
  Pair best[kChains];
  for (Pair& pair : best) pair = Pair{kLowest, kLowest};
  std::size_t i = 0;
  for (; i + kStride <= values.size(); i += kStride)
    for (std::size_t k = 0; k < kChains; ++k) {
      const Pair v = load(value + i + 2 * k);
      best[k] = v > best[k] ? v : best[k];
    }
  double x = kLowest;
  for (const Pair& pair : best) x = std::max({x, pair[0], pair[1]});
  for (; i < values.size(); ++i) x = value[i] > x ? value[i] : x;
  return x;
}

ROUTESIM_VECTORIZED
void scale_down_from(double top, double range, std::span<const double> values,
                     std::span<double> scores) {
  const double* const value = values.data();
  double* const score = scores.data();
  for (std::size_t i = 0; i < values.size(); ++i) score[i] = (top - value[i]) / range;
}

ROUTESIM_VECTORIZED
void complement(std::span<const double> values, std::span<double> scores) {
  const double* const value = values.data();
  double* const score = scores.data();
  for (std::size_t i = 0; i < values.size(); ++i) score[i] = 1 - value[i];
}

ROUTESIM_VECTORIZED
std::size_t count_equal(std::span<const double> values, double x) {
  const double* const value = values.data();
  std::size_t n = 0;
  for (std::size_t i = 0; i < values.size(); ++i) n += value[i] == x ? 1 : 0;
  return n;
}

}  // namespace routesim::policies
