// The load that each server carried, and how that went over time.
#include <algorithm>
#include <cmath>

#include "base/scalar_parse.h"
#include "tools/render/chart/svg.h"
#include "tools/results/text_table.h"
#include "tools/study/run/run_charts.h"

namespace routesim::tools {

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
    if (std::find(pools.begin(), pools.end(), server.pool) == pools.end())
      pools.push_back(server.pool);
  std::vector<StripChart::Group> out;
  for (const std::string& pool : pools) {
    const std::string name = pools.size() > 1 ? variant.name + ", " + pool : variant.name;
    StripChart::Group group{.name = name, .note = {}, .colour = colour, .points = {}};
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
  const auto [least, most] = std::minmax_element(levels.begin(), levels.end());
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

}  // namespace routesim::tools
