#include "tools/study/run/run_charts.h"

#include <algorithm>
#include <cmath>

#include "base/scalar_parse.h"
#include "tools/render/chart/svg.h"
#include "tools/render/document.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

// The load that each server carried, and how that went over time.

namespace {

/// Widths of a bin in seconds: round numbers of seconds and minutes.
constexpr std::array<double, 16> kBins = {0.1, 0.2, 0.5, 1,   2,   5,   10,   15,
                                          30,  60,  120, 300, 600, 900, 1800, 3600};
constexpr double kMostBins = 130;
/// Every variant gets a map of its servers. Those of more variants than this are folded away.
constexpr std::size_t kMostOpenMaps = 3;

/// The points of each pool, in the order of the servers: pools have different jobs, so that a
/// server is only compared with those of its own.
std::vector<StripChart::Group> groups_of(const VariantView& variant, std::size_t colour) {
  std::vector<std::string> pools;
  for (const ServerView& server : variant.servers)
    if (std::ranges::find(pools, server.pool) == pools.end()) pools.push_back(server.pool);
  std::vector<StripChart::Group> out;
  for (const std::string& pool : pools) {
    const std::string name = pools.size() > 1 ? variant.name + ", " + pool : variant.name;
    StripChart::Group group{.name = name, .colour = colour};
    for (const ServerView& server : variant.servers)
      if (const auto found = server.values.find("requests");
          server.pool == pool && found != server.values.end())
        group.points.emplace_back(server.name, found->second.value);
    if (group.points.size() > 1) out.push_back(std::move(group));
  }
  return out;
}

/// How far the busiest server is above the mean: 0 for an even spread.
double excess(const StripChart::Group& group) {
  double sum = 0, most = 0;
  for (const auto& [name, value] : group.points) {
    sum += value;
    most = std::max(most, value);
  }
  return sum > 0 ? most * static_cast<double>(group.points.size()) / sum - 1 : 0;
}

/// Requests per server, a row of points for each pool of each variant.
std::optional<StripChart> requests_chart(const PageRun& run) {
  StripChart chart;
  for (std::size_t v = 0; v < run.variants.size(); ++v)
    for (StripChart::Group& group : groups_of(run.variants[v], v))
      chart.groups.push_back(std::move(group));
  if (chart.groups.empty()) return std::nullopt;
  const StripChart::Group* worst = &chart.groups.front();
  std::string most;
  for (StripChart::Group& group : chart.groups) {
    const double over = excess(group);
    group.note = "+" + fixed_text(100 * over, over < 0.1 ? 1 : 0) + " %";
    if (over > excess(*worst)) worst = &group;
  }
  const bool even = excess(*worst) < 0.005;
  const std::string above = " got " + worst->note.substr(1) + " more requests than the mean";
  chart.title = even ? "Every server got about as many requests as the mean"
                : chart.groups.size() == 1
                    ? "The busiest server" + above
                    : "Least even is " + worst->name + ": its busiest server" + above;
  chart.title += one_seed(run);
  chart.subtitle =
      "Requests routed to each server; the tick is their mean, the number how far the busiest is "
      "above it.";
  chart.x_title = "requests per server";
  chart.unit = Unit::kCount;
  return chart;
}

struct Column {
  std::string_view key;
  std::string_view title;
  std::string_view heading;
  Unit unit;
  bool whole;  ///< Drawn on a scale up to 100 %; the others up to their highest value.
};
constexpr std::array<Column, 3> kServerColumns = {
    {{"load", "requests running and waiting", "Requests running and waiting", Unit::kCount, false},
     {"kv_cache_usage", "KV cache in use", "KV cache in use", Unit::kRatio, false},
     {"prefix_hit_rate", "prefix cache hits", "Prefix cache hits", Unit::kRatio, true}}};

std::vector<double> stored(const ServerSeries& server, std::string_view key) {
  const auto found = server.values.find(key);
  return found == server.values.end() ? std::vector<double>{} : found->second;
}

std::vector<double> column(const ServerSeries& server, std::string_view key) {
  if (key != "load") return stored(server, key);
  const std::vector<double> running = stored(server, "running");
  const std::vector<double> waiting = stored(server, "waiting");
  std::vector<double> sum(std::min(running.size(), waiting.size()));
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = running[i] + waiting[i];
  return sum;
}

/// A measure of the servers of one variant in equal bins of time; NaN where nothing was sampled.
struct Binned {
  std::vector<std::vector<double>> servers;
  std::vector<double> mean;  ///< Over the servers.

  /// Mean over the bins that are not empty.
  double level() const { return average(mean); }
  /// Between the highest and the lowest server, over the same bins.
  double spread() const {
    std::vector<double> gaps;
    for (std::size_t b = 0; b < mean.size(); ++b) {
      if (!(mean[b] > 0)) continue;
      double least = INFINITY, most = -INFINITY;
      for (const std::vector<double>& server : servers) {
        if (!std::isfinite(server[b])) continue;
        least = std::min(least, server[b]);
        most = std::max(most, server[b]);
      }
      gaps.push_back(most - least + 1e-300);
    }
    return average(gaps);
  }
  double top() const {
    double most = 0;
    for (const std::vector<double>& server : servers)
      for (const double v : server)
        if (std::isfinite(v)) most = std::max(most, v);
    return most;
  }

 private:
  static double average(const std::vector<double>& values) {
    double sum = 0;
    int count = 0;
    for (const double v : values)
      if (v > 0) {
        sum += v;
        ++count;
      }
    return count > 0 ? sum / count : 0;
  }
};

/// The narrowest bin that leaves at most kMostBins of them in the longest variant, and is no
/// narrower than the samples are apart.
double bin_width(const PageRun& run) {
  double span = 0, apart = 0;
  for (const VariantView& v : run.variants)
    if (v.series_time_s.size() > 1) {
      span = std::max(span, v.series_time_s.back());
      apart = std::max(apart, v.series_time_s[1] - v.series_time_s[0]);
    }
  for (const double width : kBins)
    if (span <= width * kMostBins && width >= apart * 0.999) return width;
  return span / kMostBins;
}

Binned binned(const VariantView& variant, std::string_view key, double width) {
  Binned out;
  const std::vector<double>& time = variant.series_time_s;
  if (time.empty()) return out;
  const auto bin = [&](double t) { return static_cast<std::size_t>(t / width + 1e-6); };
  const std::size_t bins = bin(time.back()) + 1;
  std::vector<double> all(bins);
  std::vector<int> count(bins);
  for (const ServerSeries& server : variant.series) {
    const std::vector<double> values = column(server, key);
    std::vector<double> sum(bins);
    std::vector<int> n(bins);
    for (std::size_t i = 0; i < std::min(time.size(), values.size()); ++i) {
      if (!std::isfinite(values[i])) continue;
      sum[bin(time[i])] += values[i];
      ++n[bin(time[i])];
    }
    for (std::size_t b = 0; b < bins; ++b) {
      // Three digits are what the drawing and its tooltips show.
      sum[b] = n[b] > 0 ? with_digits(sum[b] / n[b], 3) : NAN;
      if (n[b] == 0) continue;
      all[b] += sum[b];
      ++count[b];
    }
    out.servers.push_back(std::move(sum));
  }
  for (std::size_t b = 0; b < bins; ++b)
    out.mean.push_back(count[b] > 0 ? with_digits(all[b] / count[b], 4) : NAN);
  return out;
}

/// The mean over the servers, one line per variant.
LineChart mean_chart(const PageRun& run, const Column& c, const std::vector<Binned>& all,
                     double width) {
  LineChart chart;
  chart.x.title = "simulated time";
  chart.x.unit = Unit::kSeconds;
  chart.x.from_zero = chart.y.from_zero = true;
  chart.y.title = std::string(c.title) + ", mean of the servers";
  chart.y.unit = c.unit;
  if (c.whole) chart.y.max = 1;
  std::vector<std::pair<double, std::string>> levels;
  for (std::size_t v = 0; v < all.size(); ++v) {
    ChartSeries series;
    series.name = run.variants[v].name;
    series.colour = v;
    series.markers = false;
    for (std::size_t b = 0; b < all[v].mean.size(); ++b)
      if (std::isfinite(all[v].mean[b]))
        series.points.push_back({.x = static_cast<double>(b) * width, .y = all[v].mean[b]});
    if (series.points.empty()) continue;
    levels.emplace_back(all[v].level(), series.name);
    chart.series.push_back(std::move(series));
  }
  if (levels.empty()) return chart;
  const auto [least, most] = std::ranges::minmax_element(levels);
  const auto named = [&](const std::pair<double, std::string>& level) {
    return human(level.first, c.unit) + (levels.size() > 1 ? " with " + level.second : "");
  };
  chart.title = std::string(c.heading) + " on a server while there is load: " + named(*least) +
                (levels.size() > 1 ? ", up to " + named(*most) : "") + one_seed(run);
  chart.subtitle = "Sampled over the whole run, warm-up and the end included; simulated.";
  return chart;
}

/// One row per server; `bins` and `most` end the time and the scale that all variants share.
HeatMap server_map(const VariantView& variant, const Column& c, const Binned& values, double width,
                   std::size_t bins, double most) {
  HeatMap map;
  const double span = width * static_cast<double>(bins);
  map.title = variant.name + ": " + human(values.level(), c.unit) + " while there is load, " +
              human(values.spread(), c.unit) + " between the highest and the lowest server";
  map.x_title = "simulated time";
  map.unit = c.unit;
  map.least = 0;
  map.most = most;
  for (std::size_t b = 0; b < bins; ++b)
    map.columns.push_back(clock_text(static_cast<double>(b) * width));
  for (const double tick : time_ticks(0, span, 6))
    map.ticks.emplace_back(tick / width, clock_text(tick));
  for (std::size_t s = 0; s < values.servers.size(); ++s) {
    map.rows.push_back(variant.series[s].name);
    std::vector<std::optional<double>> row(bins);
    for (std::size_t b = 0; b < values.servers[s].size(); ++b)
      if (const double v = values.servers[s][b]; std::isfinite(v)) row[b] = v;
    map.cells.push_back(std::move(row));
  }
  return map;
}

/// Adds the figures of one measure: the means, and a map for each variant with several servers.
void add_time_figures(const PageRun& run, const Column& c, double width, Charts& means,
                      std::vector<Block>& folds) {
  std::vector<Binned> all;
  double most = c.whole ? 1 : 0;
  std::size_t bins = 0;
  for (const VariantView& variant : run.variants) {
    all.push_back(binned(variant, c.key, width));
    most = std::max(most, all.back().top());
    bins = std::max(bins, all.back().mean.size());
  }
  LineChart mean = mean_chart(run, c, all, width);
  if (mean.series.empty()) return;
  means.charts.emplace_back(std::move(mean));
  Charts maps;
  for (std::size_t v = 0; v < all.size(); ++v)
    if (all[v].servers.size() > 1)
      maps.charts.emplace_back(server_map(run.variants[v], c, all[v], width, bins, most));
  const bool open = maps.charts.size() <= kMostOpenMaps;
  if (!maps.charts.empty())
    folds.push_back({Fold{.title = std::string(c.heading) + ", server by server" + one_seed(run),
                          .blocks = {{std::move(maps)}},
                          .open = open}});
}

}  // namespace

std::vector<Block> server_charts(const PageRun& run) {
  Charts figures;
  std::vector<Block> folds;
  if (std::optional<StripChart> requests = requests_chart(run))
    figures.charts.emplace_back(std::move(*requests));
  const double width = bin_width(run);
  for (const Column& c : kServerColumns)
    if (width > 0) add_time_figures(run, c, width, figures, folds);
  if (!figures.charts.empty()) folds.insert(folds.begin(), {std::move(figures)});
  return folds;
}

namespace {

std::vector<std::size_t> reported_positions(const PageRun& run) {
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
  for (const std::size_t i : reported_positions(run)) {
    const StageView& s = run.variants[0].stages[i];
    rates = rates && s.rate && std::isfinite(*s.rate) && *s.rate > 0;
    // Rates that a load found by itself may differ, and curves over them have no common axis.
    for (const VariantView& v : run.variants)
      rates = rates && (i >= v.stages.size() || v.stages[i].rate == s.rate);
    levels = levels && s.concurrency && *s.concurrency > 0;
  }
  return levels ? LoadAxis::kConcurrency : rates ? LoadAxis::kRate : LoadAxis::kNumber;
}

/// A stage's place on that axis.
double stage_position(const PageRun& run, std::size_t stage) {
  const StageView& s = run.variants[0].stages[stage];
  const LoadAxis load_axis = load_axis_of(run);
  if (load_axis == LoadAxis::kRate) return *s.rate;
  if (load_axis == LoadAxis::kConcurrency) return *s.concurrency;
  return static_cast<double>(stage);
}

ChartSeries series_of(const PageRun& run, std::size_t v, std::string_view key, bool measured) {
  ChartSeries series{.name = run.variants[v].name, .colour = v, .measured = measured};
  for (const std::size_t i : reported_positions(run)) {
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

using NamedValues = std::vector<std::pair<double, std::string>>;

/// `12.5 k tok/s with A, 6.5 k tok/s with B`; of more than three variants the lowest and the
/// highest.
std::string list_values(const NamedValues& values, Unit unit) {
  if (values.size() == 1) return human(values[0].first, unit);
  const auto named = [&](const std::pair<double, std::string>& v) {
    return human(v.first, unit) + " with " + v.second;
  };
  if (values.size() > 3) {
    const auto [least, most] = std::ranges::minmax_element(values);
    return named(*least) + ", up to " + named(*most);
  }
  return comma_list(values, named);
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
  for (const std::size_t i : reported_positions(run)) {
    const bool healthy = std::ranges::none_of(
        run.variants, [&](const auto& v) { return i < v.stages.size() && v.stages[i].overloaded; });
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
  const std::size_t stage = healthy.value_or(reported_positions(run).back());
  const std::string at = stage_label(run, run.variants[0].stages[stage]);
  const LoadAxis load_axis = load_axis_of(run);
  title += load_axis == LoadAxis::kRate          ? " at " + at + " req/s"
           : load_axis == LoadAxis::kConcurrency ? " at " + at + " concurrent requests"
                                                 : " in stage " + at;
  const bool less = healthy && *healthy != reported_positions(run).back();
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

/// The axis of a run's stages: the rate asked for, the concurrency, or only their number.
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
  for (const std::size_t i : reported_positions(run)) {
    least = std::min(least, stage_position(run, i));
    most = std::max(most, stage_position(run, i));
  }
  axis.log = least > 0 && most > 40 * least;
  axis.from_zero = !axis.log;
  return axis;
}

std::optional<LineChart> load_curve(const PageRun& run, const Curve& curve) {
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
    chart.y.log = shown.less_is_better && spreads_wide(chart);
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

LineChart distribution_chart(const PageRun& run, const Distribution& d) {
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
                   (std::ranges::any_of(run.variants, pools_overload)
                        ? ", overloaded ones among them; simulated."
                        : ", simulated.");
  return chart;
}

}  // namespace

bool pools_overload(const VariantView& variant) {
  bool overloaded = false, healthy = false;
  for (const StageView& s : variant.stages)
    if (s.reported) (s.overloaded ? overloaded : healthy) = true;
  return overloaded && healthy;
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
  if (reported_positions(run).size() < 2) return {};
  std::vector<NamedChart> charts;
  const bool goals =
      std::ranges::any_of(run.variants, [](const VariantView& v) { return !v.goals.empty(); });
  for (const Curve& curve : curves())
    if (curve.key != "request_throughput" || !goals)
      if (std::optional<LineChart> chart = load_curve(run, curve))
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
    if (LineChart chart = distribution_chart(run, d); !chart.series.empty())
      charts.emplace_back(std::move(chart));
  return charts;
}

}  // namespace routesim::tools
