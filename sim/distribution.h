// Samples of one metric: exact while they are few, a log-linear histogram when they are many.
#pragma once

#include <cstdint>
#include <vector>

namespace routesim::sim {

/// A multiset of non-negative numbers with mean, extremes and percentiles. Up to `exact_limit`
/// single samples are kept as they are and percentiles are exact (linear interpolation on sorted
/// data, as numpy and inference-perf do); beyond it, or for weighted runs, values fall into
/// histogram buckets of 1/512 relative width, interpolated inside a bucket. Mean, min, max and
/// count are always exact up to rounding.
class Distribution {
 public:
  explicit Distribution(std::size_t exact_limit = 262'144) : exact_limit_(exact_limit) {}

  void add(double value);
  /// `count` equal samples, counted in the histogram.
  void add_weighted(double value, std::int64_t count);
  /// For i in [0, steps): `weight` samples of value (first + i * increment). Increment >= 0.
  void add_progression(double first, double increment, std::int64_t steps, std::int64_t weight);
  void merge(const Distribution& other);

  std::int64_t count() const { return count_; }
  double sum() const { return sum_; }
  double mean() const { return count_ > 0 ? sum_ / static_cast<double>(count_) : 0; }
  double min() const { return count_ > 0 ? min_ : 0; }
  double max() const { return count_ > 0 ? max_ : 0; }
  /// q in [0, 100]. 0 when empty.
  double percentile(double q) const;
  /// Population standard deviation of the samples (from running sums).
  double stddev() const;

 private:
  void count_in_bucket(double value, std::int64_t count);
  void spill();
  double bucket_percentile(double rank) const;

  std::size_t exact_limit_;
  std::int64_t count_ = 0;
  double sum_ = 0;
  double squares_ = 0;
  double min_ = 0;
  double max_ = 0;
  mutable bool sorted_ = true;
  mutable std::vector<double> exact_;
  std::vector<std::int64_t> buckets_;  ///< Non-empty once spilled or weighted.
  std::size_t first_bucket_ = 0;
};

}  // namespace routesim::sim
