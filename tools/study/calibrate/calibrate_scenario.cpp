#include "tools/study/calibrate/calibrate_scenario.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "models/kernels/kernel_latency.h"
#include "models/roofline.h"
#include "tools/ingest/tree/config_merge.h"
#include "tools/ingest/tree/description.h"
#include "tools/results/metrics.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

namespace {

using models::CostCurveParameters;
using Kind = FieldDescription::Kind;

struct NamedCoefficient {
  std::string_view name;
  double CostCurveParameters::*member;
};
constexpr std::array<NamedCoefficient, 14> kCoefficients = {{
    {"step_ms", &CostCurveParameters::step_ms},
    {"sequence_ms", &CostCurveParameters::sequence_ms},
    {"context_us_per_ktok", &CostCurveParameters::context_us_per_ktok},
    {"shared_context_weight", &CostCurveParameters::shared_context_weight},
    {"mixed_context_us_per_ktok", &CostCurveParameters::mixed_context_us_per_ktok},
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

bool is_number(Kind kind) {
  return kind == Kind::kInteger || kind == Kind::kReal || kind == Kind::kDuration;
}

/// The value of a scalar field in its base unit (durations in seconds); nothing when it has none.
std::optional<double> present_value(const FieldDescription& field) {
  if (!field.engaged || field.value.empty()) return std::nullopt;
  if (field.kind == Kind::kDuration) {
    const auto node = ConfigNode::make_scalar(field.value, ConfigNode::Style::kUntyped, {});
    const Parsed<Duration> value = parse_duration(*node, {});
    return value.value ? std::optional(value.value->to_seconds()) : std::nullopt;
  }
  return parse_real(field.value, {}).value;
}

/// The member of an object, or the element of a list, that a step leads to; null when there is
/// none.
const FieldDescription* step_into(const FieldDescription& at, const PathStep& step) {
  if (step.in_brackets && at.element != nullptr) return at.element.get();  // Types: all are alike.
  if (step.index) return *step.index < at.members.size() ? &at.members[*step.index] : nullptr;
  for (const FieldDescription& member : at.members) {
    const bool is_it = step.in_brackets
                           ? std::ranges::any_of(member.members,
                                                 [&](const auto& m) {
                                                   return m.name == "name" && m.value == step.key;
                                                 })
                           : member.name == step.key;
    if (is_it) return &member;
  }
  return nullptr;
}

/// The field at the end of a key path; null when there is none.
const FieldDescription* field_at(const FieldDescription& root, const std::string& path) {
  const auto steps = parse_key_path(path);
  const FieldDescription* at = steps ? &root : nullptr;
  for (std::size_t i = 0; at != nullptr && i < steps->size(); ++i) at = step_into(*at, (*steps)[i]);
  return at;
}

/// A struct's types, and its values, which lack what is optional and absent.
struct Described {
  FieldDescription types;
  FieldDescription values;
};

template <class T>
Described described(T value) {
  T throw_away = value;
  return {describe_types([&throw_away](Describer& d) { sim::describe(d, throw_away); }),
          describe_values([&value](Describer& d) { sim::describe(d, value); })};
}

std::vector<std::string> names_of_numbers() {
  std::vector<std::string> names;
  names.reserve(kCoefficients.size());
  for (const NamedCoefficient& c : kCoefficients) names.emplace_back(c.name);
  for (const FieldDescription& f : described(sim::EngineConfig{}).types.members)
    if (is_number(f.kind)) names.push_back(f.name);
  return names;
}

}  // namespace

FreeNumbers::FreeNumbers(const std::vector<FreeNumber>& free, const CostCurveParameters& start,
                         const std::vector<ValidationInput>& inputs, Diagnostics& diagnostics)
    : start_(start) {
  for (const FreeNumber& f : free) {
    const auto coefficient = std::ranges::find_if(
        kCoefficients, [&f](const NamedCoefficient& c) { return c.name == f.name; });
    if (coefficient != kCoefficients.end()) {
      add_coefficient(f, coefficient->member, diagnostics);
    } else if (!add_key(f, inputs, diagnostics)) {
      diagnostics.error({}, "--free",
                        "unknown coefficient or number of the scenario " + printable(f.name),
                        did_you_mean(f.name, names_of_numbers()));
    }
  }
}

void FreeNumbers::add_coefficient(const FreeNumber& free, double CostCurveParameters::*member,
                                  Diagnostics& diagnostics) {
  const double value = start_.*member;
  double low = free.low;
  double high = free.high;
  if (!(low < high)) {
    low = value / 2;
    high = value * 2;
  }
  if (member == &CostCurveParameters::shared_context_weight) high = std::min(high, 1.0);
  if (!(low < high && low >= 0 && low <= value && value <= high))
    diagnostics.error({}, "--free",
                      free.name + " is " + number_text(value) + " now, which its bounds must hold",
                      "write --free " + free.name + "=LOW..HIGH");
  bounds_.push_back({.name = free.name, .start = value, .low = low, .high = high});
  places_.push_back({.member = member});
}

/// False when no scenario has such a number.
bool FreeNumbers::add_key(const FreeNumber& free, const std::vector<ValidationInput>& inputs,
                          Diagnostics& diagnostics) {
  const sim::RunPlan& plan = inputs.front().variants.front().plan;
  const sim::ResolvedPool& pool = plan.pools.front();
  const Described engine = described(pool.config.engine);
  const bool of_engine = field_at(engine.types, free.name) != nullptr;
  const Described from = of_engine ? engine : described(plan.scenario);
  const FieldDescription* type = field_at(from.types, free.name);
  if (type == nullptr || !is_number(type->kind)) return false;
  const FieldDescription* present = field_at(from.values, free.name);
  // Without a present value the bounds must be given, and the search starts in their middle.
  double value = (free.low + free.high) / 2;
  if (present != nullptr) value = present_value(*present).value_or(value);
  if (of_engine && free.name == "num_gpu_blocks")
    value = static_cast<double>(pool.kv_plan.num_gpu_blocks);
  if (of_engine && free.name == "kv_cache_tokens")
    value = static_cast<double>(pool.kv_cache_tokens);
  const bool bounded = free.low < free.high;
  const double low = bounded ? free.low : value / 2;
  const double high = bounded ? free.high : value * 2;
  if (!(low < high && low >= 0)) {
    diagnostics.error({}, "--free", free.name + " needs bounds",
                      "write --free " + free.name + "=LOW..HIGH");
    return true;
  }
  std::set<std::string> pools;
  for (const ValidationInput& input : inputs)
    for (const ValidationVariant& variant : input.variants)
      for (const sim::ResolvedPool& p : variant.plan.pools) pools.insert(p.config.name);
  Place place{.whole = type->kind == Kind::kInteger};
  if (!of_engine) place.paths.push_back(free.name);
  if (of_engine)
    for (const std::string& name : pools)
      place.paths.push_back("cluster.pools[" + name + "].engine." + free.name);
  bounds_.push_back({.name = free.name,
                     .start = std::clamp(value, low, high),
                     .low = low,
                     .high = high,
                     .step = place.whole ? std::max(1.0, 0.02 * (high - low)) : 0});
  places_.push_back(std::move(place));
  return true;
}

bool FreeNumbers::changes_scenarios() const {
  return std::ranges::any_of(places_, [](const Place& p) { return p.member == nullptr; });
}

CostCurveParameters FreeNumbers::parameters(const std::vector<double>& x) const {
  CostCurveParameters p = start_;
  for (std::size_t i = 0; i < places_.size(); ++i)
    if (places_[i].member != nullptr) p.*places_[i].member = x[i];
  return p;
}

std::vector<std::string> FreeNumbers::sets(const std::vector<double>& x) const {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < places_.size(); ++i)
    for (const std::string& path : places_[i].paths) {
      std::string argument = path;
      argument += '=';
      argument += number_text(places_[i].whole ? std::round(x[i]) : x[i]);
      out.push_back(std::move(argument));
    }
  return out;
}

std::vector<double> FreeNumbers::rounded(std::vector<double> x) const {
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = std::clamp(places_[i].whole ? std::round(x[i]) : with_digits(x[i], 4), bounds_[i].low,
                      bounds_[i].high);
  return x;
}

namespace {

using models::CostCurve;

/// The tolerance of numbers that no rule names, %.
constexpr double kPlainTolerance = 10;

/// The curve of a latency model, or the one closest to it where nothing was fitted yet; null for
/// tables of step times.
std::shared_ptr<const CostCurve> curve_of(
    const std::shared_ptr<const models::LatencyModel>& latency) {
  if (const auto* roofline = dynamic_cast<const models::Roofline*>(latency.get()))
    return std::make_shared<CostCurve>(roofline->as_cost_curve(), models::FittedRange{},
                                       roofline->provenance());
  if (const auto* kernels = dynamic_cast<const models::KernelLatency*>(latency.get()))
    return std::make_shared<CostCurve>(kernels->as_cost_curve(), models::FittedRange{},
                                       kernels->provenance());
  return std::dynamic_pointer_cast<const CostCurve>(latency);
}

/// The curve every pool of every variant uses; null, with an error, when there is none, or more
/// than one.
std::shared_ptr<const CostCurve> common_curve(const std::vector<ValidationInput>& inputs,
                                              Diagnostics& diagnostics) {
  std::shared_ptr<const CostCurve> common;
  std::string first;
  for (const ValidationInput& input : inputs)
    for (const ValidationVariant& variant : input.variants)
      for (const sim::ResolvedPool& pool : variant.plan.pools) {
        const std::string place = printable("pool " + pool.config.name + " of " + input.scenario +
                                            ", " + variant.plan.scenario.variant);
        const std::shared_ptr<const CostCurve> curve = curve_of(pool.latency);
        if (curve == nullptr) {
          diagnostics.error({}, "--scenario",
                            place + " uses no cost curve (" + pool.latency->provenance() + ")",
                            "all servers must use one and the same curve");
          return nullptr;
        }
        if (common == nullptr) {
          common = curve;
          first = place;
        }
        if (common->provenance() == curve->provenance()) continue;
        diagnostics.error({}, "--scenario",
                          place + " uses another cost curve (" + curve->provenance() + ") than " +
                              first + " (" + common->provenance() + ")",
                          "all servers must use one and the same curve");
        return nullptr;
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

bool names(const Tolerance& t, const MeasuredRow& row) {
  return (t.scope.empty() || t.scope == row.experiment || t.scope == row.policy) &&
         canonical_metric(t.metric) == canonical_metric(row.metric) &&
         (t.statistic.empty() || t.statistic == row.statistic);
}

/// The cells of the objective and the weight of each.
class Objective {
 public:
  Objective(const std::vector<ScenarioValidation>& all, const std::vector<Tolerance>& tolerances)
      : tolerances_(tolerances) {
    for (std::size_t s = 0; s < all.size(); ++s) add(s, all[s]);
  }

  std::size_t size() const { return cells_.size(); }

  /// Whether the rule names any cell.
  bool uses(const Tolerance& rule, const std::vector<ScenarioValidation>& all) const {
    return std::ranges::any_of(
        cells_, [&](const Cell& c) { return names(rule, all[c.scenario].cells[c.index].row); });
  }

  std::vector<double> residuals(const std::vector<ScenarioValidation>& all) const {
    std::vector<double> out;
    for (const Cell& c : cells_) {
      const ValidationCell& cell = all[c.scenario].cells[c.index];
      const double ratio = cell.simulated() ? cell.mean() / cell.row.value : 0;
      // A number the run lost altogether is as bad as one that is off by a factor of e^3.
      out.push_back(c.weight * (ratio > 0 ? std::log(ratio) : 3.0));
    }
    return out;
  }

 private:
  struct Cell {
    std::size_t scenario;
    std::size_t index;
    double weight;
  };

  /// Cells of one policy, metric and statistic share the weight of one.
  void add(std::size_t scenario, const ScenarioValidation& v) {
    std::set<std::array<std::string, 3>> per_stage;
    for (const ValidationCell& cell : v.cells)
      if (is_fitted(cell) && cell.row.stage != "all") per_stage.insert(metric_of(cell.row));
    std::map<std::array<std::string, 4>, std::vector<std::size_t>> groups;
    for (std::size_t i = 0; i < v.cells.size(); ++i) {
      const MeasuredRow& row = v.cells[i].row;
      const auto metric = metric_of(row);
      if (!is_fitted(v.cells[i]) || (row.stage == "all" && per_stage.contains(metric))) continue;
      groups[{metric[0], metric[1], metric[2], row.statistic}].push_back(i);
    }
    for (const auto& [key, members] : groups)
      for (const std::size_t i : members)
        cells_.push_back({scenario, i,
                          kPlainTolerance / tolerance(v.cells[i].row) /
                              std::sqrt(static_cast<double>(members.size()))});
  }

  static std::array<std::string, 3> metric_of(const MeasuredRow& row) {
    return {row.experiment, row.policy, canonical_metric(row.metric)};
  }

  double tolerance(const MeasuredRow& row) const {
    double percent = kPlainTolerance;
    for (const Tolerance& t : tolerances_)
      if (names(t, row)) percent = t.percent;
    return percent;
  }

  const std::vector<Tolerance>& tolerances_;
  std::vector<Cell> cells_;
};

/// Simulates the scenarios with other numbers.
class Trial {
 public:
  Trial(const std::vector<ValidationInput>& inputs, const FreeNumbers& free,
        const ScenarioFitRequest& request, Experiment& experiment)
      : inputs_(inputs), free_(free), request_(request), experiment_(experiment) {}

  std::vector<ScenarioValidation> run(const std::vector<double>& x) {
    if (free_.changes_scenarios())
      inputs_ = request_.reload(free_.sets(x), experiment_.diagnostics());
    experiment_.throw_if_stopped();
    const auto curve =
        std::make_shared<CostCurve>(free_.parameters(x), models::FittedRange{}, "being fitted");
    for (ValidationInput& input : inputs_)
      for (ValidationVariant& variant : input.variants)
        for (sim::ResolvedPool& pool : variant.plan.pools) pool.latency = curve;
    return run_as_they_are();
  }

  std::vector<ScenarioValidation> run_as_they_are() {
    const auto silent = [](const std::string&) {};
    return run_validation(inputs_, request_.seeds, silent, experiment_);
  }

 private:
  std::vector<ValidationInput> inputs_;
  const FreeNumbers& free_;
  const ScenarioFitRequest& request_;
  Experiment& experiment_;
};

/// The curve entry of the deployment that all scenarios share.
models::FittedCurve entry_of(const sim::PoolConfig& pool,
                             const models::CostCurveParameters& parameters,
                             const models::FittedRange& range) {
  const std::int64_t gpus = pool.tensor_parallel * pool.data_parallel;
  return {.accelerator = pool.accelerator,
          .model = pool.model,
          .parallelism = {.tp = pool.tensor_parallel,
                          .pp = pool.pipeline_parallel,
                          .dp = pool.data_parallel,
                          .ep = pool.expert_parallel ? gpus : 1,
                          .dcp = pool.decode_context_parallel},
          .preset = std::string(enum_name(pool.engine.preset)),
          .parameters = parameters,
          .range = range,
          .provenance = {}};
}

/// The residuals at a point, with a line of report.
class ReportedResiduals {
 public:
  ReportedResiduals(Trial& trial, const Objective& objective,
                    const std::vector<models::BoundedParameter>& bounds,
                    const std::function<void(const std::string&)>& report)
      : trial_(trial), objective_(objective), bounds_(bounds), report_(report) {}

  std::vector<double> operator()(const std::vector<double>& at) const {
    std::vector<double> r = objective_.residuals(trial_.run(at));
    double cost = 0;
    for (const double e : r) cost += e * e;
    std::string line = "cost " + fixed_text(cost, 5) + " at";
    for (std::size_t i = 0; i < at.size(); ++i)
      line += " " + bounds_[i].name + " " + fixed_text(at[i], 4);
    report_(line + "\n");
    return r;
  }

 private:
  Trial& trial_;
  const Objective& objective_;
  const std::vector<models::BoundedParameter>& bounds_;
  const std::function<void(const std::string&)>& report_;
};

}  // namespace

ScenarioFit fit_scenarios(const std::vector<ValidationInput>& inputs,
                          const ScenarioFitRequest& request,
                          const std::function<void(const std::string&)>& report,
                          Experiment& experiment) {
  ScenarioFit result;
  Diagnostics& diagnostics = experiment.diagnostics();
  const std::shared_ptr<const CostCurve> start = common_curve(inputs, diagnostics);
  experiment.throw_if_stopped();
  const FreeNumbers free(request.free, start->parameters(), inputs, diagnostics);
  if (request.explore > 0 && request.free.size() > models::kMostExplored)
    diagnostics.error(
        {}, "--explore",
        "explores at most " + std::to_string(models::kMostExplored) + " free numbers together");
  experiment.throw_if_stopped();
  Trial trial(inputs, free, request, experiment);
  result.before = trial.run_as_they_are();
  const Objective objective(result.before, request.tolerances);
  result.cells = objective.size();
  if (result.cells == 0)
    diagnostics.error({}, "--scenario", "no published number of it can be fitted to");
  for (const Tolerance& t : request.tolerances)
    if (!objective.uses(t, result.before))
      diagnostics.error({}, "--tolerance",
                        "names no number that is fitted to (" +
                            printable(t.scope + ":" + t.metric + "." + t.statistic) + ")");
  experiment.throw_if_stopped();
  const ReportedResiduals residuals(trial, objective, free.bounds(), report);
  const auto bounds = models::explore_objective(free.bounds(), residuals, request.explore);
  result.fit =
      models::fit_objective(bounds, residuals, {.max_evaluations = request.max_evaluations});
  std::vector<double> x;
  for (const models::FittedParameter& p : result.fit.parameters) x.push_back(p.value);
  x = free.rounded(x);
  for (std::size_t i = 0; i < x.size(); ++i) result.fit.parameters[i].value = x[i];
  result.after = trial.run(x);
  result.sets = free.sets(x);
  // The published numbers do not say which batches were met: the present range stays.
  result.curve = entry_of(inputs.front().variants.front().plan.pools.front().config,
                          free.parameters(x), start->range());
  return result;
}

namespace {

/// `residuals, %: mean absolute 2.1, p50 1.4, p90 5.6, max 9.3` over the numbers fitted to.
std::string residual_text(const std::vector<ScenarioValidation>& all) {
  std::vector<double> sizes;
  double sum = 0;
  for (const ScenarioValidation& v : all)
    for (const ValidationCell& cell : v.cells) {
      const std::optional<double> error = cell.error();
      if (!is_fitted(cell) || !error) continue;
      sizes.push_back(std::abs(*error));
      sum += sizes.back();
    }
  if (sizes.empty()) return {};
  std::ranges::sort(sizes);
  const auto last = static_cast<double>(sizes.size() - 1);
  const auto at = [&](double q) { return sizes[static_cast<std::size_t>(std::lround(q * last))]; };
  return "residuals, %: mean absolute " + fixed_text(sum / static_cast<double>(sizes.size()), 1) +
         ", p50 " + fixed_text(at(0.5), 1) + ", p90 " + fixed_text(at(0.9), 1) + ", max " +
         fixed_text(sizes.back(), 1) + "\n";
}

/// One row per policy, metric and statistic of every scenario.
std::string error_table(const ScenarioFit& fit) {
  TextTable table(4);
  table.add_row(
      {"scenario", "policy", "metric", "statistic", "cells", "MAPE % before", "after", "bias %"});
  for (std::size_t s = 0; s < fit.after.size(); ++s)
    for (std::size_t i = 0; i < fit.after[s].errors.size(); ++i) {
      const ErrorSummary& after = fit.after[s].errors[i];
      table.add_row({printable(fit.after[s].scenario), printable(after.policy), after.metric,
                     after.statistic, std::to_string(after.cells),
                     fixed_text(fit.before[s].errors[i].mape, 1), fixed_text(after.mape, 1),
                     signed_percent(after.bias)});
    }
  return table.str();
}

}  // namespace

std::string scenario_fit_text(const ScenarioFit& fit) {
  TextTable table(1);
  table.add_row({"number", "value", "95 % from", "to", "remark"});
  for (const models::FittedParameter& p : fit.fit.parameters)
    table.add_row({p.name, fixed_text(p.value, 4), fixed_text(p.low, 4), fixed_text(p.high, 4),
                   !p.identifiable ? "the published numbers do not determine it"
                   : p.at_bound    ? "at its bound"
                                   : ""});
  std::string out = table.str();
  out.append("\n").append(std::to_string(fit.cells)) +=
      " published numbers; cost " + fixed_text(fit.fit.start_cost, 4) + " before the descent, " +
      fixed_text(fit.fit.cost, 4) + " after its " + std::to_string(fit.fit.evaluations) +
      " evaluations" + (fit.fit.converged ? "\n" : ", not converged\n") + residual_text(fit.after);
  if (!fit.sets.empty()) {
    out += "numbers of the scenario, no part of the curve:\n";
    for (const std::string& set : fit.sets) out += "  --set " + set + "\n";
  }
  return out + "\n" + error_table(fit);
}

}  // namespace routesim::tools
