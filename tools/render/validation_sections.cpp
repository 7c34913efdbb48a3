// The sections of `routesim validate`: published numbers beside simulated ones.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/scalar_parse.h"
#include "tools/render/dot_plot.h"
#include "tools/render/html_page.h"
#include "tools/render/json_node.h"
#include "tools/render/metric_view.h"
#include "tools/render/svg_chart.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

namespace {

/// Without the remark that some publications add in brackets.
std::string brief(const std::string& text) { return text.substr(0, text.find(" (")); }

/// A published row's quantity: `ttft` with `p90` is `ttft.p90`; rates have no statistic.
MetricView view_of(const std::string& metric, const std::string& statistic) {
  const std::string plain = brief(statistic);
  MetricView view = metric_view(metric);
  if (view.unit == Unit::kNone) view = metric_view(metric + "." + plain);
  if (view.unit == Unit::kNone) {
    view.title = metric + " " + plain;
    std::replace(view.title.begin(), view.title.end(), '_', ' ');
  }
  return view;
}

/// `ms` and `us` in seconds, percent as a ratio.
double unit_scale(const std::string& unit) {
  if (unit.starts_with("ms")) return 1e-3;
  if (unit.starts_with("us")) return 1e-6;
  return unit == "%" ? 0.01 : 1;
}

std::string class_words(const std::string& name) {
  if (name == "fitted") return "fitted step times";
  if (name == "extrapolated") return "step times beyond the fitted range";
  if (name == "roofline") return "step times of a roofline";
  return "step times of a data sheet";
}

/// `output tokens/s 2.1 % (40 numbers), ...` of one class.
std::string class_errors(const std::vector<Node>& rows, const std::string& name, bool held_out) {
  std::string text;
  for (const Node& row : rows) {
    if (row["step_times"].text() != name || row["held_out"].is_true() != held_out) continue;
    text += (text.empty() ? "" : ", ") + row["quantity"].text() + " " +
            fixed_text(row["mean_absolute_error_percent"].number(), 1) + "\u00a0% (" +
            row["published_numbers"].text() + ")";
  }
  return text;
}

/// How many rows of the error tables have a limit, and how many exceed it.
std::string limits_sentence(const std::vector<Node>& scenarios) {
  int with = 0;
  int beyond = 0;
  for (const Node& scenario : scenarios)
    for (const Node& row : scenario["errors"].items()) {
      if (!row["limit_percent"].datum()) continue;
      ++with;
      if (row["mape_percent"].number() > row["limit_percent"].number()) ++beyond;
    }
  if (with == 0) return {};
  if (beyond == 0) return "All " + std::to_string(with) + " rows stay within their limits.";
  return std::to_string(beyond) + " of " + std::to_string(with) + " rows exceed their limit.";
}

std::string validation_verdict(const Node& root) {
  const std::vector<Node> rows = root["by_class"].items();
  std::vector<std::pair<std::string, bool>> classes;
  for (const Node& row : rows) {
    const std::pair<std::string, bool> key{row["step_times"].text(), row["held_out"].is_true()};
    if (std::find(classes.begin(), classes.end(), key) == classes.end()) classes.push_back(key);
  }
  std::string out = "<section class=\"verdict\" aria-label=\"Verdict\"><p class=\"big\">";
  if (classes.empty()) {
    out += "No published number of these scenarios is scored by class.";
  } else {
    const auto& [name, held_out] = classes.front();
    out += html("Mean error with " + class_words(name) + (held_out ? ", held out: " : ": ") +
                class_errors(rows, name, held_out) + ".");
  }
  out += "</p><ul>";
  for (std::size_t i = 1; i < classes.size(); ++i) {
    const auto& [name, held_out] = classes[i];
    out += "<li>" +
           html((held_out ? "held out, " : "") + class_words(name) + ": " +
                class_errors(rows, name, held_out)) +
           "</li>";
  }
  if (const std::string limits = limits_sentence(root["scenarios"].items()); !limits.empty())
    out += "<li>" + limits + "</li>";
  const std::vector<Node> scenarios = root["scenarios"].items();
  const bool all_own =
      std::ranges::all_of(scenarios, [](const Node& s) { return s["own_measurements"].is_true(); });
  return out +
         "</ul><p class=\"fine\">Mean absolute error in percent of the published value, with the "
         "number of published values in brackets. " +
         std::string(all_own ? "Your own measurements had no part in any fit.</p>"
                             : "Held-out experiments had no part in any fit; the others did, so "
                               "their errors are smaller than those of a new deployment.</p>") +
         "</section>";
}

/// Returns a cell's place along the load: its published rate, else the number in its stage's name.
std::optional<double> position(const Node& cell) {
  if (const std::optional<double> rate = number_from(cell["rate"].text())) return rate;
  std::string stage = cell["stage"].text();
  const std::size_t digit = stage.find_first_of("0123456789");
  if (digit == std::string::npos) return std::nullopt;
  return number_from(stage.substr(digit));
}

bool is_plotted(const Node& cell) {
  return !cell["variant"].text().empty() && cell["status"].text() == "scored" &&
         cell["stage"].text() != "all" && cell["simulated"].datum();
}

/// Measured points and simulated lines of one quantity against the load. Empty for one stage.
std::string curve(const std::vector<Node>& cells, const MetricView& view) {
  LineChart chart;
  chart.x = {.title = "load", .unit = Unit::kNone};
  chart.y = {.title = view.title, .unit = view.unit, .from_zero = true};
  std::vector<std::string> policies;
  double least = INFINITY;
  double most = 0;
  double error = 0;
  for (const Node& cell : cells) {
    const std::string policy = cell["policy"].text();
    if (std::find(policies.begin(), policies.end(), policy) == policies.end()) {
      chart.series.push_back({.name = policy, .colour = policies.size()});
      chart.series.push_back({.name = policy, .colour = policies.size(), .measured = true});
      policies.push_back(policy);
    }
    const auto at = static_cast<std::size_t>(std::find(policies.begin(), policies.end(), policy) -
                                             policies.begin());
    const std::optional<double> x = position(cell);
    if (!x) return {};
    const double scale = unit_scale(cell["unit"].text());
    const double simulated = scale * cell["simulated"].number();
    const double measured = scale * cell["measured"].number();
    chart.series[2 * at].points.push_back({.x = *x, .y = simulated, .low = {}, .high = {}});
    chart.series[2 * at + 1].points.push_back({.x = *x, .y = measured, .low = {}, .high = {}});
    least = std::min({least, simulated, measured});
    most = std::max({most, simulated, measured});
    error += std::abs(cell["error_percent"].number());
  }
  for (ChartSeries& s : chart.series)
    std::stable_sort(s.points.begin(), s.points.end(),
                     [](const ChartPoint& a, const ChartPoint& b) { return a.x < b.x; });
  const std::vector<ChartPoint>& points = chart.series.front().points;
  if (points.size() < 2 || points.front().x == points.back().x) return {};
  chart.y.log = view.unit == Unit::kSeconds && least > 0 && most > 12 * least;
  const bool rates = number_from(cells.front()["rate"].text()).has_value() ||
                     cells.front()["stage"].text().starts_with("rate");
  chart.x.title = rates ? "requests/s asked for" : "stage";
  chart.title = view.title + ": " + fixed_text(error / static_cast<double>(cells.size()), 1) +
                " % off on average";
  chart.subtitle = "Lines are simulated, diamonds are published.";
  return draw(chart);
}

/// The errors of an experiment's scored rows around zero, a figure for each policy, the largest
/// first.
std::string error_plots(const Node& scenario) {
  constexpr std::size_t kMostRows = 12;
  std::vector<std::pair<std::string, std::vector<Node>>> policies;
  for (const Node& row : scenario["errors"].items()) {
    const std::string policy = row["policy"].text();
    if (policies.empty() || policies.back().first != policy) policies.push_back({policy, {}});
    policies.back().second.push_back(row);
  }
  std::string out;
  for (auto& [policy, rows] : policies) {
    std::stable_sort(rows.begin(), rows.end(), [](const Node& a, const Node& b) {
      return a["mape_percent"].number() > b["mape_percent"].number();
    });
    DotPlot plot{.title = policy + ": how far the simulation is off",
                 .subtitle =
                     "Mean error in percent of the published value; a bar ends at the worst "
                     "stage."};
    if (rows.size() > kMostRows)
      plot.subtitle += " The " + std::to_string(kMostRows) + " largest of " +
                       std::to_string(rows.size()) + "; the table has all.";
    for (const Node& row : rows) {
      if (plot.rows.size() == kMostRows) break;
      const double bias = row["bias_percent"].number();
      const double worst = row["worst_percent"].number();
      plot.rows.push_back({.name = view_of(row["metric"].text(), row["statistic"].text()).title,
                           .text = signed_percent(bias) + " %",
                           .style = DotPlot::Style::kUnsure,
                           .percent = bias,
                           .low = std::min(bias, worst),
                           .high = std::max(bias, worst)});
    }
    out += draw(plot);
  }
  return out;
}

/// The figures of an experiment: curves where there are several stages, else the errors.
std::string figures(const Node& scenario) {
  std::vector<std::pair<std::string, MetricView>> quantities;
  std::map<std::string, std::vector<Node>> cells;
  for (const Node& cell : scenario["cells"].items()) {
    if (!is_plotted(cell)) continue;
    const std::string key = cell["experiment"].text() + "|" + cell["metric"].text() + "|" +
                            brief(cell["statistic"].text());
    if (!cells.contains(key))
      quantities.emplace_back(key, view_of(cell["metric"].text(), cell["statistic"].text()));
    cells[key].push_back(cell);
  }
  std::string out;
  for (const auto& [key, view] : quantities)
    if (view.unit != Unit::kNone) out += curve(cells[key], view);
  if (out.empty()) out = error_plots(scenario);
  return out.empty() ? out : "<div class=\"charts\">" + out + "</div>";
}

std::string number_of(const Node& row, const char* key) {
  const std::optional<Datum> datum = row[key].datum();
  return number_cell(datum ? &*datum : nullptr, Unit::kNone);
}

struct ErrorRow {
  std::string scenario;
  Node row;
};

/// The rows of the error tables, the largest error first.
std::string error_table(const std::vector<Node>& scenarios, bool held_out, bool own) {
  std::vector<ErrorRow> rows;
  for (const Node& scenario : scenarios)
    if (scenario["held_out"].is_true() == held_out && scenario["own_measurements"].is_true() == own)
      for (const Node& row : scenario["errors"].items())
        rows.push_back({scenario["scenario"].text(), row});
  if (rows.empty()) return {};
  std::stable_sort(rows.begin(), rows.end(), [](const ErrorRow& a, const ErrorRow& b) {
    return a.row["mape_percent"].number() > b.row["mape_percent"].number();
  });
  const bool limits = std::any_of(rows.begin(), rows.end(), [](const ErrorRow& r) {
    return r.row["limit_percent"].datum().has_value();
  });
  std::string out =
      std::string("<h2>") +
      (own        ? "Your own measurements, not fitted"
       : held_out ? "Held-out experiments"
                  : "Experiments that curves were fitted to") +
      ": errors, largest first" + "</h2>" + open_table(8) +
      "<thead><tr><th>scenario</th><th class=\"text\">policy"
      "</th><th class=\"text\">metric</th><th>numbers</th><th>mean error, %</th>" +
      std::string(limits ? "<th>limit, %</th>" : "") +
      "<th>bias, %</th><th>worst, %</th><th class=\"text\">at stage</th></tr></thead><tbody>";
  for (const ErrorRow& r : rows) {
    out += "<tr><td>" + html(r.scenario) + "</td><td class=\"text\">" +
           html(r.row["policy"].text()) + "</td><td class=\"text\">" +
           html(view_of(r.row["metric"].text(), r.row["statistic"].text()).title) + "</td>" +
           number_of(r.row, "cells") + number_of(r.row, "mape_percent");
    if (limits) out += number_of(r.row, "limit_percent");
    out += number_of(r.row, "bias_percent") + number_of(r.row, "worst_percent") +
           "<td class=\"text\">" + html(r.row["worst_stage"].text()) + "</td></tr>";
  }
  return out + "</tbody></table></div>";
}

/// Every published number of an experiment.
std::string cell_table(const Node& scenario) {
  std::string out =
      "<details><summary>Every published number</summary>" + open_table(8) +
      "<thead><tr>"
      "<th>policy</th><th class=\"text\">stage</th><th class=\"text\">metric</th>"
      "<th class=\"text\">unit</th><th>measured</th><th>simulated</th><th>error, %</th>"
      "<th class=\"text\">remark</th></tr></thead><tbody>";
  for (const Node& cell : scenario["cells"].items()) {
    const std::string status = cell["status"].text();
    const std::string remark =
        status == "scored"
            ? ""
            : status + (cell["reason"].text().empty() ? "" : ": ") + cell["reason"].text();
    out += "<tr><td>" + html(cell["policy"].text()) + "</td><td class=\"text\">" +
           html(brief(cell["stage"].text())) + "</td><td class=\"text\">" +
           html(cell["metric"].text() + " " + brief(cell["statistic"].text())) +
           "</td><td class=\"text\">" + html(cell["unit"].text()) + "</td>" +
           number_of(cell, "measured") + number_of(cell, "simulated") +
           number_of(cell, "error_percent") + "<td class=\"text\">" + html(remark) + "</td></tr>";
  }
  return out + "</tbody></table></div></details>";
}

/// Fitted or held-out experiments, one after the other.
std::string group(const std::vector<Node>& scenarios, bool held_out) {
  std::string out;
  for (const Node& scenario : scenarios) {
    if (scenario["held_out"].is_true() != held_out) continue;
    out += "<h2>" + html(scenario["scenario"].text()) + (held_out ? " (held out)" : "") + "</h2>" +
           figures(scenario) + cell_table(scenario);
    std::string notes;
    for (const Node& note : scenario["notes"].items())
      notes += "<li>" + html(note.text()) + "</li>";
    if (!notes.empty())
      out += "<details><summary>Notes</summary><ul class=\"notes\">" + notes + "</ul></details>";
  }
  return out;
}

}  // namespace

std::string validation_sections(const PageDocument& document) {
  const JsonDocument json(document.text);
  const Node root = json.root(document.path);
  const std::vector<Node> scenarios = root["scenarios"].items();
  std::string out = "<header class=\"run\"><div class=\"kicker\">validation · routesim " +
                    html(root["version"].text()) + " · " + std::to_string(scenarios.size()) +
                    (scenarios.size() == 1 ? " scenario" : " scenarios") +
                    "</div><h1>Simulated beside measured</h1></header>";
  return out + validation_verdict(root) + group(scenarios, false) + group(scenarios, true) +
         error_table(scenarios, false, true) + error_table(scenarios, false, false) +
         error_table(scenarios, true, false);
}

}  // namespace routesim::tools
