#include "tools/study/search.h"

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

std::optional<std::int64_t> UpwardSearch::next() const {
  if (answer_) return std::nullopt;
  if (halving_) return halving_->next();
  if (!singles_.empty()) return singles_.back();
  return next_;
}

void UpwardSearch::tell(bool holds, double shortfall) {
  const std::optional<std::int64_t> probed = next();
  if (!probed) return;
  if (halving_) {
    halving_->tell(holds);
    answer_ = halving_->answer();
  } else if (next_) {
    tell_doubling(holds, shortfall);
  } else {
    singles_.pop_back();
    if (holds) answer_ = probed;
  }
}

void UpwardSearch::tell_doubling(bool holds, double shortfall) {
  const std::int64_t probed = *next_;
  if (holds) {
    next_.reset();
    halving_.emplace(misses_.empty() ? probed : misses_.back().n + 1, probed);
    halving_->tell(true);  // Its upper end was just seen to hold.
    answer_ = halving_->answer();
    return;
  }
  misses_.push_back({.n = probed, .shortfall = shortfall});
  if (probed < high_) {
    next_ = probed > high_ / 2 ? high_ : 2 * probed;
  } else {
    next_.reset();
    list_around_nearest();
  }
}

void UpwardSearch::list_around_nearest() {
  std::size_t nearest = 0;
  for (std::size_t i = 1; i < misses_.size(); ++i)
    if (misses_[i].shortfall <= misses_[nearest].shortfall) nearest = i;
  if (nearest + 1 == misses_.size()) return;  // More helped up to the end.
  const std::int64_t from = misses_[nearest == 0 ? 0 : nearest - 1].n;
  for (std::int64_t n = misses_[nearest + 1].n - 1; n > from; --n)
    if (n != misses_[nearest].n) singles_.push_back(n);
  tried_singly_ = !singles_.empty();
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
