#include "workloads/load_stages.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

#include "base/check.h"

namespace routesim::workloads {
namespace {

constexpr double kCenturySeconds = 100.0 * 365 * 86'400;

/// n exponential gaps scaled to fill `span` seconds. The sum must be known before the first gap is
/// handed out: few gaps are kept, many are drawn twice, so memory stays flat. Both ways give the
/// same numbers, and the running fraction of the sum is exactly 1 at the last gap, because the same
/// gaps are added in the same order.
class ScaledGaps {
 public:
  ScaledGaps(double span_s, RandomStream random) : span_(span_s), random_(random) {}

  void start(std::int64_t n) {
    left_ = n;
    sum_ = total_ = 0;
    position_ = 0;
    gaps_.clear();
    if (n > kKept) {
      RandomStream rehearsal = random_;
      for (std::int64_t i = 0; i < n; ++i) total_ += rehearsal.exponential(1.0);
      return;
    }
    for (std::int64_t i = 0; i < n; ++i) {
      gaps_.push_back(random_.exponential(1.0));
      total_ += gaps_.back();
    }
  }
  bool empty() const { return left_ == 0; }
  /// Seconds from the start of the span.
  double next() {
    --left_;
    sum_ += gaps_.empty() ? random_.exponential(1.0) : gaps_[position_++];
    return span_ * (sum_ / total_);
  }
  /// The stream behind the last gap, once empty().
  RandomStream& random() { return random_; }

 private:
  static constexpr std::int64_t kKept = 1 << 16;
  double span_;
  RandomStream random_;
  std::int64_t left_ = 0;
  double total_ = 0;
  double sum_ = 0;
  std::size_t position_ = 0;
  std::vector<double> gaps_;
};

class VllmArrivalStream final : public ArrivalStream {
 public:
  VllmArrivalStream(const VllmArrivals& options, RandomStream random)
      : options_(options), random_(random) {
    if (options_.legacy || options_.ramp_up != RampUp::kNone) return;
    RandomStream rehearsal = random_;
    double total = 0;
    for (std::int64_t j = 0; j < options_.requests; ++j) total += gap(rehearsal, j);
    const double target = static_cast<double>(options_.requests) / options_.rate;
    if (total > 0) scale_ = target / total;
    total_ = total;
    target_ = target;
  }
  bool next(Duration& due) override {
    if (index_ == options_.requests) return false;
    if (options_.legacy) {
      // The legacy generator yields the request first and sleeps afterwards.
      if (index_ > 0) sum_ += gap(random_, index_ - 1);
    } else {
      sum_ += gap(random_, index_);
    }
    ++index_;
    const bool last_exact = index_ == options_.requests && total_ > 0;
    due = within_a_century(last_exact ? target_ : sum_ * scale_);
    return true;
  }

 private:
  double gap(RandomStream& random, std::int64_t j) const {
    const double rate = ramp_rate(options_, j);
    if (std::isinf(rate)) return 0;
    if (std::isinf(options_.burstiness)) return 1 / rate;
    if (options_.burstiness == 1) return random.exponential(1 / rate);
    return random.gamma(options_.burstiness, 1 / (rate * options_.burstiness));
  }

  VllmArrivals options_;
  RandomStream random_;
  std::int64_t index_ = 0;
  double sum_ = 0;
  double scale_ = 1;
  double total_ = 0;
  double target_ = 0;
};

class CallbackArrivals final : public ArrivalStream {
 public:
  explicit CallbackArrivals(std::function<bool(Duration&)> next) : next_(std::move(next)) {}
  bool next(Duration& due) override { return next_(due); }

 private:
  std::function<bool(Duration&)> next_;
};

}  // namespace

Duration within_a_century(double seconds) {
  return Duration::from_seconds(std::min(seconds, kCenturySeconds));
}

std::string short_number(double value) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.6g", value);
  return digits;
}

std::int64_t requests_of_stage(double rate, double duration_s) {
  return static_cast<std::int64_t>(rate * duration_s);
}

std::unique_ptr<ArrivalStream> constant_arrivals(double rate, double duration_s,
                                                 RandomStream random) {
  // Gaps are not drawn before: a load is also made to be looked at, and has stages that are never
  // reached.
  return callback_arrivals(
      [gaps = ScaledGaps(duration_s, random),
       unstarted = requests_of_stage(rate, duration_s)](Duration& due) mutable {
        if (unstarted > 0) gaps.start(std::exchange(unstarted, 0));
        if (gaps.empty()) return false;
        due = within_a_century(gaps.next());
        return true;
      });
}

std::unique_ptr<ArrivalStream> poisson_arrivals(double rate, double duration_s,
                                                RandomStream random) {
  ROUTESIM_CHECK(rate > 0 && rate <= 1e7, "poisson arrivals need a rate in (0, 1e7]");
  return callback_arrivals([gaps = ScaledGaps(1, random), second = std::int64_t{-1}, rate,
                            left = requests_of_stage(rate, duration_s)](Duration& due) mutable {
    if (left == 0) return false;
    --left;
    while (gaps.empty()) {
      ++second;
      gaps.start(gaps.random().poisson(rate));
    }
    due = Duration::seconds(second) + within_a_century(gaps.next());
    return true;
  });
}

std::unique_ptr<ArrivalStream> exponential_arrivals(double rate, std::int64_t requests,
                                                    RandomStream random) {
  ROUTESIM_CHECK(rate > 0, "exponential arrivals need a positive rate");
  if (std::isinf(rate)) return immediate_arrivals(requests);
  // Whole nanoseconds are added, so that a long stream does not lose precision.
  return callback_arrivals([=, at = Duration::zero(), left = requests](Duration& due) mutable {
    if (left-- <= 0) return false;
    const double gap = std::min(random.exponential(1e9 / rate), kCenturySeconds * 1e9);
    at += Duration::nanoseconds(static_cast<std::int64_t>(gap + 0.5));
    due = at = std::min(at, within_a_century(kCenturySeconds));
    return true;
  });
}

std::unique_ptr<ArrivalStream> immediate_arrivals(std::int64_t requests) {
  return callback_arrivals([left = requests](Duration& due) mutable {
    due = Duration::zero();
    return left-- > 0;
  });
}

double ramp_rate(const VllmArrivals& options, std::int64_t j) {
  if (options.ramp_up == RampUp::kNone) return options.rate;
  const std::int64_t last = std::max<std::int64_t>(options.requests - 1, 1);
  const double progress = static_cast<double>(j) / static_cast<double>(last);
  if (options.ramp_up == RampUp::kLinear)
    return options.ramp_start + (options.ramp_end - options.ramp_start) * progress;
  return options.ramp_start * std::pow(options.ramp_end / options.ramp_start, progress);
}

std::unique_ptr<ArrivalStream> vllm_arrivals(const VllmArrivals& options, RandomStream random) {
  ROUTESIM_CHECK(options.ramp_up != RampUp::kNone || options.rate > 0, "rate must be positive");
  if (options.ramp_up == RampUp::kNone && std::isinf(options.rate))
    return immediate_arrivals(options.requests);
  return std::make_unique<VllmArrivalStream>(options, random);
}

std::unique_ptr<ArrivalStream> callback_arrivals(std::function<bool(Duration&)> next) {
  return std::make_unique<CallbackArrivals>(std::move(next));
}

}  // namespace routesim::workloads
