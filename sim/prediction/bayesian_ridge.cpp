#include "sim/prediction/bayesian_ridge.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

// Without vector instructions sums have one order on any processor. Products are lazy for the same
// reason: the blocks of the others depend on the caches.
#define EIGEN_DONT_VECTORIZE
#include <Eigen/Dense>

namespace routesim::sim {
namespace {

// scikit-learn's defaults.
constexpr int kMostRounds = 300;
constexpr double kTolerance = 1e-3;
constexpr double kPrior = 1e-6;  // alpha_1, alpha_2, lambda_1, lambda_2

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

}  // namespace

BayesianRidge::BayesianRidge(std::span<const double> rows, std::span<const double> targets,
                             std::size_t features)
    : centres_(features), scales_(features), weights_(features), covariance_(features * features) {
  const auto n = std::ssize(targets), d = static_cast<std::ptrdiff_t>(features);
  ROUTESIM_CHECK(n > 0 && std::ssize(rows) == n * d, "one row per target");
  const auto count = static_cast<double>(n);
  Eigen::Map<Vector> centres(centres_.data(), d), scales(scales_.data(), d);
  Eigen::Map<Vector> weights(weights_.data(), d);

  // A sample is a column here.
  Matrix x = Eigen::Map<const Matrix>(rows.data(), d, n);
  centres = (x / count).rowwise().sum();
  x.colwise() -= centres;
  const Vector variance = (x.array().square() / count).rowwise().sum();
  // A feature that never varies has scale 1, whatever rounding makes of it.
  const auto varies = variance.array() > 1e-20 * (1 + centres.array().square());
  scales = varies.select(variance.cwiseSqrt(), 1.0);
  x.array().colwise() /= scales.array();
  Vector y = Eigen::Map<const Vector>(targets.data(), n);
  mean_ = (y / count).sum();
  y.array() -= mean_;

  // In the axes of the covariance each weight is decided on alone. Features that depend on each
  // other leave axes without any spread, but for rounding.
  const Eigen::SelfAdjointEigenSolver<Matrix> axes(x.lazyProduct(x.transpose()));
  const Matrix& turn = axes.eigenvectors();
  const Vector spread = axes.eigenvalues().cwiseMax(0.0);
  const Vector moment = turn.transpose().lazyProduct(x.lazyProduct(y));
  const double square = y.squaredNorm();
  double noise_precision = 1 / (square / count + std::numeric_limits<double>::epsilon());
  double weight_precision = 1;
  Vector inverse, turned;
  const auto solve = [&] {
    inverse = (spread.array() + weight_precision / noise_precision).inverse();
    turned = inverse.cwiseProduct(moment);
    const Vector before = weights;
    weights = turn.lazyProduct(turned);
    return (weights - before).cwiseAbs().sum();
  };
  for (int round = 0; round < kMostRounds; ++round) {
    if (solve() < kTolerance && round > 0) break;
    const double error = square - 2 * turned.dot(moment) + spread.dot(turned.cwiseAbs2());
    // Features that the data decide on, out of d.
    const double decided = spread.dot(inverse);
    weight_precision = (decided + 2 * kPrior) / (turned.squaredNorm() + 2 * kPrior);
    noise_precision = (count - decided + 2 * kPrior) / (std::max(error, 0.0) + 2 * kPrior);
  }
  solve();
  noise_ = 1 / noise_precision;
  Eigen::Map<Matrix>(covariance_.data(), d, d) =
      (turn * inverse.asDiagonal()).lazyProduct(turn.transpose()) / noise_precision;
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
