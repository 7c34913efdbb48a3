// The little linear algebra that calibration needs: dense matrices of at most some hundred rows and
// sixteen columns. Private to models/.
#pragma once

#include <cstddef>
#include <vector>

namespace routesim::models {

using Vector = std::vector<double>;

/// A dense matrix, row by row.
class Matrix {
 public:
  Matrix(std::size_t rows, std::size_t columns)
      : rows_(rows), columns_(columns), values_(rows * columns, 0.0) {}

  std::size_t rows() const { return rows_; }
  std::size_t columns() const { return columns_; }
  double& operator()(std::size_t r, std::size_t c) { return values_[r * columns_ + c]; }
  double operator()(std::size_t r, std::size_t c) const { return values_[r * columns_ + c]; }

 private:
  std::size_t rows_, columns_;
  std::vector<double> values_;
};

double dot(const Vector& a, const Vector& b);
double norm(const Vector& a);
Vector column(const Matrix& a, std::size_t c);
/// Some columns of a matrix, in this order.
Matrix columns(const Matrix& a, const std::vector<std::size_t>& which);
/// A times x.
Vector product(const Matrix& a, const Vector& x);
/// The transpose of A times x.
Vector transposed_product(const Matrix& a, const Vector& x);
/// The transpose of A times A.
Matrix gram(const Matrix& a);

/// The x that minimises |A·x − b|, by Householder QR with column pivoting: O(rows·columns²).
/// Columns that depend on others get 0.
Vector least_squares(Matrix a, Vector b);

/// Eigenvalues of a symmetric matrix with their eigenvectors as columns, by Jacobi rotations.
struct EigenPairs {
  Vector values;
  Matrix vectors;
};
EigenPairs symmetric_eigen(Matrix a);

}  // namespace routesim::models
