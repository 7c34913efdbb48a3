// The sections of one sweep: the cells that meet the goals, the smallest fleet for each rate, and
// the numbers behind both. Without goals, the cells that are not overloaded.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/describe.h"
#include "base/scalar_parse.h"
#include "tools/render/chart/chart.h"
#include "tools/render/metric_view.h"
#include "tools/render/page/html_page.h"
#include "tools/render/sweep_goals.h"
#include "tools/results/text_table.h"
#include "tools/results/trust_errors.h"

namespace routesim::tools {

namespace {

constexpr std::size_t kMostNamed = 4;    ///< Fleets that a sentence names one by one.
constexpr std::size_t kMostFigures = 8;  ///< More are folded away, but for the first metric's.

/// `8 servers`, `rate 40`.
std::string axis_text(const std::string& axis, const std::string& value) {
  const bool plural = axis.find_first_of(".[ ") == std::string::npos && axis.ends_with('s');
  return plural ? value + " " + axis : axis + " " + value;
}

/// How far one variant gets in one panel.
struct Reach {
  std::string name;   ///< `precise`, `precise, tp 2`.
  std::string words;  ///< `up to rate 43`, `with 4 servers`, `in 3 of 8 cells`.
  double score = 0;   ///< Larger is better.
};

std::string name_of(const SweepPanel& panel, const std::string& variant) {
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

Reach fleet_reach(const PageSweep& sweep, const SweepGoals& goals, const SweepPanel& panel,
                  const std::string& variant, const std::string& rate) {
  const PageAxis& fleet = *goals.fleet();
  const std::string& axis = sweep.axes[fleet.axis];
  const auto n = goals.smallest_fleet(panel, variant, rate);
  if (!n)
    return {name_of(panel, variant), "not even with " + axis_text(axis, fleet.values.back()),
            -std::numeric_limits<double>::infinity()};
  return {name_of(panel, variant), "with " + axis_text(axis, fleet.values[*n]), -fleet.numbers[*n]};
}

Reach rate_reach(const PageSweep& sweep, const SweepGoals& goals, const SweepPanel& panel,
                 const std::string& variant, const std::string& other) {
  const PageAxis& rate = *goals.rate();
  const auto last = goals.highest_rate(panel, variant, other);
  const std::string& axis = sweep.axes[rate.axis];
  if (!last) return {name_of(panel, variant), "not even at " + axis_text(axis, rate.values[0]), -1};
  const bool all = *last + 1 == rate.values.size();
  return {name_of(panel, variant),
          "up to " + axis_text(axis, rate.values[*last]) + (all ? ", the highest tried," : ""),
          rate.numbers[*last]};
}

Reach cell_reach(const SweepGoals& goals, const SweepPanel& panel, const std::string& variant) {
  std::size_t met = 0;
  std::size_t all = 0;
  for (const PageSweep::Row* row : panel.rows) {
    if (row->variant != variant) continue;
    ++all;
    if (holds(goals.state_of(*row))) ++met;
  }
  return {name_of(panel, variant),
          "in " + std::to_string(met) + " of " + std::to_string(all) + " cells",
          all == 0 ? 0 : static_cast<double>(met) / static_cast<double>(all)};
}

/// One sentence that is true of any number of variants and panels.
std::string headline(const PageSweep& sweep, const SweepGoals& goals) {
  const bool no_goals = goals.goals().empty();
  const bool by_fleet =
      goals.fleet() != nullptr && (goals.rate() != nullptr || goals.drawn().size() == 1);
  std::string rate, place;
  if (by_fleet && goals.rate() != nullptr) {
    rate = telling_rate(goals);
    place = "At " + axis_text(sweep.axes[goals.rate()->axis], rate) + " ";
  }
  const auto begin = [&place](std::string text) {
    if (place.empty()) text[0] = static_cast<char>(text[0] - 'a' + 'A');
    return place + text;
  };
  std::vector<Reach> all;
  for (const SweepPanel& panel : goals.panels())
    for (const std::string& variant : goals.variants())
      all.push_back(by_fleet ? fleet_reach(sweep, goals, panel, variant, rate)
                    : goals.rate() != nullptr && goals.drawn().size() == 1
                        ? rate_reach(sweep, goals, panel, variant, "")
                        : cell_reach(goals, panel, variant));
  std::stable_sort(all.begin(), all.end(),
                   [](const Reach& a, const Reach& b) { return a.score > b.score; });
  const auto is_no = [](const Reach& r) { return r.words.starts_with("not "); };
  const auto said = [&](const Reach& r) {
    return is_no(r) ? "behind " + r.name + (no_goals ? " queues grow " : " they fail ") +
                          r.words.substr(4)
                    : r.words + " behind " + r.name;
  };
  const std::string start = begin(no_goals ? "no queue grows without end " : "the goals hold ");
  if (all.size() > kMostNamed && !is_no(all.front())) {
    std::string text = start + said(all.front());
    if (all.front().score == all.back().score)
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

/// Says for each class of step times how many cells rest on it.
std::string rests_on(const PageSweep& sweep) {
  std::map<std::string, std::size_t> cells;
  for (const PageSweep::Row& row : sweep.rows)
    if (!row.step_times.empty()) ++cells[row.step_times];
  std::string text;
  for (const auto& [name, n] : cells)
    for (const models::Trust trust : {models::Trust::kFitted, models::Trust::kExtrapolated,
                                      models::Trust::kRoofline, models::Trust::kDataSheet})
      if (enum_name(trust) == name)
        text.append(text.empty() ? "" : " ")
            .append(std::to_string(n))
            .append(" of ")
            .append(std::to_string(sweep.rows.size()))
            .append(" cells rest on ")
            .append(trust_clause(trust))
            .append("; ")
            .append(trust_errors_text(trust))
            .append(".");
  return text;
}

std::string verdict_section(const PageSweep& sweep, const SweepGoals& goals) {
  std::string out = "<section class=\"verdict\" aria-label=\"Verdict\"><p class=\"big\">" +
                    html(headline(sweep, goals)) + "</p><ul>";
  for (const MetricGoal& goal : goals.goals()) out += "<li>goal: " + html(goal.text) + "</li>";
  if (goals.goals().empty())
    out +=
        "<li>No goal was given: <code>goals:</code> in the sweep file, or <code>routesim report "
        "--goal 'ttft_ms.p90&lt;500'</code>, draws where it is met.</li>";
  std::map<CellState, std::size_t> states;
  for (const PageSweep::Row& row : sweep.rows) ++states[goals.state_of(row)];
  std::string counts;
  for (const auto& [state, n] : states)
    counts +=
        (counts.empty() ? "" : ", ") + std::to_string(n) + " " + std::string(goal_word(state));
  out += "<li>" + std::to_string(sweep.rows.size()) + " cells: " + html(counts) + "</li>";
  return out + "</ul><p class=\"fine\">" +
         (goals.goals().empty() ? std::string()
          : sweep.replications > 1
              ? "A goal is met where the whole 95 % interval over " +
                    std::to_string(sweep.replications) + " replications is on its side. "
              : std::string("One run per cell, so chance may decide near a goal. ")) +
         "In an overloaded cell some queue grows until it ends" +
         (goals.goals().empty() ? ". " : ": it meets nothing. ") + html(rests_on(sweep)) +
         "</p></section>";
}

/// The smallest fleet of each variant at each rate, as a table and as steps.
std::string fleet_section(const PageSweep& sweep, const SweepGoals& goals,
                          const SweepPanel& panel) {
  const PageAxis& rate = *goals.rate();
  const PageAxis& fleet = *goals.fleet();
  LineChart chart;
  chart.title =
      "The smallest fleet for each rate" + (panel.title.empty() ? "" : ", " + panel.title);
  chart.subtitle = "A line ends where every tried fleet " +
                   std::string(goals.goals().empty() ? "is overloaded." : "misses the goals.");
  chart.x = {.title = sweep.axes[rate.axis]};
  chart.y = {.title = sweep.axes[fleet.axis], .unit = Unit::kCount, .from_zero = true};
  std::string out = open_table(1 + goals.variants().size()) + "<thead><tr><th>" +
                    html(sweep.axes[rate.axis]) + "</th>";
  for (std::size_t v = 0; v < goals.variants().size(); ++v) {
    out += series_heading(v, goals.variants()[v]);
    chart.series.push_back({.name = goals.variants()[v], .colour = v});
  }
  out += "</tr></thead><tbody>";
  for (std::size_t r = 0; r < rate.values.size(); ++r) {
    out += "<tr><td>" + html(rate.values[r]) + "</td>";
    for (std::size_t v = 0; v < goals.variants().size(); ++v) {
      const auto n = goals.smallest_fleet(panel, goals.variants()[v], rate.values[r]);
      out += n ? "<td>" + html(axis_text(sweep.axes[fleet.axis], fleet.values[*n])) + "</td>"
               : "<td class=\"bad\">none up to " + html(fleet.values.back()) + "</td>";
      if (n)
        chart.series[v].points.push_back(
            {.x = rate.numbers[r], .y = fleet.numbers[*n], .low = {}, .high = {}});
    }
    out += "</tr>";
  }
  return "<h3>The smallest fleet for each rate</h3><div class=\"charts\">" + draw(chart) +
         "</div>" + out + "</tbody></table></div>";
}

/// The highest rate that each value of the other axis holds, where that is no fleet.
std::string capacity_section(const PageSweep& sweep, const SweepGoals& goals,
                             const SweepPanel& panel) {
  const PageAxis& other = goals.drawn()[goals.rate() == &goals.drawn()[0] ? 1 : 0];
  std::string out = "<h3>The highest rate that " +
                    std::string(goals.goals().empty() ? "is not overloaded" : "meets the goals") +
                    "</h3>" + open_table(1 + goals.variants().size()) + "<thead><tr><th>" +
                    html(sweep.axes[other.axis]) + "</th>";
  for (std::size_t v = 0; v < goals.variants().size(); ++v)
    out += series_heading(v, goals.variants()[v]);
  out += "</tr></thead><tbody>";
  for (const std::string& value : other.values) {
    out += "<tr><td>" + html(value) + "</td>";
    for (const std::string& variant : goals.variants())
      out += "<td>" + html(rate_reach(sweep, goals, panel, variant, value).words) + "</td>";
    out += "</tr>";
  }
  return out + "</tbody></table></div>";
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

/// One metric of all variants along the only axis, with its goal.
std::string curve(const PageSweep& sweep, const SweepGoals& goals, const SweepPanel& panel,
                  const std::string& metric) {
  const PageAxis& d = goals.drawn()[0];
  const MetricView view = metric_view(metric);
  LineChart chart;
  chart.title = with_goal(goals, metric, view) + (panel.title.empty() ? "" : ", " + panel.title);
  chart.subtitle =
      std::string(sweep.replications > 1 ? "Means with 95 % intervals" : "One run each") +
      "; × marks overload.";
  chart.x = {.title = sweep.axes[d.axis]};
  chart.y = {.title = view.title, .unit = view.unit, .from_zero = true};
  double least = std::numeric_limits<double>::infinity();
  double most = 0;
  for (std::size_t v = 0; v < goals.variants().size(); ++v) {
    ChartSeries series{.name = goals.variants()[v], .colour = v};
    for (std::size_t i = 0; i < d.values.size(); ++i) {
      const PageSweep::Row* row = goals.row_at(panel, goals.variants()[v], {d.values[i]});
      if (row == nullptr || !row->values.contains(metric)) continue;
      const Datum y = in_base_unit(row->values.at(metric), view);
      series.points.push_back({.x = d.numbers[i],
                               .y = y.value,
                               .low = y.low ? std::optional(std::max(0.0, *y.low)) : std::nullopt,
                               .high = y.high,
                               .overloaded = row->overloaded});
      least = std::min(least, y.value);
      most = std::max(most, y.value);
    }
    chart.series.push_back(std::move(series));
  }
  chart.y.log = view.unit == Unit::kSeconds && least > 0 && most > 12 * least;
  if (const MetricGoal* goal = goal_on(goals, metric)) {
    chart.goal = goal->bound * view.scale;
    chart.goal_text = goal->text;
  }
  return draw(chart);
}

/// One metric along an axis of names, the best first.
std::string bars(const PageSweep& sweep, const SweepGoals& goals, const SweepPanel& panel,
                 const std::string& variant, const std::string& metric) {
  const PageAxis& d = goals.drawn()[0];
  const MetricView view = metric_view(metric);
  BarChart chart;
  chart.title = with_goal(goals, metric, view);
  chart.subtitle = name_of(panel, variant) + ", by " + sweep.axes[d.axis] + ", the best first; " +
                   (goals.goals().empty() ? "" : "✓ meets the goals, ✗ misses one, ") +
                   "× is overloaded.";
  chart.unit = view.unit;
  for (const std::string& value : d.values) {
    const PageSweep::Row* row = goals.row_at(panel, variant, {value});
    if (row == nullptr || !row->values.contains(metric)) continue;
    const CellState state = goals.state_of(*row);
    chart.bars.push_back({.name = value + " " + std::string(goal_mark(state)),
                          .value = in_base_unit(row->values.at(metric), view).value,
                          .colour = holds(state) ? std::size_t{0} : kColours - 1});
  }
  std::stable_sort(chart.bars.begin(), chart.bars.end(), [&](const auto& a, const auto& b) {
    return view.less_is_better ? a.value < b.value : a.value > b.value;
  });
  return draw(chart);
}

std::string map_of(const PageSweep& sweep, const SweepGoals& goals, const SweepPanel& panel,
                   const std::string& variant, const std::string& metric) {
  const PageAxis& x = goals.drawn()[0];
  const PageAxis& y = goals.drawn()[1];
  const MetricView view = metric_view(metric);
  GoalMap map;
  map.columns = x.values;
  map.rows = y.values;
  // A number grows upwards, names read downwards.
  if (y.is_numeric()) std::reverse(map.rows.begin(), map.rows.end());
  map.x_title = sweep.axes[x.axis];
  map.y_title = sweep.axes[y.axis];
  map.unit = view.unit;
  map.less_is_better = view.less_is_better;
  double least = std::numeric_limits<double>::infinity();
  double most = 0;
  for (const std::string& row_value : map.rows) {
    map.cells.emplace_back();
    for (const std::string& column : map.columns) {
      const PageSweep::Row* row = goals.row_at(panel, variant, {column, row_value});
      if (row == nullptr) {
        map.cells.back().emplace_back();
        continue;
      }
      GoalMap::Cell cell{.value = {}, .state = goals.state_of(*row)};
      if (row->values.contains(metric)) {
        cell.value = in_base_unit(row->values.at(metric), view).value;
        least = std::min(least, *cell.value);
        most = std::max(most, *cell.value);
      }
      map.cells.back().push_back(cell);
    }
  }
  map.log = least > 0 && most > 12 * least;
  map.title = (variant.empty() ? "" : variant + ": ") + with_goal(goals, metric, view);
  map.subtitle = (panel.title.empty() ? "" : panel.title + "; ") +
                 (goals.goals().empty() ? "the line parts overloaded cells (×) from the others"
                                        : "the line parts cells that meet all goals (✓) from "
                                          "those that do not; × is overloaded") +
                 std::string(view.has_direction ? "; paler is better." : ".");
  return draw(map);
}

/// The figures of one metric in one panel.
std::vector<std::string> figures(const PageSweep& sweep, const SweepGoals& goals,
                                 const SweepPanel& panel, const std::string& metric) {
  std::vector<std::string> out;
  if (goals.drawn().empty()) return out;
  if (goals.drawn().size() == 1 && goals.drawn()[0].is_numeric()) {
    out.push_back(curve(sweep, goals, panel, metric));
    return out;
  }
  for (const std::string& variant : goals.variants())
    out.push_back(goals.drawn().size() == 1 ? bars(sweep, goals, panel, variant, metric)
                                            : map_of(sweep, goals, panel, variant, metric));
  return out;
}

std::string panel_section(const PageSweep& sweep, const SweepGoals& goals,
                          const SweepPanel& panel) {
  std::string out;
  if (goals.rate() != nullptr && goals.drawn().size() == 2)
    out += goals.fleet() != nullptr ? fleet_section(sweep, goals, panel)
                                    : capacity_section(sweep, goals, panel);
  // Metrics with a goal first.
  std::vector<std::string> metrics = sweep.metrics;
  std::stable_partition(metrics.begin(), metrics.end(), [&](const std::string& metric) {
    return goal_on(goals, metric) != nullptr;
  });
  std::string shown;
  std::string folded;
  std::size_t drawn = 0;
  for (const std::string& metric : metrics) {
    const std::vector<std::string> all = figures(sweep, goals, panel, metric);
    const bool open = drawn == 0 || goal_on(goals, metric) != nullptr ||
                      (goals.goals().empty() && drawn + all.size() <= kMostFigures);
    for (const std::string& figure : all) (open ? shown : folded) += figure;
    drawn += all.size();
  }
  if (!shown.empty()) out += "<h3>The map</h3><div class=\"charts\">" + shown + "</div>";
  if (!folded.empty())
    out += "<details><summary>The other metrics</summary><div class=\"charts\">" + folded +
           "</div></details>";
  return out;
}

std::string rows_table(const PageSweep& sweep, const SweepGoals& goals) {
  std::string out = "<details><summary>All " + std::to_string(sweep.rows.size()) +
                    " cells, in numbers</summary>" +
                    open_table(2 + sweep.axes.size() + sweep.metrics.size()) +
                    "<thead><tr>"
                    "<th>variant</th>";
  for (const std::string& axis : sweep.axes) out += "<th>" + html(axis) + "</th>";
  out += goals.goals().empty() ? "<th>load</th>" : "<th>goals</th>";
  for (const std::string& metric : sweep.metrics) out += "<th>" + html(metric) + "</th>";
  out += "</tr></thead><tbody>";
  for (const PageSweep::Row& row : sweep.rows) {
    out += "<tr><td>" + html(row.variant) + "</td>";
    for (const std::string& value : row.cell) out += "<td>" + html(value) + "</td>";
    const CellState state = goals.state_of(row);
    out += "<td>" + std::string(goal_mark(state)) + " " + std::string(goal_word(state)) + "</td>";
    for (const std::string& metric : sweep.metrics) {
      const auto found = row.values.find(metric);
      out += number_cell(found == row.values.end() ? nullptr : &found->second, Unit::kNone);
    }
    out += "</tr>";
  }
  return out + "</tbody></table></div></details>";
}

}  // namespace

std::string sweep_sections(const PageSweep& sweep) {
  const SweepGoals goals(sweep);
  std::string out = "<header class=\"run\"><div class=\"kicker\">sweep · routesim " +
                    html(sweep.version) + " · " + std::to_string(sweep.rows.size()) +
                    " cells</div><h1>" + html(sweep.name) + "</h1></header>";
  if (sweep.rows.empty()) return out;
  out += verdict_section(sweep, goals);
  std::string panels;
  for (const SweepPanel& panel : goals.panels()) {
    const std::string content = panel_section(sweep, goals, panel);
    if (content.empty()) continue;
    if (panel.title.empty())
      panels += content;
    else
      panels += "<details" + std::string(&panel == &goals.panels()[0] ? " open" : "") +
                "><summary>" + html(panel.title) + "</summary>" + content + "</details>";
  }
  if (!panels.empty())
    out += (goals.goals().empty() ? "<h2>Where no queue grows without end</h2>"
                                  : "<h2>Where the goals hold</h2>") +
           panels;
  return out + rows_table(sweep, goals);
}

}  // namespace routesim::tools
