// Bayesian ridge regression over standardised features, as scikit-learn's BayesianRidge fits it
// behind a StandardScaler (MacKay's evidence maximisation, default priors and limits).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace routesim::sim {

/// A fitted model. Deterministic: the same rows in the same order give the same bits.
class BayesianRidge {
 public:
  /// Always predicts `constant`, without a doubt.
  explicit BayesianRidge(double constant) : mean_(constant) {}
  /// Fits `targets` to as many rows of `features` numbers each; at least one row. O(rows
  /// features^2).
  BayesianRidge(std::span<const double> rows, std::span<const double> targets,
                std::size_t features);

  double predict(std::span<const double> row) const;
  /// Standard deviation of what is predicted: noise and doubt about the weights.
  double deviation(std::span<const double> row) const;
  /// Weight of a feature per unit of it.
  double weight(std::size_t feature) const { return weights_[feature] / scales_[feature]; }

 private:
  double standard(std::span<const double> row, std::size_t j) const {
    return (row[j] - centres_[j]) / scales_[j];
  }

  double mean_ = 0;   ///< Of the targets.
  double noise_ = 0;  ///< Variance.
  std::vector<double> centres_, scales_;
  std::vector<double> weights_;     ///< Of standardised features.
  std::vector<double> covariance_;  ///< Of the weights, row by row.
};

}  // namespace routesim::sim
