#include "tools/study/validate/validation_record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/scalar_parse.h"
#include "base/tree_reader.h"
#include "tools/render/render.h"
#include "tools/results/described_fields.h"
#include "tools/results/described_json.h"
#include "tools/study/validate/limits.h"
#include "tools/study/validate/trust_table.h"

namespace routesim::tools {

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

void describe(Describer& d, ErrorSummary& r) {
  field(d, {"experiment", "The publication."}, r.experiment);
  field(d, {"policy", "As published."}, r.policy);
  field(d, {"metric", "What was compared."}, r.metric);
  field(d, {"statistic", "Its statistic."}, r.statistic);
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
  field(d, {"against", "The policy it is compared with."}, r.base_policy);
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
  field(d, {"experiment", "The publication."}, r.experiment);
  field(d, {"policy", "As published."}, r.policy);
  field(d, {"against", "The policy it is compared with."}, r.base_policy);
  field(d, {"metric", "What was compared."}, r.metric);
  field(d, {"statistic", "Its statistic."}, r.statistic);
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
  ValidationRecord out{.version = version, .by_class = {}, .scenarios = all};
  for (const bool held_out : {false, true}) {
    std::vector<ScenarioValidation> part;
    for (const ScenarioValidation& v : all)
      if (v.held_out == held_out) part.push_back(v);
    for (TrustError& e : trust_table(part)) out.by_class.push_back({held_out, std::move(e)});
  }
  for (ScenarioValidation& v : out.scenarios)
    for (ErrorSummary& s : v.errors) {
      const auto limit = std::ranges::find_if(limits, [&](const RowLimit& l) {
        return l.against.empty() && l.experiment == s.experiment && l.policy == s.policy &&
               l.metric == s.metric && l.statistic == s.statistic;
      });
      if (limit != limits.end()) s.limit = limit->error;
    }
  return out;
}

ValidationRecord read_validation_record(const ConfigNode& root, Diagnostics& diagnostics) {
  ValidationRecord record;
  read_struct(root, record, diagnostics, {.format = "", .null_numbers = true});
  return record;
}

std::string validation_json(ValidationRecord& record) {
  JsonWriter json;
  write_value(json, record);
  return json.str() + "\n";
}

std::string validation_csv(const std::vector<ScenarioValidation>& all) {
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
                                         std::string(enum_name(cell.status)),
                                         cell.reason};
      for (std::string& field : fields) field = csv_field(field);
      out += fmt::format("{}\n", fmt::join(fields, ","));
    }
  return out;
}

}  // namespace routesim::tools
