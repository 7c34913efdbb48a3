// Samples of one metric: exact while they are few, a log-linear histogram when they are many.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace routesim::sim {

/// A multiset of non-negative numbers (seconds, or tokens) with mean, extremes and percentiles. Up
/// to `exact_limit` single samples are kept as they are, and percentiles are exact (linear
/// interpolation on sorted data, as numpy and inference-perf do). Beyond it, and for weighted
/// samples, values are counted in buckets of 1/512 relative width at a resolution of 1e-9, and
/// percentiles are interpolated inside a bucket. Sums are integers, so the order of additions
/// cannot change a result.
class Samples {
 public:
  static constexpr std::size_t kExact = 262'144;
  explicit Samples(std::size_t exact_limit = kExact) : exact_limit_(exact_limit) {}

  void add(double value);
  /// One sample of `nano` * 1e-9, kept as it is while samples are.
  void add_nano(std::int64_t nano) {
    if (!buckets_.empty()) return add_nano(nano, 1);
    // A value that is not below the largest so far keeps the samples sorted.
    sorted_ = sorted_ && nano >= max_;
    note(nano, 1);
    exact_.push_back(nano);
    if (exact_.size() > exact_limit_) spill();
  }
  /// `count` samples of `nano` * 1e-9: a step's token gaps in one call.
  void add_nano(std::int64_t nano, std::int64_t count) {
    if (count <= 0) return;
    if (!exact_.empty()) spill();
    note(nano, count);
    const std::size_t bucket = bucket_of(nano);
    if (bucket >= buckets_.size()) buckets_.resize(bucket + 512);
    buckets_[bucket] += count;
  }
  /// `count` samples of each of `nanos`: the gaps of several steps.
  void add_nanos(std::span<const std::int64_t> nanos, std::int64_t count);
  void merge(const Samples& other);

  std::int64_t count() const { return count_; }
  __extension__ using Wide = __int128;
  /// Exactly, in units of 1e-9.
  Wide sum_nano() const { return sum_; }
  double sum() const { return static_cast<double>(sum_) * 1e-9; }
  double mean() const { return count_ > 0 ? sum() / static_cast<double>(count_) : 0; }
  double min() const { return count_ > 0 ? static_cast<double>(min_) * 1e-9 : 0; }
  double max() const { return count_ > 0 ? static_cast<double>(max_) * 1e-9 : 0; }
  /// q in [0, 100]; 0 when empty.
  double percentile(double q) const;
  /// Population standard deviation; in the histogram, of the bucket centres.
  double stddev() const;

 private:
  static std::size_t bucket_of(std::int64_t nano) {
    if (nano < 512) return static_cast<std::size_t>(nano < 0 ? 0 : nano);
    const int exponent = 63 - std::countl_zero(static_cast<std::uint64_t>(nano));
    const auto sub = static_cast<std::size_t>((nano >> (exponent - 9)) & 511);
    return static_cast<std::size_t>(exponent - 8) * 512 + sub;
  }
  static double bucket_low(std::size_t bucket);
  void note(std::int64_t nano, std::int64_t count) {
    min_ = std::min(min_, nano);
    max_ = std::max(max_, nano);
    count_ += count;
    sum_ += static_cast<Wide>(nano) * count;
  }
  void spill();
  double histogram_percentile(double rank) const;

  std::size_t exact_limit_;
  std::int64_t count_ = 0;
  Wide sum_ = 0;
  std::int64_t min_ = INT64_MAX;  ///< Of no samples, like the largest.
  std::int64_t max_ = 0;
  mutable bool sorted_ = true;
  mutable std::vector<std::int64_t> exact_;  ///< Nano-units; empty once the histogram is used.
  std::vector<std::int64_t> buckets_;
};

}  // namespace routesim::sim
