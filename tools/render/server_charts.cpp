// What each server carried, and how that went over time.
#include <algorithm>
#include <cmath>

#include "tools/render/run_charts.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

namespace {

constexpr std::size_t kMostBars = 24;
constexpr std::size_t kMostLines = 8;
constexpr std::size_t kMostPoints = 180;

std::string requests_chart(const VariantView& variant, std::size_t colour) {
  BarChart chart;
  double sum = 0;
  double most = 0;
  for (const ServerView& server : variant.servers) {
    const auto found = server.values.find("requests");
    if (found == server.values.end()) continue;
    chart.bars.push_back({.name = server.name, .value = found->second.value, .colour = colour});
    sum += found->second.value;
    most = std::max(most, found->second.value);
  }
  if (chart.bars.size() < 2 || sum == 0) return {};
  const double mean = sum / static_cast<double>(chart.bars.size());
  const double over = most / mean - 1;
  chart.title = variant.name + ": the busiest server got " +
                (over < 0.005 ? std::string("no more requests than the others")
                              : fixed_text(100 * over, over < 0.1 ? 1 : 0) +
                                    " % more requests than the mean");
  chart.subtitle = "Requests routed to each of " + std::to_string(chart.bars.size()) + " servers";
  if (chart.bars.size() > kMostBars) {
    std::stable_sort(chart.bars.begin(), chart.bars.end(),
                     [](const auto& a, const auto& b) { return a.value > b.value; });
    chart.bars.erase(chart.bars.begin() + kMostBars / 2, chart.bars.end() - kMostBars / 2);
    chart.subtitle += "; the busiest and the idlest " + std::to_string(kMostBars / 2);
  }
  chart.subtitle += ".";
  return draw(chart);
}

struct Column {
  std::string_view key;
  std::string_view title;
  Unit unit;
};
constexpr std::array<Column, 3> kServerColumns = {
    {{"load", "requests running and waiting", Unit::kCount},
     {"kv_cache_usage", "KV cache in use", Unit::kRatio},
     {"prefix_hit_rate", "prefix cache hits", Unit::kRatio}}};

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

/// At most kMostPoints means over equal stretches; stretches without a value are left out.
ChartSeries thinned(const std::vector<double>& time, const std::vector<double>& values,
                    std::string name, std::size_t colour) {
  ChartSeries series{.name = std::move(name),
                     .colour = colour,
                     .measured = false,
                     .markers = false,
                     .steps = false,
                     .points = {}};
  const std::size_t n = std::min(time.size(), values.size());
  const std::size_t stretch = (n + kMostPoints - 1) / kMostPoints;
  for (std::size_t begin = 0; begin < n; begin += std::max<std::size_t>(stretch, 1)) {
    double sum = 0;
    int count = 0;
    for (std::size_t i = begin; i < std::min(n, begin + stretch); ++i) {
      if (!std::isfinite(values[i])) continue;
      sum += values[i];
      ++count;
    }
    if (count > 0)
      series.points.push_back({.x = time[begin], .y = sum / count, .low = {}, .high = {}});
  }
  return series;
}

/// At every instant the value that a share of the servers does not exceed: 0 the lowest, 1 the
/// highest.
std::vector<double> at_share(const std::vector<std::vector<double>>& columns, std::size_t n,
                             double share) {
  std::vector<double> out;
  std::vector<double> at;
  for (std::size_t i = 0; i < n; ++i) {
    at.clear();
    for (const std::vector<double>& values : columns)
      if (i < values.size() && std::isfinite(values[i])) at.push_back(values[i]);
    std::sort(at.begin(), at.end());
    const auto last = static_cast<double>(at.size()) - 1;
    out.push_back(at.empty() ? NAN : at[static_cast<std::size_t>(std::lround(share * last))]);
  }
  return out;
}

/// Lowest, middle and highest server, for fleets too large to draw.
void add_band(const VariantView& variant, std::string_view key, LineChart& chart) {
  struct Line {
    const char* name;
    double share;
    std::size_t colour;
  };
  std::vector<std::vector<double>> columns;
  for (const ServerSeries& server : variant.series) columns.push_back(column(server, key));
  for (const Line& line :
       {Line{"highest server", 1, 1}, Line{"median server", 0.5, 0}, Line{"lowest server", 0, 2}})
    chart.series.push_back(thinned(variant.series_time_s,
                                   at_share(columns, variant.series_time_s.size(), line.share),
                                   line.name, line.colour));
}

LineChart time_chart(const VariantView& variant, const Column& c) {
  LineChart chart;
  chart.x = {.title = "simulated time",
             .unit = Unit::kSeconds,
             .log = false,
             .from_zero = true,
             .min = {},
             .max = {}};
  chart.y = {.title = std::string(c.title),
             .unit = c.unit,
             .log = false,
             .from_zero = true,
             .min = {},
             .max = {}};
  if (variant.series.size() > kMostLines) {
    add_band(variant, c.key, chart);
    return chart;
  }
  for (std::size_t s = 0; s < variant.series.size(); ++s)
    chart.series.push_back(thinned(variant.series_time_s, column(variant.series[s], c.key),
                                   variant.series[s].name, s));
  return chart;
}

/// Over time: how far apart the servers are on average, in words.
std::string spread_title(const VariantView& variant, const Column& c) {
  double spread = 0;
  double level = 0;
  int count = 0;
  for (std::size_t i = 0; i < variant.series_time_s.size(); ++i) {
    double least = INFINITY;
    double most = -INFINITY;
    double sum = 0;
    int servers = 0;
    for (const ServerSeries& server : variant.series) {
      const std::vector<double> values = column(server, c.key);
      if (i >= values.size() || !std::isfinite(values[i])) continue;
      least = std::min(least, values[i]);
      most = std::max(most, values[i]);
      sum += values[i];
      ++servers;
    }
    if (servers == 0 || sum <= 0) continue;
    spread += most - least;
    level += sum / servers;
    ++count;
  }
  if (count == 0) return variant.name + ": " + std::string(c.title);
  return variant.name + ": " + human(level / count, c.unit) + " " +
         (c.key == "load" ? "requests on a server" : std::string(c.title)) +
         " while there is load, with " + human(spread / count, c.unit) +
         " between the highest and the lowest server";
}

double top(const LineChart& chart) {
  double most = 0;
  for (const ChartSeries& s : chart.series)
    for (const ChartPoint& p : s.points) most = std::max(most, p.y);
  return most;
}

}  // namespace

std::string server_charts(const PageRun& run) {
  std::string out;
  for (std::size_t v = 0; v < run.variants.size(); ++v) out += requests_chart(run.variants[v], v);
  for (const Column& c : kServerColumns) {
    std::vector<LineChart> charts;
    double most = 0;
    for (const VariantView& variant : run.variants) {
      if (variant.series.empty()) continue;
      LineChart chart = time_chart(variant, c);
      chart.title = spread_title(variant, c);
      chart.subtitle =
          "Sampled over the run" +
          std::string(variant.series.size() > kMostLines ? "" : ", one line per server") +
          "; same scale for every variant.";
      most = std::max(most, top(chart));
      charts.push_back(std::move(chart));
    }
    for (LineChart& chart : charts) {
      chart.y.max = c.unit == Unit::kRatio ? 1.0 : most * 1.05;
      out += draw(chart);
    }
  }
  return out;
}

}  // namespace routesim::tools
