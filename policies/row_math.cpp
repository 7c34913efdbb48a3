#include "policies/row_math.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "base/vectorize.h"

namespace routesim::policies {

namespace {

/// Four values at once. Where extremes are sought also four chains of comparisons, because one
/// would wait for itself.
using Lanes = double __attribute__((vector_size(32)));
constexpr std::size_t kLanes = 4;
constexpr std::size_t kChains = 4;
constexpr std::size_t kStride = kLanes * kChains;

/// How many of `n` values come in whole Lanes.
constexpr std::size_t in_lanes(std::size_t n) { return n - n % kLanes; }

}  // namespace

// clamp_score() written out: left to itself the compiler makes twice the instructions of it.
ROUTESIM_VECTORIZED
void add_clamped(std::span<double> totals, std::span<const double> scores, double weight) {
  const Lanes zero = {}, one = zero + 1.0;
  std::size_t i = 0;
  for (; i < in_lanes(totals.size()); i += kLanes) {
    Lanes score, total;
    std::memcpy(&score, scores.data() + i, sizeof score);
    std::memcpy(&total, totals.data() + i, sizeof total);
    score = score < zero ? zero : score;
    score = score > one ? one : score;
    total += score * weight;
    std::memcpy(totals.data() + i, &total, sizeof total);
  }
  for (; i < totals.size(); ++i) totals[i] += clamp_score(scores[i]) * weight;
}

// A division takes longer than all the rest. By a power of two, which ranges of few requests mostly
// are, a multiplication gives the same bits.
ROUTESIM_VECTORIZED
void add_falling(std::span<double> totals, std::span<const double> values, double top, double range,
                 double weight) {
  int exponent = 0;
  const bool divide = std::frexp(range, &exponent) != 0.5 || std::abs(exponent) > 64;
  const double inverse = 1 / range;
  const Lanes zero = {}, one = zero + 1.0;
  std::size_t i = 0;
  for (; i < in_lanes(totals.size()); i += kLanes) {
    Lanes score, total;
    std::memcpy(&score, values.data() + i, sizeof score);
    std::memcpy(&total, totals.data() + i, sizeof total);
    score = divide ? (top - score) / range : (top - score) * inverse;
    score = score < zero ? zero : score;
    score = score > one ? one : score;
    total += score * weight;
    std::memcpy(totals.data() + i, &total, sizeof total);
  }
  for (; i < totals.size(); ++i) totals[i] += clamp_score((top - values[i]) / range) * weight;
}

ROUTESIM_VECTORIZED
void add_constant(std::span<double> totals, double addend) {
  double* const total = totals.data();
  for (std::size_t i = 0; i < totals.size(); ++i) total[i] += addend;
}

namespace {

// As many whole strides as there are; the extremes start with the first value.
ROUTESIM_VECTORIZED
std::size_t widen_by_strides(std::span<const double> values, Extremes& e) {
  const double* const value = values.data();
  const Lanes first = {value[0], value[0], value[0], value[0]};
  Lanes low[kChains], high[kChains];
  for (std::size_t k = 0; k < kChains; ++k) low[k] = high[k] = first;
  std::size_t i = 0;
  for (; i + kStride <= values.size(); i += kStride) {
    for (std::size_t k = 0; k < kChains; ++k) {
      Lanes v;
      std::memcpy(&v, value + i + kLanes * k, sizeof v);
      low[k] = v < low[k] ? v : low[k];
      high[k] = v > high[k] ? v : high[k];
    }
  }
  for (std::size_t k = 0; k < kChains; ++k) {
    for (std::size_t l = 0; l < kLanes; ++l) {
      e.lowest = std::min(e.lowest, low[k][l]);
      e.highest = std::max(e.highest, high[k][l]);
    }
  }
  return i;
}

ROUTESIM_VECTORIZED
std::size_t highest_of_strides(std::span<const double> values, double& x) {
  const double* const value = values.data();
  Lanes best[kChains];
  for (Lanes& lanes : best) lanes = Lanes{x, x, x, x};
  std::size_t i = 0;
  for (; i + kStride <= values.size(); i += kStride)
    for (std::size_t k = 0; k < kChains; ++k) {
      Lanes v;
      std::memcpy(&v, value + i + kLanes * k, sizeof v);
      best[k] = v > best[k] ? v : best[k];
    }
  for (const Lanes& lanes : best)
    for (std::size_t l = 0; l < kLanes; ++l) x = std::max(x, lanes[l]);
  return i;
}

}  // namespace

Extremes extremes(std::span<const double> values) {
  Extremes e{values[0], values[0]};
  std::size_t i = values.size() < kStride ? 0 : widen_by_strides(values, e);
  for (; i < values.size(); ++i) {
    e.lowest = std::min(e.lowest, values[i]);
    e.highest = std::max(e.highest, values[i]);
  }
  return e;
}

double highest(std::span<const double> values) {
  double x = -std::numeric_limits<double>::infinity();
  std::size_t i = values.size() < kStride ? 0 : highest_of_strides(values, x);
  for (; i < values.size(); ++i) x = values[i] > x ? values[i] : x;
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
std::size_t count_equal(std::span<const double> values, double x) {
  const double* const value = values.data();
  std::size_t n = 0;
  for (std::size_t i = 0; i < values.size(); ++i) n += value[i] == x ? 1 : 0;
  return n;
}

// A chunk at a time until the one that holds it.
ROUTESIM_VECTORIZED
std::size_t position_of(std::span<const double> values, double x, std::size_t skip) {
  const double* const value = values.data();
  constexpr std::size_t kChunk = 64;
  std::size_t i = 0;
  for (; i + kChunk <= values.size(); i += kChunk) {
    std::size_t equal = 0;
    for (std::size_t k = 0; k < kChunk; ++k) equal += value[i + k] == x ? 1 : 0;
    if (equal > skip) break;
    skip -= equal;
  }
  for (; i < values.size(); ++i)
    if (value[i] == x && skip-- == 0) return i;
  return values.size();
}

}  // namespace routesim::policies
