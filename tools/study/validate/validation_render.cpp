#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/describe.h"
#include "base/scalar_parse.h"
#include "base/text.h"
#include "tools/render/render.h"
#include "tools/results/json_writer.h"
#include "tools/results/text_table.h"
#include "tools/study/validate/limits.h"
#include "tools/study/validate/trust_table.h"
#include "tools/study/validate/validation.h"

namespace routesim::tools {

namespace {

/// Four significant digits or so: large numbers whole, small ones with decimals.
std::string value_text(double v) {
  const double size = std::abs(v);
  if (size == 0) return "0";
  return fixed_text(v, size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : size >= 0.1 ? 3 : 6);
}

std::string text(const std::string& s) { return printable(s, 80); }

/// Without the remark that some publications add in brackets.
std::string brief(const std::string& s) { return text(s.substr(0, s.find(" ("))); }

TextTable cell_table(const ScenarioValidation& v) {
  TextTable table(5);
  table.add_row({"policy", "stage", "metric", "statistic", "unit", "measured", "simulated",
                 "seed sd", "error %", "remark"});
  for (const ValidationCell& cell : v.cells) {
    const std::optional<double> error = cell.error();
    std::string remark;
    if (cell.status != CellStatus::kScored) {
      remark = cell_status_name(cell.status);
      if (!cell.reason.empty()) remark += ": " + printable(cell.reason, 120);
    }
    table.add_row({text(cell.row.policy), brief(cell.row.stage), text(cell.row.metric),
                   brief(cell.row.statistic), text(cell.row.unit), value_text(cell.row.value),
                   cell.simulated() ? value_text(cell.mean()) : "-",
                   cell.simulated() ? value_text(cell.seed_deviation()) : "-",
                   error ? signed_percent(*error) : "-", remark});
  }
  return table;
}

TextTable error_table(const ScenarioValidation& v) {
  TextTable table(4);
  table.add_row({"experiment", "policy", "metric", "statistic", "cells", "MAPE %", "bias %",
                 "worst %", "at stage", "seed sd %"});
  for (const ErrorSummary& s : v.errors)
    table.add_row({text(s.experiment), text(s.policy), text(s.metric), text(s.statistic),
                   std::to_string(s.cells), fixed_text(s.mape, 1), signed_percent(s.bias),
                   signed_percent(s.worst), text(s.worst_stage), fixed_text(s.seed_deviation, 1)});
  return table;
}

TextTable left_out_table(const ScenarioValidation& v) {
  TextTable table(4);
  table.add_row({"experiment", "policy", "metric", "statistic", "cells", "MAPE %", "bias %",
                 "worst %", "at stage", "row with them", "reason"});
  for (const LeftOut& left : v.left_out) {
    const ErrorSummary& s = left.would;
    const bool alone = left.cells_with == s.cells;
    table.add_row(
        {text(s.experiment), text(s.policy), text(s.metric), text(s.statistic),
         std::to_string(s.cells), fixed_text(s.mape, 1), signed_percent(s.bias),
         signed_percent(s.worst), text(s.worst_stage),
         alone ? "-" : fixed_text(left.mape_with, 1) + " of " + std::to_string(left.cells_with),
         printable(left.reason, 120)});
  }
  return table;
}

TextTable difference_table(const ScenarioValidation& v) {
  TextTable table(3);
  table.add_row({"policy", "metric", "statistic", "stage", "measured %", "simulated %",
                 "error, points", "ratio error %", "sign"});
  for (const PolicyDifference& d : v.differences)
    table.add_row(
        {text(d.policy), text(d.metric), text(d.statistic), text(d.stage),
         signed_percent(d.measured), signed_percent(d.simulated), signed_percent(d.error_points()),
         signed_percent(d.ratio_error()),
         std::string(d.sign_agrees() ? "agrees" : "differs") + (d.scored ? "" : ", not scored")});
  return table;
}

TextTable difference_error_table(const ScenarioValidation& v) {
  TextTable table(5);
  table.add_row({"experiment", "policy", "against", "metric", "statistic", "signs agree",
                 "mean error, points", "worst, points", "at stage", "mean ratio error %"});
  for (const DifferenceSummary& s : v.difference_errors)
    table.add_row({text(s.experiment), text(s.policy), text(s.base_policy), text(s.metric),
                   text(s.statistic),
                   std::to_string(s.signs_agree) + " of " + std::to_string(s.cells),
                   fixed_text(s.mean_points, 1), signed_percent(s.worst_points),
                   text(s.worst_stage), fixed_text(s.mean_ratio_error, 1)});
  return table;
}

void add_section(std::string& out, const std::string& title, const TextTable& table,
                 bool markdown) {
  if (table.empty()) return;
  out += "\n" + std::string(markdown ? "### " : "") + title + "\n";
  if (markdown) out += "\n";
  out += markdown ? table.markdown() : table.str();
}

void write_cells(JsonWriter& json, const ScenarioValidation& v) {
  json.key("cells").begin_array();
  for (const ValidationCell& cell : v.cells) {
    json.begin_object();
    json.member("experiment", cell.row.experiment).member("policy", cell.row.policy);
    json.member("variant", cell.variant).member("stage", cell.row.stage);
    json.member("metric", cell.row.metric).member("statistic", cell.row.statistic);
    json.member("unit", cell.row.unit).member("measured", cell.row.value);
    if (!cell.row.rate.empty()) json.member("rate", cell.row.rate);
    if (cell.simulated()) {
      json.member("simulated", cell.mean()).member("seed_sd", cell.seed_deviation());
      json.list("samples", cell.samples);
    }
    if (const std::optional<double> error = cell.error()) json.member("error_percent", *error);
    json.member("status", cell_status_name(cell.status));
    if (!cell.reason.empty()) json.member("reason", cell.reason);
    json.end_object();
  }
  json.end_array();
}

void write_error(JsonWriter& json, const ErrorSummary& s) {
  json.member("experiment", s.experiment).member("policy", s.policy);
  json.member("metric", s.metric).member("statistic", s.statistic);
  json.member("cells", s.cells).member("mape_percent", s.mape);
  json.member("bias_percent", s.bias).member("worst_percent", s.worst);
  json.member("worst_stage", s.worst_stage).member("seed_sd_percent", s.seed_deviation);
}

void write_errors(JsonWriter& json, const ScenarioValidation& v,
                  const std::vector<RowLimit>& limits) {
  json.key("errors").begin_array();
  for (const ErrorSummary& s : v.errors) {
    json.begin_object();
    write_error(json, s);
    const auto limit = std::find_if(limits.begin(), limits.end(), [&](const RowLimit& l) {
      return l.against.empty() && l.experiment == s.experiment && l.policy == s.policy &&
             l.metric == s.metric && l.statistic == s.statistic;
    });
    if (limit != limits.end()) json.member("limit_percent", limit->error);
    json.end_object();
  }
  json.end_array();
  json.key("left_out").begin_array();
  for (const LeftOut& left : v.left_out) {
    json.begin_object();
    write_error(json, left.would);
    json.member("cells_with", left.cells_with);
    json.member("mape_with_percent", left.mape_with).member("reason", left.reason);
    json.end_object();
  }
  json.end_array();
}

void write_differences(JsonWriter& json, const ScenarioValidation& v) {
  json.key("differences").begin_array();
  for (const PolicyDifference& d : v.differences) {
    json.begin_object();
    json.member("experiment", d.experiment).member("policy", d.policy);
    json.member("against", d.base_policy).member("stage", d.stage);
    json.member("metric", d.metric).member("statistic", d.statistic);
    json.member("measured_percent", d.measured).member("simulated_percent", d.simulated);
    json.member("error_points", d.error_points()).member("ratio_error_percent", d.ratio_error());
    json.member("sign_agrees", d.sign_agrees()).member("scored", d.scored);
    json.end_object();
  }
  json.end_array();
  json.key("difference_errors").begin_array();
  for (const DifferenceSummary& s : v.difference_errors) {
    json.begin_object();
    json.member("experiment", s.experiment).member("policy", s.policy);
    json.member("against", s.base_policy);
    json.member("metric", s.metric).member("statistic", s.statistic);
    json.member("cells", s.cells);
    json.member("signs_agree", s.signs_agree);
    json.member("mean_points", s.mean_points).member("worst_points", s.worst_points);
    json.member("worst_stage", s.worst_stage);
    json.member("mean_ratio_error_percent", s.mean_ratio_error);
    json.end_object();
  }
  json.end_array();
}

/// Mean errors by what the step times rest on, of what they were fitted to and of the rest.
void write_classes(JsonWriter& json, const std::vector<ScenarioValidation>& all) {
  json.key("by_class").begin_array();
  for (const bool held_out : {false, true}) {
    std::vector<ScenarioValidation> part;
    for (const ScenarioValidation& v : all)
      if (v.held_out == held_out) part.push_back(v);
    for (const TrustError& e : trust_table(part)) {
      json.begin_object().member("held_out", held_out).member("step_times", enum_name(e.trust));
      json.member("quantity", e.quantity).member("published_numbers", e.cells);
      json.member("mean_absolute_error_percent", e.mean);
      json.member("worst_error_percent", e.worst).end_object();
    }
  }
  json.end_array();
}

}  // namespace

std::string render_validation_text(const std::vector<ScenarioValidation>& all, bool markdown,
                                   bool cells) {
  std::string out;
  for (const ScenarioValidation& v : all) {
    if (!out.empty()) out += "\n";
    out += std::string(markdown ? "## " : "") + printable(v.scenario, 200) + ", " +
           std::to_string(v.seeds) + (v.seeds == 1 ? " seed\n" : " seeds\n");
    if (cells) add_section(out, "Every published number", cell_table(v), markdown);
    add_section(out, "Errors", error_table(v), markdown);
    add_section(out, "Left out, and what it would score", left_out_table(v), markdown);
    if (cells) add_section(out, "What the policy changes", difference_table(v), markdown);
    add_section(out, "Errors of what the policy changes", difference_error_table(v), markdown);
    if (!v.notes.empty()) out += "\n";
    for (const std::string& note : v.notes)
      out += std::string(markdown ? "- " : "") + "note: " + printable(note, 500) + "\n";
  }
  return out;
}

std::string render_validation_json(const std::vector<ScenarioValidation>& all,
                                   const std::vector<RowLimit>& limits,
                                   const std::string& version) {
  JsonWriter json;
  json.begin_object().member("version", version);
  write_classes(json, all);
  json.key("scenarios").begin_array();
  for (const ScenarioValidation& v : all) {
    json.begin_object().member("scenario", v.scenario).member("held_out", v.held_out);
    json.member("own_measurements", v.own).member("seeds", v.seeds);
    write_cells(json, v);
    write_errors(json, v, limits);
    write_differences(json, v);
    json.list("notes", v.notes).end_object();
  }
  json.end_array().end_object();
  return json.str() + "\n";
}

std::string render_validation_csv(const std::vector<ScenarioValidation>& all) {
  std::string out =
      "scenario,experiment,policy,variant,stage,metric,statistic,unit,measured,simulated,seed_sd,"
      "error_percent,status,reason\n";
  for (const ScenarioValidation& v : all)
    for (const ValidationCell& cell : v.cells) {
      const auto number = [](const std::optional<double>& value) {
        return value ? number_text(*value) : std::string();
      };
      const auto simulated = [&](double value) {
        return cell.simulated() ? std::optional(value) : std::nullopt;
      };
      std::vector<std::string> fields = {v.scenario,
                                         cell.row.experiment,
                                         cell.row.policy,
                                         cell.variant,
                                         cell.row.stage,
                                         cell.row.metric,
                                         cell.row.statistic,
                                         cell.row.unit,
                                         number(cell.row.value),
                                         number(simulated(cell.mean())),
                                         number(simulated(cell.seed_deviation())),
                                         number(cell.error()),
                                         std::string(cell_status_name(cell.status)),
                                         cell.reason};
      for (std::string& field : fields) field = csv_field(field);
      out += fmt::format("{}\n", fmt::join(fields, ","));
    }
  return out;
}

}  // namespace routesim::tools
