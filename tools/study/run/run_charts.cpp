#include "tools/study/run/run_charts.h"

#include <algorithm>
#include <cmath>

#include "tools/render/metric_view.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

namespace {

std::vector<std::size_t> reported(const PageRun& run) {
  std::vector<std::size_t> out;
  if (run.variants.empty()) return out;
  for (std::size_t i = 0; i < run.variants[0].stages.size(); ++i)
    if (run.variants[0].stages[i].reported) out.push_back(i);
  return out;
}

enum class LoadAxis { kRate, kConcurrency, kNumber };

LoadAxis load_axis_of(const PageRun& run) {
  bool rates = true;
  bool levels = true;
  for (const std::size_t i : reported(run)) {
    const StageView& s = run.variants[0].stages[i];
    rates = rates && s.rate && std::isfinite(*s.rate) && *s.rate > 0;
    // Rates that a load found by itself may differ, and curves over them have no common axis.
    for (const VariantView& v : run.variants)
      rates = rates && (i >= v.stages.size() || v.stages[i].rate == s.rate);
    levels = levels && s.concurrency && *s.concurrency > 0;
  }
  return levels ? LoadAxis::kConcurrency : rates ? LoadAxis::kRate : LoadAxis::kNumber;
}

ChartSeries series_of(const PageRun& run, std::size_t v, std::string_view key, bool measured) {
  ChartSeries series{.name = run.variants[v].name, .colour = v, .measured = measured};
  for (const std::size_t i : reported(run)) {
    if (i >= run.variants[v].stages.size()) continue;
    const StageView& stage = run.variants[v].stages[i];
    ChartPoint point{.x = stage_position(run, i)};
    if (measured) {
      const auto found = stage.measured.find(key);
      if (found == stage.measured.end()) continue;
      point.y = found->second;
    } else {
      const Datum* const datum = stage.find(key);
      if (datum == nullptr) continue;
      point.y = datum->value;
      point.low = datum->low;
      point.high = datum->high;
      point.overloaded = stage.overloaded;
    }
    series.points.push_back(point);
  }
  if (!measured) std::ranges::stable_sort(series.points, {}, &ChartPoint::x);
  return series;
}

/// Whether values spread so far that a linear axis hides the small ones.
bool wants_log(const LineChart& chart) {
  double least = INFINITY;
  double most = 0;
  for (const ChartSeries& s : chart.series)
    for (const ChartPoint& p : s.points) {
      if (p.y <= 0) return false;
      least = std::min(least, p.y);
      most = std::max(most, p.y);
    }
  return most > 12 * least;
}

using NamedValues = std::vector<std::pair<double, std::string>>;

/// `12.5 k tok/s with A, 6.5 k tok/s with B`; of more than three variants the lowest and the
/// highest.
std::string list_values(const NamedValues& values, Unit unit) {
  if (values.size() == 1) return human(values[0].first, unit);
  const auto named = [&](const std::pair<double, std::string>& v) {
    return human(v.first, unit) + " with " + v.second;
  };
  if (values.size() > 3) {
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    return named(*least) + ", up to " + named(*most);
  }
  std::string out;
  for (const auto& value : values) out += (out.empty() ? "" : ", ") + named(value);
  return out;
}

/// `pick` gives the value of a series, or NaN.
template <class Pick>
std::string list_values(const LineChart& chart, Unit unit, Pick pick) {
  NamedValues values;
  for (const ChartSeries& s : chart.series)
    if (const double value = pick(s); !s.measured && std::isfinite(value))
      values.emplace_back(value, s.name);
  return list_values(values, unit);
}

double peak(const ChartSeries& s) {
  double most = s.points.empty() ? NAN : 0;
  for (const ChartPoint& p : s.points) most = std::max(most, p.y);
  return most;
}

/// The last reported stage in which no variant is overloaded; nothing when some is in every stage.
std::optional<std::size_t> last_healthy(const PageRun& run) {
  std::optional<std::size_t> found;
  for (const std::size_t i : reported(run)) {
    const bool healthy = std::none_of(run.variants.begin(), run.variants.end(), [&](const auto& v) {
      return i < v.stages.size() && v.stages[i].overloaded;
    });
    if (healthy && (!found || stage_position(run, i) >= stage_position(run, *found))) found = i;
  }
  return found;
}

/// The answer of a curve: peaks of a rate, the values of a latency under the highest load that no
/// variant is overloaded by.
std::string curve_title(const PageRun& run, const LineChart& chart, const Measure& shown,
                        std::string_view answer) {
  std::string title(answer);
  if (!shown.less_is_better && shown.unit != Unit::kRatio)
    return title + " " +
           list_values(chart, shown.unit, [](const ChartSeries& s) { return peak(s); });
  const std::optional<std::size_t> healthy = last_healthy(run);
  const std::size_t stage = healthy.value_or(reported(run).back());
  const std::string at = stage_label(run, run.variants[0].stages[stage]);
  const LoadAxis load_axis = load_axis_of(run);
  title += load_axis == LoadAxis::kRate          ? " at " + at + " req/s"
           : load_axis == LoadAxis::kConcurrency ? " at " + at + " concurrent requests"
                                                 : " in stage " + at;
  const bool less = healthy && *healthy != reported(run).back();
  if (less && run.variants.size() > 1) title += ", the most that every variant holds";
  if (less && run.variants.size() == 1) title += ", the most that it holds";
  return title + ": " + list_values(chart, shown.unit, [&](const ChartSeries& s) {
           for (const ChartPoint& p : s.points)
             if (p.x == stage_position(run, stage)) return p.y;
           return static_cast<double>(NAN);
         });
}

/// The goal that users set for a measure, `ttft.p90` by its `ttft`.
void add_goal(const PageRun& run, const Measure& shown, LineChart& chart) {
  for (const auto& [name, bound] : run.variants[0].goals)
    if (shown.key.starts_with(name + ".")) {
      chart.goal = bound;
      chart.goal_text = name + " ≤ " + human(bound, Unit::kSeconds);
    }
}

/// Marks the rate that each variant sustains, where the axis reaches it.
void add_bands(const PageRun& run, LineChart& chart) {
  if (load_axis_of(run) != LoadAxis::kRate) return;
  chart.band_text = "the highest rate that it sustains, with its interval";
  for (ChartSeries& s : chart.series) {
    const auto variant = std::ranges::find(run.variants, s.name, &VariantView::name);
    if (s.measured || variant == run.variants.end() || !variant->capacity) continue;
    const Capacity& c = *variant->capacity;
    if (*c.rate < s.points.front().x || *c.rate > s.points.back().x) continue;
    s.band = {.at = *c.rate,
              .low = c.low,
              .high = c.high,
              .text = s.name + " sustains " + human(*c.rate, Unit::kRequestsPerSecond)};
  }
}

/// The run with one variant in place of those that a scan of rates made of it, which has all their
/// stages: what its servers do at every rate.
PageRun over_all_rates(const PageRun& run) {
  PageRun out = run;
  out.variants.clear();
  for (const VariantView& v : run.variants) {
    const std::string& name = v.scan_of.empty() ? v.name : v.scan_of;
    const auto known = std::ranges::find(out.variants, name, &VariantView::name);
    if (known == out.variants.end()) {
      out.variants.push_back(v);
      out.variants.back().name = name;
    } else {
      for (const StageView& stage : v.stages)
        if (std::ranges::find(known->stages, stage.rate, &StageView::rate) == known->stages.end())
          known->stages.push_back(stage);
    }
  }
  return out;
}

std::optional<LineChart> curve_of(const PageRun& run, const Curve& curve) {
  const Measure shown = measure(curve.key);
  LineChart chart;
  chart.x = stage_axis(run);
  chart.y = {.title = shown.title, .unit = shown.unit, .from_zero = true};
  bool measured = false;
  for (const bool published : {false, true})
    for (std::size_t v = 0; v < run.variants.size(); ++v)
      if (ChartSeries points = series_of(run, v, curve.key, published); !points.points.empty()) {
        measured = measured || published;
        chart.series.push_back(std::move(points));
      }
  if (chart.series.empty() || chart.series.front().measured) return std::nullopt;
  chart.title = curve_title(run, chart, shown, curve.answer);
  if (shown.unit == Unit::kRatio) {
    chart.y.max = 1;
  } else {
    chart.y.log = shown.less_is_better && wants_log(chart);
  }
  chart.subtitle = std::string("Simulated") + (measured ? ", and measured as published" : "") +
                   (chart.y.log ? "; logarithmic scale." : ".");
  add_goal(run, shown, chart);
  add_bands(run, chart);
  return chart;
}

struct Distribution {
  std::string_view key;
  std::string_view noun;   ///< `Half of all requests get a first token within ...`
  std::string_view title;  ///< Of the axis.
};
constexpr std::array<Distribution, 3> kDistributions = {
    {{"ttft", "Half of all requests see a first token within ", "time to first token"},
     {"itl", "Half of all gaps between tokens last no more than ", "gap between tokens"},
     {"request_latency", "Half of all requests are answered within ", "request latency"}}};

LineChart distribution(const PageRun& run, const Distribution& d) {
  LineChart chart;
  chart.x = {.title = std::string(d.title), .unit = Unit::kSeconds, .log = true};
  chart.y = {.title = "share no longer than this",
             .unit = Unit::kPercent,
             .from_zero = true,
             .max = 100.0};
  for (std::size_t v = 0; v < run.variants.size(); ++v) {
    const auto found = run.variants[v].summary.quantiles.find(d.key);
    if (found == run.variants[v].summary.quantiles.end() ||
        found->second.size() != run.quantile_levels.size())
      continue;
    ChartSeries series{.name = run.variants[v].name, .colour = v, .markers = false};
    for (std::size_t i = 0; i < found->second.size(); ++i) {
      series.points.push_back({.x = found->second[i], .y = run.quantile_levels[i]});
      chart.x.log = chart.x.log && found->second[i] > 0;
    }
    chart.series.push_back(std::move(series));
  }
  if (chart.series.empty()) return {};
  chart.title = std::string(d.noun) + list_values(chart, Unit::kSeconds, [](const ChartSeries& s) {
                  for (const ChartPoint& p : s.points)
                    if (p.y == 50) return p.x;
                  return static_cast<double>(NAN);
                });
  chart.title += one_seed(run);
  chart.subtitle = std::string("All reported stages together") +
                   (std::any_of(run.variants.begin(), run.variants.end(), pools_overload)
                        ? ", overloaded ones among them; simulated."
                        : ", simulated.");
  return chart;
}

}  // namespace

ChartAxis stage_axis(const PageRun& run) {
  ChartAxis axis;
  switch (load_axis_of(run)) {
    case LoadAxis::kRate:
      axis.title = "requests/s asked for";
      break;
    case LoadAxis::kConcurrency:
      axis.title = "concurrent requests";
      axis.unit = Unit::kCount;
      break;
    case LoadAxis::kNumber:
      axis.title = "stage";
      axis.unit = Unit::kCount;
  }
  double least = INFINITY;
  double most = 0;
  for (const std::size_t i : reported(run)) {
    least = std::min(least, stage_position(run, i));
    most = std::max(most, stage_position(run, i));
  }
  axis.log = least > 0 && most > 40 * least;
  axis.from_zero = !axis.log;
  return axis;
}

bool pools_overload(const VariantView& variant) {
  bool overloaded = false, healthy = false;
  for (const StageView& s : variant.stages)
    if (s.reported) (s.overloaded ? overloaded : healthy) = true;
  return overloaded && healthy;
}

double stage_position(const PageRun& run, std::size_t stage) {
  const StageView& s = run.variants[0].stages[stage];
  const LoadAxis load_axis = load_axis_of(run);
  if (load_axis == LoadAxis::kRate) return *s.rate;
  if (load_axis == LoadAxis::kConcurrency) return *s.concurrency;
  return static_cast<double>(stage);
}

std::string stage_label(const PageRun& run, const StageView& stage) {
  const LoadAxis load_axis = load_axis_of(run);
  if (load_axis == LoadAxis::kRate) return human(*stage.rate, Unit::kNone);
  if (load_axis == LoadAxis::kConcurrency) return human(*stage.concurrency, Unit::kNone);
  return stage.name;
}

std::span<const Curve> curves() {
  static constexpr std::array<Curve, 7> kCurves = {
      {{"output_throughput", "Output peaks at"},
       {"ttft.mean", "Mean time to first token"},
       {"ttft.p90", "Time to first token, p90"},
       {"itl.mean", "Mean gap between tokens"},
       {"good_request_throughput", "Goodput peaks at"},
       {"request_throughput", "Answers peak at"},
       {"prefix_cache_hit_rate", "Prefix cache hits"}}};
  return kCurves;
}

std::string one_seed(const PageRun& run) {
  if (run.replications < 2) return {};
  return " (seed " + run.seed + ", one of " + std::to_string(run.replications) + ")";
}

std::vector<NamedChart> load_curves(const PageRun& scanned) {
  const PageRun run = over_all_rates(scanned);
  if (reported(run).size() < 2) return {};
  std::vector<NamedChart> charts;
  const bool goals = std::any_of(run.variants.begin(), run.variants.end(),
                                 [](const VariantView& v) { return !v.goals.empty(); });
  for (const Curve& curve : curves())
    if (curve.key != "request_throughput" || !goals)
      if (std::optional<LineChart> chart = curve_of(run, curve))
        charts.push_back({.name = std::string(curve.key), .chart = std::move(*chart)});
  return charts;
}

std::optional<Chart> answer_chart(const PageRun& run, const std::vector<Knee>& knees) {
  const PageRun merged = over_all_rates(run);
  BarChart chart;
  NamedValues values;
  const auto add = [&](const std::string& name, double value, const auto& interval) {
    const auto v = std::ranges::find(merged.variants, name, &VariantView::name);
    values.emplace_back(value, name);
    chart.bars.push_back({.name = name,
                          .value = value,
                          .colour = static_cast<std::size_t>(v - merged.variants.begin()),
                          .low = interval.low,
                          .high = interval.high});
  };
  for (const Knee& knee : knees)
    if (knee.capacity) add(knee.variant, *knee.capacity->rate, *knee.capacity);
  if (!values.empty()) {
    chart.unit = Unit::kRequestsPerSecond;
    chart.title = "The most load without a queue that grows: " + list_values(values, chart.unit);
    chart.subtitle = "The highest rate that each sustains, with the interval of the estimate.";
    return chart;
  }
  if (std::vector<NamedChart> curves = load_curves(run); !curves.empty())
    return std::move(curves.front().chart);
  for (const VariantView& v : run.variants)
    if (const Datum* const mean = v.summary.find("ttft.mean")) add(v.name, mean->value, *mean);
  if (values.empty()) return std::nullopt;
  chart.unit = Unit::kSeconds;
  chart.title = "Mean time to first token: " + list_values(values, chart.unit);
  chart.subtitle = "Over the whole run, less is better.";
  return chart;
}

std::vector<Chart> distribution_charts(const PageRun& run) {
  std::vector<Chart> charts;
  for (const Distribution& d : kDistributions)
    if (LineChart chart = distribution(run, d); !chart.series.empty())
      charts.emplace_back(std::move(chart));
  return charts;
}

}  // namespace routesim::tools
