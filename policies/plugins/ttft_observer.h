// latency-observer-producer: what each endpoint's times to first token were, and at which load.
// llm-d-router pull request 2371, head f60405d8 (August 2026, not merged), which calls the type
// latency-observer-producer-hub since 17 August:
// pkg/epp/framework/plugins/requestcontrol/dataproducer/latencyobserver.
#pragma once

#include <cmath>
#include <unordered_map>

#include "policies/build_context.h"
#include "policies/plugins/inflight_load.h"

namespace routesim::policies {

struct TtftObserverParameters {
  Duration interval = Duration::seconds(1);
  std::int64_t window_size = 5000;
  Duration max_age = Duration::seconds(180);
  std::int64_t max_requests = 100, min_requests = 10;
  std::int64_t low_percentile = 25, typical_percentile = 50;
  Duration bucket = Duration::seconds(60);
  std::int64_t bucket_history = 1000;
  std::string in_flight_producer;
};
inline void describe(Describer& d, TtftObserverParameters& p) {
  const DurationRange positive{.min = Duration::nanoseconds(1)};
  field(d, {"intervalDuration", "How often the snapshots are made anew; in steps of 50 ms."},
        p.interval, positive);
  field(d, {"windowSize", "Observations kept per endpoint."}, p.window_size, IntRange{1});
  field(d, {"maxObservationAge", "Age of the oldest observation of the short window."}, p.max_age,
        positive);
  field(d, {"maxRequests", "Observations of the short window, the newest; up to windowSize."},
        p.max_requests, IntRange{1});
  field(d, {"minRequests", "Observations from which an endpoint counts as known."}, p.min_requests,
        IntRange{1});
  field(d, {"lowPercentile", "TTFT percentile of the low-load point."}, p.low_percentile,
        IntRange{1, 99});
  field(d, {"typicalPercentile", "TTFT percentile of the typical-load point."},
        p.typical_percentile, IntRange{1, 99});
  field(d, {"bucketDuration", "Time of one entry of the floor's history."}, p.bucket, positive);
  field(d, {"bucketHistorySize", "Entries of the floor's history; the slowest go first."},
        p.bucket_history, IntRange{2});
  field(d, {"inFlightLoadProducerName", "Counter of the requests in flight."},
        p.in_flight_producer);
}

/// The published values of one endpoint. Times are seconds; the default is a cold endpoint.
struct TtftSnapshot {
  double floor = 0;         ///< 10th percentile over the buckets' own 10th percentiles.
  double window_floor = 0;  ///< 10th percentile of the short window; the floor until then.
  double low = 0, typical = 0;
  double in_flight_at_low = 0, in_flight_at_typical = 0;
  std::int64_t recent = 0;        ///< Observations of the short window.
  std::int64_t observations = 0;  ///< All there ever were.
  std::int64_t threshold = 0;     ///< minRequests.

  /// The TTFT of an idle endpoint; 0 = cold, too little was seen.
  double service_floor() const {
    if (observations < threshold) return 0;
    return floor > 0 ? floor : window_floor;
  }
};

struct TtftObservation {
  double ttft_s = 0;
  std::int64_t in_flight = 0;  ///< Requests of this router there when this one was sent.
  SimTime at;
};

/// Linear between neighbours; 0 when there are none. `value` is called with an index below `n`.
template <class F>
double interpolated_percentile(std::size_t n, double p, F value) {
  if (n == 0) return 0;
  const double place = p * static_cast<double>(n - 1);
  const auto low = static_cast<std::size_t>(place);
  if (low + 1 >= n) return value(low);
  return value(low) + (place - static_cast<double>(low)) * (value(low + 1) - value(low));
}

/// The observations of one endpoint.
class TtftHistory {
 public:
  void add(const TtftObservation& seen, std::int64_t capacity) {
    if (std::ssize(ring_) < capacity)
      ring_.push_back(seen);
    else
      ring_[next_] = seen;
    next_ = (next_ + 1) % static_cast<std::size_t>(capacity);
    ++observations_;
  }
  /// The observations of the last `age` that are the newest `most` (0 = all), fastest first.
  std::vector<TtftObservation> window(SimTime now, Duration age, std::int64_t most) const {
    std::vector<TtftObservation> out;
    for (std::size_t i = 0; i < ring_.size(); ++i) {
      const TtftObservation& seen = ring_[(next_ + 2 * ring_.size() - 1 - i) % ring_.size()];
      if (seen.at < now - age || (most > 0 && std::ssize(out) == most)) break;
      out.push_back(seen);
    }
    // Upstream leaves the order of equal times open.
    std::stable_sort(out.begin(), out.end(),
                     [](const auto& a, const auto& b) { return a.ttft_s < b.ttft_s; });
    return out;
  }
  TtftSnapshot snapshot(SimTime now, const TtftObserverParameters& p) const {
    TtftSnapshot s{.floor = floor_, .observations = observations_, .threshold = p.min_requests};
    const std::vector<TtftObservation> seen = window(now, p.max_age, p.max_requests);
    s.recent = std::ssize(seen);
    s.window_floor = percentile(seen, 0.10);
    s.low = percentile(seen, share(p.low_percentile));
    s.typical = percentile(seen, share(p.typical_percentile));
    s.in_flight_at_low = band(seen, share(p.low_percentile));
    s.in_flight_at_typical = band(seen, share(p.typical_percentile));
    return s;
  }
  /// Closes the bucket if its time is over. A full history loses its slowest, not its oldest.
  void roll(SimTime now, const TtftObserverParameters& p) {
    if (!bucket_start_) bucket_start_ = now;
    if (now - *bucket_start_ < p.bucket) return;
    bucket_start_ = now;
    const std::vector<TtftObservation> bucket = window(now, p.bucket, 0);
    if (bucket.empty()) return;
    const double p10 = percentile(bucket, 0.10);
    floors_.insert(std::upper_bound(floors_.begin(), floors_.end(), p10), p10);
    if (std::ssize(floors_) > p.bucket_history) floors_.pop_back();
    floor_ =
        interpolated_percentile(floors_.size(), 0.10, [&](std::size_t i) { return floors_[i]; });
  }

 private:
  static double share(std::int64_t percent) { return static_cast<double>(percent) / 100; }
  static double percentile(const std::vector<TtftObservation>& sorted, double p) {
    return interpolated_percentile(sorted.size(), p,
                                   [&](std::size_t i) { return sorted[i].ttft_s; });
  }
  /// Mean requests in flight of the observations within ten percentiles of `p`.
  static double band(const std::vector<TtftObservation>& sorted, double p) {
    if (sorted.empty()) return 0;
    const auto last = static_cast<double>(sorted.size() - 1);
    const auto from = static_cast<std::size_t>(std::max(0.0, (p - 0.10) * last));
    const auto to = static_cast<std::size_t>(std::min(last, (p + 0.10) * last));
    double sum = 0;
    for (std::size_t i = from; i <= to; ++i) sum += static_cast<double>(sorted[i].in_flight);
    return sum / static_cast<double>(to - from + 1);
  }

  std::vector<TtftObservation> ring_;  // Oldest at next_ once it is full.
  std::size_t next_ = 0;
  std::int64_t observations_ = 0;
  std::optional<SimTime> bucket_start_;
  std::vector<double> floors_;  // Ascending.
  double floor_ = 0;
};

/// Only a source of dataLayer is asked for new snapshots, at whole multiples of its interval from
/// the start; one that is not listed there publishes nothing, and every endpoint stays cold. An
/// observation at the very instant of a tick comes after it. Upstream forgets a request after five
/// minutes without a token; this one waits for it.
class TtftObserver final : public Producer {
 public:
  TtftObserver(const TtftObserverParameters& p, const PluginSpec& spec, BuildContext& context)
      : parameters_(p), load_(in_flight_load(context, p.in_flight_producer, spec)) {
    context.needs().in_flight = true;
    if (p.max_requests > p.window_size)
      context.error(spec, "maxRequests",
                    "must be at most windowSize (" + std::to_string(p.window_size) + ")");
    if (p.low_percentile >= p.typical_percentile)
      context.error(spec, "lowPercentile", "must be less than typicalPercentile");
    for (const DataSourceSpec& source : context.config().data_layer.sources)
      publishes_ = publishes_ || source.source.name == spec.name;
    // periodTicks in pkg/epp/datalayer/interval_dispatcher.go; the base tick is 50 ms.
    const auto ticks = std::lround(p.interval.to_seconds() / kBaseTick.to_seconds());
    interval_ = kBaseTick * std::max<std::int64_t>(1, ticks);
    next_ = SimTime::zero() + interval_;
  }
  const TtftSnapshot& snapshot(EndpointRow row) const {
    static const TtftSnapshot kCold;
    return row < seen_.size() ? seen_[row].published : kCold;
  }

  void produce(Cycle&) const override {}  // Snapshots are read as they are.
  Facts facts() const override { return Facts::kTtftPercentiles; }
  // By the time of on_routed the counters may have the request itself.
  void on_decided(Cycle&, Decision& decision) const override {
    const EndpointRow row = decision.primary.value();
    if (load_ != nullptr) decision.set_note(index(), 0, load_->requests(row));
  }
  void on_routed(const RequestView& request, const Decision& decision,
                 const EndpointTable& endpoints, SimTime now) override {
    if (seen_.size() < endpoints.rows()) seen_.resize(endpoints.rows(), idle_);
    // The first token of a whole answer comes with its last.
    if (!request.streaming) return;
    const EndpointRow row = decision.primary.value();
    live_[request.id] = {.row = row,
                         .generation = seen_[row].generation,
                         .in_flight = decision.note(index(), 0, 0),
                         .at = now};
  }
  void on_first_token(std::uint64_t request, SimTime now) override {
    advance(now);
    const auto it = live_.find(request);
    if (it == live_.end()) return;
    const Sent sent = it->second;
    live_.erase(it);
    Seen& seen = seen_[sent.row];
    if (seen.generation == sent.generation)
      seen.history.add({(now - sent.at).to_seconds(), sent.in_flight, now},
                       parameters_.window_size);
  }
  void on_completed(std::uint64_t request, SimTime) override { live_.erase(request); }
  void on_endpoint_removed(EndpointRow row, SimTime) override {
    if (row >= seen_.size()) return;
    const std::uint32_t generation = seen_[row].generation + 1;
    seen_[row] = idle_;
    seen_[row].generation = generation;
  }
  void advance(SimTime now) override {
    if (!publishes_ || now < next_) return;
    const SimTime last = next_ + interval_ * ((now - next_).ns() / interval_.ns());
    const auto flush = [&](Seen& seen) {
      // A bucket that closes now counts in the floor at once.
      for (SimTime tick = next_; tick <= last; tick = tick + interval_)
        seen.history.roll(tick, parameters_);
      seen.published = seen.history.snapshot(last, parameters_);
    };
    for (Seen& seen : seen_) flush(seen);
    flush(idle_);
    next_ = last + interval_;
  }

 private:
  static constexpr Duration kBaseTick = Duration::milliseconds(50);
  struct Seen {
    TtftHistory history;
    TtftSnapshot published;
    std::uint32_t generation = 0;  // Grows when the row changes owner.
  };
  struct Sent {
    EndpointRow row;
    std::uint32_t generation;
    std::int64_t in_flight;
    SimTime at;
  };

  TtftObserverParameters parameters_;
  const InFlightLoad* load_;
  bool publishes_ = false;
  Duration interval_;
  SimTime next_;
  std::vector<Seen> seen_;
  Seen idle_;  ///< What an endpoint that got no request yet looks like.
  std::unordered_map<std::uint64_t, Sent> live_;  // Never iterated.
};

}  // namespace routesim::policies
