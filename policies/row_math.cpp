#include "policies/row_math.h"

#include <cstring>
#include <limits>

#include "base/vectorize.h"

namespace routesim::policies {
namespace {

/// Values that one instruction compares. Left to itself, gcc 12 compares one by one.
using Lanes = double __attribute__((vector_size(32)));
constexpr std::size_t kLanes = 4;
/// Comparisons that do not wait for each other, so that they run side by side.
constexpr std::size_t kChains = 4;
constexpr std::size_t kGroup = kLanes * kChains;

/// Widens the extremes by the values in whole groups of kGroup; returns how many these are.
ROUTESIM_VECTORIZED
std::size_t widen_by_groups(std::span<const double> values, Extremes& e) {
  Lanes low[kChains], high[kChains];
  for (Lanes& lanes : low) lanes = e.lowest - Lanes{};
  for (Lanes& lanes : high) lanes = e.highest - Lanes{};
  std::size_t i = 0;
  for (; i + kGroup <= values.size(); i += kGroup) {
    for (std::size_t k = 0; k < kChains; ++k) {
      Lanes v;
      std::memcpy(&v, values.data() + i + k * kLanes, sizeof v);
      low[k] = v < low[k] ? v : low[k];
      high[k] = v > high[k] ? v : high[k];
    }
  }
  for (std::size_t k = 1; k < kChains; ++k) {
    low[0] = low[k] < low[0] ? low[k] : low[0];
    high[0] = high[k] > high[0] ? high[k] : high[0];
  }
  for (std::size_t k = 0; k < kLanes; ++k) {
    e.lowest = low[0][k] < e.lowest ? low[0][k] : e.lowest;
    e.highest = high[0][k] > e.highest ? high[0][k] : e.highest;
  }
  return i;
}

Extremes widen(std::span<const double> values, Extremes e) {
  std::size_t i = values.size() < kGroup ? 0 : widen_by_groups(values, e);
  for (; i < values.size(); ++i) {
    e.lowest = values[i] < e.lowest ? values[i] : e.lowest;
    e.highest = values[i] > e.highest ? values[i] : e.highest;
  }
  return e;
}

}  // namespace

ROUTESIM_VECTORIZED
void add_clamped(std::span<double> totals, std::span<const double> scores, double weight,
                 double low, double high) {
  for (std::size_t i = 0; i < totals.size(); ++i)
    totals[i] += clamp_score(scores[i], low, high) * weight;
}

Extremes extremes(std::span<const double> values) { return widen(values, {values[0], values[0]}); }

double highest(std::span<const double> values) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return widen(values, {kInfinity, -kInfinity}).highest;
}

ROUTESIM_VECTORIZED
void scale_down_from(double top, double range, std::span<const double> values,
                     std::span<double> scores) {
  if (range == 1)  // A division takes longer than all the rest.
    for (std::size_t i = 0; i < values.size(); ++i) scores[i] = top - values[i];
  else
    for (std::size_t i = 0; i < values.size(); ++i) scores[i] = (top - values[i]) / range;
}

ROUTESIM_VECTORIZED
std::size_t count_equal(std::span<const double> values, double x) {
  std::size_t n = 0;
  for (const double value : values) n += value == x ? 1 : 0;
  return n;
}

std::size_t position_of(std::span<const double> values, double x, std::size_t skip) {
  constexpr std::size_t kChunk = 64;
  std::size_t i = 0;
  for (; i + kChunk <= values.size(); i += kChunk) {  // To the chunk that holds it.
    const std::size_t equal = count_equal(values.subspan(i, kChunk), x);
    if (equal > skip) break;
    skip -= equal;
  }
  for (; i < values.size(); ++i)
    if (values[i] == x && skip-- == 0) return i;
  return values.size();
}

}  // namespace routesim::policies
