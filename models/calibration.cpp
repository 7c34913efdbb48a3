#include "models/calibration.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "models/calibration_detail.h"
#include "models/linear_algebra.h"

namespace routesim::models {
namespace {

using Index = std::size_t;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Least squares over the passive columns, zero elsewhere.
Vector solve_passive(const Matrix& a, const Vector& b, const std::vector<bool>& passive) {
  std::vector<Index> which;
  for (Index j = 0; j < a.columns(); ++j)
    if (passive[j]) which.push_back(j);
  Vector x(a.columns(), 0.0);
  if (which.empty()) return x;
  const Vector z = least_squares(columns(a, which), b);
  for (Index k = 0; k < which.size(); ++k) x[which[k]] = z[k];
  return x;
}

/// Moves x towards z until the first passive coordinate meets zero; those that met it go active.
void step_to_bound(Vector& x, const Vector& z, std::vector<bool>& passive) {
  double alpha = 1.0;
  double largest = 1.0;
  for (Index j = 0; j < x.size(); ++j)
    if (passive[j] && z[j] <= 0) alpha = x[j] > 0 ? std::min(alpha, x[j] / (x[j] - z[j])) : 0.0;
  for (Index j = 0; j < x.size(); ++j) {
    x[j] += alpha * (z[j] - x[j]);
    largest = std::max(largest, std::abs(x[j]));
  }
  for (Index j = 0; j < x.size(); ++j)
    if (passive[j] && x[j] <= 1e-14 * largest) {
      x[j] = 0;
      passive[j] = false;
    }
}

/// b - a·x.
Vector residual(const Matrix& a, const Vector& x, const Vector& b) {
  Vector out = product(a, x);
  for (Index r = 0; r < out.size(); ++r) out[r] = b[r] - out[r];
  return out;
}

/// Lawson-Hanson on columns scaled to unit length, so that units do not decide the tolerance.
Vector non_negative(Matrix a, const Vector& b) {
  const Index n = a.columns();
  Vector scale(n, 1.0);
  for (Index j = 0; j < n; ++j) {
    if (const double length = norm(column(a, j)); length > 0) scale[j] = length;
    for (Index r = 0; r < a.rows(); ++r) a(r, j) /= scale[j];
  }
  std::vector<bool> passive(n, false);
  Vector x(n, 0.0);
  const double tolerance = 1e-12 * std::max(1.0, norm(b));
  for (Index round = 0; round < 10 * n + 10; ++round) {
    const Vector gradient = transposed_product(a, residual(a, x, b));
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
  for (Index j = 0; j < n; ++j) x[j] /= scale[j];
  return x;
}

/// Inverse of a Gram matrix, and which columns stand in a direction the data do not see.
struct GramInverse {
  Matrix inverse;
  std::vector<bool> blind;
};

GramInverse invert(const Matrix& gram) {
  const Index n = gram.rows();
  GramInverse out{Matrix(n, n), std::vector<bool>(n, false)};
  Vector scale(n, 1.0);
  for (Index j = 0; j < n; ++j)
    if (gram(j, j) > 0) scale[j] = std::sqrt(gram(j, j));
  Matrix scaled = gram;
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j) scaled(i, j) /= scale[i] * scale[j];
  const EigenPairs eigen = symmetric_eigen(std::move(scaled));
  const double floor =
      1e-10 * std::max(*std::max_element(eigen.values.begin(), eigen.values.end()), 1e-300);
  for (Index k = 0; k < n; ++k) {
    const Vector v = column(eigen.vectors, k);
    for (Index i = 0; i < n; ++i) {
      if (eigen.values[k] <= floor && std::abs(v[i]) > 0.05) out.blind[i] = true;
      for (Index j = 0; j < n && eigen.values[k] > floor; ++j)
        out.inverse(i, j) += v[i] * v[j] / eigen.values[k] / (scale[i] * scale[j]);
    }
  }
  return out;
}

/// The weighted problem over the coefficients the samples touch.
class CurveProblem {
 public:
  CurveProblem(std::span<const CurveSample> samples, const CostCurveParameters& prior,
               const CurveFitOptions& options)
      : prior_(to_array(prior)), options_(options), a_(0, 0) {
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
    for (Index r = 0; r < a_.rows(); ++r) a_(r, context) += std::exchange(a_(r, shared), 0.0);
    merged_ = true;
  }

  void solve() {
    x_ = non_negative(a_, b_);
    sigma_ = residual_sd();
    if (options_.prior_relative_sd <= 0) return;
    // The prior as one more observation per coefficient, of relative error prior_relative_sd.
    const double pull = std::max(sigma_, 1e-9) / options_.prior_relative_sd;
    Matrix a(a_.rows() + a_.columns(), a_.columns());
    for (Index r = 0; r < a_.rows(); ++r)
      for (Index j = 0; j < a_.columns(); ++j) a(r, j) = a_(r, j);
    Vector b = b_;
    b.resize(a.rows(), 0.0);
    prior_gram_.assign(a_.columns(), 0.0);
    for (Index j = 0; j < a_.columns(); ++j) {
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
    a_ = Matrix(samples.size(), present_.size());
    b_.assign(a_.rows(), 0.0);
    prior_gram_.assign(a_.columns(), 0.0);
    for (Index r = 0; r < a_.rows(); ++r) {
      const CurveSample& s = samples[r];
      const double w = std::sqrt(s.weight) / s.ms;
      for (Index k = 0; k < a_.columns(); ++k) a_(r, k) = w * s.features[present_[k]];
      b_[r] = w * s.ms;
      if (s.weight > 0) ++observations_;
    }
  }

  double degrees() const {
    const auto free = std::count_if(x_.begin(), x_.end(), [](double x) { return x > 0; });
    return std::max(1.0, static_cast<double>(observations_) - static_cast<double>(free));
  }

  /// Whether a coefficient at zero could as well be above: nothing pushes it against the bound.
  bool is_undecided(Index j) const {
    const Vector a = column(a_, j);
    const double push = dot(a, residual(a_, x_, b_)) + prior_gram_[j] * prior_[present_[j]];
    return norm(a) > 0 && std::abs(push) <= 1e-9 * norm(a) * norm(b_);
  }

  double residual_sd() const { return norm(residual(a_, x_, b_)) / std::sqrt(degrees()); }

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
  Matrix scatter = gram(columns(a_, free));
  for (Index k = 0; k < free.size(); ++k) scatter(k, k) += prior_gram_[free[k]];
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
  for (Index k = 0; k < free.size(); ++k) {
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
    ROUTESIM_CHECK(rows[r].size() == a.columns(), "rows of unequal length");
    for (Index c = 0; c < a.columns(); ++c) a(r, c) = rows[r][c];
  }
  return non_negative(std::move(a), rhs);
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
      : parameters_(parameters), f_(f), options_(options), jacobian_(0, 0) {
    for (const BoundedParameter& p : parameters) {
      ROUTESIM_CHECK(p.high > p.low, "bounds of " + p.name);
      u_.push_back(std::clamp((p.start - p.low) / (p.high - p.low), 0.0, 1.0));
    }
    r_ = evaluate(u_);
    start_cost_ = dot(r_, r_);
  }

  ObjectiveFit run() {
    bool converged = u_.empty();
    while (!converged && left() > static_cast<int>(u_.size())) {
      differentiate();
      const double before = dot(r_, r_);
      if (!improve()) {
        converged = left() > 0;
        break;
      }
      converged = before - dot(r_, r_) <= options_.relative_tolerance * before;
    }
    if (jacobian_.rows() == 0 && !u_.empty()) differentiate();
    return report(converged);
  }

 private:
  int left() const { return options_.max_evaluations - evaluations_; }

  Vector evaluate(const Vector& u) {
    std::vector<double> x;
    for (Index j = 0; j < u.size(); ++j)
      x.push_back(parameters_[j].low + u[j] * (parameters_[j].high - parameters_[j].low));
    ++evaluations_;
    return f_(x);
  }

  void differentiate() {
    jacobian_ = Matrix(r_.size(), u_.size());
    for (Index j = 0; j < u_.size(); ++j) {
      const BoundedParameter& p = parameters_[j];
      double h = p.step > 0 ? std::min(0.5, p.step / (p.high - p.low)) : 0.02;
      if (u_[j] + h > 1) h = -h;  // Differences point into the box.
      Vector moved = u_;
      moved[j] += h;
      const Vector r = evaluate(moved);
      for (Index i = 0; i < r.size(); ++i) jacobian_(i, j) = (r[i] - r_[i]) / h;
    }
  }

  /// Tries ever shorter steps until one lowers the cost. False when none does.
  bool improve() {
    const Vector gradient = transposed_product(jacobian_, r_);
    Matrix normal = gram(jacobian_);
    Vector target;
    for (const double g : gradient) target.push_back(-g);
    double size = 1e-300;
    for (Index j = 0; j < u_.size(); ++j) {  // A bound the gradient pushes against stays.
      if ((u_[j] <= 0 && gradient[j] > 0) || (u_[j] >= 1 && gradient[j] < 0)) {
        for (Index k = 0; k < u_.size(); ++k) normal(j, k) = normal(k, j) = 0;
        normal(j, j) = 1;
        target[j] = 0;
      }
      size = std::max(size, normal(j, j));
    }
    for (int attempt = 0; attempt < 8 && left() > 0; ++attempt) {
      Matrix damped = normal;
      for (Index j = 0; j < u_.size(); ++j) damped(j, j) += damping_ * (normal(j, j) + 1e-6 * size);
      Vector candidate = least_squares(std::move(damped), target);
      for (Index j = 0; j < u_.size(); ++j)
        candidate[j] = std::clamp(u_[j] + candidate[j], 0.0, 1.0);
      const Vector r = evaluate(candidate);
      if (dot(r, r) < dot(r_, r_)) {
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
    out.cost = dot(r_, r_);
    out.start_cost = start_cost_;
    out.evaluations = evaluations_;
    out.converged = converged;
    if (u_.empty()) return out;
    const GramInverse inverse = invert(gram(jacobian_));
    const double dof =
        std::max(1.0, static_cast<double>(r_.size()) - static_cast<double>(u_.size()));
    for (Index j = 0; j < u_.size(); ++j) {
      const BoundedParameter& p = parameters_[j];
      const double range = p.high - p.low;
      FittedParameter f{.name = p.name, .value = p.low + u_[j] * range};
      f.at_bound = u_[j] <= 0 || u_[j] >= 1;
      f.identifiable = norm(column(jacobian_, j)) > 0 && !inverse.blind[j];
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
