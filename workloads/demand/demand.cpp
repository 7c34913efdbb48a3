#include "workloads/demand/demand.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "base/scalar_parse.h"
#include "workloads/traces/trace_readers.h"
#include "workloads/traces/trace_replay.h"

namespace routesim::workloads {

namespace {

constexpr Duration kDay = Duration::seconds(86'400);
/// The clock of a run holds 103 days.
constexpr std::int64_t kMostDays = 100;
constexpr double kDaysPerMonth = 365.25 / 12;
/// A result keeps distributions for each stage: 100 days by the hour.
constexpr std::int64_t kMostReportStages = 2'400;
/// Request ids have 32 bits.
constexpr double kMostDemanded = 1e9;
const std::string kDemandKey = "workload.demand";

Duration rest_of(Duration at, Duration of) { return at - of * (at / of); }

Duration demand_period(const Demand& demand) {
  if (demand.period) return *demand.period;
  const Duration last = demand.profile.back().at;
  // A line may end where the period does, so that a point there needs no further day.
  const bool at_end = demand.interpolate == RateShape::kLinear && last > Duration::zero() &&
                      rest_of(last, kDay) == Duration::zero();
  return kDay * (last / kDay + (at_end ? 0 : 1));
}

Duration demand_length(const Demand& demand) {
  return demand.days ? Duration::from_seconds(*demand.days * kDay.to_seconds())
                     : demand_period(demand);
}

std::int64_t report_stages(Duration length, Duration every) {
  return std::max<std::int64_t>(1, (length.ns() + every.ns() - 1) / every.ns());
}

std::size_t report_stage(Duration at, Duration every, std::size_t stages) {
  const std::int64_t i = std::clamp<std::int64_t>(at / every, 0, std::int64_t(stages) - 1);
  return static_cast<std::size_t>(i);
}

void check_profile_points(const Demand& demand, Duration period, Diagnostics& out) {
  const bool linear = demand.interpolate == RateShape::kLinear;
  for (std::size_t i = 0; i < demand.profile.size(); ++i) {
    const Duration at = demand.profile[i].at;
    const std::string path = kDemandKey + ".profile[" + std::to_string(i) + "].at";
    if (i > 0 && at <= demand.profile[i - 1].at)
      out.error({}, path,
                "must be later than the point before it (got " + duration_text(at) + " after " +
                    duration_text(demand.profile[i - 1].at) + ")",
                "list the points in the order of their times");
    else if (at > period || (at == period && !linear))
      out.error(
          {}, path,
          "lies behind the period of " + duration_text(period) + " (got " + duration_text(at) + ")",
          "set period to the time after which the profile repeats");
  }
}

/// Reports what a profile cannot have; `demand` has one.
void check_profile(const Demand& demand, Diagnostics& out) {
  const Duration length = demand_length(demand);
  if (length > kDay * kMostDays)
    out.error({}, kDemandKey + ".profile",
              "goes on for more than " + std::to_string(kMostDays) + " days",
              "set days to those that are to be simulated");
  else
    check_profile_points(demand, demand_period(demand), out);
  if (out.has_errors()) return;
  const double expected = DemandCurve(demand).expected(Duration::zero(), length);
  if (expected >= 1 && expected <= kMostDemanded) return;
  const bool few = expected < 1;
  out.error({}, kDemandKey,
            few ? "asks for less than one request (" + number_text(with_digits(expected, 3)) +
                      " are expected)"
                : "asks for more than 10^9 requests (" + number_text(with_digits(expected, 3)) +
                      " are expected)",
            few ? "rates are requests per second: raise them, or scale"
                : "lower the rates, scale or days");
}

/// Reports keys of profiles beside a trace, which has times of its own.
void check_trace_keys(const Demand& demand, Diagnostics& out) {
  const auto refuse = [&out](bool given, const char* key) {
    if (given)
      out.error({}, kDemandKey + "." + key,
                "belongs to profile and csv: arrivals_of has the times of its trace",
                "leave it out, or give rates");
  };
  refuse(!demand.profile.empty(), demand.csv.empty() ? "profile" : "csv");
  refuse(demand.interpolate != RateShape::kSteps, "interpolate");
  refuse(demand.period.has_value(), "period");
  refuse(demand.days.has_value(), "days");
  refuse(demand.growth_per_month != 0, "growth_per_month");
}

void check_report_stages(Duration length, Duration every, Diagnostics& out) {
  const std::int64_t stages = report_stages(length, every);
  if (stages > kMostReportStages)
    out.error({}, kDemandKey + ".report_every",
              "makes " + std::to_string(stages) + " stages, and a report has at most " +
                  std::to_string(kMostReportStages) + " (got " + duration_text(every) + ")",
              "report less often");
}

/// Reads the trace through: its length, and how many records each stage has.
DemandArrivals counted_trace(const Demand& demand, const TraceOpener& open, Diagnostics& out) {
  const std::string key = kDemandKey + ".arrivals_of";
  const double factor = 1 / demand.scale;
  DemandArrivals found{.make = [open, factor] { return trace_arrivals(open, factor); }};
  const std::unique_ptr<TraceReader> reader = open();
  TraceRecord record;
  std::int64_t records = 0;
  for (; reader->next(record); ++records) {
    if (record.delay) {
      out.error({reader->file(), static_cast<int>(record.line), 1}, key,
                "a record waits for the answer before it, and has no time of its own",
                "leave out the records that have a delay");
      return found;
    }
    found.length = std::max(found.length, within_a_century(record.at.to_seconds() * factor));
    const std::int64_t stage = std::min(found.length / demand.report_every, kMostReportStages - 1);
    if (std::ssize(found.requests) <= stage)
      found.requests.resize(static_cast<std::size_t>(stage) + 1);
    found.requests[report_stage(found.length, demand.report_every, found.requests.size())] += 1;
  }
  for (const Diagnostic& d : reader->diagnostics().items()) out.add(d);
  if (records == 0 && !out.has_errors()) out.error({}, key, "the trace has no records");
  // What comes at the very end of the last stage is part of it.
  const auto stages = static_cast<std::size_t>(report_stages(found.length, demand.report_every));
  if (found.requests.size() > stages && stages > 0) {
    found.requests[stages - 1] += found.requests.back();
    found.requests.resize(stages);
  }
  return found;
}

DemandArrivals profile_arrivals(const Demand& demand, std::uint64_t seed) {
  DemandCurve curve(demand);
  DemandArrivals found{.length = curve.length()};
  for (Duration at; at < found.length; at += demand.report_every)
    found.requests.push_back(curve.expected(at, std::min(at + demand.report_every, found.length)));
  found.make = [curve = std::move(curve), seed] {
    return curve_arrivals(curve, RandomStream(seed, Stream::kArrivals));
  };
  return found;
}

class CurveArrivals final : public ArrivalStream {
 public:
  CurveArrivals(DemandCurve curve, RandomStream random)
      : curve_(std::move(curve)), random_(random), piece_(curve_.piece(Duration::zero())) {}

  bool next(Duration& due) override {
    if (over_) return false;
    for (double left = random_.exponential(1);;) {
      const double seconds = (piece_.end - piece_.start).to_seconds();
      const double slope = (piece_.to - piece_.from) / seconds;
      const double rate = std::max(0.0, piece_.from + slope * at_);
      const double rest = (rate + piece_.to) / 2 * (seconds - at_);
      if (left < rest) {
        // The root of rate * x + slope * x^2 / 2 = left that loses no digits.
        const double root = std::sqrt(std::max(0.0, rate * rate + 2 * slope * left));
        if (left > 0) at_ = std::min(seconds, at_ + 2 * left / (rate + root));
        due = piece_.start + Duration::from_seconds(at_);
        return true;
      }
      left -= std::max(0.0, rest);
      over_ = piece_.end >= curve_.length();
      if (over_) return false;
      piece_ = curve_.piece(piece_.end);
      at_ = 0;
    }
  }

 private:
  DemandCurve curve_;
  RandomStream random_;
  RatePiece piece_;
  double at_ = 0;      ///< Seconds of the piece that are over.
  bool over_ = false;  ///< The end has been told; clients ask again.
};

/// `09:00`, counted from the start; seconds where there are any.
std::string clock_text(Duration at) {
  const std::int64_t seconds = at.ns() / 1'000'000'000;
  char text[48];
  std::snprintf(text, sizeof text, "%02lld:%02lld", static_cast<long long>(seconds / 3600),
                static_cast<long long>(seconds / 60 % 60));
  if (seconds % 60 == 0) return text;
  char more[8];
  std::snprintf(more, sizeof more, ":%02lld", static_cast<long long>(seconds % 60));
  return std::string(text) + more;
}

class ReportedLoad final : public LoadGenerator {
 public:
  ReportedLoad(std::unique_ptr<LoadGenerator> load, const DemandArrivals& arrivals, Duration every)
      : load_(std::move(load)), every_(every), stages_(load_->stages()) {
    Duration first;
    if (arrivals.make()->next(first)) first_ = first;
    StageInfo stage = stages_.back();
    stages_.pop_back();
    split_ = stages_.size();
    stage.requests = -1;
    stage.lead_s = 0;
    for (std::size_t i = 0; i < arrivals.requests.size(); ++i) {
      const Duration start = every * static_cast<std::int64_t>(i);
      stage.name = clock_text(start);
      // A trace may be over at once.
      const Duration rest = std::min(every, arrivals.length - start);
      stage.duration_s = (rest > Duration::zero() ? rest : every).to_seconds();
      stage.requested_rate = arrivals.requests[i] / stage.duration_s;
      stages_.push_back(stage);
    }
  }

  const std::vector<StageInfo>& stages() const override { return stages_; }
  SimTime next_action() const override { return load_->next_action(); }
  void advance(SimTime now, std::vector<Request>& out) override {
    std::size_t i = out.size();
    load_->advance(now, out);
    for (; i < out.size(); ++i) {
      if (out[i].stage.value() != split_) continue;
      // The load's clock may begin later than the run's: tools send test requests, or wait.
      if (!std::exchange(began_, true)) origin_ = out[i].due - first_;
      const std::size_t stage = report_stage(out[i].due - origin_, every_, stages_.size() - split_);
      out[i].stage = StageId(static_cast<std::uint32_t>(split_ + stage));
    }
  }
  const Request* upcoming(std::size_t i) const override { return load_->upcoming(i); }
  void on_completed(const Request& request, Outcome outcome, SimTime now) override {
    if (request.stage.value() <= split_) return load_->on_completed(request, outcome, now);
    Request as_sent = request;
    as_sent.stage = StageId(static_cast<std::uint32_t>(split_));
    load_->on_completed(as_sent, outcome, now);
  }
  bool finished() const override { return load_->finished(); }
  std::vector<std::string> notes() const override { return load_->notes(); }

 private:
  std::unique_ptr<LoadGenerator> load_;
  Duration every_;
  std::vector<StageInfo> stages_;
  std::size_t split_ = 0;  ///< The load's own number of the stage that is split.
  Duration first_;         ///< When the first request is due, by the demand's clock.
  SimTime origin_;         ///< When the demand's clock began; known with the first request.
  bool began_ = false;
};

}  // namespace

void describe(Describer& d, DemandPoint& p) {
  field(d, {"at", "Time from the start of the period, such as 9h.", true}, p.at,
        DurationRange{Duration::zero(), kDay * kMostDays});
  field(d, {"rate", "Requests per second.", true}, p.rate, RealRange{.min = 0, .max = 1e6});
}

void describe(Describer& d, Demand& t) {
  const DurationRange spans{Duration::seconds(1), kDay * kMostDays};
  field(d, {"profile", "Rates over a period, in the order of their times."}, t.profile);
  field(d,
        {"csv",
         "The same as a file, relative to this one, with the columns `time` (seconds, hh:mm or a "
         "date with a time, which counts from the first day's midnight) and `rate`."},
        t.csv);
  field(d,
        {"arrivals_of",
         "A trace, relative to this file: requests come at its records' times, and have the load's "
         "own prompts and answers."},
        t.arrivals_of);
  field(d,
        {"interpolate",
         "The rate between two points: that of the earlier one (steps), or a line (linear). Behind "
         "the last point comes the first one again."},
        t.interpolate);
  field(d,
        {"period",
         "The time after which the profile repeats. Where absent, as many whole days as its "
         "points need: a day, a week."},
        t.period, spans);
  field(d, {"days", "How long requests come, in days. One period where absent."}, t.days,
        RealRange{.min = 0, .max = static_cast<double>(kMostDays), .min_open = true});
  field(d,
        {"growth_per_month",
         "Growth of all rates, compounded from day to day: 0.1 is 10 % in 30.44 days."},
        t.growth_per_month, RealRange{.min = -1, .max = 100, .min_open = true});
  field(d, {"scale", "Multiplies all rates; a trace plays so much faster."}, t.scale,
        RealRange{.min = 0, .max = 1e6, .min_open = true});
  field(d,
        {"report_every",
         "Results have a stage for each such time, called by its start, such as 09:00."},
        t.report_every, spans);
}

DemandCurve::DemandCurve(const Demand& demand)
    : period_(demand_period(demand)),
      length_(demand_length(demand)),
      growth_per_day_(std::pow(1 + demand.growth_per_month, 1 / kDaysPerMonth)) {
  const bool linear = demand.interpolate == RateShape::kLinear;
  std::vector<DemandPoint> points = demand.profile;
  for (DemandPoint& p : points) p.rate *= demand.scale;
  const DemandPoint first = points.front(), last = points.back();
  // The line from the last point to the first one of the next period.
  const double gap = (period_ - last.at + first.at).to_seconds();
  const double at_end = linear && gap > 0 ? last.rate + (first.rate - last.rate) *
                                                            ((period_ - last.at).to_seconds() / gap)
                                          : last.rate;
  if (first.at > Duration::zero()) points.insert(points.begin(), {Duration::zero(), at_end});
  for (std::size_t i = 0; i < points.size(); ++i) {
    const bool is_last = i + 1 == points.size();
    const Duration end = is_last ? period_ : points[i + 1].at;
    if (end <= points[i].at) continue;
    const double then = is_last ? at_end : points[i + 1].rate;
    period_pieces_.push_back({points[i].at, end, points[i].rate, linear ? then : points[i].rate});
  }
}

RatePiece DemandCurve::piece(Duration at) const {
  const Duration phase = rest_of(at, period_);
  const auto after = std::upper_bound(period_pieces_.begin(), period_pieces_.end(), phase,
                                      [](Duration t, const RatePiece& p) { return t < p.start; });
  const RatePiece& whole = *std::prev(after);
  const std::int64_t day = at / kDay;
  Duration end = std::min(length_, at + (whole.end - phase));
  if (growth_per_day_ != 1) end = std::min(end, kDay * (day + 1));
  const double factor = std::pow(growth_per_day_, static_cast<double>(day));
  const double slope = (whole.to - whole.from) / (whole.end - whole.start).to_seconds();
  const auto rate = [&](Duration t) {
    return factor *
           std::max(0.0, whole.from + slope * (phase + (t - at) - whole.start).to_seconds());
  };
  return {at, end, rate(at), rate(end)};
}

double DemandCurve::expected(Duration from, Duration to) const {
  double sum = 0;
  while (from < to) {
    RatePiece p = piece(from);
    if (p.end > to) {
      p.to =
          p.from + (p.to - p.from) * ((to - p.start).to_seconds() / (p.end - p.start).to_seconds());
      p.end = to;
    }
    sum += p.area();
    from = p.end;
  }
  return sum;
}

std::unique_ptr<ArrivalStream> curve_arrivals(DemandCurve curve, RandomStream random) {
  return std::make_unique<CurveArrivals>(std::move(curve), random);
}

std::optional<DemandArrivals> demand_arrivals(const Demand& demand, std::uint64_t seed,
                                              const LoadInputs& inputs, Diagnostics& diagnostics) {
  Diagnostics found;
  std::optional<DemandArrivals> arrivals;
  if (!demand.arrivals_of.empty()) {
    check_trace_keys(demand, found);
    if (!inputs.demand_trace)
      found.error({}, kDemandKey + ".arrivals_of", "the trace file was not opened");
    if (!found.has_errors()) arrivals = counted_trace(demand, inputs.demand_trace, found);
    if (!found.has_errors()) check_report_stages(arrivals->length, demand.report_every, found);
  } else if (demand.profile.empty()) {
    found.error({}, kDemandKey, "has no rates", "give profile, csv or arrivals_of");
  } else {
    check_profile(demand, found);
    if (!found.has_errors()) check_report_stages(demand_length(demand), demand.report_every, found);
    if (!found.has_errors()) arrivals = profile_arrivals(demand, seed);
  }
  for (const Diagnostic& d : found.items()) diagnostics.add(d);
  if (found.has_errors()) return std::nullopt;
  return arrivals;
}

std::unique_ptr<LoadGenerator> with_report_stages(std::unique_ptr<LoadGenerator> load,
                                                  const DemandArrivals& arrivals,
                                                  Duration report_every) {
  return std::make_unique<ReportedLoad>(std::move(load), arrivals, report_every);
}

}  // namespace routesim::workloads
