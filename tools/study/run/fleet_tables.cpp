#include "tools/study/run/fleet_tables.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "tools/render/document.h"
#include "tools/results/text_table.h"
#include "tools/study/run/run_charts.h"

namespace routesim::tools {

namespace {

struct Number {
  std::string_view key, title;
  int digits;
};
constexpr std::array<Number, 9> kNumbers = {{{"mean_servers", "servers, mean", 2},
                                             {"max_servers", "most", 0},
                                             {"mean_ready", "ready, mean", 2},
                                             {"min_ready", "fewest", 0},
                                             {"starts", "starts", 0},
                                             {"ends", "ends", 0},
                                             {"lost", "times cut off", 0},
                                             {"sent_again", "sent again", 0},
                                             {"cost", "cost, $", 2}}};

/// Charts draw no more points than these of a timeline.
constexpr std::size_t kMostPoints = 240;
constexpr std::size_t kMostMarks = 60;

/// The value of each part of a timeline; parts without requests have none.
ChartSeries over_time(const PageRun& run, std::size_t v,
                      double (*value)(const sim::Timeline& t, std::size_t from, std::size_t to)) {
  ChartSeries series{.name = run.variants[v].name, .colour = v, .markers = false, .steps = true};
  const sim::Timeline& t = *run.variants[v].timeline;
  const std::size_t step = (t.sent.size() + kMostPoints - 1) / kMostPoints;
  for (std::size_t i = 0; i < t.sent.size(); i += step) {
    const double y = value(t, i, std::min(i + step, t.sent.size()));
    if (std::isfinite(y)) series.points.push_back({.x = static_cast<double>(i) * t.bin_s, .y = y});
  }
  return series;
}

double sum(const std::vector<std::int64_t>& bins, std::size_t from, std::size_t to) {
  double all = 0;
  for (std::size_t i = from; i < to; ++i) all += static_cast<double>(bins[i]);
  return all;
}

double send_rate(const sim::Timeline& t, std::size_t from, std::size_t to) {
  return sum(t.sent, from, to) / (static_cast<double>(to - from) * t.bin_s);
}

double share_of(const sim::Timeline& t, std::size_t from, std::size_t to) {
  const double ended = sum(t.answered, from, to) + sum(t.failed, from, to);
  return ended > 0 ? sum(t.goals->good, from, to) / ended : NAN;
}

/// What happens until `end` but the life of single pods, at the first kMostMarks times.
std::vector<ChartBand> event_marks(const PageRun& run, double end) {
  std::map<double, std::string> at;
  for (const VariantView& variant : run.variants)
    for (const sim::FleetMark& m : variant.happened) {
      if (m.at_s > end || m.what == "starts" || m.what == "is ready" || m.what == "is gone")
        continue;
      std::string& text = at[m.at_s];
      const std::string what = m.subject + " " + m.what;
      if (text.find(what) == std::string::npos)
        text += (text.empty() ? clock_text(m.at_s, variant.by_clock) + ": " : "; ") + what;
    }
  std::vector<ChartBand> marks;
  for (const auto& [when, text] : at)
    if (marks.size() < kMostMarks) marks.push_back({.at = when, .text = text});
  return marks;
}

LineChart time_chart(std::string title, std::string subtitle, std::string what, Unit unit) {
  LineChart chart;
  chart.title = std::move(title);
  chart.subtitle = std::move(subtitle);
  chart.x = {.title = "simulated time", .unit = Unit::kSeconds, .from_zero = true};
  chart.y = {.title = std::move(what), .unit = unit, .from_zero = true};
  return chart;
}

/// A value of the fleets over time, of those that have it.
LineChart fleet_chart(const PageRun& run, double end, LineChart chart,
                      std::optional<double> (*value)(const FleetMoment& moment)) {
  for (std::size_t v = 0; v < run.variants.size(); ++v) {
    ChartSeries series{.name = run.variants[v].name, .colour = v, .markers = false, .steps = true};
    for (const FleetMoment& m : run.variants[v].fleet)
      if (const auto y = value(m); y && m.at_s < end)
        series.points.push_back({.x = m.at_s, .y = *y});
    if (series.points.empty()) continue;
    series.points.push_back({.x = end, .y = series.points.back().y});
    chart.series.push_back(std::move(series));
  }
  chart.title += one_seed(run);
  return chart;
}

}  // namespace

Table fleet_table(const PageRun& run, bool on_page) {
  Table table{.columns = {{"pool", true}, {"variant", true}}};
  // Not every scenario has prices.
  const auto known = [&](const Number& n) {
    return n.key != "cost" || std::ranges::any_of(run.variants, [](const VariantView& v) {
             return std::ranges::any_of(
                 v.pools, [](const ServerView& pool) { return pool.values.contains("cost"); });
           });
  };
  std::vector<Number> numbers;
  std::ranges::copy_if(kNumbers, std::back_inserter(numbers), known);
  for (const Number& n : numbers) table.columns.push_back({std::string(n.title)});
  for (const VariantView& variant : run.variants)
    for (const ServerView& pool : variant.pools) {
      std::vector<Cell>& row = table.rows.emplace_back();
      row = {{.text = printable(pool.name)}, {.text = printable(variant.name)}};
      for (const Number& n : numbers) {
        const auto found = pool.values.find(n.key);
        Cell& cell = row.emplace_back();
        if (found == pool.values.end()) continue;
        cell.text = fixed_text(found->second.value, n.digits);
        if (on_page) cell.number = found->second;
        cell.as_written = true;
      }
    }
  return table;
}

Charts time_charts(const PageRun& run) {
  LineChart load = time_chart("Requests sent", "a second, of the reported stages", "requests/s",
                              Unit::kRequestsPerSecond);
  LineChart share = time_chart("Requests within the goals", "by when they were sent",
                               "share of requests", Unit::kRatio);
  share.y.max = 1;
  double end = 0;
  for (std::size_t v = 0; v < run.variants.size(); ++v) {
    const std::optional<sim::Timeline>& t = run.variants[v].timeline;
    if (!t || t->sent.empty()) continue;
    load.series.push_back(over_time(run, v, send_rate));
    end = std::max(end, static_cast<double>(t->sent.size()) * t->bin_s);
    if (!t->goals) continue;
    share.series.push_back(over_time(run, v, share_of));
    share.goal = t->goals->share;
    share.goal_text = human(t->goals->share, Unit::kRatio) + " of requests within the goals";
  }
  Charts charts;
  if (end == 0) return charts;
  load.title += one_seed(run);
  share.title += one_seed(run);
  LineChart servers = fleet_chart(
      run, end, time_chart("Servers that serve", "of all pools", "servers", Unit::kCount),
      [](const FleetMoment& m) { return std::optional(static_cast<double>(m.ready)); });
  LineChart cost = fleet_chart(
      run, end,
      time_chart("Cost", "of the servers that exist", "US dollars an hour", Unit::kDollars),
      [](const FleetMoment& m) { return m.price_per_hour; });
  for (LineChart* const chart : {&load, &servers, &cost, &share}) {
    if (chart->series.empty()) continue;
    chart->x.max = end;
    chart->events = event_marks(run, end);
    charts.charts.emplace_back(std::move(*chart));
  }
  return charts;
}

Table missed_table(const PageRun& run, std::size_t most) {
  Table table{.columns = {{"goals missed from"},
                          {"to"},
                          {"variant", true},
                          {"requests"},
                          {"within goals, %"},
                          {"what happened", true}}};
  for (const VariantView& v : run.variants) {
    if (!v.timeline || !v.timeline->goals) continue;
    std::vector<sim::MissedSpan> spans = v.timeline->goals->missed;
    const std::size_t all = spans.size();
    if (most > 0 && all > most) {
      const auto misses = [](const sim::MissedSpan& s) { return s.sent - s.good; };
      std::ranges::stable_sort(spans, std::greater(), misses);
      spans.resize(most);
      std::ranges::sort(spans, {}, &sim::MissedSpan::from_s);
    }
    for (const sim::MissedSpan& s : spans)
      table.rows.push_back(
          {{.text = clock_text(s.from_s, v.by_clock)},
           {.text = clock_text(s.to_s, v.by_clock)},
           {.text = printable(v.name)},
           {.text = std::to_string(s.sent)},
           {.text = fixed_text(100 * static_cast<double>(s.good) / static_cast<double>(s.sent), 1)},
           {.text = printable(s.why, 300)}});
    if (spans.size() < all)
      table.rows.push_back({{.text = "…"},
                            {},
                            {.text = printable(v.name)},
                            {},
                            {},
                            {.text = counted(all - spans.size(), "more time") +
                                     " (timeline.goals.missed of the JSON)"}});
  }
  return table;
}

Table event_table(const PageRun& run, std::size_t most) {
  Table table{.columns = {{"when"}, {"what", true}, {"variants", true}}};
  // What happens at one time to one subject in several variants is one row.
  std::map<std::tuple<double, std::string, std::string>, std::vector<std::string>> rows;
  for (const VariantView& variant : run.variants)
    for (const sim::FleetMark& mark : variant.happened)
      rows[{mark.at_s, mark.subject, mark.what}].push_back(variant.name);
  for (const auto& [key, variants] : rows) {
    if (most > 0 && table.rows.size() == most) break;
    const auto& [at, subject, what] = key;
    std::string who = comma_list(variants, [](const std::string& n) { return printable(n); });
    if (variants.size() == run.variants.size() && variants.size() > 1) who = "all";
    table.rows.push_back({{.text = clock_text(at, run.variants.front().by_clock)},
                          {.text = printable(subject) + " " + printable(what)},
                          {.text = who}});
  }
  if (most > 0 && rows.size() > most)
    table.rows.push_back(
        {{.text = "…"},
         {.text = counted(rows.size() - most, "more event") + " (fleet.events of the JSON)"},
         {}});
  return table;
}

}  // namespace routesim::tools
