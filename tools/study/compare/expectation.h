// `expect:` of a scenario: read, checked against the scenario, and judged by its results.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/plan/resolve.h"
#include "tools/ingest/scenario/scenario_yaml.h"
#include "tools/results/metric_name.h"
#include "tools/results/result_set.h"
#include "tools/study/experiment/experiment.h"

namespace routesim::tools {

/// `METRIC < NUMBER`, or `METRIC < NUMBER% of VARIANT`, taken apart.
struct Condition {
  std::string text;  ///< As written.
  MetricName metric;
  bool less = true;  ///< `<` and `<=`; else `>` and `>=`.
  bool or_equal = false;
  double bound = 0;            ///< In the metric's unit, or in percent of `reference`.
  std::string reference = {};  ///< A variant; empty for a plain number.
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

// `compare --fail-if`: a change for the worse that is too large.

/// `ttft_ms.p99>+5%` (the new mean is more than 5 % above the base's), `output_tokens_per_s<-2%`,
/// `ttft_ms.p99>+20` (more than 20 ms above), `ttft_ms.p99>500` (the new mean itself).
struct Gate {
  enum class Kind { kRelative, kAbsolute, kValue };
  std::string text;  ///< As written.
  MetricName metric;
  bool greater = true;  ///< Fails above the bound; else below it.
  Kind kind = Kind::kRelative;
  double bound = 0;  ///< Percent, or the metric's unit.
};

Parsed<Gate> parse_gate(const std::string& text);

/// Holds when the whole interval stays within the bound, fails when all of it is beyond, and is
/// undecided otherwise. Single runs have no interval: their numbers decide. A relative gate asks
/// for new - (1 + bound) base, so that no ratio of noisy numbers is taken.
Decision judge_gate(const Gate& gate, std::span<const double> base, std::span<const double> changed,
                    bool paired);

// The stopping rule of `run --until`, as it is written.

struct UntilRule {
  std::string text;  ///< In its one spelling: `ttft_ms.mean±2%`.
  MetricName metric;
  StoppingRule rule = {};
};

/// `METRIC±NUMBER%`; `+-` and `+/-` may stand for the sign.
Parsed<UntilRule> parse_until(const std::string& text);

}  // namespace routesim::tools
