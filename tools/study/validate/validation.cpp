#include "tools/study/validate/validation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/scalar_parse.h"
#include "base/text.h"
#include "tools/results/metrics.h"
#include "tools/results/report.h"
#include "tools/results/statistics.h"

namespace routesim::tools {

// The number of a run that a published row means.

namespace {

using sim::RunResult;
using sim::StageResult;

constexpr std::string_view kPerNode = "_per_node";

/// Publications write rates as `1/s` or per node; the number is the same kind of number.
std::string_view plain_unit(std::string_view unit) {
  if (unit == "1/s") return "";
  if (unit == "tok/s/node") return "tok/s";
  return unit;
}

bool is_rate(const std::string& text, double rate) { return number_from(text) == rate; }

/// The stage a row is about: the one it names, or the only reported one of its rate; `main` is the
/// only reported one.
const StageResult* stage_about(const RunResult& result, const MeasuredRow& row) {
  for (const StageResult& stage : result.stages)
    if (stage.info.name == row.stage) return &stage;
  const std::vector<const StageResult*> reported = reported_stages(result);
  if (row.stage == "main") return reported.size() == 1 ? reported.front() : nullptr;
  const StageResult* found = nullptr;
  for (const StageResult* stage : reported) {
    if (!is_rate(row.rate, stage->info.requested_rate)) continue;
    if (found != nullptr) return nullptr;
    found = stage;
  }
  return found;
}

/// Numbers of a stage that only logs and dashboards publish, in base units.
std::optional<double> log_value(const RunResult& result, const StageResult& stage,
                                std::string_view metric, std::string_view statistic) {
  if (metric == "stage_wall_time") return stage.total_time_s();
  if (metric == "stage_start_offset")
    return (stage.first_send - result.stages.front().first_send).to_seconds();
  if (metric == "send_duration") return stage.send_duration_s();
  if (metric == "requests_total") return static_cast<double>(stage.requests);
  if (metric == "kv_cache_usage" && std::isnan(stage.kv_cache_usage_mean)) return std::nullopt;
  if (metric == "kv_cache_usage" && statistic == "mean") return stage.kv_cache_usage_mean;
  if (metric == "kv_cache_usage" && statistic == "max") return stage.kv_cache_usage_max;
  return std::nullopt;
}

std::optional<double> summary_row(const RunResult& result, const MeasuredRow& row,
                                  const std::string& metric, std::string& why) {
  const std::vector<const StageResult*> stages = reported_stages(result);
  const std::optional<double> value =
      ladder_value(stages, metric, row.statistic, plain_unit(row.unit));
  if (!value) why = "no summary of the stages means this";
  return value;
}

using Words = std::span<const std::string_view>;

constexpr std::array<std::string_view, 10> kTimes = {"ttft",
                                                     "tpot",
                                                     "ntpot",
                                                     "itl",
                                                     "request_latency",
                                                     "schedule_delay",
                                                     "benchmark_duration",
                                                     "stage_wall_time",
                                                     "stage_start_offset",
                                                     "send_duration"};
constexpr std::array<std::string_view, 6> kTimeUnits = {"s",       "ms",       "us",
                                                        "s/token", "ms/token", "s/tok"};
constexpr std::array<std::string_view, 3> kTokenRates = {"output_throughput", "input_throughput",
                                                         "total_throughput"};
constexpr std::array<std::string_view, 2> kTokenRateUnits = {"tok/s", "tokens/s"};
constexpr std::array<std::string_view, 4> kRequestRates = {
    "request_throughput", "requests_per_sec_sent", "achieved_rate", "good_request_throughput"};
constexpr std::array<std::string_view, 1> kRequestRateUnits = {"req/s"};
constexpr std::array<std::string_view, 2> kLengths = {"input_length", "output_length"};
constexpr std::array<std::string_view, 1> kLengthUnits = {"tokens"};
constexpr std::array<std::string_view, 4> kCounts = {"successful_requests", "failed_requests",
                                                     "requests_total", "preemptions"};
constexpr std::array<std::string_view, 1> kCountUnits = {"count"};
constexpr std::array<std::string_view, 4> kShares = {"prefix_cache_hit_rate", "kv_cache_usage",
                                                     "failure_rate", "goodput"};
constexpr std::array<std::string_view, 2> kShareUnits = {"ratio", "%"};

struct Quantity {
  Words metrics;
  Words units;
};
constexpr std::array<Quantity, 6> kQuantities = {{{kTimes, kTimeUnits},
                                                  {kTokenRates, kTokenRateUnits},
                                                  {kRequestRates, kRequestRateUnits},
                                                  {kLengths, kLengthUnits},
                                                  {kCounts, kCountUnits},
                                                  {kShares, kShareUnits}}};

bool has(Words words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

/// Why the row's unit or value is impossible for `metric` (the row's, in the simulator's word): a
/// unit of another quantity, a negative number, a share above one. Empty when nothing is wrong, and
/// for a metric that is not known here. `unit` is the row's, in its plain spelling.
std::string why_impossible(const MeasuredRow& row, std::string_view metric, std::string_view unit) {
  const auto quantity = std::ranges::find_if(
      kQuantities, [metric](const Quantity& q) { return has(q.metrics, metric); });
  if (quantity == kQuantities.end()) return {};
  // Without a unit the number is in the metric's own.
  if (!unit.empty() && !has(quantity->units, unit))
    return printable(row.unit) + " is no unit of " + printable(row.metric);
  const double most = unit == "%" ? 100 : 1;
  if (row.value < 0 || (has(kShares, metric) && row.value > most))
    return "the published value is impossible (" + number_text(row.value) + " " +
           printable(row.unit) + ")";
  return {};
}

}  // namespace

std::string plain_statistic(std::string_view statistic) {
  statistic = statistic.substr(0, statistic.find('('));
  while (statistic.ends_with(' ')) statistic.remove_suffix(1);
  if (statistic == "value" || statistic == "approx" || statistic.starts_with("approx_") ||
      statistic.starts_with("mean over requests"))
    return "mean";
  return std::string(statistic);
}

std::string plain_metric(std::string_view metric) {
  if (metric == "time_per_token") return "ntpot";
  if (metric == "requests_failures") return "failed_requests";
  if (metric == "gpu_kv_cache_usage") return "kv_cache_usage";
  return canonical_metric(metric);
}

std::optional<double> simulated_value(const RunResult& result, std::int64_t nodes,
                                      const MeasuredRow& row, std::string& why) {
  std::string metric = plain_metric(row.metric);
  double share = 1;
  if (metric.ends_with(kPerNode)) {
    metric = plain_metric(metric.substr(0, metric.size() - kPerNode.size()));
    share = 1 / static_cast<double>(nodes);
  }
  why = why_impossible(row, metric, plain_unit(row.unit));
  if (!why.empty()) return std::nullopt;
  if (row.stage == "all") return summary_row(result, row, metric, why);
  const StageResult* stage = stage_about(result, row);
  if (stage == nullptr) {
    why = "the run has no such stage";
    return std::nullopt;
  }
  if (stage->successes == 0) {
    why = "no request of the stage succeeded";
    return std::nullopt;
  }
  const std::string_view unit = plain_unit(row.unit);
  const std::string statistic = plain_statistic(row.statistic);
  std::optional<double> value = metric_value(*stage, metric, statistic, unit);
  if (!value) {
    value = log_value(result, *stage, metric, statistic);
    if (value && unit == "%") *value *= 100;
    if (value && unit == "ms") *value *= 1e3;
  }
  if (!value) {
    why = "a run has no " + row.metric + ", " + row.statistic;
    return std::nullopt;
  }
  return *value * share;
}

namespace {

using sim::RunResult;

/// Whether a difference between policies makes sense: not of counts, lengths and what was sent.
bool is_comparable(const MeasuredRow& row) {
  return plain_metric(row.metric) != "requests_per_sec_sent" && row.unit != "count" &&
         row.unit != "tokens" && !row.metric.starts_with("stage_") &&
         plain_metric(row.metric) != "send_duration";
}

bool matches(const std::string& pattern, const std::string& text) {
  return pattern == "*" || pattern == text;
}

/// The two policies of `new/base` or `new_vs_base`.
std::optional<std::pair<std::string, std::string>> compared_policies(const std::string& policy) {
  for (const std::string_view separator : {std::string_view("/"), std::string_view("_vs_")}) {
    const std::size_t at = policy.find(separator);
    if (at != std::string::npos)
      return std::pair(policy.substr(0, at), policy.substr(at + separator.size()));
  }
  return std::nullopt;
}

}  // namespace

std::vector<UnscoredRule> parse_unscored_csv(const std::string& text, const std::string& file,
                                             Diagnostics& diagnostics) {
  constexpr std::string_view kHeader = "experiment,policy,stage,metric,statistic,reason";
  std::vector<UnscoredRule> rules;
  std::size_t begin = 0;
  for (int line = 1; begin < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view rest = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    if (rest.ends_with('\r')) rest.remove_suffix(1);
    const SourceLocation where{.file = file, .line = line, .column = 1};
    if (line == 1) {
      if (rest != kHeader)
        diagnostics.error(
            where, "",
            "the header must be " + std::string(kHeader) + " (got " + printable(rest, 100) + ")");
      continue;
    }
    std::array<std::string, 5> fields;
    bool whole = true;
    for (std::string& field : fields) {
      const std::size_t comma = rest.find(',');
      whole = whole && comma != std::string_view::npos && comma > 0;
      field = std::string(rest.substr(0, comma));
      rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
    }
    if (!whole || rest.empty()) {
      diagnostics.error(where, "", "must have 6 fields, none of them empty");
      continue;
    }
    rules.push_back({fields[0], fields[1], fields[2], fields[3], fields[4], std::string(rest)});
  }
  if (text.empty())
    diagnostics.error({.file = file, .line = 1, .column = 1}, "",
                      "the header must be " + std::string(kHeader) + " (got nothing)");
  return rules;
}

const std::string* unscored_reason(const std::vector<UnscoredRule>& rules, const MeasuredRow& row) {
  for (const UnscoredRule& rule : rules)
    if (matches(rule.experiment, row.experiment) && matches(rule.policy, row.policy) &&
        matches(rule.stage, row.stage) &&
        (rule.metric == "*" || plain_metric(rule.metric) == plain_metric(row.metric)) &&
        (matches(rule.statistic, row.statistic) ||
         rule.statistic == plain_statistic(row.statistic)))
      return &rule.reason;
  return nullptr;
}

double ValidationCell::mean() const { return sim::mean(samples); }
double ValidationCell::seed_deviation() const { return sim::sample_sd(samples); }

std::optional<double> ValidationCell::error() const {
  if (samples.empty() || row.value == 0) return std::nullopt;
  return 100 * (mean() - row.value) / std::abs(row.value);
}

double PolicyDifference::ratio_error() const {
  return 100 * ((100 + simulated) / (100 + measured) - 1);
}

namespace {

/// The row of the error tables that a cell belongs to.
ErrorRow error_row(const ValidationCell& cell) {
  return {.experiment = cell.row.experiment,
          .policy = cell.row.policy,
          .metric = plain_metric(cell.row.metric),
          .statistic = plain_statistic(cell.row.statistic)};
}

bool same_row(const ErrorRow& a, const ErrorRow& b) { return a == b; }

/// Counts a cell with this error; sums become means in finish_row().
void add_cell(ErrorSummary& s, const ValidationCell& cell, double error) {
  ++s.cells;
  s.mape += std::abs(error);
  s.bias += error;
  s.seed_deviation += 100 * cell.seed_deviation() / std::abs(cell.row.value);
  if (s.cells == 1 || std::abs(error) > std::abs(s.worst)) {
    s.worst = error;
    s.worst_stage = cell.row.stage;
  }
}

/// The row like this one, added when there is none.
template <class Row, class Same>
Row& row_in(std::vector<Row>& rows, Row row, const Same& same) {
  const auto it = std::ranges::find_if(rows, [&](const Row& other) { return same(other, row); });
  if (it != rows.end()) return *it;
  rows.push_back(std::move(row));
  return rows.back();
}

void finish_row(ErrorSummary& s) {
  const auto n = static_cast<double>(s.cells);
  s.mape /= n;
  s.bias /= n;
  s.seed_deviation /= n;
}

void summarise_errors(ScenarioValidation& v) {
  for (const ValidationCell& cell : v.cells) {
    const std::optional<double> error = cell.error();
    if (cell.status != CellStatus::kScored || !error) continue;
    add_cell(row_in(v.errors, ErrorSummary{error_row(cell)}, same_row), cell, *error);
  }
  for (ErrorSummary& s : v.errors) finish_row(s);
}

/// After summarise_errors().
void summarise_left_out(ScenarioValidation& v) {
  for (const ValidationCell& cell : v.cells) {
    const std::optional<double> error = cell.error();
    if (cell.status != CellStatus::kShown || cell.repeats || !error) continue;
    const LeftOut row{.would = {error_row(cell)}, .reason = cell.reason};
    const auto same = [](const LeftOut& a, const LeftOut& b) {
      return same_row(a.would, b.would) && a.reason == b.reason;
    };
    add_cell(row_in(v.left_out, row, same).would, cell, *error);
  }
  for (LeftOut& left : v.left_out) {
    finish_row(left.would);
    left.cells_with = left.would.cells;
    double sum = left.would.mape * static_cast<double>(left.would.cells);
    for (const ErrorSummary& s : v.errors) {
      if (!same_row(s, left.would)) continue;
      left.cells_with += s.cells;
      sum += s.mape * static_cast<double>(s.cells);
    }
    left.mape_with = sum / static_cast<double>(left.cells_with);
  }
}

/// The cell of the first policy that is about the same thing; null for that policy itself.
const ValidationCell* counterpart(const ScenarioValidation& v, const ValidationCell& cell) {
  if (v.policies.empty() || cell.row.policy == v.policies.front()) return nullptr;
  for (const ValidationCell& base : v.cells)
    if (base.row.policy == v.policies.front() && base.row.experiment == cell.row.experiment &&
        base.row.stage == cell.row.stage && base.row.statistic == cell.row.statistic &&
        base.row.unit == cell.row.unit &&
        plain_metric(base.row.metric) == plain_metric(cell.row.metric))
      return &base;
  return nullptr;
}

void summarise_differences(ScenarioValidation& v) {
  for (const PolicyDifference& d : v.differences) {
    if (!d.scored) continue;
    DifferenceSummary& s = row_in(v.difference_errors, DifferenceSummary{d.names()}, same_row);
    ++s.cells;
    s.signs_agree += d.sign_agrees() ? 1 : 0;
    s.mean_points += std::abs(d.error_points());
    s.mean_ratio_error += std::abs(d.ratio_error());
    if (s.cells == 1 || std::abs(d.error_points()) > std::abs(s.worst_points)) {
      s.worst_points = d.error_points();
      s.worst_stage = d.stage;
    }
  }
  for (DifferenceSummary& s : v.difference_errors) {
    const auto n = static_cast<double>(s.cells);
    s.mean_points /= n;
    s.mean_ratio_error /= n;
  }
}

}  // namespace

void summarise(ScenarioValidation& v) {
  v.errors.clear();
  v.left_out.clear();
  v.differences.clear();
  v.difference_errors.clear();
  summarise_errors(v);
  summarise_left_out(v);
  for (const ValidationCell& cell : v.cells) {
    if (cell.variant.empty() || !is_comparable(cell.row)) continue;
    const ValidationCell* base = counterpart(v, cell);
    if (base == nullptr || !base->simulated() || !cell.simulated()) continue;
    if (base->row.value == 0 || base->mean() == 0) continue;
    PolicyDifference d{error_row(cell)};
    d.against = base->row.policy;
    d.stage = cell.row.stage;
    d.measured = 100 * (cell.row.value / base->row.value - 1);
    d.simulated = 100 * (cell.mean() / base->mean() - 1);
    d.scored = cell.status == CellStatus::kScored && base->status == CellStatus::kScored;
    v.differences.push_back(std::move(d));
  }
  summarise_differences(v);
}

ValidationBook::ValidationBook(const ValidationInput& input, std::size_t seeds)
    : input_(input), seeds_(seeds), notes_(input.variants.size()), trust_(input.variants.size()) {
  // Variants usually share a file and an experiment; each row is planned once.
  std::set<std::pair<std::string, int>> seen;
  for (const ValidationVariant& variant : input.variants)
    for (const MeasuredRow& row : variant.table.rows)
      if (seen.insert({variant.table.file, row.line}).second) plan_row(row);
}

std::optional<std::size_t> ValidationBook::variant_of(const std::string& experiment,
                                                      const std::string& policy) const {
  for (std::size_t i = 0; i < input_.variants.size(); ++i) {
    const sim::MeasuredConfig& measured = input_.variants[i].plan.scenario.measured;
    if (measured.policy == policy &&
        (measured.experiment.empty() || measured.experiment == experiment))
      return i;
  }
  return std::nullopt;
}

std::size_t ValidationBook::probe(std::size_t variant, MeasuredRow row) {
  probes_.push_back({.variant = variant,
                     .row = std::move(row),
                     .values = std::vector<std::optional<double>>(seeds_),
                     .why = std::vector<std::string>(seeds_)});
  return probes_.size() - 1;
}

void ValidationBook::plan_row(const MeasuredRow& row) {
  if (const std::optional<std::size_t> v = variant_of(row.experiment, row.policy)) {
    planned_.push_back({.row = row,
                        .variant = input_.variants[*v].plan.scenario.variant,
                        .probe = probe(*v, row)});
    return;
  }
  if (plan_comparison(row)) return;
  planned_.push_back({.row = row, .reason = "no variant of the scenario has this policy"});
}

bool ValidationBook::plan_comparison(const MeasuredRow& row) {
  const auto policies = compared_policies(row.policy);
  if (!policies) return false;
  const std::optional<std::size_t> v = variant_of(row.experiment, policies->first);
  const std::optional<std::size_t> base = variant_of(row.experiment, policies->second);
  if (!v || !base) return false;
  MeasuredRow of = row;
  of.unit.clear();
  Planned planned{.row = row};
  constexpr std::string_view kSpeedup = "_speedup";
  constexpr std::string_view kReduction = "_reduction";
  if (row.metric.ends_with(kSpeedup)) {
    of.metric = row.metric.substr(0, row.metric.size() - kSpeedup.size());
    const bool more = of.metric.find("throughput") != std::string::npos;
    planned.combine = more ? Combine::kTimesMore : Combine::kTimesFaster;
  } else if (row.metric.ends_with(kReduction)) {
    of.metric = row.metric.substr(0, row.metric.size() - kReduction.size());
    of.statistic = "mean";
    planned.combine = Combine::kReduction;
  } else {
    return false;
  }
  planned.probe = probe(*v, of);
  planned.base = probe(*base, of);
  planned_.push_back(std::move(planned));
  return true;
}

void ValidationBook::add(std::size_t variant, std::size_t seed, const RunResult& result) {
  ROUTESIM_CHECK(variant < input_.variants.size() && seed < seeds_,
                 "no such variant or seed was planned");
  std::int64_t nodes = 0;
  for (const sim::ResolvedPool& pool : input_.variants[variant].plan.pools)
    nodes += pool.config.replicas;
  for (Probe& probe : probes_)
    if (probe.variant == variant)
      probe.values[seed] = simulated_value(result, nodes, probe.row, probe.why[seed]);
  if (seed != 0) return;
  notes_[variant] = result.notes;
  trust_[variant] = result.trust();
}

ValidationCell ValidationBook::cell(const Planned& planned) const {
  ValidationCell cell{.row = planned.row, .variant = planned.variant, .reason = planned.reason};
  if (!planned.reason.empty()) return cell;
  const Probe& probe = probes_[planned.probe];
  cell.trust = trust_[probe.variant];
  for (std::size_t s = 0; s < seeds_; ++s) {
    std::optional<double> value = probe.values[s];
    std::string why = probe.why[s];
    if (value && planned.base) {
      const Probe& base = probes_[*planned.base];
      const std::optional<double> b = base.values[s];
      if (!b || *b == 0 || *value == 0) {
        why = b ? "one of the two is 0" : base.why[s];
        value.reset();
      } else if (planned.combine == Combine::kTimesFaster) {
        value = *b / *value;
      } else if (planned.combine == Combine::kTimesMore) {
        value = *value / *b;
      } else {
        value = 100 * (1 - *value / *b);
      }
    }
    if (!value) {
      cell.samples.clear();
      cell.reason = why;
      return cell;
    }
    cell.samples.push_back(*value);
  }
  cell.status = CellStatus::kScored;
  if (const std::string* reason = unscored_reason(input_.unscored, cell.row)) {
    cell.status = CellStatus::kShown;
    cell.reason = *reason;
  } else if (cell.row.value == 0) {
    cell.status = CellStatus::kShown;
    cell.reason = "nothing is a per cent of 0";
  }
  return cell;
}

ScenarioValidation ValidationBook::finish() const {
  ScenarioValidation v;
  v.scenario = input_.scenario;
  v.held_out = input_.held_out;
  v.own = input_.own;
  v.seeds = seeds_;
  for (const ValidationVariant& variant : input_.variants)
    v.policies.push_back(variant.plan.scenario.measured.policy);
  for (const Planned& planned : planned_) {
    ValidationCell next = cell(planned);
    const auto repeats = [&](const ValidationCell& other) {
      return other.status == CellStatus::kScored && other.row.experiment == next.row.experiment &&
             other.row.policy == next.row.policy && other.row.stage == next.row.stage &&
             plain_metric(other.row.metric) == plain_metric(next.row.metric) &&
             plain_statistic(other.row.statistic) == plain_statistic(next.row.statistic);
    };
    // One measurement printed twice counts once.
    const auto it = std::ranges::find_if(v.cells, repeats);
    if (next.status == CellStatus::kScored && it != v.cells.end()) {
      next.status = CellStatus::kShown;
      next.repeats = true;
      next.reason = "repeats line " + std::to_string(it->row.line);
    }
    v.cells.push_back(std::move(next));
  }
  for (std::size_t i = 0; i < notes_.size(); ++i)
    for (const std::string& note : notes_[i])
      v.notes.push_back(input_.variants[i].plan.scenario.variant + ": " + note);
  summarise(v);
  return v;
}

}  // namespace routesim::tools
