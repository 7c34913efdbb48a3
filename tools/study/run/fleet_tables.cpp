#include "tools/study/run/fleet_tables.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <string_view>

#include "base/text.h"
#include "tools/render/render.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

namespace {

struct Number {
  std::string_view key, title;
  int digits;
};
constexpr std::array<Number, 8> kNumbers = {{{"mean_servers", "servers, mean", 2},
                                             {"max_servers", "most", 0},
                                             {"mean_ready", "ready, mean", 2},
                                             {"min_ready", "fewest", 0},
                                             {"starts", "starts", 0},
                                             {"ends", "ends", 0},
                                             {"lost", "requests cut off", 0},
                                             {"sent_again", "sent again", 0}}};

/// `90 s`, `12 min 30 s`, `3 h 05 min`.
std::string clock_text(double seconds) {
  if (seconds < 120) return fmt::format("{:.4g} s", seconds);
  const auto whole = static_cast<std::int64_t>(seconds);
  if (whole < 7'200) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3'600, whole / 60 % 60);
}

}  // namespace

Table fleet_table(const PageRun& run, bool on_page) {
  Table table{.columns = {{"pool", true}, {"variant", true}}};
  for (const Number& n : kNumbers) table.columns.push_back({std::string(n.title)});
  for (const VariantView& variant : run.variants)
    for (const ServerView& pool : variant.pools) {
      std::vector<Cell>& row = table.rows.emplace_back();
      row = {{.text = printable(pool.name)}, {.text = printable(variant.name)}};
      for (const Number& n : kNumbers) {
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

LineChart fleet_chart(const PageRun& run) {
  LineChart chart;
  chart.title = "Servers that serve";
  chart.subtitle = "of the first pool, over time";
  chart.x.title = "simulated time";
  chart.x.unit = Unit::kSeconds;
  chart.y.title = "servers";
  chart.y.unit = Unit::kCount;
  chart.x.from_zero = chart.y.from_zero = true;
  for (std::size_t v = 0; v < run.variants.size(); ++v) {
    if (run.variants[v].fleet_points.empty()) continue;
    ChartSeries& series = chart.series.emplace_back();
    series.name = run.variants[v].name;
    series.colour = v;
    series.markers = false;
    series.steps = true;
    for (const sim::FleetPoint& p : run.variants[v].fleet_points)
      series.points.push_back({.x = p.at_s, .y = static_cast<double>(p.ready)});
  }
  return chart;
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
    std::string who;
    for (const std::string& name : variants) who += (who.empty() ? "" : ", ") + printable(name);
    if (variants.size() == run.variants.size() && variants.size() > 1) who = "all";
    table.rows.push_back({{.text = clock_text(at)},
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
