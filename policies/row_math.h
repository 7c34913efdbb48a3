// Arithmetic over one value per candidate. Where the compiler can, each loop is built a second time
// for AVX2 and the processor chooses; both give the same bits, as neither reorders nor fuses.
#pragma once

#include <cstddef>
#include <span>

namespace routesim::policies {

/// Below 0 gives 0, above 1 gives 1; NaN passes both comparisons and stays NaN.
constexpr double clamp_score(double score, double low = 0, double high = 1) {
  const double floored = score < low ? low : score;
  return floored > high ? high : floored;
}

/// totals[i] += clamp_score(scores[i]) * weight. The spans are equally long. Nobody gives other
/// bounds; gcc 12 makes a maximum and a minimum of bounds that it does not know, else branches.
void add_clamped(std::span<double> totals, std::span<const double> scores, double weight,
                 double low = 0, double high = 1);

struct Extremes {
  double lowest;
  double highest;
};

/// Smallest and largest of at least one value.
Extremes extremes(std::span<const double> values);

/// scores[i] = (top - values[i]) / range.
void scale_down_from(double top, double range, std::span<const double> values,
                     std::span<double> scores);

/// The largest value, or -infinity; NaN is never above another value, so it never wins.
double highest(std::span<const double> values);

/// How many values equal `x`.
std::size_t count_equal(std::span<const double> values, double x);

/// The place of the value that equals `x` after `skip` others that do, or values.size().
std::size_t position_of(std::span<const double> values, double x, std::size_t skip);

}  // namespace routesim::policies
