// The linear algebra of calibration; the only file that knows Eigen.
#include "models/calibration.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "models/calibration_detail.h"

namespace routesim::models {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;
using Index = Eigen::Index;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Matrix columns(const Matrix& a, const std::vector<Index>& which) {
  Matrix out(a.rows(), static_cast<Index>(which.size()));
  for (std::size_t k = 0; k < which.size(); ++k) out.col(static_cast<Index>(k)) = a.col(which[k]);
  return out;
}

/// Least squares over the passive columns, zero elsewhere.
Vector solve_passive(const Matrix& a, const Vector& b, const std::vector<bool>& passive) {
  std::vector<Index> which;
  for (Index j = 0; j < a.cols(); ++j)
    if (passive[static_cast<std::size_t>(j)]) which.push_back(j);
  Vector x = Vector::Zero(a.cols());
  if (which.empty()) return x;
  const Vector z = columns(a, which).colPivHouseholderQr().solve(b);
  for (std::size_t k = 0; k < which.size(); ++k) x[which[k]] = z[static_cast<Index>(k)];
  return x;
}

/// Moves x towards z until the first passive coordinate meets zero; those that met it go active.
void step_to_bound(Vector& x, const Vector& z, std::vector<bool>& passive) {
  double alpha = 1.0;
  for (Index j = 0; j < x.size(); ++j)
    if (passive[static_cast<std::size_t>(j)] && z[j] <= 0)
      alpha = x[j] > 0 ? std::min(alpha, x[j] / (x[j] - z[j])) : 0.0;
  x += alpha * (z - x);
  const double tiny = 1e-14 * std::max(1.0, x.cwiseAbs().maxCoeff());
  for (Index j = 0; j < x.size(); ++j)
    if (passive[static_cast<std::size_t>(j)] && x[j] <= tiny) {
      x[j] = 0;
      passive[static_cast<std::size_t>(j)] = false;
    }
}

/// Lawson-Hanson on columns scaled to unit length, so that units do not decide the tolerance.
Vector non_negative(const Matrix& a_unscaled, const Vector& b) {
  Vector scale = a_unscaled.colwise().norm();
  for (Index j = 0; j < scale.size(); ++j)
    if (scale[j] == 0) scale[j] = 1;
  const Matrix a = a_unscaled * scale.cwiseInverse().asDiagonal();
  const Index n = a.cols();
  std::vector<bool> passive(static_cast<std::size_t>(n), false);
  Vector x = Vector::Zero(n);
  const double tolerance = 1e-12 * std::max(1.0, b.norm());
  for (Index round = 0; round < 10 * n + 10; ++round) {
    const Vector gradient = a.transpose() * (b - a * x);
    Index best = -1;
    for (Index j = 0; j < n; ++j)
      if (!passive[static_cast<std::size_t>(j)] && gradient[j] > tolerance &&
          (best < 0 || gradient[j] > gradient[best]))
        best = j;
    if (best < 0) break;
    passive[static_cast<std::size_t>(best)] = true;
    for (Index inner = 0; inner <= n; ++inner) {
      const Vector z = solve_passive(a, b, passive);
      bool feasible = true;
      for (Index j = 0; j < n; ++j)
        if (passive[static_cast<std::size_t>(j)] && z[j] <= 0) feasible = false;
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
  GramInverse out{Matrix::Zero(n, n), std::vector<bool>(static_cast<std::size_t>(n), false)};
  Vector scale = gram.diagonal().cwiseSqrt();
  for (Index j = 0; j < n; ++j)
    if (!(scale[j] > 0)) scale[j] = 1;
  const Matrix inverse_scale = scale.cwiseInverse().asDiagonal();
  const Eigen::SelfAdjointEigenSolver<Matrix> eigen(inverse_scale * gram * inverse_scale);
  const double floor = 1e-10 * std::max(eigen.eigenvalues().maxCoeff(), 1e-300);
  for (Index k = 0; k < n; ++k) {
    const Vector v = eigen.eigenvectors().col(k);
    if (eigen.eigenvalues()[k] > floor) {
      out.inverse += v * v.transpose() / eigen.eigenvalues()[k];
      continue;
    }
    for (Index j = 0; j < n; ++j)
      if (std::abs(v[j]) > 0.05) out.blind[static_cast<std::size_t>(j)] = true;
  }
  out.inverse = inverse_scale * out.inverse * inverse_scale;
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
    Vector b = Vector::Zero(a.rows());
    a.topRows(a_.rows()) = a_;
    b.head(a_.rows()) = b_;
    prior_gram_ = Vector::Zero(a_.cols());
    for (Index j = 0; j < a_.cols(); ++j) {
      const double value = prior_[present_[static_cast<std::size_t>(j)]];
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
    for (std::size_t k = 0; k < present_.size(); ++k) all[present_[k]] = x_[static_cast<Index>(k)];
    if (merged_) all[index(Coefficient::kSharedContext)] = all[index(Coefficient::kContext)];
    return all;
  }

  FittedCoefficient report(std::size_t coefficient) const;

 private:
  Index position(Coefficient c) const {
    return std::find(present_.begin(), present_.end(), index(c)) - present_.begin();
  }

  void fill(std::span<const CurveSample> samples) {
    a_ = Matrix::Zero(static_cast<Index>(samples.size()), static_cast<Index>(present_.size()));
    b_ = Vector::Zero(a_.rows());
    prior_gram_ = Vector::Zero(a_.cols());
    for (Index r = 0; r < a_.rows(); ++r) {
      const CurveSample& s = samples[static_cast<std::size_t>(r)];
      const double w = std::sqrt(s.weight) / s.ms;
      for (Index k = 0; k < a_.cols(); ++k)
        a_(r, k) = w * s.features[present_[static_cast<std::size_t>(k)]];
      b_[r] = w * s.ms;
      if (s.weight > 0) ++observations_;
    }
  }

  double degrees() const {
    const auto free = (x_.array() > 0).count();
    return std::max(1.0, static_cast<double>(observations_) - static_cast<double>(free));
  }

  double residual_sd() const { return (b_ - a_ * x_).norm() / std::sqrt(degrees()); }

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
    if (x_[j] > 0 || j == own) free.push_back(j);
  explain(f, own, free);
  return f;
}

void CurveProblem::explain(FittedCoefficient& f, Index own, const std::vector<Index>& free) const {
  const Matrix a = columns(a_, free);
  Matrix gram = a.transpose() * a;
  for (std::size_t k = 0; k < free.size(); ++k)
    gram(static_cast<Index>(k), static_cast<Index>(k)) += prior_gram_[free[k]];
  const GramInverse inverse = invert(gram);
  const auto me = static_cast<Index>(std::find(free.begin(), free.end(), own) - free.begin());
  const double variance = sigma_ * sigma_ * inverse.inverse(me, me);
  const double half = t_quantile(degrees()) * std::sqrt(std::max(0.0, variance));
  f.low = std::max(0.0, f.value - half);
  f.high = f.value + half;
  if (inverse.blind[static_cast<std::size_t>(me)]) {
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
  for (Index k = 0; k < static_cast<Index>(free.size()); ++k) {
    if (k == me) continue;
    const double correlation =
        inverse.inverse(me, k) / std::sqrt(inverse.inverse(me, me) * inverse.inverse(k, k));
    if (std::abs(correlation) < 0.95) continue;
    f.note = "trades off against " +
             std::string(coefficient_name(static_cast<Coefficient>(
                 present_[static_cast<std::size_t>(free[static_cast<std::size_t>(k)])])));
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
  Matrix a(static_cast<Index>(rows.size()), static_cast<Index>(rows.front().size()));
  for (Index r = 0; r < a.rows(); ++r) {
    const auto& row = rows[static_cast<std::size_t>(r)];
    ROUTESIM_CHECK(static_cast<Index>(row.size()) == a.cols(), "rows of unequal length");
    for (Index c = 0; c < a.cols(); ++c) a(r, c) = row[static_cast<std::size_t>(c)];
  }
  const Vector x = non_negative(a, Eigen::Map<const Vector>(rhs.data(), a.rows()));
  return {x.data(), x.data() + x.size()};
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
    fit.notes.push_back("shared context came out dearer than unshared; both are held equal");
  }
  if (!problem.has(Coefficient::kSharedContext))
    fit.notes.push_back("no sample has shared context: shared_context_weight is the prior's");
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
      : parameters_(parameters), f_(f), options_(options) {
    u_ = Vector::Zero(static_cast<Index>(parameters.size()));
    for (Index j = 0; j < u_.size(); ++j) {
      const BoundedParameter& p = parameters[static_cast<std::size_t>(j)];
      ROUTESIM_CHECK(p.high > p.low, "bounds of " + p.name);
      u_[j] = std::clamp((p.start - p.low) / (p.high - p.low), 0.0, 1.0);
    }
    r_ = evaluate(u_);
    start_cost_ = r_.squaredNorm();
  }

  ObjectiveFit run() {
    bool converged = u_.size() == 0;
    while (!converged && left() > u_.size()) {
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
    for (Index j = 0; j < u.size(); ++j) {
      const BoundedParameter& p = parameters_[static_cast<std::size_t>(j)];
      x.push_back(p.low + u[j] * (p.high - p.low));
    }
    ++evaluations_;
    const std::vector<double> r = f_(x);
    return Eigen::Map<const Vector>(r.data(), static_cast<Index>(r.size()));
  }

  void differentiate() {
    jacobian_ = Matrix::Zero(r_.size(), u_.size());
    for (Index j = 0; j < u_.size(); ++j) {
      const BoundedParameter& p = parameters_[static_cast<std::size_t>(j)];
      double h = p.step > 0 ? std::min(0.5, p.step / (p.high - p.low)) : 0.02;
      if (u_[j] + h > 1) h = -h;  // Differences point into the box.
      Vector moved = u_;
      moved[j] += h;
      jacobian_.col(j) = (evaluate(moved) - r_) / h;
    }
  }

  /// Tries ever shorter steps until one lowers the cost. False when none does.
  bool improve() {
    const Vector gradient = jacobian_.transpose() * r_;
    Matrix gram = jacobian_.transpose() * jacobian_;
    for (Index j = 0; j < u_.size(); ++j) {  // A bound the gradient pushes against stays.
      const bool held = (u_[j] <= 0 && gradient[j] > 0) || (u_[j] >= 1 && gradient[j] < 0);
      if (!held) continue;
      gram.row(j).setZero();
      gram.col(j).setZero();
      gram(j, j) = 1;
    }
    Vector target = -gradient;
    for (Index j = 0; j < u_.size(); ++j)
      if ((u_[j] <= 0 && gradient[j] > 0) || (u_[j] >= 1 && gradient[j] < 0)) target[j] = 0;
    const double size = std::max(gram.diagonal().maxCoeff(), 1e-300);
    for (int attempt = 0; attempt < 8 && left() > 0; ++attempt) {
      Matrix damped = gram;
      damped.diagonal() += damping_ * (gram.diagonal().array() + 1e-6 * size).matrix();
      const Vector step = damped.ldlt().solve(target);
      const Vector candidate = (u_ + step).cwiseMax(0.0).cwiseMin(1.0);
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
    const GramInverse inverse = invert(jacobian_.transpose() * jacobian_);
    const double dof = std::max(1.0, static_cast<double>(r_.size() - u_.size()));
    for (Index j = 0; j < u_.size(); ++j) {
      const BoundedParameter& p = parameters_[static_cast<std::size_t>(j)];
      const double range = p.high - p.low;
      FittedParameter f{.name = p.name, .value = p.low + u_[j] * range};
      f.at_bound = u_[j] <= 0 || u_[j] >= 1;
      f.identifiable =
          jacobian_.col(j).squaredNorm() > 0 && !inverse.blind[static_cast<std::size_t>(j)];
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
