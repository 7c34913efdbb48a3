// `expect:` of a scenario: read, checked against the scenario, and judged by its results.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/plan/resolve.h"
#include "tools/ingest/scenario/scenario_yaml.h"
#include "tools/results/difference.h"
#include "tools/results/result_set.h"

namespace routesim::tools {

/// `METRIC < NUMBER`, or `METRIC < NUMBER% of VARIANT`, taken apart.
struct Condition {
  std::string text;  ///< As written.
  MetricName metric;
  bool less = true;  ///< `<` and `<=`; else `>` and `>=`.
  bool or_equal = false;
  double bound = 0;       ///< In the metric's unit, or in percent of `reference`.
  std::string reference;  ///< A variant; empty for a plain number.
};

Parsed<Condition> parse_condition(const std::string& text);

/// A condition on one variant.
struct Expectation {
  Condition condition;
  std::string variant;
  std::string stage;  ///< Empty: the whole run.
  SourceLocation where;
};

/// Finds the faults in the text of the variant's expectations, where nothing more can be known of
/// the scenario.
void check_conditions(const LoadedVariant& variant, Diagnostics& diagnostics);

/// The expectations of one variant of `scenario`. `selected` says that the user asked for some
/// variants only: expectations about others are left out then, with a warning. `plan` gives the
/// names of the stages. All errors go to `diagnostics`.
std::vector<Expectation> load_expectations(const LoadedScenario& scenario,
                                           const LoadedVariant& variant, const sim::RunPlan& plan,
                                           bool selected, Diagnostics& diagnostics);

/// Every expectation judged. With one run its own numbers decide; with replications the intervals
/// do: an expectation fails only when the whole interval is on the wrong side.
std::vector<Judgement> judge(const std::vector<Expectation>& expectations, const ResultSet& set);

}  // namespace routesim::tools
