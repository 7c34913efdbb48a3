#include "sim/prediction/bayesian_ridge.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace routesim::sim {
namespace {

// scikit-learn's defaults.
constexpr int kMostRounds = 300;
constexpr double kTolerance = 1e-3;
constexpr double kPrior = 1e-6;  // alpha_1, alpha_2, lambda_1, lambda_2

/// The inverse of a symmetric matrix, positive definite but for rounding. Features may depend on
/// each other, so pivots are kept above what rounding leaves of them.
std::vector<double> inverse(std::vector<double> a, std::size_t d) {
  double largest = 0;
  for (std::size_t i = 0; i < d; ++i) largest = std::max(largest, a[i * d + i]);
  const double smallest = largest * 1e-13 + std::numeric_limits<double>::min();
  // Cholesky, the lower triangle in place.
  for (std::size_t j = 0; j < d; ++j) {
    for (std::size_t i = j; i < d; ++i) {
      double sum = a[i * d + j];
      for (std::size_t k = 0; k < j; ++k) sum -= a[i * d + k] * a[j * d + k];
      a[i * d + j] = i == j ? std::sqrt(std::max(sum, smallest)) : sum / a[j * d + j];
    }
  }
  // Inverse of the triangle, then of the product.
  std::vector<double> l(d * d, 0.0);
  for (std::size_t j = 0; j < d; ++j) {
    l[j * d + j] = 1 / a[j * d + j];
    for (std::size_t i = j + 1; i < d; ++i) {
      double sum = 0;
      for (std::size_t k = j; k < i; ++k) sum -= a[i * d + k] * l[k * d + j];
      l[i * d + j] = sum / a[i * d + i];
    }
  }
  std::vector<double> out(d * d, 0.0);
  for (std::size_t i = 0; i < d; ++i)
    for (std::size_t j = 0; j < d; ++j)
      for (std::size_t k = std::max(i, j); k < d; ++k)
        out[i * d + j] += l[k * d + i] * l[k * d + j];
  return out;
}

}  // namespace

BayesianRidge::BayesianRidge(std::span<const double> rows, std::span<const double> targets,
                             std::size_t features)
    : centres_(features), scales_(features), weights_(features), covariance_(features * features) {
  const std::size_t n = targets.size(), d = features;
  ROUTESIM_CHECK(n > 0 && rows.size() == n * d, "one row per target");
  standardise(rows, n);
  for (const double y : targets) mean_ += y / static_cast<double>(n);
  std::vector<double> gram(d * d, 0.0), moment(d, 0.0), row(d);
  double square = 0;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < d; ++j) row[j] = standard(rows.subspan(i * d, d), j);
    const double y = targets[i] - mean_;
    square += y * y;
    for (std::size_t j = 0; j < d; ++j) {
      moment[j] += row[j] * y;
      for (std::size_t k = 0; k <= j; ++k) gram[j * d + k] += row[j] * row[k];
    }
  }
  for (std::size_t j = 0; j < d; ++j)
    for (std::size_t k = 0; k < j; ++k) gram[k * d + j] = gram[j * d + k];
  fit(gram, moment, square, n);
}

void BayesianRidge::standardise(std::span<const double> rows, std::size_t n) {
  const std::size_t d = centres_.size();
  const auto count = static_cast<double>(n);
  for (std::size_t j = 0; j < d; ++j) {
    for (std::size_t i = 0; i < n; ++i) centres_[j] += rows[i * d + j] / count;
    double variance = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double x = rows[i * d + j] - centres_[j];
      variance += x * x / count;
    }
    // A feature that never varies has scale 1, whatever rounding makes of it.
    const bool varies = variance > 1e-20 * (1 + centres_[j] * centres_[j]);
    scales_[j] = varies ? std::sqrt(variance) : 1.0;
  }
}

// `gram` = X'X, `moment` = X'y, `square` = y'y of n standardised rows.
void BayesianRidge::fit(std::vector<double>& gram, std::span<const double> moment, double square,
                        std::size_t n) {
  const std::size_t d = weights_.size();
  const auto count = static_cast<double>(n);
  double noise_precision = 1 / (square / count + std::numeric_limits<double>::epsilon());
  double weight_precision = 1;
  std::vector<double> inverted;
  const auto solve = [&] {
    std::vector<double> regular = gram;
    for (std::size_t j = 0; j < d; ++j) regular[j * d + j] += weight_precision / noise_precision;
    inverted = inverse(std::move(regular), d);
    double moved = 0;
    for (std::size_t j = 0; j < d; ++j) {
      double w = 0;
      for (std::size_t k = 0; k < d; ++k) w += inverted[j * d + k] * moment[k];
      moved += std::fabs(w - weights_[j]);
      weights_[j] = w;
    }
    return moved;
  };
  for (int round = 0; round < kMostRounds; ++round) {
    if (solve() < kTolerance && round > 0) break;
    double trace = 0, norm = 0, error = square;
    for (std::size_t j = 0; j < d; ++j) {
      trace += inverted[j * d + j];
      norm += weights_[j] * weights_[j];
      error -= 2 * weights_[j] * moment[j];
      for (std::size_t k = 0; k < d; ++k) error += weights_[j] * gram[j * d + k] * weights_[k];
    }
    // Features that the data decide on, out of d.
    const double decided = static_cast<double>(d) - weight_precision / noise_precision * trace;
    weight_precision = (decided + 2 * kPrior) / (norm + 2 * kPrior);
    noise_precision = (count - decided + 2 * kPrior) / (std::max(error, 0.0) + 2 * kPrior);
  }
  solve();
  noise_ = 1 / noise_precision;
  for (std::size_t i = 0; i < d * d; ++i) covariance_[i] = inverted[i] / noise_precision;
}

double BayesianRidge::predict(std::span<const double> row) const {
  double y = mean_;
  for (std::size_t j = 0; j < weights_.size(); ++j) y += weights_[j] * standard(row, j);
  return y;
}

double BayesianRidge::deviation(std::span<const double> row) const {
  const std::size_t d = weights_.size();
  double variance = noise_;
  for (std::size_t j = 0; j < d; ++j)
    for (std::size_t k = 0; k < d; ++k)
      variance += standard(row, j) * covariance_[j * d + k] * standard(row, k);
  return std::sqrt(variance);
}

}  // namespace routesim::sim
