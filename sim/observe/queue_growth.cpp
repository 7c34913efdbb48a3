#include "sim/observe/queue_growth.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace routesim::sim {

namespace {

/// Standard errors taken off: a walk without a drift passes them one time in fifteen, a queue below
/// its critical load hardly ever.
constexpr double kErrors = 1.5;

}  // namespace

void QueueGrowth::Series::add(Duration at, std::int64_t value) {
  const std::int64_t at_ns = std::max<std::int64_t>(0, at.ns());
  while (at_ns / width_ns_ >= static_cast<std::int64_t>(kBins)) {
    width_ns_ *= 2;
    for (std::size_t i = 0; i < bins_.size(); ++i) {
      const Bin bin = bins_[i];
      bins_[i] = {};
      Bin& merged = bins_[i / 2];
      merged.requests += bin.requests;
      merged.sum += bin.sum;
    }
    bins_.resize((bins_.size() + 1) / 2);
  }
  const auto index = static_cast<std::size_t>(at_ns / width_ns_);
  if (index >= bins_.size()) bins_.resize(index + 1);
  ++bins_[index].requests;
  bins_[index].sum += value;
}

QueueGrowth::Mean QueueGrowth::Series::between(double from_s, double to_s) const {
  std::int64_t requests = 0, sum = 0;
  for (std::size_t i = 0; i < bins_.size(); ++i) {
    const double begin = static_cast<double>(static_cast<std::int64_t>(i) * width_ns_) * 1e-9;
    if (begin < from_s || begin >= to_s) continue;
    requests += bins_[i].requests;
    sum += bins_[i].sum;
  }
  const auto n = static_cast<double>(requests);
  return {.value = requests > 0 ? static_cast<double>(sum) / n : 0, .requests = n};
}

double QueueGrowth::Series::error(double third_s) const {
  constexpr int kParts = 5;  // A third has few, so that the noise of single requests averages out.
  std::vector<double> means;
  for (int i = 0; i < 2 * kParts; ++i) {
    const double from = third_s * (1 + static_cast<double>(i) / kParts);
    const double to =
        i + 1 == 2 * kParts ? 4 * third_s : third_s * (1 + static_cast<double>(i + 1) / kParts);
    if (const Mean part = between(from, to); part.requests > 0) means.push_back(part.value);
  }
  if (means.size() < kParts + 1) return std::numeric_limits<double>::infinity();
  const auto steps = static_cast<double>(means.size() - 1);
  const double drift = (means.back() - means.front()) / steps;
  double squares = 0;
  for (std::size_t i = 1; i < means.size(); ++i)
    squares += (means[i] - means[i - 1] - drift) * (means[i] - means[i - 1] - drift);
  // A walk that gains variance v per second moves the means of neighbouring spans of t seconds
  // apart by a variance of 2/3 v t: the parts tell v, and v tells the error of the thirds.
  return std::sqrt(kParts * squares / (steps - 1));
}

void QueueGrowth::on_sent(Duration since_first_send, std::int64_t in_flight) {
  in_flight_.add(since_first_send, in_flight);
}

void QueueGrowth::on_answered(Duration since_first_send, Duration ttft, Duration latency) {
  ttft_us_.add(since_first_send, ttft.ns() / 1000);
  latency_us_.add(since_first_send, latency.ns() / 1000);
}

double QueueGrowth::growth_of_ttft(double third_s, double errors) const {
  const Mean middle = ttft_us_.between(third_s, 2 * third_s);
  const Mean last = ttft_us_.between(2 * third_s, 4 * third_s);
  if (middle.requests < kFewest || last.requests < kFewest) return 0;
  return (last.value - middle.value + errors * ttft_us_.error(third_s)) * 1e-6 / third_s;
}

double QueueGrowth::growth_in_flight(double third_s, double errors) const {
  const Mean middle = in_flight_.between(third_s, 2 * third_s);
  const Mean last = in_flight_.between(2 * third_s, 4 * third_s);
  const Mean first_answers = latency_us_.between(0, third_s);
  if (middle.requests < kFewest || last.requests < kFewest || first_answers.requests == 0) return 0;
  const double answer = first_answers.value * 1e-6 / third_s;
  if (answer > 1) return 0;
  // Exponential answers of this mean still fill an empty fleet so much; no spread of lengths fills
  // it much longer.
  const double left = std::exp(-1 / answer);
  const double filling = answer * answer * left * (1 - left) * (1 - left);
  const double sent = (middle.requests + last.requests) / 2;
  const double grown = last.value - middle.value;
  // By Little's law the second is the growth of the latency: a rate that rises or falls within the
  // stage changes what is in flight, too.
  return std::min((grown + errors * in_flight_.error(third_s)) / sent,
                  last.value / last.requests - middle.value / middle.requests) -
         filling;
}

double QueueGrowth::per_second(double send_s) const {
  const double third = send_s / 3;
  if (third <= 0) return 0;
  const double most = std::max(growth_of_ttft(third, -kErrors), growth_in_flight(third, -kErrors));
  return std::isfinite(most) ? most : 0;
}

double QueueGrowth::most_per_second(double send_s) const {
  const double third = send_s / 3;
  if (third <= 0 || std::min(in_flight_.between(third, 2 * third).requests,
                             in_flight_.between(2 * third, 4 * third).requests) < kFewest)
    return std::numeric_limits<double>::infinity();
  return std::max(growth_of_ttft(third, kErrors), growth_in_flight(third, kErrors));
}

}  // namespace routesim::sim
