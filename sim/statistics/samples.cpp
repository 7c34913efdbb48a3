#include "sim/statistics/samples.h"

#include <algorithm>
#include <cmath>

namespace routesim::sim {

void Samples::add(double value) {
  const double scaled = value * 1e9;
  add_nano(scaled >= 9.2e18 ? INT64_MAX : static_cast<std::int64_t>(scaled < 0 ? 0 : scaled + 0.5));
}

void Samples::add_nanos(std::span<const std::int64_t> nanos, std::int64_t count) {
  if (count <= 0 || nanos.empty()) return;
  if (!exact_.empty()) spill();
  std::int64_t sum = 0, least = nanos.front(), most = nanos.front();
  // Neighbours are mostly in one bucket, that is, equal but for their last `shift` bits.
  int shift = 0;
  std::int64_t top = -1, here = 0;
  std::size_t bucket = 0;
  for (const std::int64_t nano : nanos) {
    sum += nano;
    least = std::min(least, nano);
    most = std::max(most, nano);
    if (nano >> shift != top) {
      if (here > 0) buckets_[bucket] += here * count;
      here = 0;
      bucket = bucket_of(nano);
      if (bucket >= buckets_.size()) buckets_.resize(bucket + 512);
      shift = nano < 512 ? 0 : 54 - std::countl_zero(static_cast<std::uint64_t>(nano));
      top = nano >> shift;
    }
    ++here;
  }
  buckets_[bucket] += here * count;
  min_ = std::min(min_, least);
  max_ = std::max(max_, most);
  count_ += count * std::ssize(nanos);
  sum_ += static_cast<Wide>(sum) * count;
}

void Samples::spill() {
  std::vector<std::int64_t> values;
  values.swap(exact_);
  sorted_ = true;
  for (const std::int64_t nano : values) {
    const std::size_t bucket = bucket_of(nano);
    if (bucket >= buckets_.size()) buckets_.resize(bucket + 512);
    ++buckets_[bucket];
  }
}

void Samples::merge(const Samples& other) {
  if (other.count_ == 0) return;
  if (buckets_.empty() && other.buckets_.empty() &&
      exact_.size() + other.exact_.size() <= exact_limit_) {
    exact_.insert(exact_.end(), other.exact_.begin(), other.exact_.end());
    sorted_ = false;
  } else {
    if (!exact_.empty()) spill();
    if (buckets_.size() < other.buckets_.size()) buckets_.resize(other.buckets_.size());
    for (std::size_t i = 0; i < other.buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
    for (const std::int64_t nano : other.exact_) {
      const std::size_t bucket = bucket_of(nano);
      if (bucket >= buckets_.size()) buckets_.resize(bucket + 512);
      ++buckets_[bucket];
    }
  }
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  count_ += other.count_;
  sum_ += other.sum_;
}

double Samples::bucket_low(std::size_t bucket) {
  if (bucket < 512) return static_cast<double>(bucket);
  const auto exponent = static_cast<int>(bucket / 512) + 8;
  const auto sub = static_cast<double>(bucket % 512);
  return std::ldexp(512 + sub, exponent - 9);
}

double Samples::histogram_percentile(double rank) const {
  double below = 0;
  for (std::size_t i = bucket_of(min_); i < buckets_.size(); ++i) {
    const auto here = static_cast<double>(buckets_[i]);
    if (here > 0 && rank < below + here) {
      const double low = std::max(bucket_low(i), static_cast<double>(min_));
      const double high = std::min(bucket_low(i + 1), static_cast<double>(max_));
      // Past the last sample of the bucket the rank is on its way to the next bucket: higher ranks
      // must not get lower values there.
      return low + (high - low) * std::min(1.0, (rank - below + 0.5) / here);
    }
    below += here;
  }
  return static_cast<double>(max_);
}

double Samples::percentile(double q) const {
  if (count_ == 0) return 0;
  const double rank = q / 100 * static_cast<double>(count_ - 1);
  if (!buckets_.empty()) {
    const double nano = histogram_percentile(rank);
    return std::clamp(nano, static_cast<double>(min_), static_cast<double>(max_)) * 1e-9;
  }
  if (!sorted_) {
    std::sort(exact_.begin(), exact_.end());
    sorted_ = true;
  }
  const auto low = static_cast<std::size_t>(rank);
  const std::size_t high = std::min(low + 1, exact_.size() - 1);
  const double fraction = rank - static_cast<double>(low);
  const auto a = static_cast<double>(exact_[low]);
  const auto b = static_cast<double>(exact_[high]);
  return (a + (b - a) * fraction) * 1e-9;
}

double Samples::stddev() const {
  if (count_ == 0) return 0;
  const double centre = mean() * 1e9;
  double squares = 0;
  for (const std::int64_t nano : exact_) {
    const double d = static_cast<double>(nano) - centre;
    squares += d * d;
  }
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    if (buckets_[i] == 0) continue;
    const double d = (bucket_low(i) + bucket_low(i + 1)) / 2 - centre;
    squares += static_cast<double>(buckets_[i]) * d * d;
  }
  return std::sqrt(squares / static_cast<double>(count_)) * 1e-9;
}

}  // namespace routesim::sim
