#include "models/linear_algebra.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace routesim::models {
namespace {

/// Σ a(r, p)·a(r, q) over the rows from `first` on.
double column_dot(const Matrix& a, std::size_t p, std::size_t q, std::size_t first) {
  double sum = 0;
  for (std::size_t r = first; r < a.rows(); ++r) sum += a(r, p) * a(r, q);
  return sum;
}

/// Reflects the columns after k, and b, so that column k becomes zero below the diagonal.
void reflect(Matrix& a, Vector& b, std::size_t k) {
  const double length = std::sqrt(column_dot(a, k, k, k));
  const double diagonal = a(k, k) > 0 ? -length : length;
  a(k, k) -= diagonal;  // Column k now holds the normal of the mirror.
  const double square = column_dot(a, k, k, k);
  if (square > 0) {
    for (std::size_t c = k + 1; c < a.columns(); ++c) {
      const double along = 2 * column_dot(a, k, c, k) / square;
      for (std::size_t r = k; r < a.rows(); ++r) a(r, c) -= along * a(r, k);
    }
    double along = 0;
    for (std::size_t r = k; r < a.rows(); ++r) along += a(r, k) * b[r];
    along *= 2 / square;
    for (std::size_t r = k; r < a.rows(); ++r) b[r] -= along * a(r, k);
  }
  a(k, k) = diagonal;
}

/// Rotates rows and columns p and q of a symmetric matrix so that their common entry becomes zero.
void rotate(Matrix& a, Matrix& vectors, std::size_t p, std::size_t q) {
  const double theta = (a(q, q) - a(p, p)) / (2 * a(p, q));
  const double t = (theta >= 0 ? 1 : -1) / (std::abs(theta) + std::sqrt(theta * theta + 1));
  const double c = 1 / std::sqrt(t * t + 1);
  const double s = t * c;
  const auto turn = [c, s](double& x, double& y) {
    const double old = x;
    x = c * old - s * y;
    y = s * old + c * y;
  };
  for (std::size_t i = 0; i < a.rows(); ++i) turn(a(i, p), a(i, q));
  for (std::size_t i = 0; i < a.rows(); ++i) turn(a(p, i), a(q, i));
  for (std::size_t i = 0; i < a.rows(); ++i) turn(vectors(i, p), vectors(i, q));
  a(p, q) = a(q, p) = 0;
}

}  // namespace

double dot(const Vector& a, const Vector& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

double norm(const Vector& a) { return std::sqrt(dot(a, a)); }

Vector column(const Matrix& a, std::size_t c) {
  Vector out;
  for (std::size_t r = 0; r < a.rows(); ++r) out.push_back(a(r, c));
  return out;
}

Matrix columns(const Matrix& a, const std::vector<std::size_t>& which) {
  Matrix out(a.rows(), which.size());
  for (std::size_t r = 0; r < a.rows(); ++r)
    for (std::size_t k = 0; k < which.size(); ++k) out(r, k) = a(r, which[k]);
  return out;
}

Vector product(const Matrix& a, const Vector& x) {
  Vector out(a.rows(), 0.0);
  for (std::size_t r = 0; r < a.rows(); ++r)
    for (std::size_t c = 0; c < a.columns(); ++c) out[r] += a(r, c) * x[c];
  return out;
}

Vector transposed_product(const Matrix& a, const Vector& x) {
  Vector out(a.columns(), 0.0);
  for (std::size_t r = 0; r < a.rows(); ++r)
    for (std::size_t c = 0; c < a.columns(); ++c) out[c] += a(r, c) * x[r];
  return out;
}

Matrix gram(const Matrix& a) {
  Matrix out(a.columns(), a.columns());
  for (std::size_t p = 0; p < a.columns(); ++p)
    for (std::size_t q = 0; q < a.columns(); ++q) out(p, q) = column_dot(a, p, q, 0);
  return out;
}

Vector least_squares(Matrix a, Vector b) {
  const std::size_t n = a.columns();
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  double largest = 0;
  std::size_t rank = 0;
  for (; rank < std::min(n, a.rows()); ++rank) {
    const auto left = [&](std::size_t c) { return column_dot(a, c, c, rank); };
    std::size_t best = rank;
    for (std::size_t c = rank + 1; c < n; ++c)
      if (left(c) > left(best)) best = c;
    const double size = std::sqrt(left(best));
    largest = std::max(largest, size);
    if (size <= largest * static_cast<double>(n) * std::numeric_limits<double>::epsilon()) break;
    std::swap(order[rank], order[best]);
    for (std::size_t r = 0; r < a.rows(); ++r) std::swap(a(r, rank), a(r, best));
    reflect(a, b, rank);
  }
  Vector x(n, 0.0);
  for (std::size_t k = rank; k-- > 0;) {
    double rest = b[k];
    for (std::size_t c = k + 1; c < rank; ++c) rest -= a(k, c) * x[order[c]];
    x[order[k]] = rest / a(k, k);
  }
  return x;
}

EigenPairs symmetric_eigen(Matrix a) {
  const std::size_t n = a.rows();
  Matrix vectors(n, n);
  for (std::size_t i = 0; i < n; ++i) vectors(i, i) = 1;
  constexpr int kMostSweeps = 50;  // Ten are enough for a matrix of sixteen rows.
  for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
    bool is_diagonal = true;
    for (std::size_t p = 0; p < n; ++p)
      for (std::size_t q = p + 1; q < n; ++q) {
        const double scale = std::sqrt(std::abs(a(p, p) * a(q, q)));
        if (std::abs(a(p, q)) <= 1e-16 * scale || std::abs(a(p, q)) < 1e-300) continue;
        is_diagonal = false;
        rotate(a, vectors, p, q);
      }
    if (is_diagonal) break;
  }
  Vector values;
  for (std::size_t i = 0; i < n; ++i) values.push_back(a(i, i));
  return {std::move(values), std::move(vectors)};
}

}  // namespace routesim::models
