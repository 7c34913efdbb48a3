#include "sim/observe/queue_growth.h"

#include <algorithm>
#include <cmath>

namespace routesim::sim {

struct QueueGrowth::Mean {
  double seconds = 0;
  double squared_error = 0;  ///< Of the mean.
  std::int64_t requests = 0;
};

void QueueGrowth::add(Duration since_first_send, Duration ttft) {
  const std::int64_t at = std::max<std::int64_t>(0, since_first_send.ns());
  while (at / width_ns_ >= static_cast<std::int64_t>(kBins)) {
    width_ns_ *= 2;
    for (std::size_t i = 0; i < bins_.size(); ++i) {
      const Bin bin = bins_[i];
      bins_[i] = {};
      Bin& merged = bins_[i / 2];
      merged.requests += bin.requests;
      merged.sum_ns += bin.sum_ns;
      merged.squares += bin.squares;
    }
    bins_.resize((bins_.size() + 1) / 2);
  }
  const auto index = static_cast<std::size_t>(at / width_ns_);
  if (index >= bins_.size()) bins_.resize(index + 1);
  const std::int64_t micros = ttft.ns() / 1000;
  ++bins_[index].requests;
  bins_[index].sum_ns += ttft.ns();
  bins_[index].squares += static_cast<Wide>(micros) * micros;
}

QueueGrowth::Mean QueueGrowth::mean_between(double from_s, double to_s) const {
  Mean mean;
  Wide sum = 0, squares = 0;
  for (std::size_t i = 0; i < bins_.size(); ++i) {
    const double begin = static_cast<double>(static_cast<std::int64_t>(i) * width_ns_) * 1e-9;
    if (begin < from_s || begin >= to_s) continue;
    mean.requests += bins_[i].requests;
    sum += bins_[i].sum_ns;
    squares += bins_[i].squares;
  }
  if (mean.requests < 2) return mean;
  const auto n = static_cast<double>(mean.requests);
  mean.seconds = static_cast<double>(sum) * 1e-9 / n;
  const double variance = static_cast<double>(squares) * 1e-12 / n - mean.seconds * mean.seconds;
  mean.squared_error = std::max(0.0, variance) / (n - 1);
  return mean;
}

double QueueGrowth::per_second(double send_s) const {
  constexpr std::int64_t kFewest = 10;
  const double third = send_s / 3;
  if (third <= 0) return 0;
  const Mean middle = mean_between(third, 2 * third);
  const Mean last = mean_between(2 * third, 4 * third);
  if (middle.requests < kFewest || last.requests < kFewest) return 0;
  const double error = std::sqrt(middle.squared_error + last.squared_error);
  return (last.seconds - middle.seconds - 2 * error) / third;
}

}  // namespace routesim::sim
