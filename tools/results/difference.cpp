#include "tools/results/difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tools/results/text_table.h"

namespace routesim::tools {

Difference difference_of(std::span<const double> base, std::span<const double> changed,
                         const MetricName& metric, bool paired) {
  Difference d{.base = sim::estimate(base),
               .changed = sim::estimate(changed),
               .difference = paired ? sim::paired_difference(base, changed)
                                    : sim::independent_difference(base, changed),
               .paired = paired,
               .percent = std::nullopt,
               .percent_interval = std::nullopt};
  d.verdict = sim::verdict(d.difference, metric.direction);
  if (d.base.mean == 0) return d;
  d.percent = 100 * (d.changed.mean / d.base.mean - 1);
  if (!paired) return d;
  if (const std::optional<sim::Interval> ratio = sim::paired_ratio(base, changed))
    d.percent_interval = {.low = 100 * (ratio->low - 1), .high = 100 * (ratio->high - 1)};
  return d;
}

std::string verdict_text(const Difference& d, const MetricName& metric) {
  if (d.difference.n < 2) return d.difference.mean == 0 ? "equal" : "no interval";
  if (d.verdict == sim::Verdict::kNotDistinguishable || metric.has_direction)
    return std::string(sim::verdict_text(d.verdict));
  return d.difference.mean > 0 ? "larger" : "smaller";
}

namespace {

/// Decimals that leave `digits` digits that count.
int decimals_for(double v, int digits) {
  if (v == 0 || !std::isfinite(v)) return 0;
  return std::clamp(digits - 1 - static_cast<int>(std::floor(std::log10(std::abs(v)))), 0, 9);
}

std::string signed_number(double v) {
  return fmt::format("{}{}", v < 0 ? "" : "+", fixed_text(v, 1));
}

}  // namespace

std::string short_number(double v) { return fixed_text(v, decimals_for(v, 4)); }

std::string estimate_text(const sim::Estimate& e) {
  if (!std::isfinite(e.half_width)) return short_number(e.mean);
  if (e.half_width == 0) return short_number(e.mean) + " ± 0";
  const int decimals = decimals_for(e.half_width, 2);
  return fmt::format("{} ± {}", fixed_text(e.mean, decimals), fixed_text(e.half_width, decimals));
}

std::string percent_text(const Difference& d) {
  if (!d.percent) return "-";
  const std::string change = signed_number(*d.percent);
  if (!d.percent_interval) return change;
  return fmt::format("{} [{}, {}]", change, signed_number(d.percent_interval->low),
                     signed_number(d.percent_interval->high));
}

Decision decide_below_zero(const sim::Estimate& excess, bool or_equal) {
  const bool has_interval = std::isfinite(excess.half_width);
  const double low = has_interval ? excess.low() : excess.mean;
  const double high = has_interval ? excess.high() : excess.mean;
  if (or_equal ? high <= 0 : high < 0) return Decision::kHolds;
  if (or_equal ? low > 0 : low >= 0) return Decision::kFails;
  return Decision::kUndecided;
}

std::string decision_text(Decision d) { return std::string(enum_name(d)); }

Decision overall(const std::vector<Judgement>& judgements) {
  Decision worst = Decision::kHolds;
  for (const Judgement& j : judgements) {
    if (j.decision == Decision::kFails) return j.decision;
    if (j.decision == Decision::kUndecided) worst = j.decision;
  }
  return worst;
}

}  // namespace routesim::tools
