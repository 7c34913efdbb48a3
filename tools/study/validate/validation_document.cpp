// The answer of a validation: published numbers beside simulated ones.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "tools/render/document.h"
#include "tools/results/text_table.h"
#include "tools/study/validate/validation_record.h"

namespace routesim::tools {

namespace {

using Columns = std::vector<Table::Column>;

/// Four significant digits or so: large numbers whole, small ones with decimals.
std::string four_digits(double v) {
  const double size = std::abs(v);
  if (size == 0) return "0";
  return fixed_text(v, size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : size >= 0.1 ? 3 : 6);
}

/// Without the remark that some publications add in brackets.
std::string brief(const std::string& text) { return text.substr(0, text.find(" (")); }

Cell words(const std::string& text, std::size_t most = 80) {
  return {.text = printable(text, most)};
}

/// A number that plain outputs write as `text`, and pages as people read it.
Cell written_cell(double value, std::string text, const std::string& path, const char* key) {
  return {.text = std::move(text), .number = Datum{.value = value, .path = path + "/" + key}};
}
Cell percent_cell(double value, const std::string& path, const char* key) {
  return written_cell(value, signed_percent(value), path, key);
}

std::string at(const std::string& path, const char* list, std::size_t i) {
  return path + "/" + list + "/" + std::to_string(i);
}

Table cell_table(const ScenarioValidation& v, const std::string& path) {
  Table table{.title = "Every published number",
              .columns = {{"policy", true},
                          {"stage", true},
                          {"metric", true},
                          {"statistic", true},
                          {"unit", true},
                          {"measured"},
                          {"simulated"},
                          {"seed sd"},
                          {"error %"},
                          {"remark"}}};
  for (std::size_t i = 0; i < v.cells.size(); ++i) {
    const ValidationCell& cell = v.cells[i];
    const std::string here = at(path, "cells", i);
    const std::optional<double> error = cell.error();
    std::string remark;
    if (cell.status != CellStatus::kScored) {
      remark = enum_name(cell.status);
      if (!cell.reason.empty()) remark += ": " + printable(cell.reason, 120);
    }
    const auto simulated = [&](double value, const char* key) {
      return cell.simulated() ? written_cell(value, four_digits(value), here, key)
                              : Cell{.text = "-"};
    };
    table.rows.push_back(
        {words(cell.row.policy),
         words(brief(cell.row.stage)),
         words(cell.row.metric),
         words(brief(cell.row.statistic)),
         words(cell.row.unit),
         written_cell(cell.row.value, four_digits(cell.row.value), here, "measured"),
         simulated(cell.mean(), "simulated"),
         simulated(cell.seed_deviation(), "seed_sd"),
         error ? percent_cell(*error, here, "error_percent") : Cell{.text = "-"},
         {.text = remark}});
  }
  return table;
}

std::vector<Cell> error_row(const ErrorSummary& s, const std::string& path) {
  return {words(s.experiment),
          words(s.policy),
          words(s.metric),
          words(s.statistic),
          written_cell(static_cast<double>(s.cells), std::to_string(s.cells), path, "cells"),
          written_cell(s.mape, fixed_text(s.mape, 1), path, "mape_percent"),
          percent_cell(s.bias, path, "bias_percent"),
          percent_cell(s.worst, path, "worst_percent"),
          words(s.worst_stage)};
}

Columns error_columns() {
  return {{"experiment", true}, {"policy", true}, {"metric", true}, {"statistic", true}, {"cells"},
          {"MAPE %"},           {"bias %"},       {"worst %"},      {"at stage"}};
}

Table errors_table(const ScenarioValidation& v, const std::string& path) {
  Table table{.title = "Errors", .columns = error_columns()};
  table.columns.push_back({"seed sd %"});
  for (std::size_t i = 0; i < v.errors.size(); ++i) {
    const std::string here = at(path, "errors", i);
    const ErrorSummary& s = v.errors[i];
    table.rows.push_back(error_row(s, here));
    table.rows.back().push_back(
        written_cell(s.seed_deviation, fixed_text(s.seed_deviation, 1), here, "seed_sd_percent"));
  }
  return table;
}

Table left_out_table(const ScenarioValidation& v, const std::string& path) {
  Table table{.title = "Left out, and what it would score", .columns = error_columns()};
  table.columns.push_back({"row with them"});
  table.columns.push_back({"reason"});
  for (std::size_t i = 0; i < v.left_out.size(); ++i) {
    const LeftOut& left = v.left_out[i];
    table.rows.push_back(error_row(left.would, at(path, "left_out", i)));
    const bool alone = left.cells_with == left.would.cells;
    table.rows.back().push_back(
        {.text = alone ? "-"
                       : fixed_text(left.mape_with, 1) + " of " + std::to_string(left.cells_with)});
    table.rows.back().push_back(words(left.reason, 120));
  }
  return table;
}

Table difference_table(const ScenarioValidation& v, const std::string& path) {
  Table table{.title = "What the policy changes",
              .columns = {{"policy", true},
                          {"metric", true},
                          {"statistic", true},
                          {"stage"},
                          {"measured %"},
                          {"simulated %"},
                          {"error, points"},
                          {"ratio error %"},
                          {"sign"}}};
  for (std::size_t i = 0; i < v.differences.size(); ++i) {
    const PolicyDifference& d = v.differences[i];
    const std::string here = at(path, "differences", i);
    table.rows.push_back({words(d.policy),
                          words(d.metric),
                          words(d.statistic),
                          words(d.stage),
                          percent_cell(d.measured, here, "measured_percent"),
                          percent_cell(d.simulated, here, "simulated_percent"),
                          percent_cell(d.error_points(), here, "error_points"),
                          percent_cell(d.ratio_error(), here, "ratio_error_percent"),
                          {.text = std::string(d.sign_agrees() ? "agrees" : "differs") +
                                   (d.scored ? "" : ", not scored")}});
  }
  return table;
}

Table difference_error_table(const ScenarioValidation& v, const std::string& path) {
  Table table{.title = "Errors of what the policy changes",
              .columns = {{"experiment", true},
                          {"policy", true},
                          {"against", true},
                          {"metric", true},
                          {"statistic", true},
                          {"signs agree"},
                          {"mean error, points"},
                          {"worst, points"},
                          {"at stage"},
                          {"mean ratio error %"}}};
  for (std::size_t i = 0; i < v.difference_errors.size(); ++i) {
    const DifferenceSummary& s = v.difference_errors[i];
    const std::string here = at(path, "difference_errors", i);
    table.rows.push_back(
        {words(s.experiment),
         words(s.policy),
         words(s.against),
         words(s.metric),
         words(s.statistic),
         {.text = std::to_string(s.signs_agree) + " of " + std::to_string(s.cells)},
         written_cell(s.mean_points, fixed_text(s.mean_points, 1), here, "mean_points"),
         percent_cell(s.worst_points, here, "worst_points"),
         words(s.worst_stage),
         written_cell(s.mean_ratio_error, fixed_text(s.mean_ratio_error, 1), here,
                      "mean_ratio_error_percent")});
  }
  return table;
}

// ------------------------------------------------------------------------------ figures

/// A published row's quantity: `ttft` with `p90` is `ttft.p90`; rates have no statistic.
MetricView view_of(const std::string& metric, const std::string& statistic) {
  const std::string plain = brief(statistic);
  MetricView view = metric_view(metric);
  if (view.unit == Unit::kNone) view = metric_view(metric + "." + plain);
  if (view.unit == Unit::kNone) {
    view.title = metric + " " + plain;
    std::ranges::replace(view.title, '_', ' ');
  }
  return view;
}

/// `ms` and `us` in seconds, percent as a ratio.
double unit_scale(const std::string& unit) {
  if (unit.starts_with("ms")) return 1e-3;
  if (unit.starts_with("us")) return 1e-6;
  return unit == "%" ? 0.01 : 1;
}

/// Returns a cell's place along the load: its published rate, else the number in its stage's name.
std::optional<double> position(const ValidationCell& cell) {
  if (const std::optional<double> rate = number_from(cell.row.rate)) return rate;
  const std::size_t digit = cell.row.stage.find_first_of("0123456789");
  if (digit == std::string::npos) return std::nullopt;
  return number_from(cell.row.stage.substr(digit));
}

bool is_plotted(const ValidationCell& cell) {
  return !cell.variant.empty() && cell.status == CellStatus::kScored && cell.row.stage != "all" &&
         cell.simulated();
}

/// Measured points and simulated lines of one quantity against the load. Nothing for one stage.
std::optional<LineChart> measured_curve(const std::vector<const ValidationCell*>& cells,
                                        const MetricView& view) {
  LineChart chart;
  chart.x = {.title = "load", .unit = Unit::kNone};
  chart.y = {.title = view.title, .unit = view.unit, .from_zero = true};
  std::vector<std::string> policies;
  double error = 0;
  for (const ValidationCell* cell : cells) {
    const std::string& policy = cell->row.policy;
    if (std::ranges::find(policies, policy) == policies.end()) {
      chart.series.push_back({.name = policy, .colour = policies.size()});
      chart.series.push_back({.name = policy, .colour = policies.size(), .measured = true});
      policies.push_back(policy);
    }
    const auto which =
        static_cast<std::size_t>(std::ranges::find(policies, policy) - policies.begin());
    const std::optional<double> x = position(*cell);
    if (!x) return std::nullopt;
    const double scale = unit_scale(cell->row.unit);
    chart.series[2 * which].points.push_back({.x = *x, .y = scale * cell->mean()});
    chart.series[2 * which + 1].points.push_back({.x = *x, .y = scale * cell->row.value});
    error += std::abs(cell->error().value_or(0));
  }
  for (ChartSeries& s : chart.series) std::ranges::stable_sort(s.points, {}, &ChartPoint::x);
  const std::vector<ChartPoint>& points = chart.series.front().points;
  if (points.size() < 2 || points.front().x == points.back().x) return std::nullopt;
  chart.y.log = view.unit == Unit::kSeconds && spreads_wide(chart);
  const MeasuredRow& first = cells.front()->row;
  const bool rates = number_from(first.rate).has_value() || first.stage.starts_with("rate");
  chart.x.title = rates ? "requests/s asked for" : "stage";
  chart.title = view.title + ": " + fixed_text(error / static_cast<double>(cells.size()), 1) +
                " % off on average";
  chart.subtitle = "Lines are simulated, diamonds are published.";
  return chart;
}

/// The errors of an experiment's scored rows around zero, a figure for each policy, the largest
/// first.
Charts error_plots(const ScenarioValidation& v) {
  constexpr std::size_t kMostRows = 12;
  std::vector<std::pair<std::string, std::vector<const ErrorSummary*>>> policies;
  for (const ErrorSummary& row : v.errors) entry_of(policies, row.policy).push_back(&row);
  Charts out;
  for (auto& [policy, rows] : policies) {
    std::ranges::stable_sort(rows, std::ranges::greater{}, &ErrorSummary::mape);
    const ErrorSummary& most = *rows.front();
    DotPlot plot{.title = policy + ": " + view_of(most.metric, most.statistic).title +
                          " is farthest off, " + fixed_text(most.mape, 1) + " % on average",
                 .subtitle =
                     "Mean error in percent of the published value; a bar ends at the "
                     "worst stage."};
    if (rows.size() > kMostRows)
      plot.subtitle += " The " + std::to_string(kMostRows) + " largest of " +
                       std::to_string(rows.size()) + "; the table has all.";
    for (const ErrorSummary* row : rows) {
      if (plot.rows.size() == kMostRows) break;
      plot.rows.push_back({.name = view_of(row->metric, row->statistic).title,
                           .text = signed_percent(row->bias) + " %",
                           .style = DotPlot::Style::kUnsure,
                           .percent = row->bias,
                           .low = std::min(row->bias, row->worst),
                           .high = std::max(row->bias, row->worst)});
    }
    out.charts.emplace_back(std::move(plot));
  }
  return out;
}

/// The figures of an experiment: curves where there are several stages, else the errors.
Charts experiment_figures(const ScenarioValidation& v) {
  std::vector<std::pair<std::string, MetricView>> quantities;
  std::map<std::string, std::vector<const ValidationCell*>> cells;
  for (const ValidationCell& cell : v.cells) {
    if (!is_plotted(cell)) continue;
    const std::string key =
        cell.row.experiment + "|" + cell.row.metric + "|" + brief(cell.row.statistic);
    if (!cells.contains(key))
      quantities.emplace_back(key, view_of(cell.row.metric, cell.row.statistic));
    cells[key].push_back(&cell);
  }
  Charts out;
  for (const auto& [key, view] : quantities)
    if (view.unit != Unit::kNone)
      if (std::optional<LineChart> chart = measured_curve(cells[key], view))
        out.charts.emplace_back(std::move(*chart));
  return out.charts.empty() ? error_plots(v) : out;
}

// ------------------------------------------------------------------------------ verdict

std::string class_words(models::Trust trust) {
  switch (trust) {
    case models::Trust::kFitted:
      return "fitted step times";
    case models::Trust::kExtrapolated:
      return "step times beyond the fitted range";
    case models::Trust::kKernels:
      return "step times of measured kernels";
    case models::Trust::kRoofline:
      return "step times of a roofline";
    case models::Trust::kDataSheet:
      break;
  }
  return "step times of a data sheet";
}

/// How many rows of the error tables have a limit, and how many exceed it.
std::string limits_sentence(const std::vector<ScenarioValidation>& scenarios) {
  int with = 0;
  int beyond = 0;
  for (const ScenarioValidation& v : scenarios)
    for (const ErrorSummary& row : v.errors) {
      if (!row.limit) continue;
      ++with;
      if (row.mape > *row.limit) ++beyond;
    }
  if (with == 0) return {};
  if (beyond == 0) return "All " + std::to_string(with) + " mean errors stay within their limits.";
  return std::to_string(beyond) + " of " + std::to_string(with) +
         " mean errors exceed their limit.";
}

/// The mean errors of the classes, those that decide the headline first.
std::optional<Chart> error_chart(const ValidationRecord& record) {
  BarChart chart;
  chart.unit = Unit::kPercent;
  for (const ValidationRecord::ClassError& row : record.by_class)
    chart.bars.push_back({.name = (row.held_out ? "* " : "") +
                                  std::string(enum_name(row.error.trust)) + ": " +
                                  row.error.quantity,
                          .value = row.error.mean,
                          .colour = row.held_out ? std::size_t{1} : std::size_t{0}});
  if (chart.bars.empty()) return std::nullopt;
  std::ranges::stable_sort(chart.bars, {}, &BarChart::Bar::value);
  const auto said = [](const BarChart::Bar& bar) {
    return bar.name + " " + human(bar.value, Unit::kPercent) + " off";
  };
  chart.title = "Nearest is " + said(chart.bars.front()) + ", farthest " + said(chart.bars.back());
  chart.subtitle =
      "Mean absolute error in percent of the published value, by class of step times; * had no "
      "part in any fit.";
  return chart;
}

StudyVerdict validation_verdict(const ValidationRecord& record) {
  using Class = std::pair<models::Trust, bool>;
  std::vector<Class> classes;
  std::map<Class, std::string> errors;  // `output tokens/s 2.1 % (40), ...`
  for (const ValidationRecord::ClassError& row : record.by_class) {
    const Class key{row.error.trust, row.held_out};
    if (!errors.contains(key)) classes.push_back(key);
    std::string& text = errors[key];
    text += (text.empty() ? "" : ", ") + row.error.quantity + " " + fixed_text(row.error.mean, 1) +
            "\u00a0% (" + std::to_string(row.error.cells) + ")";
  }
  StudyVerdict verdict{.headline = "No published number of these scenarios is scored by class.",
                       .picture = error_chart(record)};
  for (const Class& key : classes) {
    const auto& [trust, held_out] = key;
    if (key == classes.front())
      verdict.headline = "Mean error with " + class_words(trust) +
                         (held_out ? ", held out: " : ": ") + errors[key] + ".";
    else
      verdict.points.push_back(
          {{.text = (held_out ? "held out, " : "") + class_words(trust) + ": " + errors[key]}});
  }
  if (std::string limits = limits_sentence(record.scenarios); !limits.empty())
    verdict.points.push_back({{.text = std::move(limits)}});
  const bool own = std::ranges::any_of(record.scenarios, &ScenarioValidation::own);
  const bool held_out = std::ranges::any_of(record.scenarios, &ScenarioValidation::held_out);
  const bool fitted = std::ranges::any_of(
      record.scenarios, [](const ScenarioValidation& v) { return !v.own && !v.held_out; });
  verdict.fine =
      "Mean absolute error in percent of the published value, with the number of "
      "published values in brackets. " +
      std::string(!own       ? "Held-out experiments"
                  : held_out ? "Held-out experiments and your own measurements"
                             : "Your own measurements") +
      " had no part in any fit" +
      (fitted ? "; the others did, so their errors are smaller than those of a new "
                "deployment."
              : ".");
  return verdict;
}

// ------------------------------------------------------------------------------ document

/// The rows of the error tables of one kind of experiment, the largest error first; pages only.
void add_error_table(const ValidationRecord& record, bool held_out, bool own,
                     const std::string& path, std::vector<Block>& blocks) {
  struct Row {
    std::string scenario, path;
    const ErrorSummary* error;
  };
  std::vector<Row> rows;
  for (std::size_t i = 0; i < record.scenarios.size(); ++i) {
    const ScenarioValidation& v = record.scenarios[i];
    if (v.held_out != held_out || v.own != own) continue;
    for (std::size_t k = 0; k < v.errors.size(); ++k)
      rows.push_back({v.scenario, at(at(path, "scenarios", i), "errors", k), &v.errors[k]});
  }
  if (rows.empty()) return;
  std::ranges::stable_sort(rows, std::ranges::greater{},
                           [](const Row& row) { return row.error->mape; });
  const bool limits =
      std::ranges::any_of(rows, [](const Row& row) { return row.error->limit.has_value(); });
  Table table{
      .columns = {
          {"scenario", true}, {"policy", true}, {"metric", true}, {"numbers"}, {"mean error, %"}}};
  if (limits) table.columns.push_back({"limit, %"});
  for (const char* title : {"bias, %", "worst, %"}) table.columns.push_back({title});
  table.columns.push_back({"at stage", true});
  for (const Row& row : rows) {
    const ErrorSummary& e = *row.error;
    std::vector<Cell> cells = error_row(e, row.path);
    std::vector<Cell> shown = {{.text = row.scenario},
                               cells[1],
                               {.text = view_of(e.metric, e.statistic).title},
                               cells[4],
                               cells[5]};
    if (limits && e.limit)
      shown.push_back(written_cell(*e.limit, fixed_text(*e.limit, 1), row.path, "limit_percent"));
    else if (limits)
      shown.push_back({.text = "-"});
    for (std::size_t c = 6; c < cells.size(); ++c) shown.push_back(cells[c]);
    table.rows.push_back(std::move(shown));
  }
  blocks.push_back({Heading{std::string(own        ? "Your own measurements, not fitted"
                                        : held_out ? "Held-out experiments"
                                                   : "Experiments that curves were fitted to") +
                            ": errors, largest first"},
                    For::kPages});
  blocks.push_back({std::move(table), For::kPages});
}

/// One experiment on a page: figures, then its numbers and notes, folded away.
void add_page(const ScenarioValidation& v, const std::string& path, std::vector<Block>& blocks) {
  blocks.push_back({Heading{v.scenario + (v.held_out ? " (held out)" : "")}, For::kPages});
  blocks.push_back({experiment_figures(v), For::kPages});
  Table cells = cell_table(v, path);
  Fold fold{.title = cells.title};
  cells.title.clear();
  fold.blocks.push_back({std::move(cells)});
  blocks.push_back({std::move(fold), For::kPages});
  if (v.notes.empty()) return;
  Fold notes{.title = "Notes"};
  for (const std::string& note : v.notes) notes.blocks.push_back({Paragraph{note}});
  blocks.push_back({std::move(notes), For::kPages});
}

/// One experiment as tables.
void add_experiment(const ScenarioValidation& v, bool cells, const std::string& path,
                    std::vector<Block>& blocks) {
  blocks.push_back({Heading{v.scenario + ", " + counted(v.seeds, "seed")}, For::kPlain});
  const auto add = [&](Table table) {
    if (!table.rows.empty()) blocks.push_back({std::move(table), For::kPlain});
  };
  if (cells) add(cell_table(v, path));
  add(errors_table(v, path));
  add(left_out_table(v, path));
  if (cells) add(difference_table(v, path));
  add(difference_error_table(v, path));
  for (const std::string& note : v.notes)
    blocks.push_back({Paragraph{"note: " + note}, For::kPlain});
}

}  // namespace

StudyDocument validation_document(const ValidationRecord& record, bool cells,
                                  const std::string& path) {
  StudyDocument document{.name = "validate",
                         .kicker = "validation · routesim " + record.version + " · " +
                                   counted(record.scenarios.size(), "scenario"),
                         .title = "Simulated beside measured",
                         .verdict = validation_verdict(record)};
  const auto scenario_path = [&](const ScenarioValidation& v) {
    return at(path, "scenarios", static_cast<std::size_t>(&v - record.scenarios.data()));
  };
  for (const bool held_out : {false, true})
    for (const ScenarioValidation& v : record.scenarios)
      if (v.held_out == held_out) add_page(v, scenario_path(v), document.blocks);
  for (const auto& [held_out, own] : {std::pair{false, true}, {false, false}, {true, false}})
    add_error_table(record, held_out, own, path, document.blocks);
  for (const ScenarioValidation& v : record.scenarios)
    add_experiment(v, cells, scenario_path(v), document.blocks);
  return document;
}

}  // namespace routesim::tools
