#include "models/calibration.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "models/calibration_detail.h"

// Without vector instructions sums have one order on any processor. Products are lazy for the same
// reason: the blocks of the others depend on the caches.
#define EIGEN_DONT_VECTORIZE
#include <Eigen/Dense>

namespace routesim::models {
namespace {

using Eigen::Index;
using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The x that minimises |A·x − b|, by Householder QR with column pivoting: O(rows·columns²).
/// Columns that depend on others get 0.
Vector least_squares(const Matrix& a, const Vector& b) {
  const Eigen::ColPivHouseholderQR<Matrix> qr(a);
  const Index rank = qr.rank();
  const Vector turned = qr.householderQ().adjoint() * b;
  Vector x = Vector::Zero(a.cols());
  x.head(rank) = qr.matrixQR()
                     .topLeftCorner(rank, rank)
                     .triangularView<Eigen::Upper>()
                     .solve(turned.head(rank));
  return qr.colsPermutation() * x;
}

Eigen::Map<const Vector> mapped(const std::vector<double>& v) { return {v.data(), std::ssize(v)}; }

/// The transpose of A times A.
Matrix gram(const Matrix& a) { return a.transpose().lazyProduct(a); }

/// Least squares over the passive columns, zero elsewhere.
Vector solve_passive(const Matrix& a, const Vector& b, const std::vector<bool>& passive) {
  std::vector<Index> which;
  for (Index j = 0; j < a.cols(); ++j)
    if (passive[j]) which.push_back(j);
  Vector x = Vector::Zero(a.cols());
  if (!which.empty()) x(which) = least_squares(a(Eigen::all, which), b);
  return x;
}

/// Moves x towards z until the first passive coordinate meets zero; those that met it go active.
void step_to_bound(Vector& x, const Vector& z, std::vector<bool>& passive) {
  double alpha = 1.0;
  for (Index j = 0; j < x.size(); ++j)
    if (passive[j] && z[j] <= 0) alpha = x[j] > 0 ? std::min(alpha, x[j] / (x[j] - z[j])) : 0.0;
  x += alpha * (z - x);
  const double largest = std::max(1.0, x.cwiseAbs().maxCoeff());
  for (Index j = 0; j < x.size(); ++j)
    if (passive[j] && x[j] <= 1e-14 * largest) {
      x[j] = 0;
      passive[j] = false;
    }
}

/// b - a·x.
Vector residual(const Matrix& a, const Vector& x, const Vector& b) { return b - a.lazyProduct(x); }

/// Lawson-Hanson on columns scaled to unit length, so that units do not decide the tolerance.
Vector non_negative(Matrix a, const Vector& b) {
  const Index n = a.cols();
  Vector scale = a.colwise().norm();
  scale = (scale.array() > 0).select(scale, 1.0);
  a.array().rowwise() /= scale.transpose().array();
  std::vector<bool> passive(n, false);
  Vector x = Vector::Zero(n);
  const double tolerance = 1e-12 * std::max(1.0, b.norm());
  for (Index round = 0; round < 10 * n + 10; ++round) {
    const Vector gradient = a.transpose().lazyProduct(residual(a, x, b));
    Index best = n;
    for (Index j = 0; j < n; ++j)
      if (!passive[j] && gradient[j] > tolerance && (best == n || gradient[j] > gradient[best]))
        best = j;
    if (best == n) break;
    passive[best] = true;
    for (Index inner = 0; inner <= n; ++inner) {
      const Vector z = solve_passive(a, b, passive);
      bool feasible = true;
      for (Index j = 0; j < n; ++j)
        if (passive[j] && z[j] <= 0) feasible = false;
      if (feasible) {
        x = z;
        break;
      }
      step_to_bound(x, z, passive);
    }
  }
  return x.cwiseQuotient(scale);
}

/// Inverse of a Gram matrix, and which columns stand in a direction the data do not see.
struct GramInverse {
  Matrix inverse;
  std::vector<bool> blind;
};

GramInverse invert(const Matrix& gram) {
  const Index n = gram.rows();
  const Vector scale =
      (gram.diagonal().array() > 0).select(gram.diagonal().cwiseSqrt().cwiseInverse(), 1.0);
  const Eigen::SelfAdjointEigenSolver<Matrix> eigen(scale.asDiagonal() * gram * scale.asDiagonal());
  const Vector& values = eigen.eigenvalues();
  const double floor = 1e-10 * std::max(values.maxCoeff(), 1e-300);
  GramInverse out{Matrix::Zero(n, n), std::vector<bool>(n, false)};
  for (Index k = 0; k < n; ++k) {
    const Vector v = eigen.eigenvectors().col(k);
    if (values[k] > floor) {
      const Vector scaled = v.cwiseProduct(scale);
      out.inverse += scaled.lazyProduct(scaled.transpose()) / values[k];
    } else {
      for (Index i = 0; i < n; ++i)
        if (std::abs(v[i]) > 0.05) out.blind[i] = true;
    }
  }
  return out;
}

/// The weighted problem over the coefficients the samples touch.
class CurveProblem {
 public:
  CurveProblem(std::span<const CurveSample> samples, const CostCurveParameters& prior,
               const CurveFitOptions& options)
      : prior_(to_array(prior)), options_(options) {
    for (std::size_t i = 0; i < kCoefficients; ++i) {
      if (i == index(Coefficient::kPrefillChunk) && !options.fit_chunks) continue;
      if (i == index(Coefficient::kGroupToken) && !options.fit_group) continue;
      asked_.push_back(i);
      const bool touched = std::any_of(samples.begin(), samples.end(), [i](const CurveSample& s) {
        return s.features[i] != 0 && s.weight > 0;
      });
      if (touched) present_.push_back(i);
    }
    fill(samples);
  }

  static std::size_t index(Coefficient c) { return static_cast<std::size_t>(c); }
  const std::vector<std::size_t>& asked() const { return asked_; }
  bool has(Coefficient c) const {
    return std::find(present_.begin(), present_.end(), index(c)) != present_.end();
  }

  /// Reads shared tokens at the full price: θ would exceed 1 otherwise.
  void merge_shared_context() {
    const auto shared = position(Coefficient::kSharedContext);
    const auto context = position(Coefficient::kContext);
    a_.col(context) += a_.col(shared);
    a_.col(shared).setZero();
    merged_ = true;
  }

  void solve() {
    x_ = non_negative(a_, b_);
    sigma_ = residual_sd();
    if (options_.prior_relative_sd <= 0) return;
    // The prior as one more observation per coefficient, of relative error prior_relative_sd.
    const double pull = std::max(sigma_, 1e-9) / options_.prior_relative_sd;
    Matrix a = Matrix::Zero(a_.rows() + a_.cols(), a_.cols());
    a.topRows(a_.rows()) = a_;
    Vector b = Vector::Zero(a.rows());
    b.head(a_.rows()) = b_;
    prior_gram_.setZero();
    for (Index j = 0; j < a_.cols(); ++j) {
      const double value = prior_[present_[j]];
      if (value <= 0 || (merged_ && j == position(Coefficient::kSharedContext))) continue;
      a(a_.rows() + j, j) = pull / value;
      b[a_.rows() + j] = pull;
      prior_gram_[j] = pull * pull / (value * value);
    }
    x_ = non_negative(a, b);
    sigma_ = residual_sd();
  }

  double value(Coefficient c) const { return has(c) ? x_[position(c)] : prior_[index(c)]; }

  std::array<double, kCoefficients> solution() const {
    std::array<double, kCoefficients> all = prior_;
    for (std::size_t k = 0; k < present_.size(); ++k) all[present_[k]] = x_[k];
    if (merged_) all[index(Coefficient::kSharedContext)] = all[index(Coefficient::kContext)];
    return all;
  }

  FittedCoefficient report(std::size_t coefficient) const;

 private:
  Index position(Coefficient c) const {
    return static_cast<Index>(std::find(present_.begin(), present_.end(), index(c)) -
                              present_.begin());
  }

  void fill(std::span<const CurveSample> samples) {
    a_.resize(std::ssize(samples), std::ssize(present_));
    b_.resize(a_.rows());
    prior_gram_ = Vector::Zero(a_.cols());
    for (Index r = 0; r < a_.rows(); ++r) {
      const CurveSample& s = samples[r];
      const double w = std::sqrt(s.weight) / s.ms;
      for (Index k = 0; k < a_.cols(); ++k) a_(r, k) = w * s.features[present_[k]];
      b_[r] = w * s.ms;
      if (s.weight > 0) ++observations_;
    }
  }

  double degrees() const {
    const Index free = (x_.array() > 0).count();
    return std::max(1.0, static_cast<double>(observations_) - static_cast<double>(free));
  }

  /// Whether a coefficient at zero could as well be above: nothing pushes it against the bound.
  bool is_undecided(Index j) const {
    const Vector a = a_.col(j);
    const double push = a.dot(residual(a_, x_, b_)) + prior_gram_[j] * prior_[present_[j]];
    return a.norm() > 0 && std::abs(push) <= 1e-9 * a.norm() * b_.norm();
  }

  double residual_sd() const { return residual(a_, x_, b_).norm() / std::sqrt(degrees()); }

  void explain(FittedCoefficient& f, Index own, const std::vector<Index>& free) const;

  std::array<double, kCoefficients> prior_;
  CurveFitOptions options_;
  std::vector<std::size_t> asked_, present_;
  Matrix a_;
  Vector b_, x_, prior_gram_;
  double sigma_ = 0;
  int observations_ = 0;
  bool merged_ = false;
};

FittedCoefficient CurveProblem::report(std::size_t coefficient) const {
  FittedCoefficient f;
  f.coefficient = static_cast<Coefficient>(coefficient);
  f.prior = prior_[coefficient];
  f.value = solution()[coefficient];
  if (!has(f.coefficient)) {
    f.low = f.high = f.value;
    f.identified = Identified::kNotInData;
    f.note = "no sample touches it; the prior's value is kept";
    return f;
  }
  if (merged_ && f.coefficient == Coefficient::kSharedContext) {
    f.low = f.high = f.value;
    f.identified = Identified::kWeakly;
    f.note = "held at the price of unshared context";
    return f;
  }
  const Index own = position(f.coefficient);
  std::vector<Index> free;
  for (Index j = 0; j < x_.size(); ++j)
    if (x_[j] > 0 || j == own || is_undecided(j)) free.push_back(j);
  explain(f, own, free);
  return f;
}

void CurveProblem::explain(FittedCoefficient& f, Index own, const std::vector<Index>& free) const {
  Matrix scatter = gram(a_(Eigen::all, free));
  scatter.diagonal() += prior_gram_(free);
  const GramInverse inverse = invert(scatter);
  const auto me = static_cast<Index>(std::find(free.begin(), free.end(), own) - free.begin());
  const double variance = sigma_ * sigma_ * inverse.inverse(me, me);
  const double half = t_quantile(degrees()) * std::sqrt(std::max(0.0, variance));
  f.low = std::max(0.0, f.value - half);
  f.high = f.value + half;
  if (inverse.blind[me]) {
    f.low = 0;
    f.high = kInfinity;
    f.identified = Identified::kWeakly;
    f.note = "not separable from the others in these data";
    return;
  }
  if (f.value <= 0) {
    f.identified = Identified::kAtZero;
    f.note = "the bound at zero holds it";
    return;
  }
  const double prior_variance =
      prior_gram_[own] > 0 ? sigma_ * sigma_ / prior_gram_[own] : kInfinity;
  if (variance > 0.5 * prior_variance) {
    f.identified = Identified::kByPrior;
    f.note = "the data hardly narrow the prior";
    return;
  }
  f.identified = half > 0.5 * f.value ? Identified::kWeakly : Identified::kByData;
  for (Index k = 0; k < std::ssize(free); ++k) {
    if (k == me) continue;
    const double correlation =
        inverse.inverse(me, k) / std::sqrt(inverse.inverse(me, me) * inverse.inverse(k, k));
    if (std::abs(correlation) < 0.95) continue;
    f.note = "trades off against " +
             std::string(coefficient_name(static_cast<Coefficient>(present_[free[k]])));
  }
}

bool check_samples(std::span<const CurveSample> samples, Diagnostics& out) {
  std::size_t used = 0;
  for (const CurveSample& s : samples) {
    bool finite = std::isfinite(s.ms) && s.ms > 0 && std::isfinite(s.weight) && s.weight >= 0;
    for (const double f : s.features) finite = finite && std::isfinite(f) && f >= 0;
    if (!finite)
      out.error({}, s.label,
                "needs a positive finite time and features (got " + std::to_string(s.ms) + " ms)");
    if (s.weight > 0) ++used;
  }
  if (used < 2)
    out.error({}, "", "a fit needs at least 2 samples (got " + std::to_string(used) + ")");
  return !out.has_errors();
}

}  // namespace

std::vector<double> solve_non_negative(const std::vector<std::vector<double>>& rows,
                                       const std::vector<double>& rhs) {
  ROUTESIM_CHECK(!rows.empty() && rows.size() == rhs.size(), "shape of the least-squares problem");
  Matrix a(rows.size(), rows.front().size());
  for (Index r = 0; r < a.rows(); ++r) {
    ROUTESIM_CHECK(std::ssize(rows[r]) == a.cols(), "rows of unequal length");
    a.row(r) = mapped(rows[r]);
  }
  const Vector x = non_negative(std::move(a), mapped(rhs));
  return {x.begin(), x.end()};
}

std::optional<CurveFit> fit_cost_curve(std::span<const CurveSample> samples,
                                       const CostCurveParameters& prior,
                                       const CurveFitOptions& options, Diagnostics& diagnostics) {
  Diagnostics found;
  if (!check_samples(samples, found)) {
    for (const Diagnostic& d : found.items()) diagnostics.add(d);
    return std::nullopt;
  }
  CurveFit fit;
  CurveProblem problem(samples, prior, options);
  problem.solve();
  if (problem.has(Coefficient::kSharedContext) && problem.has(Coefficient::kContext) &&
      problem.value(Coefficient::kSharedContext) > problem.value(Coefficient::kContext)) {
    problem.merge_shared_context();
    problem.solve();
    fit.notes.emplace_back("shared context came out dearer than unshared; both are held equal");
  }
  if (!problem.has(Coefficient::kSharedContext))
    fit.notes.emplace_back("no sample has shared context: shared_context_weight is the prior's");
  fit.parameters = from_array(problem.solution(), prior, problem.has(Coefficient::kSharedContext));
  for (const std::size_t i : problem.asked()) fit.coefficients.push_back(problem.report(i));
  for (const CurveSample& s : samples)
    fit.relative_residuals.push_back(predict_ms(fit.parameters, s) / s.ms - 1);
  fit.residuals = summarise_residuals(fit.relative_residuals);
  return fit;
}

namespace {

/// Levenberg-Marquardt in coordinates scaled to [0, 1].
class BoundedSearch {
 public:
  BoundedSearch(const std::vector<BoundedParameter>& parameters, const ResidualFunction& f,
                const ObjectiveFitOptions& options)
      : parameters_(parameters), f_(f), options_(options), u_(std::ssize(parameters)) {
    for (Index j = 0; j < u_.size(); ++j) {
      const BoundedParameter& p = parameters[j];
      ROUTESIM_CHECK(p.high > p.low, "bounds of " + p.name);
      u_[j] = std::clamp((p.start - p.low) / (p.high - p.low), 0.0, 1.0);
    }
    r_ = evaluate(u_);
    start_cost_ = r_.squaredNorm();
  }

  ObjectiveFit run() {
    bool converged = u_.size() == 0;
    while (!converged && left() > static_cast<int>(u_.size())) {
      differentiate();
      const double before = r_.squaredNorm();
      if (!improve()) {
        converged = left() > 0;
        break;
      }
      converged = before - r_.squaredNorm() <= options_.relative_tolerance * before;
    }
    if (jacobian_.rows() == 0 && u_.size() > 0) differentiate();
    return report(converged);
  }

 private:
  int left() const { return options_.max_evaluations - evaluations_; }

  Vector evaluate(const Vector& u) {
    std::vector<double> x;
    for (Index j = 0; j < u.size(); ++j)
      x.push_back(parameters_[j].low + u[j] * (parameters_[j].high - parameters_[j].low));
    ++evaluations_;
    return mapped(f_(x));
  }

  void differentiate() {
    jacobian_.resize(r_.size(), u_.size());
    for (Index j = 0; j < u_.size(); ++j) {
      const BoundedParameter& p = parameters_[j];
      double h = p.step > 0 ? std::min(0.5, p.step / (p.high - p.low)) : 0.02;
      if (u_[j] + h > 1) h = -h;  // Differences point into the box.
      Vector moved = u_;
      moved[j] += h;
      jacobian_.col(j) = (evaluate(moved) - r_) / h;
    }
  }

  /// Tries ever shorter steps until one lowers the cost. False when none does.
  bool improve() {
    const Vector gradient = jacobian_.transpose().lazyProduct(r_);
    Matrix normal = gram(jacobian_);
    Vector target = -gradient;
    double size = 1e-300;
    for (Index j = 0; j < u_.size(); ++j) {  // A bound the gradient pushes against stays.
      if ((u_[j] <= 0 && gradient[j] > 0) || (u_[j] >= 1 && gradient[j] < 0)) {
        normal.row(j).setZero();
        normal.col(j).setZero();
        normal(j, j) = 1;
        target[j] = 0;
      }
      size = std::max(size, normal(j, j));
    }
    for (int attempt = 0; attempt < 8 && left() > 0; ++attempt) {
      Matrix damped = normal;
      damped.diagonal().array() += damping_ * (normal.diagonal().array() + 1e-6 * size);
      const Vector candidate = (u_ + least_squares(damped, target)).cwiseMax(0.0).cwiseMin(1.0);
      const Vector r = evaluate(candidate);
      if (r.squaredNorm() < r_.squaredNorm()) {
        u_ = candidate;
        r_ = r;
        damping_ = std::max(1e-9, damping_ / 5);
        return true;
      }
      damping_ *= 6;
    }
    return false;
  }

  ObjectiveFit report(bool converged) const {
    ObjectiveFit out;
    out.cost = r_.squaredNorm();
    out.start_cost = start_cost_;
    out.evaluations = evaluations_;
    out.converged = converged;
    if (u_.size() == 0) return out;
    const GramInverse inverse = invert(gram(jacobian_));
    const double dof =
        std::max(1.0, static_cast<double>(r_.size()) - static_cast<double>(u_.size()));
    for (Index j = 0; j < u_.size(); ++j) {
      const BoundedParameter& p = parameters_[j];
      const double range = p.high - p.low;
      FittedParameter f{.name = p.name, .value = p.low + u_[j] * range};
      f.at_bound = u_[j] <= 0 || u_[j] >= 1;
      f.identifiable = jacobian_.col(j).norm() > 0 && !inverse.blind[j];
      const double half = t_quantile(dof) *
                          std::sqrt(out.cost / dof * std::max(0.0, inverse.inverse(j, j))) * range;
      f.low = f.identifiable ? std::max(p.low, f.value - half) : p.low;
      f.high = f.identifiable ? std::min(p.high, f.value + half) : p.high;
      out.parameters.push_back(std::move(f));
    }
    return out;
  }

  const std::vector<BoundedParameter>& parameters_;
  const ResidualFunction& f_;
  ObjectiveFitOptions options_;
  Vector u_, r_;
  Matrix jacobian_;
  double damping_ = 1e-2;
  double start_cost_ = 0;
  int evaluations_ = 0;
};

}  // namespace

ObjectiveFit fit_objective(const std::vector<BoundedParameter>& parameters,
                           const ResidualFunction& residuals, const ObjectiveFitOptions& options) {
  return BoundedSearch(parameters, residuals, options).run();
}

}  // namespace routesim::models
