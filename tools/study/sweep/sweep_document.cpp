// The answer of a sweep: the cells that meet the goals, the smallest fleet for each rate, and the
// numbers behind both. Without goals, the cells that are not overloaded.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/describe.h"
#include "base/scalar_parse.h"
#include "base/text.h"
#include "tools/render/document.h"
#include "tools/results/metrics.h"
#include "tools/results/text_table.h"
#include "tools/results/trust_errors.h"
#include "tools/study/sweep/sweep_goals.h"

namespace routesim::tools {

namespace {

constexpr std::size_t kMostNamed = 4;    ///< Fleets that a sentence names one by one.
constexpr std::size_t kMostFigures = 8;  ///< More are folded away, but for the first metric's.

/// `8 servers`, `rate 40`.
std::string axis_text(const std::string& axis, const std::string& value) {
  const bool plural = axis.find_first_of(".[ ") == std::string::npos && axis.ends_with('s');
  return plural ? value + " " + axis : axis + " " + value;
}

constexpr char kNotRun[] = "not run";

/// How far one variant gets in one panel.
struct Reach {
  std::string name;   ///< `precise`, `precise, tp 2`.
  std::string words;  ///< `up to rate 43`, `with 4 servers`, `in 3 of 8 cells`, kNotRun.
  double score = 0;   ///< Larger is better.
};

std::string panel_name(const SweepPanel& panel, const std::string& variant) {
  std::string name = variant;
  if (!panel.title.empty()) name += (name.empty() ? "" : ", ") + panel.title;
  return name.empty() ? "this scenario" : name;
}

/// The highest rate that some fleet of some variant holds, where variants differ most; else the
/// lowest rate.
std::string telling_rate(const SweepGoals& goals) {
  std::string at = goals.rate()->values.front();
  for (const std::string& rate : goals.rate()->values)
    for (const SweepPanel& panel : goals.panels())
      for (const std::string& variant : goals.variants())
        if (goals.smallest_fleet(panel, variant, rate)) at = rate;
  return at;
}

Reach fleet_reach(const SweepGoals& goals, const SweepPanel& panel, const std::string& variant,
                  const std::string& rate) {
  const PageAxis& fleet = *goals.fleet();
  const std::string& axis = goals.name_of(fleet);
  const std::vector<std::size_t> tried = goals.tried(panel, variant, fleet, rate);
  const auto n = goals.smallest_fleet(panel, variant, rate);
  if (n)
    return {panel_name(panel, variant), "with " + axis_text(axis, fleet.values[*n]),
            -fleet.numbers[*n]};
  return {panel_name(panel, variant),
          tried.empty() ? kNotRun : "not even with " + axis_text(axis, fleet.values[tried.back()]),
          -std::numeric_limits<double>::infinity()};
}

Reach rate_reach(const SweepGoals& goals, const SweepPanel& panel, const std::string& variant,
                 const std::string& other) {
  const PageAxis& rate = *goals.rate();
  const auto last = goals.highest_rate(panel, variant, other);
  const std::string& axis = goals.name_of(rate);
  const std::vector<std::size_t> tried = goals.tried(panel, variant, rate, other);
  if (tried.empty()) return {panel_name(panel, variant), kNotRun, -1};
  if (!last)
    return {panel_name(panel, variant),
            "not even at " + axis_text(axis, rate.values[tried.front()]), -1};
  const bool all = *last == tried.back();
  return {panel_name(panel, variant),
          "up to " + axis_text(axis, rate.values[*last]) + (all ? ", the highest tried," : ""),
          rate.numbers[*last]};
}

Reach cell_reach(const SweepGoals& goals, const SweepPanel& panel, const std::string& variant) {
  std::int64_t met = 0, all = 0;
  for (const SweepCells::Row* row : panel.rows) {
    if (row->variant != variant) continue;
    ++all;
    if (holds(goals.state_of(*row))) ++met;
  }
  return {
      panel_name(panel, variant),
      all == 0 ? kNotRun : "in " + std::to_string(met) + " of " + std::to_string(all) + " cells",
      sim::share(met, all)};
}

/// One sentence that is true of any number of variants and panels.
std::string sweep_headline(const SweepGoals& goals) {
  const bool no_goals = goals.goals().empty();
  const bool by_fleet =
      goals.fleet() != nullptr && (goals.rate() != nullptr || goals.drawn().size() == 1);
  std::string rate, place;
  if (by_fleet && goals.rate() != nullptr) {
    rate = telling_rate(goals);
    place = "At " + axis_text(goals.name_of(*goals.rate()), rate) + " ";
  }
  const auto begin = [&place](std::string text) {
    if (place.empty()) text[0] = static_cast<char>(text[0] - 'a' + 'A');
    return place + text;
  };
  std::vector<Reach> all;
  for (const SweepPanel& panel : goals.panels())
    for (const std::string& variant : goals.variants())
      all.push_back(by_fleet ? fleet_reach(goals, panel, variant, rate)
                    : goals.rate() != nullptr && goals.drawn().size() == 1
                        ? rate_reach(goals, panel, variant, "")
                        : cell_reach(goals, panel, variant));
  std::erase_if(all, [](const Reach& r) { return r.words == kNotRun; });
  std::ranges::stable_sort(all, std::ranges::greater{}, &Reach::score);
  const auto is_no = [](const Reach& r) { return r.words.starts_with("not "); };
  const auto said = [&](const Reach& r) {
    return is_no(r) ? "behind " + r.name + (no_goals ? " queues grow " : " they fail ") +
                          r.words.substr(4)
                    : r.words + " behind " + r.name;
  };
  const std::string start = begin(no_goals ? "no queue grows without end " : "the goals hold ");
  if (all.size() > kMostNamed && !is_no(all.front())) {
    std::string text = start + said(all.front());
    if (std::ranges::count(all, all.front().words, &Reach::words) == std::ssize(all))
      return text + ", as behind all " + std::to_string(all.size()) + ".";
    return text + ", the best of " + std::to_string(all.size()) +
           (is_no(all.back()) ? "; " : ", and ") + said(all.back()) + ", the worst.";
  }
  std::vector<std::string> texts;
  std::string others;
  for (const Reach& r : all)  // Each no comes after each yes.
    if (!is_no(r))
      texts.push_back(said(r));
    else if (!texts.empty() || !others.empty())
      others += "; " + said(r);
    else
      others = begin(no_goals ? "queues grow " : "the goals fail ") + r.words.substr(4) +
               " behind " + r.name;
  return (texts.empty() ? "" : start + joined(texts)) + others + ".";
}

/// Says for each class of step times how many rows rest on it.
std::vector<std::string> basis_of_rows(const SweepRecord& record) {
  std::vector<std::string> said;
  for (const models::Trust trust : trust_classes()) {
    const auto n = std::ranges::count(record.sweep_rows, std::string(enum_name(trust)),
                                      &SweepRowRecord::step_times);
    if (n > 0)
      said.push_back(std::to_string(n) + " of " + std::to_string(record.sweep_rows.size()) +
                     " rows rest on " + std::string(trust_clause(trust)) + "; " +
                     trust_errors_text(trust) + ".");
  }
  return said;
}

StudyVerdict sweep_verdict(const SweepRecord& record, const SweepGoals& goals) {
  StudyVerdict out{.headline = sweep_headline(goals)};
  for (const MetricGoal& goal : goals.goals()) out.points.push_back({{"goal: " + goal.text}});
  if (goals.goals().empty())
    out.points.push_back(
        {{"No goal was given: goals: in the sweep file, or routesim report --goal "
          "'ttft_ms.p90<500', draws where it is met."}});
  std::map<CellState, std::size_t> states;
  for (const SweepCells::Row& row : goals.cells().rows) ++states[goals.state_of(row)];
  const std::string counts = comma_list(states, [](const auto& state) {
    return std::to_string(state.second) + " " + std::string(goal_word(state.first));
  });
  out.points.push_back({{std::to_string(goals.cells().rows.size()) + " cells: " + counts}});
  out.remarks = basis_of_rows(record);
  const std::int64_t replications = record.sweep_rows.front().replications;
  if (!goals.goals().empty())
    out.fine = replications > 1
                   ? "A goal is met where the whole 95 % interval over " +
                         std::to_string(replications) + " replications is on its side. "
                   : "One run per cell, so chance may decide near a goal. ";
  out.fine += "In an overloaded cell some queue grows until it ends";
  out.fine += goals.goals().empty() ? "." : ": it meets nothing.";
  return out;
}

Table by_variant(std::string title, const std::string& axis, const SweepGoals& goals) {
  Table table{.title = std::move(title), .columns = {{axis}}};
  for (std::size_t v = 0; v < goals.variants().size(); ++v)
    table.columns.push_back({.title = goals.variants()[v], .series = v});
  return table;
}

/// The smallest fleet of each variant at each rate, as a table and as steps.
void add_fleets(const SweepGoals& goals, const SweepPanel& panel, std::vector<Block>& blocks) {
  const PageAxis& rate = *goals.rate();
  const PageAxis& fleet = *goals.fleet();
  LineChart chart;
  const std::string last = telling_rate(goals);
  std::vector<std::string> needs;
  for (const std::string& variant : goals.variants()) {
    const auto n = goals.smallest_fleet(panel, variant, last);
    const std::vector<std::size_t> tried = goals.tried(panel, variant, fleet, last);
    if (tried.empty()) continue;
    needs.push_back((variant.empty() ? "it" : variant) + (n ? " needs " : " needs more than ") +
                    axis_text(goals.name_of(fleet), fleet.values[n.value_or(tried.back())]));
  }
  chart.title = "At " + axis_text(goals.name_of(rate), last) + " " +
                (needs.empty() ? "nothing was run" : joined(needs)) +
                (panel.title.empty() ? "" : ", " + panel.title);
  chart.subtitle = "The smallest fleet for each rate. A line ends where every tried fleet " +
                   std::string(goals.goals().empty() ? "is overloaded." : "misses the goals.");
  chart.x = {.title = goals.name_of(rate)};
  chart.y = {.title = goals.name_of(fleet), .unit = Unit::kCount, .from_zero = true};
  Table table = by_variant("The smallest fleet for each rate", goals.name_of(rate), goals);
  for (std::size_t v = 0; v < goals.variants().size(); ++v)
    chart.series.push_back({.name = goals.variants()[v], .colour = v});
  for (std::size_t r = 0; r < rate.values.size(); ++r) {
    std::vector<Cell>& row = table.rows.emplace_back();
    row.push_back({.text = rate.values[r]});
    for (std::size_t v = 0; v < goals.variants().size(); ++v) {
      const auto n = goals.smallest_fleet(panel, goals.variants()[v], rate.values[r]);
      const auto tried = goals.tried(panel, goals.variants()[v], fleet, rate.values[r]);
      if (n)
        row.push_back({.text = axis_text(goals.name_of(fleet), fleet.values[*n])});
      else if (tried.empty())
        row.push_back({.text = kNotRun});
      else
        row.push_back({.text = "none up to " + fleet.values[tried.back()], .tone = Tone::kBad});
      if (n) chart.series[v].points.push_back({.x = rate.numbers[r], .y = fleet.numbers[*n]});
    }
  }
  blocks.push_back({std::move(table)});
  blocks.push_back({Charts{{std::move(chart)}}, For::kPages});
}

/// The highest rate that each value of the other axis holds, where that is no fleet.
Table capacity_table(const SweepGoals& goals, const SweepPanel& panel) {
  const PageAxis& other = goals.drawn()[goals.rate() == &goals.drawn()[0] ? 1 : 0];
  Table table =
      by_variant("The highest rate that " +
                     std::string(goals.goals().empty() ? "is not overloaded" : "meets the goals"),
                 goals.name_of(other), goals);
  for (const std::string& value : other.values) {
    std::vector<Cell>& row = table.rows.emplace_back();
    row.push_back({.text = value});
    for (const std::string& variant : goals.variants())
      row.push_back({.text = rate_reach(goals, panel, variant, value).words});
  }
  return table;
}

const MetricGoal* goal_on(const SweepGoals& goals, const std::string& metric) {
  for (const MetricGoal& goal : goals.goals())
    if (goal.metric.text == metric) return &goal;
  return nullptr;
}

/// `TTFT p90, goal < 500 ms`.
std::string with_goal(const SweepGoals& goals, const std::string& metric, const MetricView& view) {
  const MetricGoal* goal = goal_on(goals, metric);
  if (goal == nullptr) return view.title;
  return view.title + ", goal " + (goal->upper ? "< " : "> ") +
         human(goal->bound * view.scale, view.unit);
}

/// `: 320 ms behind b and 560 ms behind a at rate 40`, where the variants differ most and none is
/// overloaded, if there is such a place; the first number and the last of a single variant.
std::string gap_text(const LineChart& chart, const PageAxis& d, bool less_is_better) {
  using Value = std::pair<double, std::string>;
  const auto number = [&](double y) { return human(y, chart.y.unit); };
  const auto at = [&](double x) {
    const auto i = std::ranges::find(d.numbers, x) - d.numbers.begin();
    return " at " + axis_text(chart.x.title, d.values[static_cast<std::size_t>(i)]);
  };
  if (chart.series.size() == 1) {
    const std::vector<ChartPoint>& points = chart.series.front().points;
    if (points.empty()) return {};
    const ChartPoint &a = points.front(), &b = points.back();
    return ": " + number(a.y) + at(a.x) + (a.x < b.x ? ", " + number(b.y) + at(b.x) : "");
  }
  std::vector<Value> shown;
  double widest = -1, place = 0;
  for (const double x : d.numbers) {
    std::vector<Value> here;
    bool overloaded = false;
    for (const ChartSeries& series : chart.series)
      for (const ChartPoint& point : series.points) {
        if (point.x != x) continue;
        here.emplace_back(point.y, series.name);
        overloaded = overloaded || point.overloaded;
      }
    if (here.size() < chart.series.size()) continue;
    std::ranges::sort(here);
    const double ratio = overloaded ? 0 : here.back().first / std::max(1e-12, here.front().first);
    if (ratio <= widest) continue;
    widest = ratio;
    place = x;
    shown = std::move(here);
  }
  if (shown.empty()) return {};
  if (!less_is_better) std::ranges::reverse(shown);
  if (shown.size() > kMostNamed) shown.erase(shown.begin() + 1, shown.end() - 1);
  std::vector<std::string> texts;
  for (const auto& [value, name] : shown) texts.push_back(number(value) + " behind " + name);
  return ": " + joined(texts) + at(place);
}

/// One metric of all variants along the only axis, with its goal.
LineChart axis_curve(const SweepGoals& goals, const SweepPanel& panel, const std::string& metric,
                     bool replicated) {
  const PageAxis& d = goals.drawn()[0];
  const MetricView view = metric_view(metric);
  LineChart chart;
  chart.subtitle = std::string(replicated ? "Means with 95 % intervals" : "One run each") +
                   "; × marks overload.";
  chart.x = {.title = goals.name_of(d)};
  chart.y = {.title = view.title, .unit = view.unit, .from_zero = true};
  for (std::size_t v = 0; v < goals.variants().size(); ++v) {
    ChartSeries series{.name = goals.variants()[v], .colour = v};
    for (std::size_t i = 0; i < d.values.size(); ++i) {
      const SweepCells::Row* row = goals.row_at(panel, goals.variants()[v], {d.values[i]});
      if (row == nullptr || !row->values.contains(metric)) continue;
      series.points.push_back(
          point_of(d.numbers[i], in_base_unit(row->values.at(metric), view), row->overloaded));
    }
    chart.series.push_back(std::move(series));
  }
  chart.title = with_goal(goals, metric, view) + gap_text(chart, d, view.less_is_better) +
                (panel.title.empty() ? "" : ", " + panel.title);
  chart.y.log = view.unit == Unit::kSeconds && spreads_wide(chart);
  if (const MetricGoal* goal = goal_on(goals, metric)) {
    chart.goal = goal->bound * view.scale;
    chart.goal_text = goal->text;
  }
  return chart;
}

/// One metric along an axis of names, the best first.
BarChart bars(const SweepGoals& goals, const SweepPanel& panel, const std::string& variant,
              const std::string& metric) {
  const PageAxis& d = goals.drawn()[0];
  const MetricView view = metric_view(metric);
  BarChart chart;
  chart.title = with_goal(goals, metric, view);
  chart.subtitle = panel_name(panel, variant) + ", by " + goals.name_of(d) + ", the best first; " +
                   (goals.goals().empty() ? "" : "✓ meets the goals, ✗ misses one, ") +
                   "× is overloaded.";
  chart.unit = view.unit;
  for (const std::string& value : d.values) {
    const SweepCells::Row* row = goals.row_at(panel, variant, {value});
    if (row == nullptr || !row->values.contains(metric)) continue;
    const CellState state = goals.state_of(*row);
    chart.bars.push_back({.name = value + " " + std::string(goal_mark(state)),
                          .value = in_base_unit(row->values.at(metric), view).value,
                          .colour = holds(state) ? std::size_t{0} : kColours - 1});
  }
  std::ranges::stable_sort(chart.bars, [&](const auto& a, const auto& b) {
    return view.less_is_better ? a.value < b.value : a.value > b.value;
  });
  const auto said = [&](const BarChart::Bar& bar) {
    return human(bar.value, chart.unit) + " with " + bar.name.substr(0, bar.name.rfind(' '));
  };
  if (!chart.bars.empty()) chart.title += ": " + said(chart.bars.front());
  if (chart.bars.size() > 1) chart.title += ", " + said(chart.bars.back());
  return chart;
}

/// `: 661 ms to 928 ms where no queue grows`.
std::string where_held(const GoalMap& map, bool no_goals) {
  const char* const where = no_goals ? " where no queue grows" : " where the goals hold";
  std::vector<double> held;
  bool run = false, good = false;
  for (const auto& row : map.cells)
    for (const auto& cell : row) {
      run = run || cell;
      if (!cell || !holds(cell->state)) continue;
      good = true;
      if (cell->value) held.push_back(*cell->value);
    }
  if (!run) return std::string(": ") + kNotRun;
  if (!good) return no_goals ? ": every queue grows" : ": the goals hold nowhere";
  if (held.empty()) return std::string(": no number") + where;
  const auto [least, most] = std::ranges::minmax(held);
  return ": " + human(least, map.unit) + (least < most ? " to " + human(most, map.unit) : "") +
         where;
}

GoalMap goal_map(const SweepGoals& goals, const SweepPanel& panel, const std::string& variant,
                 const std::string& metric) {
  const PageAxis& x = goals.drawn()[0];
  const PageAxis& y = goals.drawn()[1];
  const MetricView view = metric_view(metric);
  GoalMap map;
  map.columns = x.values;
  map.rows = y.values;
  // A number grows upwards, names read downwards.
  if (y.is_numeric()) std::ranges::reverse(map.rows);
  map.x_title = goals.name_of(x);
  map.y_title = goals.name_of(y);
  map.unit = view.unit;
  map.less_is_better = view.less_is_better;
  double least = std::numeric_limits<double>::infinity();
  double most = 0;
  for (const std::string& row_value : map.rows) {
    map.cells.emplace_back();
    for (const std::string& column : map.columns) {
      const SweepCells::Row* row = goals.row_at(panel, variant, {column, row_value});
      if (row == nullptr) {
        map.cells.back().emplace_back();
        continue;
      }
      GoalMap::Cell cell{.state = goals.state_of(*row)};
      if (row->values.contains(metric)) {
        cell.value = in_base_unit(row->values.at(metric), view).value;
        least = std::min(least, *cell.value);
        most = std::max(most, *cell.value);
      }
      map.cells.back().push_back(cell);
    }
  }
  map.log = least > 0 && most > 12 * least;
  map.title = (variant.empty() ? "" : variant + ": ") + with_goal(goals, metric, view) +
              where_held(map, goals.goals().empty());
  map.subtitle = (panel.title.empty() ? "" : panel.title + "; ") +
                 (goals.goals().empty() ? "the line parts overloaded cells (×) from the others"
                                        : "the line parts cells that meet all goals (✓) from "
                                          "those that do not; × is overloaded") +
                 std::string(view.has_direction ? "; paler is better." : ".");
  return map;
}

/// The figures of one metric in one panel.
std::vector<Chart> figures(const SweepGoals& goals, const SweepPanel& panel,
                           const std::string& metric, bool replicated) {
  std::vector<Chart> out;
  if (goals.drawn().empty()) return out;
  if (goals.drawn().size() == 1 && goals.drawn()[0].is_numeric())
    return {axis_curve(goals, panel, metric, replicated)};
  for (const std::string& variant : goals.variants())
    if (goals.drawn().size() == 1)
      out.emplace_back(bars(goals, panel, variant, metric));
    else
      out.emplace_back(goal_map(goals, panel, variant, metric));
  return out;
}

std::vector<Block> panel_blocks(const SweepGoals& goals, const SweepPanel& panel, bool replicated) {
  std::vector<Block> out;
  if (goals.rate() != nullptr && goals.drawn().size() == 2) {
    if (goals.fleet() != nullptr)
      add_fleets(goals, panel, out);
    else
      out.push_back({capacity_table(goals, panel)});
  }
  // Metrics with a goal first.
  std::vector<std::string> metrics = goals.cells().metrics;
  std::ranges::stable_partition(
      metrics, [&](const std::string& metric) { return goal_on(goals, metric) != nullptr; });
  Charts shown{.title = "The map"}, folded;
  std::size_t drawn = 0;
  for (const std::string& metric : metrics) {
    std::vector<Chart> all = figures(goals, panel, metric, replicated);
    const bool open = drawn == 0 || goal_on(goals, metric) != nullptr ||
                      (goals.goals().empty() && drawn + all.size() <= kMostFigures);
    std::vector<Chart>& charts = (open ? shown : folded).charts;
    charts.insert(charts.end(), all.begin(), all.end());
    drawn += all.size();
  }
  if (!shown.charts.empty()) out.push_back({std::move(shown), For::kPages});
  if (!folded.charts.empty())
    out.push_back({Fold{"The other metrics", {{std::move(folded)}}}, For::kPages});
  return out;
}

Table cells_table(const SweepGoals& goals) {
  Table table{.columns = {{"variant", true}}};
  for (const std::string& axis : goals.cells().axes) table.columns.push_back({axis});
  table.columns.push_back({goals.goals().empty() ? "load" : "goals"});
  for (const std::string& metric : goals.cells().metrics) table.columns.push_back({metric});
  for (const SweepCells::Row& row : goals.cells().rows) {
    std::vector<Cell>& out = table.rows.emplace_back();
    out.push_back({.text = row.variant});
    for (const std::string& value : row.cell) out.push_back({.text = value});
    const CellState state = goals.state_of(row);
    out.push_back({.text = std::string(goal_mark(state)) + " " + std::string(goal_word(state))});
    for (const std::string& metric : goals.cells().metrics) {
      const auto found = row.values.find(metric);
      out.push_back(found == row.values.end() ? Cell{.text = "-"} : Cell{.number = found->second});
    }
  }
  return table;
}

// ------------------------------------------------------------------------------ plain

/// The first metrics; where the file named none, those of the standard ones that say most.
std::vector<std::string> columns_of(const SweepCells& cells) {
  constexpr std::size_t kMost = 6;
  const std::vector<MetricName> standard = standard_metrics();
  const auto is_name = [](const MetricName& metric, const std::string& name) {
    return metric.text == name;
  };
  if (std::ranges::mismatch(standard, cells.metrics, is_name).in1 == standard.end())
    return {"output_tokens_per_s", "ttft_ms.mean", "ttft_ms.p99", "tpot_ms.mean",
            "prefix_cache_hit_rate"};
  std::vector<std::string> columns = cells.metrics;
  columns.resize(std::min(columns.size(), kMost));
  return columns;
}

/// A number with enough decimals for four digits, and its interval with as many.
std::string metric_text(const SweepRowRecord::Metric& metric) {
  if (!std::isfinite(metric.mean)) return "-";
  const double size = std::abs(metric.mean);
  const int decimals = size >= 1000 || size == 0 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3;
  std::string text = fixed_text(metric.mean, decimals);
  if (std::isfinite(metric.half_width)) text += " ±" + fixed_text(metric.half_width, decimals);
  return text;
}

/// One line per row, or per reported stage where a row has several.
Table plain_table(const SweepRecord& record, const SweepCells& cells) {
  const std::vector<std::string> columns = columns_of(cells);
  const auto reported = [](const SweepRowRecord& row) {
    return std::ranges::count(row.stages, true, &SweepRowRecord::Stage::reported);
  };
  const bool by_stage = std::ranges::any_of(
      record.sweep_rows, [&](const SweepRowRecord& row) { return reported(row) > 1; });
  Table table;
  const std::size_t axes = record.sweep_rows.front().cell.items.size();
  for (const auto& [axis, value] : record.sweep_rows.front().cell.items)
    table.columns.push_back({axis, true});
  table.columns.push_back({"variant", true});
  if (by_stage) table.columns.push_back({"stage rate", true});
  for (const std::string& column : columns) table.columns.push_back({column});
  const auto add = [&](const SweepRowRecord& row, const SweepRowRecord::Numbers& numbers,
                       const std::string& stage) {
    std::vector<Cell>& out = table.rows.emplace_back();
    for (const auto& [axis, value] : row.cell.items) out.push_back({.text = axis_value(value)});
    out.resize(axes);  // Of a row that lacks one.
    out.push_back({.text = row.variant});
    if (by_stage) out.push_back({.text = stage});
    for (const std::string& column : columns) {
      Cell& cell = out.emplace_back(Cell{.text = "-"});
      for (const auto& [name, metric] : numbers.metrics.items)
        if (name == column) cell.text = (numbers.overloaded ? "! " : "") + metric_text(metric);
    }
  };
  for (const SweepRowRecord& row : record.sweep_rows) {
    if (!by_stage) add(row, row.summary, "");
    if (by_stage)
      for (const SweepRowRecord::Stage& stage : row.stages)
        if (stage.reported)
          add(row, stage,
              stage.requested_rate > 0 ? number_text(stage.requested_rate) : stage.name);
  }
  return table;
}

ExportTable cells_data(const std::string& name, const SweepCells& cells) {
  ExportTable table{.name = "sweep", .columns = {"sweep", "variant"}};
  table.columns.insert(table.columns.end(), cells.axes.begin(), cells.axes.end());
  for (const char* column : {"metric", "value", "low", "high"}) table.columns.emplace_back(column);
  for (const SweepCells::Row& row : cells.rows)
    for (const auto& [metric, datum] : row.values) {
      std::vector<ExportTable::Value>& out = table.rows.emplace_back();
      out = {name, row.variant};
      out.insert(out.end(), row.cell.begin(), row.cell.end());
      out.insert(out.end(), {metric, std::optional(datum.value), datum.low, datum.high});
    }
  return table;
}

/// The first figure becomes the picture of the verdict; one of a fold says of which.
bool lift_picture(std::vector<Block>& blocks, const std::string& fold, StudyVerdict& verdict) {
  for (Block& block : blocks) {
    if (auto* const figures = std::get_if<Charts>(&block.content);
        figures != nullptr && !figures->charts.empty()) {
      verdict.picture = std::move(figures->charts.front());
      figures->charts.erase(figures->charts.begin());
      if (!fold.empty())
        std::visit([&](auto& chart) { chart.title += ", " + fold; }, *verdict.picture);
      return true;
    }
    if (auto* const inner = std::get_if<Fold>(&block.content);
        inner != nullptr && lift_picture(inner->blocks, inner->title, verdict))
      return true;
  }
  return false;
}

}  // namespace

StudyDocument sweep_document(const SweepRecord& record, const std::string& question,
                             const std::string& path) {
  const SweepCells cells = cells_of(record, path);
  StudyDocument out;
  if (record.sweep_rows.empty()) return out;
  const SweepRowRecord& first = record.sweep_rows.front();
  const SweepGoals goals(cells);
  out.name = "sweep " + first.sweep;
  out.kicker = first.sweep + " · sweep · routesim " + first.version + " · " +
               std::to_string(cells.rows.size()) + " cells";
  out.title = question.empty() ? first.sweep : question;
  out.verdict = sweep_verdict(record, goals);
  out.data = {cells_data(first.sweep, cells)};
  out.blocks.push_back({Heading{"Every row"}, For::kPlain});
  out.blocks.push_back({plain_table(record, cells), For::kPlain});
  if (std::ranges::any_of(cells.rows, &SweepCells::Row::overloaded))
    out.blocks.push_back(
        {Paragraph{"! overloaded: the stage is asked for more than it answers"}, For::kPlain});
  out.blocks.push_back({Heading{goals.goals().empty() ? "Where no queue grows without end"
                                                      : "Where the goals hold"}});
  const std::size_t before = out.blocks.size();
  for (const SweepPanel& panel : goals.panels()) {
    std::vector<Block> blocks = panel_blocks(goals, panel, first.replications > 1);
    if (blocks.empty()) continue;
    if (panel.title.empty())
      out.blocks.insert(out.blocks.end(), blocks.begin(), blocks.end());
    else
      out.blocks.push_back(
          {Fold{panel.title, std::move(blocks), &panel == &goals.panels()[0]}, For::kPages});
  }
  if (out.blocks.size() == before) out.blocks.pop_back();
  lift_picture(out.blocks, "", out.verdict);
  out.blocks.push_back({Fold{"All " + std::to_string(cells.rows.size()) + " cells, in numbers",
                             {{cells_table(goals)}}},
                        For::kPages});
  return out;
}

}  // namespace routesim::tools
