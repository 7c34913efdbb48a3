#include "workloads/sweep.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace routesim::workloads {
namespace {

constexpr Duration kSampleEvery = Duration::milliseconds(500);
constexpr Duration kPoll = Duration::seconds(1);
/// The tool counts the timeout from the origin of the due times, a second after the start.
constexpr double kLeadSeconds = 1;

double to_cents(double rate) { return std::nearbyint(rate * 100) / 100; }

}  // namespace

void DrainProbe::see(Duration at, std::int64_t in_flight) {
  sample_before(at + Duration::nanoseconds(1));
  now_ = in_flight;
}

std::vector<double> DrainProbe::drain_rates(Duration end) {
  sample_before(end);
  return std::move(rates_);
}

void DrainProbe::sample_before(Duration end) {
  end = std::min(end, until_);
  if (next_ >= end) return;
  // Only the first of several samples in a row can differ from the one before it.
  if (now_ < last_) rates_.push_back(static_cast<double>(last_ - now_) / kSampleEvery.to_seconds());
  last_ = now_;
  next_ =
      next_ + kSampleEvery * ((end.ns() - next_.ns() + kSampleEvery.ns() - 1) / kSampleEvery.ns());
}

double percentile_of(std::vector<double> values, double percent) {
  ROUTESIM_CHECK(!values.empty(), "no values have no percentile");
  std::sort(values.begin(), values.end());
  const double place = percent / 100 * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  if (below + 1 >= values.size()) return values.back();
  const double step = values[below + 1] - values[below];
  const double part = place - static_cast<double>(below);
  // From the nearer of the two, as numpy does: the last digit depends on it.
  return part < 0.5 ? values[below] + step * part : values[below + 1] - step * (1 - part);
}

std::vector<double> sweep_rates(RateSpacing spacing, double saturation, std::int64_t stages) {
  const auto last = static_cast<double>(stages - 1);
  std::vector<double> rates;
  for (std::int64_t i = 0; i < stages; ++i) {
    const double part = stages > 1 ? static_cast<double>(i) / last : 0;
    if (spacing == RateSpacing::kLinear) {
      rates.push_back(
          to_cents(i > 0 && i + 1 == stages ? saturation : 1 + (saturation - 1) * part));
      continue;
    }
    const bool at_end = stages > 1 && i + 1 == stages;
    const double from_top = i == 0   ? saturation
                            : at_end ? 1
                                     : std::pow(10, std::log10(saturation) * (1 - part));
    rates.push_back(to_cents(1 + saturation - from_top));
  }
  return rates;
}

RateSweep::RateSweep(SweepSettings settings)
    : settings_(std::move(settings)),
      limit_(Duration::seconds(
          static_cast<std::int64_t>(std::ceil(kLeadSeconds + settings_.timeout_s)))),
      probe_(Duration::from_seconds(settings_.timeout_s)) {
  ROUTESIM_CHECK(settings_.stages >= 1 && settings_.arrivals, "a sweep has stages");
}

Duration RateSweep::probe_end(Duration last) const {
  if (last >= limit_) last = std::max(last, limit_ + kPoll);
  return kPoll * ((last.ns() + kPoll.ns() - 1) / kPoll.ns());
}

bool RateSweep::finish_probe(Duration end) {
  const std::vector<double> rates = probe_.drain_rates(end);
  if (rates.size() < 2) {
    note_ = "load.sweep: fewer requests were under way at the end of " +
            std::to_string(rates.size()) +
            " of the probe's half seconds than at its start, and at least 2 must tell how fast the "
            "servers drain: no stage was run; raise num_requests or timeout";
    return false;
  }
  const double saturation = percentile_of(rates, settings_.saturation_percentile);
  rates_ = sweep_rates(settings_.spacing, saturation, settings_.stages);
  note_ = "load.sweep: its probe drained at up to " + short_number(saturation) +
          " requests/s (percentile " + short_number(settings_.saturation_percentile) + " of " +
          std::to_string(rates.size()) + " half seconds), and the stages' rates follow from that";
  if (*std::min_element(rates_.begin(), rates_.end()) > 0) return true;
  note_ += "; one of them is 0: no stage was run";
  return false;
}

std::unique_ptr<ArrivalStream> RateSweep::start_stage(std::size_t stage, StageInfo& info) const {
  const double rate = rates_.at(stage - 1);
  info.requested_rate = rate;
  info.requests = requests_of_stage(rate, info.duration_s);
  return settings_.arrivals(stage, rate);
}

}  // namespace routesim::workloads
