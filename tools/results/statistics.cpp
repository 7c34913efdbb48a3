#include "tools/results/statistics.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "base/check.h"

namespace routesim::sim {

namespace {

/// Plain doubles: with `long double` inside, the last bits would depend on the processor.
using Policy = boost::math::policies::policy<boost::math::policies::promote_double<false>>;

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

/// t(1 - (1 - confidence)/2): the number of standard errors on either side.
double t_factor(double confidence, double degrees) {
  return student_t_quantile(0.5 + confidence / 2, degrees);
}

std::vector<double> differences(std::span<const double> base, std::span<const double> changed,
                                double factor) {
  ROUTESIM_CHECK(base.size() == changed.size(), "paired values come in pairs");
  std::vector<double> out(base.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = changed[i] - factor * base[i];
  return out;
}

/// Sum of (a - mean(a)) (b - mean(b)) / (n - 1); n >= 2.
double covariance(std::span<const double> a, std::span<const double> b) {
  const double centre_a = mean(a);
  const double centre_b = mean(b);
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - centre_a) * (b[i] - centre_b);
  return sum / static_cast<double>(a.size() - 1);
}

}  // namespace

double student_t_quantile(double p, double degrees) {
  ROUTESIM_CHECK(p > 0 && p < 1 && degrees > 0, "quantile of Student's t out of range");
  return boost::math::quantile(boost::math::students_t_distribution<double, Policy>(degrees), p);
}

double mean(std::span<const double> values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double sample_sd(std::span<const double> values) {
  return values.size() < 2 ? 0 : std::sqrt(covariance(values, values));
}

Estimate estimate(std::span<const double> values, double confidence) {
  Estimate e{.n = values.size(), .mean = mean(values), .sd = sample_sd(values)};
  const auto n = static_cast<double>(e.n);
  e.half_width = e.n < 2 ? kUnbounded : t_factor(confidence, n - 1) * e.sd / std::sqrt(n);
  return e;
}

Estimate paired_difference(std::span<const double> base, std::span<const double> changed,
                           double factor, double confidence) {
  return estimate(differences(base, changed, factor), confidence);
}

Estimate independent_difference(std::span<const double> base, std::span<const double> changed,
                                double factor, double confidence) {
  Estimate e{.n = std::min(base.size(), changed.size()),
             .mean = mean(changed) - factor * mean(base),
             .half_width = kUnbounded};
  if (e.n < 2) return e;
  const auto n = static_cast<double>(base.size());
  const auto m = static_cast<double>(changed.size());
  const double a = factor * factor * covariance(base, base) / n;
  const double b = covariance(changed, changed) / m;
  e.sd = std::sqrt(a + b);
  // Welch-Satterthwaite; without any spread there is nothing to be uncertain about.
  const double degrees = (a + b) * (a + b) / (a * a / (n - 1) + b * b / (m - 1));
  e.half_width = a + b > 0 ? t_factor(confidence, degrees) * e.sd : 0;
  return e;
}

std::optional<Interval> paired_ratio(std::span<const double> base, std::span<const double> changed,
                                     double confidence) {
  ROUTESIM_CHECK(base.size() == changed.size(), "paired values come in pairs");
  if (base.size() < 2) return std::nullopt;
  const auto n = static_cast<double>(base.size());
  const double x = mean(base);
  const double y = mean(changed);
  const double t = t_factor(confidence, n - 1);
  const double scale = t * t / n;
  // (y - r x)^2 <= t^2/n (Syy - 2 r Sxy + r^2 Sxx), a quadratic in r.
  const double a = x * x - scale * covariance(base, base);
  const double b = x * y - scale * covariance(base, changed);
  const double c = y * y - scale * covariance(changed, changed);
  if (!(a > 0)) return std::nullopt;
  const double root = std::sqrt(std::max(0.0, b * b - a * c));
  return Interval{.low = (b - root) / a, .high = (b + root) / a};
}

std::optional<RankInterval> quantile_ranks(std::size_t n, double q, double confidence) {
  ROUTESIM_CHECK(q > 0 && q < 1, "the quantile of a rank interval is inside (0, 1)");
  if (n < 2) return std::nullopt;
  // The interval from rank l to rank u (from 0) holds the quantile when more than l and at most u
  // of the values lie below it: P(l < B <= u) with B ~ Binomial(n, q).
  const boost::math::binomial_distribution<double, Policy> below(static_cast<double>(n), q);
  const auto coverage = [&](std::size_t low, std::size_t high) {
    return boost::math::cdf(below, static_cast<double>(high)) -
           boost::math::cdf(below, static_cast<double>(low));
  };
  const auto centre = static_cast<std::size_t>(q * static_cast<double>(n - 1));
  RankInterval r{.low = centre, .high = std::min(centre + 1, n - 1)};
  while ((r.coverage = coverage(r.low, r.high)) < confidence) {
    const double left = r.low > 0 ? boost::math::pdf(below, static_cast<double>(r.low)) : -1;
    const double right =
        r.high + 1 < n ? boost::math::pdf(below, static_cast<double>(r.high + 1)) : -1;
    if (left < 0 && right < 0) return std::nullopt;
    // The likelier side first: that is what makes the pair short.
    if (left >= right) {
      --r.low;
    } else {
      ++r.high;
    }
  }
  return r;
}

Verdict verdict(const Estimate& difference, Direction direction) {
  if (difference.n < 2 || difference.holds(0)) return Verdict::kNotDistinguishable;
  const bool larger = difference.mean > 0;
  return larger == (direction == Direction::kLargerIsBetter) ? Verdict::kBetter : Verdict::kWorse;
}

std::string_view verdict_text(Verdict v) {
  switch (v) {
    case Verdict::kBetter:
      return "better";
    case Verdict::kWorse:
      return "worse";
    case Verdict::kNotDistinguishable:
      break;
  }
  return "not distinguishable";
}

}  // namespace routesim::sim
