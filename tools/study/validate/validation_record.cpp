#include "tools/study/validate/validation_record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string_view>

#include "base/config_node.h"
#include "base/describe.h"
#include "base/scalar_parse.h"
#include "base/text.h"
#include "base/tree_reader.h"
#include "tools/ingest/tree/csv_splitter.h"
#include "tools/render/document.h"
#include "tools/results/described_json.h"
#include "tools/results/metrics.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

namespace {

constexpr std::array<std::string_view, 10> kColumns = {"experiment", "policy", "against", "metric",
                                                       "statistic",  "cells",  "error",   "worst",
                                                       "ratio",      "signs"};

constexpr char kExample[] =
    "for example ttft.mean>8%, or llmd_precise_prefix:ttft>10% for one policy or experiment; "
    "metrics and statistics are named as in the error tables";

/// `p99.9` as `p99p9`, `median` as `p50`.
std::string one_spelling(std::string statistic) {
  std::ranges::replace(statistic, '.', 'p');
  return statistic == "median" ? "p50" : statistic;
}

/// The present values of the tables, in the form of limits.
std::vector<RowLimit> present_rows(const std::vector<ScenarioValidation>& all) {
  std::vector<RowLimit> rows;
  for (const ScenarioValidation& v : all) {
    for (const ErrorSummary& s : v.errors)
      rows.push_back({s, {}, s.cells, s.mape, std::abs(s.worst)});
    for (const DifferenceSummary& s : v.difference_errors)
      rows.push_back({s,
                      {},
                      s.cells,
                      s.mean_points,
                      std::abs(s.worst_points),
                      s.mean_ratio_error,
                      s.signs_agree});
  }
  return rows;
}

std::string row_name(const RowLimit& row) {
  std::string name = printable(row.experiment) + ", " + printable(row.policy);
  if (!row.against.empty()) name += " against " + printable(row.against);
  return name + ", " + printable(row.metric) + " " + printable(row.statistic);
}

/// Reads the numbers of one record; errors go to `diagnostics`.
class RecordReader {
 public:
  RecordReader(const std::vector<std::string>& fields, const SourceLocation& where,
               Diagnostics& diagnostics)
      : fields_(fields), where_(where), diagnostics_(diagnostics) {}

  double number(std::size_t column) {
    return take(parse_real(fields_[column], {.min = 0}), column);
  }

  std::size_t count(std::size_t column) {
    const auto node = ConfigNode::make_scalar(fields_[column], ConfigNode::Style::kUntyped, where_);
    return static_cast<std::size_t>(take(parse_integer(*node, {.min = 0}), column));
  }

 private:
  template <class T>
  T take(const Parsed<T>& parsed, std::size_t column) {
    if (!parsed.value)
      diagnostics_.error(where_, std::string(kColumns[column]), parsed.message, parsed.hint);
    return parsed.value.value_or(T{});
  }

  const std::vector<std::string>& fields_;
  const SourceLocation& where_;
  Diagnostics& diagnostics_;
};

RowLimit limit_of(const std::vector<std::string>& fields, const SourceLocation& where,
                  Diagnostics& diagnostics) {
  RecordReader read(fields, where, diagnostics);
  RowLimit limit{{fields[0], fields[1], fields[2], fields[3], fields[4]},
                 where,
                 read.count(5),
                 read.number(6),
                 read.number(7)};
  if (!limit.against.empty()) {
    limit.ratio = read.number(8);
    limit.signs = read.count(9);
  } else if (!fields[8].empty() || !fields[9].empty()) {
    diagnostics.error(where, "against", "must name a policy where ratio and signs are given");
  }
  return limit;
}

std::string with_commas(const auto& names) {
  std::string out;
  for (const auto& name : names) out.append(out.empty() ? "" : ",").append(name);
  return out;
}

/// The limit that a present value gets: a tenth more, at least a point, up to the next tenth.
std::string with_margin(double value) {
  const double limit = std::max(value * 1.1, value + 1);
  // Twelve digits: 2.3 points and 1 are 3.3, not 3.3000000000000003, which would round up to 3.4.
  return number_text(std::ceil(with_digits(limit * 10, 12)) / 10);
}

std::string number(double value) { return number_text(with_digits(value, 4)); }

void check_row(const RowLimit& limit, const RowLimit& row, Diagnostics& exceeded) {
  const std::string unit = row.against.empty() ? " %" : " points";
  const auto hold = [&](const char* column, const char* what, double value, double bound,
                        const std::string& in) {
    if (value > bound)
      exceeded.error(limit.where, column,
                     row_name(row) + ": " + what + " is " + number(value) + in + ", the limit is " +
                         number_text(bound) + in);
  };
  hold("error", "the mean error", row.error, limit.error, unit);
  hold("worst", "the worst error", row.worst, limit.worst, unit);
  if (limit.ratio && row.ratio)
    hold("ratio", "the mean error of the ratio", *row.ratio, *limit.ratio, " %");
  if (limit.signs && row.signs && *row.signs < *limit.signs)
    exceeded.error(limit.where, "signs",
                   row_name(row) + ": " + std::to_string(*row.signs) +
                       " signs agree, the limit is " + std::to_string(*limit.signs));
  if (row.cells != limit.cells)
    exceeded.error(limit.where, "cells",
                   row_name(row) + ": " + std::to_string(row.cells) + " cells, not " +
                       std::to_string(limit.cells));
}

}  // namespace

std::optional<ErrorGate> parse_error_gate(const std::string& text, Diagnostics& diagnostics) {
  const auto fail = [&](const std::string& what) {
    diagnostics.error({.file = "--fail-if"}, "", what, kExample);
    return std::nullopt;
  };
  ErrorGate gate;
  gate.text = std::string(trimmed(text));
  const std::size_t at = text.find('>');
  std::string_view number =
      at == std::string::npos ? "" : trimmed(std::string_view(text).substr(at + 1));
  if (!number.ends_with('%'))
    return fail("must be [SCOPE:]METRIC[.STATISTIC]>PERCENT% (got " + printable(text) + ")");
  number = trimmed(number.substr(0, number.size() - 1));
  std::string name(trimmed(std::string_view(text).substr(0, at)));
  if (const std::size_t colon = name.rfind(':'); colon != std::string::npos) {
    gate.scope = name.substr(0, colon);
    name.erase(0, colon + 1);
  }
  const std::size_t dot = std::min(name.find('.'), name.size());
  gate.metric = name.substr(0, dot);
  if (dot < name.size()) gate.statistic = name.substr(dot + 1);
  if (gate.metric.empty()) return fail("names no metric (got " + printable(text) + ")");
  const Parsed<double> bound = parse_real(number, {.min = 0});
  if (!bound.value) return fail("bound " + bound.message);
  gate.percent = *bound.value;
  return gate;
}

std::vector<RowLimit> parse_limits_csv(const std::string& text, const std::string& file,
                                       Diagnostics& diagnostics) {
  std::vector<RowLimit> limits;
  CsvSplitter splitter(text, file, diagnostics);
  std::vector<std::string> fields;
  std::vector<SourceLocation> places;
  (void)splitter.next(fields, places);
  if (!std::equal(fields.begin(), fields.end(), kColumns.begin(), kColumns.end())) {
    diagnostics.error({.file = file, .line = 1, .column = 1}, "",
                      "the header must be " + with_commas(kColumns) + " (got " +
                          printable(with_commas(fields), 100) + ")",
                      "`routesim validate --output limits=PATH` writes such a file");
    return limits;
  }
  std::set<ErrorRow> seen;
  while (splitter.next(fields, places)) {
    const SourceLocation& where = places.front();
    if (fields.size() != kColumns.size()) {
      diagnostics.error(where, "",
                        "must have 10 fields (got " + std::to_string(fields.size()) + ")");
      continue;
    }
    limits.push_back(limit_of(fields, where, diagnostics));
    if (!seen.insert(limits.back()).second)
      diagnostics.error(where, "", "repeats the limit of an earlier line");
  }
  return limits;
}

std::string render_limits_csv(const std::vector<ScenarioValidation>& all) {
  std::string out = with_commas(kColumns) + "\n";
  for (const RowLimit& row : present_rows(all)) {
    const auto margin = [](const std::optional<double>& value) {
      return value ? with_margin(*value) : std::string();
    };
    out += csv_line(row.experiment, row.policy, row.against, row.metric, row.statistic, row.cells,
                    with_margin(row.error), with_margin(row.worst), margin(row.ratio), row.signs);
  }
  return out;
}

void check_gate(const ErrorGate& gate, const std::vector<ScenarioValidation>& all,
                LimitFindings& findings) {
  bool named = false;
  for (const ScenarioValidation& v : all)
    for (const ErrorSummary& s : v.errors) {
      if (!gate.scope.empty() && gate.scope != s.experiment && gate.scope != s.policy) continue;
      if (canonical_metric(gate.metric) != canonical_metric(s.metric)) continue;
      if (!gate.statistic.empty() && one_spelling(gate.statistic) != one_spelling(s.statistic))
        continue;
      named = true;
      if (s.mape <= gate.percent) continue;
      findings.exceeded.error({.file = "--fail-if"}, printable(gate.text),
                              printable(s.experiment) + ", " + printable(s.policy) + ", " +
                                  printable(s.metric) + " " + printable(s.statistic) +
                                  ": the mean error is " + number(s.mape) + " %");
    }
  if (!named)
    findings.unmatched.error({.file = "--fail-if"}, printable(gate.text),
                             "names no row of the error tables", kExample);
}

void check_limits(const std::vector<RowLimit>& limits, const std::string& file,
                  const std::vector<ScenarioValidation>& all, LimitFindings& findings) {
  const std::vector<RowLimit> rows = present_rows(all);
  const auto same = [](const RowLimit& a) {
    return [&a](const RowLimit& b) { return a.names() == b.names(); };
  };
  for (const RowLimit& limit : limits) {
    const auto row = std::ranges::find_if(rows, same(limit));
    if (row == rows.end())
      findings.unmatched.error(limit.where, "", "the error tables have no row " + row_name(limit));
    else
      check_row(limit, *row, findings.exceeded);
  }
  for (const RowLimit& row : rows)
    if (std::ranges::none_of(limits, same(row)))
      findings.unmatched.error({.file = file}, "", "has no limit for " + row_name(row),
                               "`routesim validate --output limits=PATH` writes one for every row");
}

namespace {

using models::Trust;

constexpr std::array<std::string_view, 4> kTrustQuantities = {
    "output tokens/s", "TTFT mean", "TTFT p90 and above", "time per output token"};

}  // namespace

std::vector<TrustError> trust_table(const std::vector<ScenarioValidation>& all) {
  std::vector<TrustError> errors;
  for (const Trust trust : trust_classes())
    for (const std::string_view quantity : kTrustQuantities) {
      TrustError e{.trust = trust, .quantity = std::string(quantity)};
      for (const ScenarioValidation& v : all)
        for (const ValidationCell& cell : v.cells) {
          const std::optional<double> error = cell.error();
          if (cell.variant.empty() || cell.trust != trust || cell.row.stage == "all" || !error ||
              cell.status != CellStatus::kScored ||
              trust_quantity(plain_metric(cell.row.metric), plain_statistic(cell.row.statistic)) !=
                  quantity)
            continue;
          ++e.cells;
          e.mean += std::abs(*error);
          if (std::abs(*error) > std::abs(e.worst)) e.worst = *error;
        }
      if (e.cells == 0) continue;
      e.mean /= static_cast<double>(e.cells);
      errors.push_back(std::move(e));
    }
  return errors;
}

std::string render_trust_csv(const std::vector<TrustError>& errors) {
  std::string out = std::string(kTrustHeader) + "\n";
  for (const TrustError& e : errors)
    out += std::string(enum_name(e.trust)) + "," + e.quantity + "," + std::to_string(e.cells) +
           "," + fixed_text(e.mean, 1) + "," + fixed_text(e.worst, 1) + "\n";
  return out;
}

std::string render_trust_text(const std::vector<TrustError>& errors, bool markdown) {
  TextTable table(2);
  if (markdown)
    table.add_row(
        {"step times", "quantity", "published numbers", "mean absolute error %", "worst error %"});
  else
    table.add_row({"step times", "quantity", "published numbers", "mean |error| %", "worst %"});
  for (const TrustError& e : errors)
    table.add_row({std::string(enum_name(e.trust)), e.quantity, std::to_string(e.cells),
                   fixed_text(e.mean, 1), signed_percent(e.worst)});
  if (!markdown) return table.str();
  return "<!-- Generated by `routesim validate --trust -o markdown`. Do not edit. -->\n"
         "# How far to trust a result\n\n"
         "Every result says what its step times rest on. This table says how far results of each "
         "class were off.\nEach scenario with published numbers was run as it is and, where its "
         "step times were fitted, once more on\nmeasured kernels, where they cover it, and on the "
         "roofline. So the rows of the classes below the fitted ones show what an\nunknown "
         "deployment of the same load would get.\nThe other numbers of a "
         "scenario, such as KV blocks and delays, stay as they are.\n\n" +
         table.markdown();
}

void describe(Describer& d, ValidationRecord::ClassError& r) {
  field(d, {"held_out", "Of experiments that nothing was fitted to."}, r.held_out);
  field(d, {"step_times", "Their basis."}, r.error.trust);
  field(d, {"quantity", "What was compared."}, r.error.quantity);
  field(d, {"published_numbers", "How many."}, r.error.cells);
  field(d, {"mean_absolute_error_percent", "Mean of their absolute errors, %."}, r.error.mean);
  field(d, {"worst_error_percent", "The largest error with its sign, %."}, r.error.worst);
}

void describe(Describer& d, ValidationCell& r) {
  field(d, {"experiment", "The publication."}, r.row.experiment);
  field(d, {"policy", "As published."}, r.row.policy);
  field(d, {"variant", "Empty for a row that compares two policies."}, r.variant);
  field(d, {"stage", "As published."}, r.row.stage);
  field(d, {"metric", "As published."}, r.row.metric);
  field(d, {"statistic", "As published."}, r.row.statistic);
  field(d, {"unit", "Of measured, simulated and samples."}, r.row.unit);
  field(d, {"measured", "The published number."}, r.row.value);
  text_unless_empty(d, {"rate", "Requests/s as published. Absent where none is."}, r.row.rate);
  std::optional<double> mean, deviation;
  std::optional<std::vector<double>> samples;
  if (r.simulated()) {
    mean = r.mean();
    deviation = r.seed_deviation();
    samples = r.samples;
  }
  field(d, {"simulated", "Mean over the seeds. Absent where nothing is simulated."}, mean);
  field(d, {"seed_sd", "Standard deviation between seeds."}, deviation);
  field(d, {"samples", "One per seed."}, samples);
  r.samples = samples.value_or(std::vector<double>());
  derived(d, {"error_percent", "100 (simulated - measured) / |measured|."}, r.error());
  field(d, {"status", "How the number is used."}, r.status);
  text_unless_empty(d, {"reason", "Why it is not scored, or not simulated."}, r.reason);
}

/// `against` is part of rows about what a policy changes.
void describe_names(Describer& d, ErrorRow& r, bool compares) {
  field(d, {"experiment", "The publication."}, r.experiment);
  field(d, {"policy", "As published."}, r.policy);
  if (compares) field(d, {"against", "The policy it is compared with."}, r.against);
  field(d, {"metric", "What was compared."}, r.metric);
  field(d, {"statistic", "Its statistic."}, r.statistic);
}

void describe(Describer& d, ErrorSummary& r) {
  describe_names(d, r, false);
  field(d, {"cells", "Published numbers."}, r.cells);
  field(d, {"mape_percent", "Mean of the absolute errors, %."}, r.mape);
  field(d, {"bias_percent", "Mean error, %."}, r.bias);
  field(d, {"worst_percent", "The error of largest size, %."}, r.worst);
  field(d, {"worst_stage", "Its stage."}, r.worst_stage);
  field(d, {"seed_sd_percent", "Mean deviation between seeds, % of measured."}, r.seed_deviation);
  field(d, {"limit_percent", "Limit of the mean error (--limits)."}, r.limit);
}

void describe(Describer& d, LeftOut& r) {
  describe(d, r.would);
  field(d, {"cells_with", "Scored numbers of the row and these."}, r.cells_with);
  field(d, {"mape_with_percent", "Mean of their absolute errors, %."}, r.mape_with);
  field(d, {"reason", "Why they are not scored."}, r.reason);
}

void describe(Describer& d, PolicyDifference& r) {
  field(d, {"experiment", "The publication."}, r.experiment);
  field(d, {"policy", "As published."}, r.policy);
  field(d, {"against", "The policy it is compared with."}, r.against);
  field(d, {"stage", "As published."}, r.stage);
  field(d, {"metric", "What was compared."}, r.metric);
  field(d, {"statistic", "Its statistic."}, r.statistic);
  field(d, {"measured_percent", "100 (policy / against - 1), %."}, r.measured);
  field(d, {"simulated_percent", "The same of the seed means."}, r.simulated);
  derived(d, {"error_points", "Simulated - measured, points."}, r.error_points());
  derived(d, {"ratio_error_percent", "Error of policy / against, %."}, r.ratio_error());
  derived(d, {"sign_agrees", "Both go the same way."}, r.sign_agrees());
  field(d, {"scored", "Both numbers are."}, r.scored);
}

void describe(Describer& d, DifferenceSummary& r) {
  describe_names(d, r, true);
  field(d, {"cells", "Differences scored."}, r.cells);
  field(d, {"signs_agree", "Those that go the same way."}, r.signs_agree);
  field(d, {"mean_points", "Mean of the absolute errors, points."}, r.mean_points);
  field(d, {"worst_points", "The error of largest size, points."}, r.worst_points);
  field(d, {"worst_stage", "Its stage."}, r.worst_stage);
  field(d, {"mean_ratio_error_percent", "Mean absolute error of the ratio, %."},
        r.mean_ratio_error);
}

void describe(Describer& d, ScenarioValidation& r) {
  field(d, {"scenario", "Its name."}, r.scenario);
  field(d, {"held_out", "Nothing was fitted to it."}, r.held_out);
  field(d, {"own_measurements", "The user's own numbers, which no fit saw."}, r.own);
  field(d, {"seeds", "Runs of each variant."}, r.seeds);
  field(d, {"cells", "Every published number."}, r.cells);
  field(d, {"errors", "By policy, metric and statistic."}, r.errors);
  field(d, {"left_out", "What is not scored, and what it would score."}, r.left_out);
  field(d, {"differences", "What each policy changes against the first."}, r.differences);
  field(d, {"difference_errors", "Errors of these changes."}, r.difference_errors);
  field(d, {"notes", "Of the runs with the first seed."}, r.notes);
}

void describe(Describer& d, ValidationRecord& r) {
  field(d, {"version", "The version that made it."}, r.version);
  field(d, {"by_class", "Mean errors by the basis of step times."}, r.by_class);
  field(d, {"scenarios", "One per scenario."}, r.scenarios);
}

ValidationRecord validation_record(const std::vector<ScenarioValidation>& all,
                                   const std::vector<RowLimit>& limits,
                                   const std::string& version) {
  ValidationRecord out{.version = version, .scenarios = all};
  for (const bool held_out : {false, true}) {
    std::vector<ScenarioValidation> part;
    for (const ScenarioValidation& v : all)
      if (v.held_out == held_out) part.push_back(v);
    for (TrustError& e : trust_table(part)) out.by_class.push_back({held_out, std::move(e)});
  }
  for (ScenarioValidation& v : out.scenarios)
    for (ErrorSummary& s : v.errors) {
      const auto limit = std::ranges::find(limits, s.names(), &RowLimit::names);
      if (limit != limits.end()) s.limit = limit->error;
    }
  return out;
}

std::string validation_csv(const std::vector<ScenarioValidation>& all) {
  std::string out =
      "scenario,experiment,policy,variant,stage,metric,statistic,unit,measured,simulated,seed_sd,"
      "error_percent,status,reason\n";
  for (const ScenarioValidation& v : all)
    for (const ValidationCell& cell : v.cells) {
      const auto simulated = [&](double value) {
        return cell.simulated() ? std::optional(value) : std::nullopt;
      };
      out += csv_line(v.scenario, cell.row.experiment, cell.row.policy, cell.variant,
                      cell.row.stage, cell.row.metric, cell.row.statistic, cell.row.unit,
                      cell.row.value, simulated(cell.mean()), simulated(cell.seed_deviation()),
                      cell.error(), enum_name(cell.status), cell.reason);
    }
  return out;
}

}  // namespace routesim::tools
