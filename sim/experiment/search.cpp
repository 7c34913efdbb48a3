#include "sim/experiment/search.h"

#include <algorithm>
#include <cmath>

namespace routesim::sim {

std::optional<std::int64_t> Bisection::next() const {
  if (none_) return std::nullopt;
  if (!asked_high_) return high_;
  if (low_ == high_) return std::nullopt;
  return low_ + (high_ - low_) / 2;
}

void Bisection::tell(bool holds) {
  const std::int64_t probed = next().value_or(high_);
  if (!asked_high_) {
    asked_high_ = true;
    none_ = !holds;
  } else if (holds) {
    high_ = probed;
  } else {
    low_ = probed + 1;
  }
}

std::optional<std::int64_t> Bisection::answer() const {
  if (none_ || next()) return std::nullopt;
  return high_;
}

std::optional<double> RateSearch::next() const {
  if (!fails_) {
    if (holds_ >= limit_) return std::nullopt;
    return std::min(holds_ * kGrowth, limit_);
  }
  if (*fails_ / holds_ <= 1 + tolerance_) return std::nullopt;
  return std::sqrt(holds_ * *fails_);
}

void RateSearch::tell(bool holds) {
  const std::optional<double> probed = next();
  if (!probed) return;
  if (holds) {
    holds_ = *probed;
  } else {
    fails_ = *probed;
  }
}

}  // namespace routesim::sim
