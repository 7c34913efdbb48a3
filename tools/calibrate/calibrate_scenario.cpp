#include "tools/calibrate/calibrate_scenario.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "tools/input/scalar_parse.h"
#include "tools/output/metrics.h"
#include "tools/output/printable.h"
#include "tools/output/text_table.h"

namespace routesim::tools {

namespace {

using models::CostCurve;
using models::CostCurveParameters;

struct NamedCoefficient {
  std::string_view name;
  double CostCurveParameters::*member;
};
constexpr std::array<NamedCoefficient, 13> kCoefficients = {{
    {"step_ms", &CostCurveParameters::step_ms},
    {"sequence_ms", &CostCurveParameters::sequence_ms},
    {"context_us_per_ktok", &CostCurveParameters::context_us_per_ktok},
    {"shared_context_weight", &CostCurveParameters::shared_context_weight},
    {"prefill_us_per_token", &CostCurveParameters::prefill_us_per_token},
    {"prefill_pair_ns", &CostCurveParameters::prefill_pair_ns},
    {"prefill_chunk_ms", &CostCurveParameters::prefill_chunk_ms},
    {"token_us", &CostCurveParameters::token_us},
    {"cpu_step_ms", &CostCurveParameters::cpu_step_ms},
    {"cpu_sequence_ms", &CostCurveParameters::cpu_sequence_ms},
    {"group_round_ms", &CostCurveParameters::group_round_ms},
    {"group_padding_us", &CostCurveParameters::group_padding_us},
    {"group_token_us", &CostCurveParameters::group_token_us},
}};

const NamedCoefficient* find_coefficient(const std::string& name) {
  for (const NamedCoefficient& c : kCoefficients)
    if (c.name == name) return &c;
  return nullptr;
}

/// The curve every pool of every variant uses; null when there is none, or more than one.
const CostCurve* common_curve(const ValidationInput& input) {
  const CostCurve* common = nullptr;
  for (const ValidationVariant& variant : input.variants)
    for (const sim::ResolvedPool& pool : variant.plan.pools) {
      const auto* curve = dynamic_cast<const CostCurve*>(pool.latency.get());
      if (curve == nullptr) return nullptr;
      if (common != nullptr && common->provenance() != curve->provenance()) return nullptr;
      common = curve;
    }
  return common;
}

/// A latency or a throughput, at a statistic that seeds do not throw about.
bool is_fitted(const ValidationCell& cell) {
  static const std::set<std::string> kMetrics = {
      "ttft", "itl", "tpot", "ntpot", "time_per_token", "output_throughput", "request_throughput"};
  static const std::set<std::string> kExtremes = {"min", "max", "p0p1", "p1", "p99p9"};
  return cell.status == CellStatus::kScored && !cell.variant.empty() &&
         kMetrics.contains(canonical_metric(cell.row.metric)) &&
         !kExtremes.contains(cell.row.statistic);
}

/// The cells of the objective and the weight of each.
class Objective {
 public:
  explicit Objective(const ScenarioValidation& v) {
    std::set<std::pair<std::string, std::string>> per_stage;
    for (const ValidationCell& cell : v.cells)
      if (is_fitted(cell) && cell.row.stage != "all")
        per_stage.insert({cell.row.policy, canonical_metric(cell.row.metric)});
    std::map<std::array<std::string, 3>, std::size_t> sizes;
    for (std::size_t i = 0; i < v.cells.size(); ++i) {
      const MeasuredRow& row = v.cells[i].row;
      const std::string metric = canonical_metric(row.metric);
      if (!is_fitted(v.cells[i])) continue;
      if (row.stage == "all" && per_stage.contains({row.policy, metric})) continue;
      cells_.push_back(i);
      ++sizes[{row.policy, metric, row.statistic}];
    }
    for (const std::size_t i : cells_) {
      const MeasuredRow& row = v.cells[i].row;
      const auto size = sizes[{row.policy, canonical_metric(row.metric), row.statistic}];
      weights_.push_back(1 / std::sqrt(static_cast<double>(size)));
    }
  }

  std::size_t size() const { return cells_.size(); }

  std::vector<double> residuals(const ScenarioValidation& v) const {
    std::vector<double> out;
    for (std::size_t k = 0; k < cells_.size(); ++k) {
      const ValidationCell& cell = v.cells[cells_[k]];
      const double ratio = cell.simulated() ? cell.mean() / cell.row.value : 0;
      // A number the run lost altogether is as bad as one that is off by a factor of e^3.
      out.push_back(weights_[k] * (ratio > 0 ? std::log(ratio) : 3.0));
    }
    return out;
  }

 private:
  std::vector<std::size_t> cells_;
  std::vector<double> weights_;
};

/// Simulates the scenario with other coefficients.
class CurveTrial {
 public:
  CurveTrial(const ValidationInput& input, const CostCurve& start,
             const std::vector<FreeCoefficient>& free, const ValidationEffort& effort,
             Diagnostics& diagnostics)
      : inputs_{input},
        start_(start.parameters()),
        free_(free),
        effort_(effort),
        diagnostics_(diagnostics) {}

  CostCurveParameters parameters(const std::vector<double>& x) const {
    CostCurveParameters p = start_;
    for (std::size_t i = 0; i < free_.size(); ++i)
      p.*find_coefficient(free_[i].name)->member = x[i];
    return p;
  }

  ScenarioValidation run(const std::vector<double>& x) {
    const auto curve =
        std::make_shared<CostCurve>(parameters(x), models::FittedRange{}, "being fitted");
    for (ValidationVariant& variant : inputs_.front().variants)
      for (sim::ResolvedPool& pool : variant.plan.pools) pool.latency = curve;
    sim::Progress progress;
    const auto silent = [](const std::string&) {};
    std::vector<ScenarioValidation> results =
        run_validation(inputs_, effort_, silent, progress, diagnostics_);
    return results.empty() ? ScenarioValidation{} : std::move(results.front());
  }

 private:
  std::vector<ValidationInput> inputs_;
  CostCurveParameters start_;
  const std::vector<FreeCoefficient>& free_;
  const ValidationEffort& effort_;
  Diagnostics& diagnostics_;
};

std::vector<models::BoundedParameter> bounds_of(const std::vector<FreeCoefficient>& free,
                                                const CostCurveParameters& start,
                                                Diagnostics& diagnostics) {
  std::vector<models::BoundedParameter> bounds;
  for (const FreeCoefficient& f : free) {
    const NamedCoefficient* c = find_coefficient(f.name);
    if (c == nullptr) {
      std::vector<std::string> names;
      for (const NamedCoefficient& known : kCoefficients) names.emplace_back(known.name);
      const std::string close = nearest(f.name, names);
      diagnostics.error({}, "--free", "unknown coefficient " + printable(f.name),
                        close.empty() ? "" : "did you mean " + close + "?");
      continue;
    }
    const double value = start.*c->member;
    double low = f.low;
    double high = f.high;
    if (!(low < high)) {
      low = value / 2;
      high = value * 2;
    }
    if (c->member == &CostCurveParameters::shared_context_weight) high = std::min(high, 1.0);
    if (!(low < high && low >= 0 && low <= value && value <= high))
      diagnostics.error({}, "--free",
                        f.name + " is " + number_text(value) + " now, which its bounds must hold",
                        "write --free " + f.name + "=LOW..HIGH");
    bounds.push_back({.name = f.name, .start = value, .low = low, .high = high});
  }
  return bounds;
}

}  // namespace

ScenarioFit fit_scenario(const ValidationInput& input, const std::vector<FreeCoefficient>& free,
                         const ValidationEffort& effort, int max_evaluations,
                         const std::function<void(const std::string&)>& report,
                         Diagnostics& diagnostics) {
  ScenarioFit result;
  const CostCurve* start = common_curve(input);
  if (start == nullptr) {
    diagnostics.error({}, "--scenario", "its servers do not all use one and the same cost curve");
    return result;
  }
  const auto bounds = bounds_of(free, start->parameters(), diagnostics);
  if (diagnostics.has_errors()) return result;
  CurveTrial trial(input, *start, free, effort, diagnostics);
  std::vector<double> x;
  for (const models::BoundedParameter& b : bounds) x.push_back(b.start);
  result.before = trial.run(x);
  if (diagnostics.has_errors()) return result;
  const Objective objective(result.before);
  result.cells = objective.size();
  if (result.cells == 0) {
    diagnostics.error({}, "--scenario", "no published number of it can be fitted to");
    return result;
  }
  result.fit = models::fit_objective(bounds,
                                     [&](const std::vector<double>& at) {
                                       const ScenarioValidation v = trial.run(at);
                                       std::vector<double> r =
                                           v.cells.empty() ? std::vector<double>(result.cells, 0.0)
                                                           : objective.residuals(v);
                                       double cost = 0;
                                       for (const double e : r) cost += e * e;
                                       std::string line = "cost " + fixed_text(cost, 5) + " at";
                                       for (std::size_t i = 0; i < at.size(); ++i)
                                         line += " " + bounds[i].name + " " + fixed_text(at[i], 4);
                                       report(line + "\n");
                                       return r;
                                     },
                                     {.max_evaluations = max_evaluations});
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = result.fit.parameters[i].value;
  result.after = trial.run(x);
  const sim::PoolConfig& pool = input.variants.front().plan.pools.front().config;
  const std::int64_t gpus = pool.tensor_parallel * pool.data_parallel;
  result.curve = {
      .accelerator = pool.accelerator,
      .model = pool.model,
      .parallelism = {.tp = pool.tensor_parallel,
                      .pp = pool.pipeline_parallel,
                      .dp = pool.data_parallel,
                      .ep = pool.expert_parallel ? gpus : 1},
      .preset = std::string(enum_name(pool.engine.preset)),
      .parameters = trial.parameters(x),
      // The published numbers do not say which batches were met: the present range stays.
      .range = start->range(),
      .provenance = {}};
  return result;
}

namespace {

/// `residuals, %: mean absolute 2.1, p50 1.4, p90 5.6, max 9.3` over the numbers fitted to.
std::string residual_text(const ScenarioValidation& v) {
  std::vector<double> sizes;
  double sum = 0;
  for (const ValidationCell& cell : v.cells) {
    const std::optional<double> error = cell.error();
    if (!is_fitted(cell) || !error) continue;
    sizes.push_back(std::abs(*error));
    sum += sizes.back();
  }
  if (sizes.empty()) return {};
  std::sort(sizes.begin(), sizes.end());
  const auto last = static_cast<double>(sizes.size() - 1);
  const auto at = [&](double q) { return sizes[static_cast<std::size_t>(std::lround(q * last))]; };
  return "residuals, %: mean absolute " + fixed_text(sum / static_cast<double>(sizes.size()), 1) +
         ", p50 " + fixed_text(at(0.5), 1) + ", p90 " + fixed_text(at(0.9), 1) + ", max " +
         fixed_text(sizes.back(), 1) + "\n";
}

}  // namespace

std::string scenario_fit_text(const ScenarioFit& fit) {
  TextTable table(1);
  table.add_row({"coefficient", "value", "95 % from", "to", "remark"});
  for (const models::FittedParameter& p : fit.fit.parameters)
    table.add_row({p.name, fixed_text(p.value, 4), fixed_text(p.low, 4), fixed_text(p.high, 4),
                   !p.identifiable ? "the numbers do not determine it"
                   : p.at_bound    ? "at its bound"
                                   : ""});
  std::string out = table.str();
  out.append("\n").append(std::to_string(fit.cells)) +=
      " published numbers; cost " + fixed_text(fit.fit.start_cost, 4) + " before, " +
      fixed_text(fit.fit.cost, 4) + " after " + std::to_string(fit.fit.evaluations) +
      " evaluations" + (fit.fit.converged ? "\n" : ", not converged\n") + residual_text(fit.after);
  TextTable errors(3);
  errors.add_row({"policy", "metric", "statistic", "cells", "MAPE % before", "after"});
  for (const ErrorSummary& after : fit.after.errors)
    for (const ErrorSummary& before : fit.before.errors)
      if (before.policy == after.policy && before.metric == after.metric &&
          before.statistic == after.statistic && before.experiment == after.experiment)
        errors.add_row({printable(after.policy), after.metric, after.statistic,
                        std::to_string(after.cells), fixed_text(before.mape, 1),
                        fixed_text(after.mape, 1)});
  return out + "\n" + errors.str();
}

}  // namespace routesim::tools
