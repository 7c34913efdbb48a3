// The sections of one sweep: curves for one axis, heat maps for two or more.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/describe.h"
#include "tools/render/html_page.h"
#include "tools/render/svg_chart.h"
#include "tools/results/trust_errors.h"

namespace routesim::tools {

namespace {

Unit unit_of(std::string_view metric) {
  const auto has = [&](std::string_view part) {
    return metric.find(part) != std::string_view::npos;
  };
  if (has("tokens_per_s") || has("throughput")) return Unit::kTokensPerSecond;
  if (has("requests_per_s") || has("requests_sent_per_s") || has("goodput"))
    return Unit::kRequestsPerSecond;
  if (has("percent")) return Unit::kPercent;
  if (has("hit_rate") || has("usage") || has("failure_rate")) return Unit::kRatio;
  return has("_ms") || has("_s.") || has("latency") ? Unit::kSeconds : Unit::kNone;
}

double in_base_unit(std::string_view metric, double value) {
  return metric.find("_ms") != std::string_view::npos ? value / 1e3 : value;
}

bool low_is_good(std::string_view metric) {
  return unit_of(metric) == Unit::kSeconds || metric.find("fail") != std::string_view::npos;
}

std::optional<double> number_of(const std::string& text) {
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc{}) return std::nullopt;
  return value;
}

/// The distinct values of an axis in the order of the rows.
std::vector<std::string> levels(const PageSweep& sweep, std::size_t axis) {
  std::vector<std::string> out;
  for (const PageSweep::Row& row : sweep.rows)
    if (std::find(out.begin(), out.end(), row.cell[axis]) == out.end())
      out.push_back(row.cell[axis]);
  return out;
}

std::vector<std::string> variants(const PageSweep& sweep) {
  std::vector<std::string> out;
  for (const PageSweep::Row& row : sweep.rows)
    if (std::find(out.begin(), out.end(), row.variant) == out.end()) out.push_back(row.variant);
  return out;
}

/// The axes with the most values, at most two, the one with more first.
std::vector<std::size_t> main_axes(const PageSweep& sweep) {
  std::vector<std::size_t> order;
  for (std::size_t a = 0; a < sweep.axes.size(); ++a)
    if (levels(sweep, a).size() > 1) order.push_back(a);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return levels(sweep, a).size() > levels(sweep, b).size();
  });
  if (order.size() > 2) order.resize(2);
  return order;
}

/// What is best of a metric, and where.
std::string best_of(const PageSweep& sweep, const std::string& metric) {
  const PageSweep::Row* best = nullptr;
  // A cell whose queue grows until it ends is only the best where all are such.
  const bool all = std::all_of(sweep.rows.begin(), sweep.rows.end(),
                               [](const PageSweep::Row& row) { return row.overloaded; });
  for (const PageSweep::Row& row : sweep.rows) {
    const auto found = row.values.find(metric);
    if (found == row.values.end() || (row.overloaded && !all)) continue;
    if (best == nullptr ||
        (low_is_good(metric) ? found->second.value < best->values.at(metric).value
                             : found->second.value > best->values.at(metric).value))
      best = &row;
  }
  if (best == nullptr) return {};
  std::string where = best->variant;
  for (std::size_t a = 0; a < sweep.axes.size(); ++a)
    where += (where.empty() ? "" : ", ") + sweep.axes[a] + " " + best->cell[a];
  return human(in_base_unit(metric, best->values.at(metric).value), unit_of(metric)) + " (" +
         where + (all ? ", overloaded like all cells)" : ")");
}

std::string curve(const PageSweep& sweep, std::size_t axis, const std::string& metric) {
  LineChart chart;
  chart.title = "Best " + metric + ": " + best_of(sweep, metric);
  chart.subtitle = sweep.replications > 1 ? "Means of " + std::to_string(sweep.replications) +
                                                " replications with 95 % intervals."
                                          : "One run per point.";
  chart.x = {.title = sweep.axes[axis],
             .unit = Unit::kNone,
             .log = false,
             .from_zero = false,
             .min = {},
             .max = {}};
  chart.y = {.title = metric,
             .unit = unit_of(metric),
             .log = false,
             .from_zero = true,
             .min = {},
             .max = {}};
  const std::vector<std::string> names = variants(sweep);
  const std::vector<std::string> values = levels(sweep, axis);
  for (std::size_t v = 0; v < names.size(); ++v) {
    ChartSeries series{.name = names[v],
                       .colour = v,
                       .measured = false,
                       .markers = true,
                       .steps = false,
                       .points = {}};
    for (const PageSweep::Row& row : sweep.rows) {
      const auto found = row.values.find(metric);
      if (row.variant != names[v] || found == row.values.end()) continue;
      const auto place = std::find(values.begin(), values.end(), row.cell[axis]);
      const std::optional<double> low = found->second.low;
      const std::optional<double> high = found->second.high;
      series.points.push_back(
          {.x = number_of(row.cell[axis]).value_or(static_cast<double>(place - values.begin())),
           .y = in_base_unit(metric, found->second.value),
           .low = low ? std::optional(in_base_unit(metric, *low)) : std::nullopt,
           .high = high ? std::optional(in_base_unit(metric, *high)) : std::nullopt,
           .overloaded = row.overloaded});
    }
    chart.series.push_back(std::move(series));
  }
  return draw(chart);
}

/// Rows that differ from the first one only in the two main axes and the variant.
bool on_first_plane(const PageSweep& sweep, const PageSweep::Row& row,
                    const std::vector<std::size_t>& axes) {
  for (std::size_t a = 0; a < sweep.axes.size(); ++a)
    if (std::find(axes.begin(), axes.end(), a) == axes.end() &&
        row.cell[a] != sweep.rows.front().cell[a])
      return false;
  return true;
}

std::string heat_map(const PageSweep& sweep, const std::vector<std::size_t>& axes,
                     const std::string& variant, const std::string& metric) {
  HeatMap map;
  map.columns = levels(sweep, axes[0]);
  map.rows = levels(sweep, axes[1]);
  map.x_title = sweep.axes[axes[0]];
  map.y_title = sweep.axes[axes[1]];
  map.unit = unit_of(metric);
  map.low_is_good = low_is_good(metric);
  map.cells.assign(map.rows.size(), std::vector<std::optional<double>>(map.columns.size()));
  double least = INFINITY;
  double most = 0;
  for (const PageSweep::Row& row : sweep.rows) {
    const auto found = row.values.find(metric);
    if (row.variant != variant || found == row.values.end() || !on_first_plane(sweep, row, axes))
      continue;
    const double value = in_base_unit(metric, found->second.value);
    const auto r = std::find(map.rows.begin(), map.rows.end(), row.cell[axes[1]]);
    const auto c = std::find(map.columns.begin(), map.columns.end(), row.cell[axes[0]]);
    map.cells[static_cast<std::size_t>(r - map.rows.begin())]
             [static_cast<std::size_t>(c - map.columns.begin())] = value;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  map.log = least > 0 && most > 12 * least;
  map.title = (variant.empty() ? "" : variant + ": ") + metric + " from " + human(least, map.unit) +
              " to " + human(most, map.unit);
  map.subtitle = std::string("Bright is ") + (map.low_is_good ? "low" : "high") +
                 ", which is good" + (map.log ? "; logarithmic colours" : "");
  for (std::size_t a = 0; a < sweep.axes.size(); ++a)
    if (std::find(axes.begin(), axes.end(), a) == axes.end())
      map.subtitle += "; " + sweep.axes[a] + " = " + sweep.rows.front().cell[a];
  map.subtitle += ".";
  return draw(map);
}

/// What the cells rest on, by class.
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

std::string rows_table(const PageSweep& sweep) {
  std::string out = "<details><summary>All " + std::to_string(sweep.rows.size()) +
                    " cells, in numbers</summary><div class=\"scroll\"><table><thead><tr>"
                    "<th>variant</th>";
  for (const std::string& axis : sweep.axes) out += "<th>" + html(axis) + "</th>";
  for (const std::string& metric : sweep.metrics) out += "<th>" + html(metric) + "</th>";
  out += "</tr></thead><tbody>";
  for (const PageSweep::Row& row : sweep.rows) {
    out += "<tr><td>" + html(row.variant) + "</td>";
    for (const std::string& value : row.cell) out += "<td>" + html(value) + "</td>";
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
  std::string out = "<header class=\"run\"><div class=\"kicker\">sweep · routesim " +
                    html(sweep.version) + " · " + std::to_string(sweep.rows.size()) +
                    " cells</div><h1>" + html(sweep.name) + "</h1></header>";
  out += "<section class=\"verdict\" aria-label=\"Verdict\"><p class=\"big\">The best of " +
         std::to_string(sweep.rows.size()) + " cells</p><ul>";
  for (const std::string& metric : sweep.metrics)
    out += "<li>" + html(metric) + ": " + html(best_of(sweep, metric)) + "</li>";
  out += "</ul><p class=\"fine\">" + html(rests_on(sweep)) +
         "</p></section><h2>The map</h2><div class=\"charts\">";
  const std::vector<std::size_t> axes = main_axes(sweep);
  for (const std::string& metric : sweep.metrics) {
    if (axes.size() == 1) out += curve(sweep, axes[0], metric);
    if (axes.size() == 2)
      for (const std::string& variant : variants(sweep))
        out += heat_map(sweep, axes, variant, metric);
  }
  return out + "</div>" + rows_table(sweep);
}

}  // namespace routesim::tools
