#include "sim/scaling/prometheus_store.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace routesim::sim {

namespace {

/// Prometheus' --query.lookback-delta.
constexpr Duration kLookback = Duration::seconds(300);

using Point = PrometheusStore::Point;

/// Seconds as a Go program has them, correctly rounded: at a tie of a quantile the last bit counts.
double go_seconds(Duration d) { return static_cast<double>(d.ns()) / 1e9; }

/// A compensated sum (Neumaier's), as Prometheus 3 has it.
class PromSum {
 public:
  void add(double x) {
    const double sum = sum_ + x;
    if (std::isinf(sum)) {
      rest_ = 0;
    } else {
      rest_ += std::abs(sum_) >= std::abs(x) ? (sum_ - sum) + x : (x - sum) + sum_;
    }
    sum_ = sum;
  }
  double value() const { return sum_ + rest_; }

 private:
  double sum_ = 0, rest_ = 0;
};

std::tuple<std::int64_t, double> labels_of(const PromSample& s) { return {s.pod, s.le}; }

/// The arithmetic of Go's float64.
double calculate(PromOp op, double a, double b) {
  switch (op) {
    case PromOp::kAdd:
      return a + b;
    case PromOp::kSubtract:
      return a - b;
    case PromOp::kMultiply:
      return a * b;
    case PromOp::kDivide:
      return a / b;
    case PromOp::kModulo:
      return std::fmod(a, b);
    default:
      return std::pow(a, b);
  }
}

bool holds(PromOp op, double a, double b) {
  switch (op) {
    case PromOp::kEqual:
      return a == b;
    case PromOp::kUnequal:
      return a != b;
    case PromOp::kLess:
      return a < b;
    case PromOp::kLessEqual:
      return a <= b;
    case PromOp::kGreater:
      return a > b;
    default:
      return a >= b;
  }
}

bool is_comparison(PromOp op) { return op >= PromOp::kEqual && op <= PromOp::kGreaterEqual; }

/// The points of a range, which is open at its old end (Prometheus 3).
std::vector<Point> points_within(const std::deque<Point>& points, SimTime now, Duration range) {
  std::vector<Point> out;
  for (const Point& p : points)
    if (p.at > now - range && p.at <= now && !p.is_stale) out.push_back(p);
  return out;
}

/// promql/functions.go, extrapolatedRate (Prometheus v3.5): the change is stretched to the ends of
/// the range, unless samples are missing there or a counter would fall below zero.
std::optional<double> extrapolated(const std::vector<Point>& points, SimTime now, Duration range,
                                   bool is_counter, bool is_rate) {
  if (points.size() < 2) return std::nullopt;
  double change = points.back().value - points.front().value;
  for (std::size_t i = 1; is_counter && i < points.size(); ++i)
    if (points[i].value < points[i - 1].value) change += points[i - 1].value;
  const double sampled = go_seconds(points.back().at - points.front().at);
  const double average = sampled / static_cast<double>(points.size() - 1);
  const double threshold = average * 1.1;
  double to_start = go_seconds(points.front().at - (now - range));
  double to_end = go_seconds(now - points.back().at);
  if (to_start >= threshold) to_start = average / 2;
  if (is_counter && change > 0 && points.front().value >= 0)
    to_start = std::min(to_start, sampled * (points.front().value / change));
  if (to_end >= threshold) to_end = average / 2;
  const double factor = (sampled + to_start + to_end) / sampled;
  return change * (is_rate ? factor / go_seconds(range) : factor);
}

std::optional<double> over_range(const PromNode& node, const std::vector<Point>& points,
                                 SimTime now) {
  const Duration range = node.args[0]->range;
  const auto n = static_cast<double>(points.size());
  if (points.empty()) return std::nullopt;
  double least = points[0].value, most = points[0].value;
  PromSum sum;
  for (const Point& p : points) {
    sum.add(p.value);
    least = std::min(least, p.value);
    most = std::max(most, p.value);
  }
  switch (node.op) {
    case PromOp::kRate:
      return extrapolated(points, now, range, true, true);
    case PromOp::kIncrease:
      return extrapolated(points, now, range, true, false);
    case PromOp::kDelta:
      return extrapolated(points, now, range, false, false);
    case PromOp::kIrate: {
      if (points.size() < 2) return std::nullopt;
      const Point &last = points.back(), &before = points[points.size() - 2];
      const double change = last.value < before.value ? last.value : last.value - before.value;
      return change / go_seconds(last.at - before.at);
    }
    case PromOp::kAvgOverTime:
      return sum.value() / n;
    case PromOp::kMinOverTime:
      return least;
    case PromOp::kMaxOverTime:
      return most;
    case PromOp::kSumOverTime:
      return sum.value();
    case PromOp::kCountOverTime:
      return n;
    default:
      return points.back().value;
  }
}

/// promql/quantile.go, bucketQuantile. The buckets of one histogram, by le.
double bucket_quantile(double q, const std::vector<PromSample>& buckets) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (std::isnan(q)) return nan;
  if (q < 0) return -std::numeric_limits<double>::infinity();
  if (q > 1) return std::numeric_limits<double>::infinity();
  if (buckets.size() < 2 || !std::isinf(buckets.back().le)) return nan;
  std::vector<double> counts;
  // Counts never fall, and rates that differ by rounding alone are the same.
  for (const PromSample& b : buckets) {
    const double before = counts.empty() ? b.value : counts.back();
    const bool is_same = before != 0 && std::abs(b.value - before) < 1e-12 * (b.value + before);
    counts.push_back(is_same ? before : std::max(before, b.value));
  }
  if (counts.back() == 0) return nan;
  double rank = q * counts.back();
  const std::size_t b = static_cast<std::size_t>(
      std::find_if(counts.begin(), counts.end() - 1, [&](double c) { return c >= rank; }) -
      counts.begin());
  if (b == buckets.size() - 1) return buckets[b - 1].le;
  if (b == 0 && buckets[0].le <= 0) return buckets[0].le;
  const double start = b == 0 ? 0 : buckets[b - 1].le;
  const double below = b == 0 ? 0 : counts[b - 1];
  rank -= below;
  return start + (buckets[b].le - start) * (rank / (counts[b] - below));
}

PromVector quantiles(double q, PromVector samples) {
  std::ranges::sort(samples, {}, labels_of);
  PromVector out;
  for (std::size_t i = 0; i < samples.size();) {
    std::vector<PromSample> buckets;
    const std::int64_t pod = samples[i].pod;
    for (; i < samples.size() && samples[i].pod == pod; ++i)
      if (samples[i].le != kNoLe) buckets.push_back(samples[i]);
    if (!buckets.empty()) out.push_back({pod, kNoLe, bucket_quantile(q, buckets)});
  }
  return out;
}

PromVector aggregate(const PromNode& node, const PromVector& samples) {
  struct Group {
    PromSum sum;
    double least = 0, most = 0, count = 0;
  };
  std::map<std::tuple<std::int64_t, double>, Group> groups;
  for (const PromSample& s : samples) {
    Group& g = groups[{node.keeps_pod ? s.pod : kPool, node.keeps_le ? s.le : kNoLe}];
    // Like Prometheus, a number wins over NaN.
    if (g.count == 0 || s.value < g.least || std::isnan(g.least)) g.least = s.value;
    if (g.count == 0 || s.value > g.most || std::isnan(g.most)) g.most = s.value;
    g.sum.add(s.value);
    ++g.count;
  }
  PromVector out;
  for (const auto& [key, g] : groups) {
    const double value = node.op == PromOp::kSum   ? g.sum.value()
                         : node.op == PromOp::kAvg ? g.sum.value() / g.count
                         : node.op == PromOp::kMin ? g.least
                         : node.op == PromOp::kMax ? g.most
                                                   : g.count;
    out.push_back({std::get<0>(key), std::get<1>(key), value});
  }
  return out;
}

const PromSample* partner(const PromVector& samples, const PromSample& of) {
  const auto found = std::ranges::find(samples, labels_of(of), labels_of);
  return found == samples.end() ? nullptr : &*found;
}

PromVector set_operation(PromOp op, PromVector left, const PromVector& right) {
  if (op == PromOp::kOr) {
    const PromVector before = left;
    for (const PromSample& s : right)
      if (partner(before, s) == nullptr) left.push_back(s);
    return left;
  }
  std::erase_if(left, [&](const PromSample& s) {
    return (partner(right, s) == nullptr) == (op == PromOp::kAnd);
  });
  return left;
}

PromVector binary_operation(const PromNode& node, const PromVector& left, const PromVector& right) {
  const bool left_is_scalar = node.args[0]->type == PromType::kScalar;
  const bool right_is_scalar = node.args[1]->type == PromType::kScalar;
  PromVector out;
  for (const PromSample& s : left_is_scalar && !right_is_scalar ? right : left) {
    const PromSample* other = left_is_scalar    ? &left[0]
                              : right_is_scalar ? &right[0]
                                                : partner(right, s);
    if (other == nullptr) continue;
    const bool is_swapped = left_is_scalar && !right_is_scalar;
    if (left_is_scalar && right_is_scalar) other = &right[0];
    const double a = is_swapped ? other->value : s.value, b = is_swapped ? s.value : other->value;
    if (!is_comparison(node.op)) {
      out.push_back({s.pod, s.le, calculate(node.op, a, b)});
    } else if (node.is_bool) {
      out.push_back({s.pod, s.le, holds(node.op, a, b) ? 1.0 : 0.0});
    } else if (holds(node.op, a, b)) {
      out.push_back(s);
    }
  }
  return out;
}

double apply(PromOp op, double x, const std::vector<double>& bounds) {
  switch (op) {
    case PromOp::kNegate:
      return -x;
    case PromOp::kClamp:
      return std::max(bounds[0], std::min(bounds[1], x));
    case PromOp::kClampMin:
      return std::max(bounds[0], x);
    case PromOp::kClampMax:
      return std::min(bounds[0], x);
    case PromOp::kAbs:
      return std::abs(x);
    case PromOp::kCeil:
      return std::ceil(x);
    case PromOp::kFloor:
      return std::floor(x);
    case PromOp::kRound:
      return std::floor(x + 0.5);
    case PromOp::kSqrt:
      return std::sqrt(x);
    default:
      return x;  // vector().
  }
}

PromVector function_over_range(const PromNode& node, const PrometheusStore& store, SimTime now) {
  const PromNode& selector = *node.args[0];
  PromVector out;
  for (const PrometheusStore::Series& s : store.series(selector.series)) {
    if (selector.le && s.le != *selector.le) continue;
    const std::optional<double> value =
        over_range(node, points_within(s.points, now, selector.range), now);
    if (value) out.push_back({s.pod, s.le, *value});
  }
  return out;
}

}  // namespace

PrometheusStore::PrometheusStore(std::vector<SeriesId> scraped, Duration longest_range)
    : scraped_(std::move(scraped)), keep_(std::max(longest_range, kLookback)) {
  std::ranges::sort(scraped_);
  const auto twice = std::ranges::unique(scraped_);
  scraped_.erase(twice.begin(), twice.end());
}

PromVector PrometheusStore::scrape_one(SeriesName name, const FleetMetrics& fleet) const {
  PromVector out;
  const auto ask = [&](std::int64_t pod) {
    if (kind_of(name.metric) != FleetMetricKind::kHistogram) {
      if (const std::optional<double> v = fleet.value(name.metric, pod))
        out.push_back({pod, kNoLe, *v});
      return;
    }
    const BucketCounts* histogram = fleet.histogram(name.metric, pod);
    if (histogram == nullptr) return;
    const std::span<const double> bounds = bucket_bounds(name.metric);
    double count = 0;
    for (std::size_t i = 0; i < histogram->counts().size(); ++i) {
      count += static_cast<double>(histogram->counts()[i]);
      const double le = i < bounds.size() ? bounds[i] : std::numeric_limits<double>::infinity();
      if (name.part == HistogramPart::kBucket) out.push_back({pod, le, count});
    }
    if (name.part == HistogramPart::kSum) out.push_back({pod, kNoLe, histogram->sum()});
    if (name.part == HistogramPart::kCount) out.push_back({pod, kNoLe, count});
  };
  if (!is_per_pod(name.metric)) {
    ask(kPool);
  } else {
    for (const FleetPod& pod : pods_) ask(pod.id);
  }
  return out;
}

void PrometheusStore::scrape(SimTime now, const FleetMetrics& fleet) {
  pods_.clear();
  fleet.pods(pods_);
  for (const SeriesId id : scraped_)
    if (id < kFirstRule) append(now, id, scrape_one(name_of(id), fleet));
}

void PrometheusStore::record(SimTime now, SeriesId rule, const PromVector& result) {
  append(now, rule, result);
}

void PrometheusStore::append(SimTime now, SeriesId id, const PromVector& samples) {
  std::vector<Series>& all = series_[id];
  const auto labels = [](const Series& s) { return std::tuple(s.pod, s.le); };
  for (const PromSample& sample : samples) {
    auto place = std::ranges::lower_bound(all, labels_of(sample), {}, labels);
    if (place == all.end() || labels(*place) != labels_of(sample))
      place = all.insert(place, {sample.pod, sample.le, {}});
    place->points.push_back({now, sample.value, false});
  }
  for (Series& s : all) {
    if (s.points.back().at != now && !s.points.back().is_stale) s.points.push_back({now, 0, true});
    while (!s.points.empty() && s.points.front().at <= now - keep_) s.points.pop_front();
  }
  std::erase_if(all, [](const Series& s) { return s.points.empty(); });
}

const std::vector<PrometheusStore::Series>& PrometheusStore::series(SeriesId id) const {
  static const std::vector<Series> none;
  const auto found = series_.find(id);
  return found == series_.end() ? none : found->second;
}

PromVector PrometheusStore::instant(SeriesId id, std::optional<double> le, SimTime now) const {
  PromVector out;
  for (const Series& s : series(id)) {
    if (le && s.le != *le) continue;
    const Point& last = s.points.back();
    if (!last.is_stale && last.at > now - kLookback) out.push_back({s.pod, s.le, last.value});
  }
  return out;
}

PromVector evaluate(const PromNode& node, const PrometheusStore& store, SimTime now) {
  if (node.op == PromOp::kNumber) return {{kPool, kNoLe, node.number}};
  if (node.op == PromOp::kSelect) return store.instant(node.series, node.le, now);
  if (node.args[0]->type == PromType::kRange) return function_over_range(node, store, now);
  std::vector<PromVector> args;
  for (const auto& arg : node.args) args.push_back(evaluate(*arg, store, now));
  if (node.op >= PromOp::kSum && node.op <= PromOp::kCount) return aggregate(node, args[0]);
  if (node.op >= PromOp::kAnd && node.op <= PromOp::kUnless)
    return set_operation(node.op, std::move(args[0]), args[1]);
  if (node.op >= PromOp::kAdd && node.op <= PromOp::kGreaterEqual)
    return binary_operation(node, args[0], args[1]);
  if (node.op == PromOp::kHistogramQuantile) return quantiles(args[0][0].value, std::move(args[1]));
  if (node.op == PromOp::kScalar) {
    const bool is_one = args[0].size() == 1;
    return {{kPool, kNoLe, is_one ? args[0][0].value : std::numeric_limits<double>::quiet_NaN()}};
  }
  std::vector<double> bounds;
  for (std::size_t i = 1; i < args.size(); ++i) bounds.push_back(args[i][0].value);
  for (PromSample& s : args[0]) s.value = apply(node.op, s.value, bounds);
  return args[0];
}

}  // namespace routesim::sim
