#include "tools/study/sweep/sweep_record.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "base/check.h"
#include "base/describe.h"
#include "base/text.h"
#include "base/tree_reader.h"
#include "tools/ingest/scenario/file_kind.h"
#include "tools/ingest/scenario/prepare.h"
#include "tools/ingest/tree/parse_config.h"
#include "tools/results/described_json.h"
#include "tools/results/goodput.h"
#include "tools/results/metric_name.h"
#include "tools/results/statistics.h"
#include "tools/results/version.h"
#include "tools/study/experiment/experiment.h"

namespace routesim::tools {

namespace {

std::string row_key(const SweepPlan& plan, const LoadedVariant& variant, Diagnostics& diagnostics) {
  std::vector<std::string> parts = {std::to_string(plan.config.replications)};
  for (const MetricName& metric : plan.metrics) parts.push_back(metric.text);
  return candidate_key(variant, parts, diagnostics);
}

ScenarioRequest cell_request(const SweepPlan& plan, const GridCell& cell) {
  ScenarioRequest request{.path = plan.scenario_path,
                          .variants = plan.config.variants,
                          .assignments = plan.assignments};
  if (plan.config.seed) request.seed = static_cast<std::uint64_t>(*plan.config.seed);
  for (Assignment& a : plan.grid.assignments(cell)) request.assignments.push_back(std::move(a));
  return request;
}

double request_count(const sim::RunPlan& plan, std::uint64_t seed, Diagnostics& diagnostics) {
  constexpr double kUnknown = 1000;  // A closed loop's stage only knows its size at its end.
  const auto load = plan.make_load(seed, diagnostics);
  double requests = 0;
  if (load != nullptr)
    for (const workloads::StageInfo& stage : load->stages())
      requests += stage.requests >= 0 ? static_cast<double>(stage.requests) : kUnknown;
  return requests;
}

/// The rows and errors of one cell.
struct CheckedCell {
  std::vector<SweepRow> rows;
  Diagnostics diagnostics;
};

CheckedCell check_cell(const SweepPlan& plan, std::size_t index) {
  CheckedCell checked;
  Diagnostics& found = checked.diagnostics;
  const LoadedScenario loaded = load_checked(cell_request(plan, plan.grid.cells[index]), found);
  if (found.has_errors()) return checked;
  for (const LoadedVariant& variant : loaded.variants) {
    const std::optional<sim::RunPlan> run = prepare(variant, found);
    if (!run) continue;
    for (const MetricName& metric : plan.metrics)
      if (needs_goals(metric) && goals_of(variant.scenario).empty())
        found.error(plan.metrics_where, "goodput",
                    "is missing: the sweep's metric " + metric.text + " counts by it",
                    "set goodput: [ttft:500ms] in the scenario");
    const std::uint64_t seed = variant.scenario.seed;
    Diagnostics late;
    check_setup(*run, late);
    const double cost = request_count(*run, seed, late);
    append(found, variant.provenance.located(late));
    checked.rows.push_back({.cell = index,
                            .variant = variant.scenario.variant,
                            .seed = seed,
                            .key = row_key(plan, variant, found),
                            .cost = cost});
  }
  return checked;
}

/// The diagnostics of all cells, each once, with the cells it is about.
class CellDiagnostics {
 public:
  explicit CellDiagnostics(const SweepPlan& plan) : plan_(plan) {}

  void add(std::size_t cell, const Diagnostics& diagnostics) {
    for (const Diagnostic& d : diagnostics.items()) {
      const auto [it, is_new] = index_.try_emplace(to_string(d), entries_.size());
      if (is_new) entries_.push_back({d, {}});
      std::vector<std::size_t>& cells = entries_[it->second].cells;
      if (cells.empty() || cells.back() != cell) cells.push_back(cell);
    }
  }

  void append_to(Diagnostics& diagnostics) const {
    for (const Entry& entry : entries_) {
      Diagnostic d = entry.diagnostic;
      // An error of every cell is an error of the scenario.
      if (entry.cells.size() < plan_.grid.cells.size() || plan_.grid.cells.size() == 1)
        d.message += " [in " + label(entry.cells) + "]";
      diagnostics.add(std::move(d));
    }
  }

 private:
  struct Entry {
    Diagnostic diagnostic;
    std::vector<std::size_t> cells;
  };

  std::string label(const std::vector<std::size_t>& cells) const {
    constexpr std::size_t kShown = 3;
    std::string text;
    for (std::size_t i = 0; i < cells.size() && i < kShown; ++i)
      text += (i == 0 ? "" : "; ") + plan_.grid.label(plan_.grid.cells[cells[i]]);
    if (cells.size() > kShown) text += "; and " + std::to_string(cells.size() - kShown) + " more";
    return text;
  }

  const SweepPlan& plan_;
  std::map<std::string, std::size_t> index_;
  std::vector<Entry> entries_;
};

/// Adds what becomes of the scenario's keys in the cells. Values that stand in the sweep file are
/// not keys of their own: those of the sweep were noted when it was read.
void note_scenario(const SweepPlan& plan, const std::vector<CheckedCell>& cells,
                   Diagnostics& diagnostics) {
  std::set<std::tuple<std::string, int, int>> known;
  for (const CheckedCell& cell : cells)
    for (const KeyUse& use : cell.diagnostics.keys()) {
      if (use.where.file == plan.path) continue;
      known.emplace(use.where.file, use.where.line, use.where.column);
      diagnostics.key(use);
    }
  Diagnostics alone;  // Errors of the scenario are reported with the cells.
  (void)load_scenario({.path = plan.scenario_path}, alone);
  for (KeyUse use : alone.keys()) {
    if (known.contains({use.where.file, use.where.line, use.where.column})) continue;
    use.fate = Fate::kNoEffect;
    use.why = "every cell replaces it, or the sweep leaves out its variant";
    diagnostics.key(std::move(use));
  }
}

void check_cells(SweepPlan& plan, const SweepRequest& request, Diagnostics& diagnostics) {
  std::vector<CheckedCell> checked(plan.grid.cells.size());
  for_each_index(checked.size(), request.jobs,
                 [&](std::size_t i) { checked[i] = check_cell(plan, i); });
  CellDiagnostics all(plan);
  for (std::size_t i = 0; i < checked.size(); ++i) {
    all.add(i, checked[i].diagnostics);
    for (SweepRow& row : checked[i].rows) plan.rows.push_back(std::move(row));
  }
  all.append_to(diagnostics);
  if (request.with_ledger) note_scenario(plan, checked, diagnostics);
  std::map<std::string_view, const SweepRow*> first;
  for (const SweepRow& row : plan.rows) {
    const auto [it, is_new] = first.try_emplace(row.key, &row);
    if (is_new) continue;
    diagnostics.error(plan.axes_where, "axes",
                      "two cells are the same experiment [" +
                          plan.grid.label(plan.grid.cells[it->second->cell]) + " and " +
                          plan.grid.label(plan.grid.cells[row.cell]) + ", variant " +
                          printable(row.variant) + "]",
                      "remove the value that is given twice or changes nothing");
  }
}

/// A `--set` that an axis sets again in every cell changes nothing.
void warn_of_sets(const SweepPlan& plan, Diagnostics& diagnostics) {
  if (plan.grid.cells.empty() || plan.assignments.empty()) return;
  Diagnostics known;  // Errors of the scenario are reported with the cells.
  const LoadedScenario loaded = load_scenario({.path = plan.scenario_path}, known);
  std::vector<std::string> pools;
  if (!loaded.variants.empty())
    for (const sim::PoolConfig& pool : loaded.variants.front().scenario.cluster.pools)
      pools.push_back(pool.name);
  warn_overridden(plan.assignments, plan.grid.assignments(plan.grid.cells.front()),
                  "an axis of the sweep", pools, diagnostics);
}

/// Reads the goals, in their one spelling, and adds the metrics that they need.
void add_goals(SweepPlan& plan, const Provenance& provenance, Diagnostics& found) {
  for (std::size_t i = 0; i < plan.config.goals.size(); ++i) {
    const Parsed<MetricGoal> goal = parse_metric_goal(plan.config.goals[i]);
    if (!goal.value) {
      const std::string path = element_path("goals", i);
      found.error(provenance.nearest(path), path, goal.message, goal.hint);
      continue;
    }
    plan.config.goals[i] = goal.value->text;
    const MetricName& metric = goal.value->metric;
    if (std::ranges::find(plan.metrics, metric) == plan.metrics.end())
      plan.metrics.push_back(metric);
  }
}

/// The metrics of these names, or the usual ones when there are none.
std::vector<MetricName> read_metrics(const std::vector<std::string>& names,
                                     const Provenance& provenance, Diagnostics& diagnostics) {
  if (names.empty()) return standard_metrics();
  std::vector<MetricName> metrics;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string path = element_path("metrics", i);
    Parsed<MetricName> parsed = parse_metric_name(names[i]);
    if (parsed.value && std::ranges::find(metrics, *parsed.value) != metrics.end())
      parsed = {{}, "is named twice (got " + printable(names[i]) + ")", {}};
    if (parsed.value) {
      metrics.push_back(*parsed.value);
    } else {
      diagnostics.error(provenance.nearest(path), path, parsed.message, parsed.hint);
    }
  }
  return metrics;
}

/// Whether the base scenario can be read; if not, says so at its key.
bool find_scenario(SweepPlan& plan, const Provenance& provenance, Diagnostics& diagnostics) {
  const SourceLocation where = provenance.nearest("scenario");
  plan.scenario_path = resolve_path(plan.config.scenario, where);
  std::string text;
  return read_text_file(plan.scenario_path, where, "scenario", ConfigLimits{}.max_bytes, text,
                        diagnostics);
}

/// Reports errors of the base scenario, beside the errors of the sweep. Keys that an axis sets are
/// left out: the cells have other values there.
void check_scenario(const SweepPlan& plan, Diagnostics& diagnostics) {
  if (is_broken(diagnostics, "set")) return;
  Diagnostics found;
  const LoadedScenario loaded =
      load_scenario({.path = plan.scenario_path, .assignments = plan.assignments}, found);
  for (const LoadedVariant& variant : loaded.variants) check_variant(variant, found);
  // Elements of lists have a name in one path and a number in the other.
  const auto plain = [](const std::string& path) {
    std::string out;
    bool inside = false;
    for (const char c : path) {
      inside = (inside || c == '[') && c != ']';
      if (!inside) out += c;
    }
    return out;
  };
  const auto is_axis = [&](const std::string& path) {
    for (const Dimension& dimension : plan.grid.dimensions)
      for (const Axis& axis : dimension.axes)
        if (!axis.path.empty() && (plain(path).starts_with(plain(axis.path)) ||
                                   plain(axis.path).starts_with(plain(path))))
          return true;
    return false;
  };
  for (const Diagnostic& d : found.items())
    if (d.severity == Severity::kError && !is_axis(d.path)) diagnostics.add(d);
}

}  // namespace

SweepPlan load_sweep(const SweepRequest& request, Diagnostics& diagnostics) {
  SweepPlan plan;
  plan.path = request.path;
  Diagnostics found;
  Provenance provenance;
  ConfigNode::Ptr root = read_config_file(request.path, found);
  if (root != nullptr && !is_kind(*root, FileKind::kSweep, found)) root = nullptr;
  if (root != nullptr)
    read_struct(*root, plan.config, found, {.provenance = &provenance, .format = "sweep"});
  if (root != nullptr && root->is_map()) {
    if (request.seed) plan.config.seed = request.seed;
    if (request.replications) plan.config.replications = *request.replications;
    Diagnostics parts;
    const bool found_scenario = find_scenario(plan, provenance, parts);
    plan.assignments = parse_assignments(plan.config.set, "set", &provenance, found, parts);
    plan.metrics = read_metrics(plan.config.metrics, provenance, parts);
    add_goals(plan, provenance, parts);
    plan.axes_where = provenance.nearest("axes");
    plan.metrics_where = provenance.nearest("metrics");
    plan.grid = expand_grid(plan.config, provenance, parts);
    // A value that could not be read was reported: nothing more is said of it.
    const Diagnostics read = found;
    for (const Diagnostic& d : parts.items())
      if (!is_broken(read, d.path)) found.add(d);
    for (Assignment& a : parse_assignments(request.sets, {}, nullptr, found, found))
      plan.assignments.push_back(std::move(a));
    if (found.has_errors() && found_scenario) check_scenario(plan, found);
  }
  if (!found.has_errors()) warn_of_sets(plan, found);
  if (!found.has_errors()) check_cells(plan, request, found);
  KeyHash experiment;
  experiment.add(plan.config.name);
  for (const SweepRow& row : plan.rows) experiment.add(row.key);
  plan.experiment = experiment.finish();
  append(diagnostics, tidy(found));
  return plan;
}

std::optional<sim::RunPlan> prepare_row(const SweepPlan& plan, const SweepRow& row,
                                        Diagnostics& diagnostics) {
  ScenarioRequest request = cell_request(plan, plan.grid.cells[row.cell]);
  request.variants = {row.variant};
  const LoadedScenario loaded = load_scenario(request, diagnostics);
  if (diagnostics.has_errors() || loaded.variants.empty()) return std::nullopt;
  const LoadedVariant& variant = loaded.variants.front();
  std::optional<sim::RunPlan> run = prepare(variant, diagnostics);
  if (run && row_key(plan, variant, diagnostics) != row.key) {
    diagnostics.error({.file = plan.scenario_path}, "",
                      "this file, or one it names, has changed while the sweep was running",
                      "start again with --resume: rows of the old contents are kept apart");
    return std::nullopt;
  }
  return run;
}

void describe(Describer& d, SweepRowRecord::Metric& r) {
  field(d, {"mean", "Over the replications that have the number; null without any."}, r.mean);
  field(d, {"half_width", "Of its 95 % interval; null with one value."}, r.half_width);
  field(d, {"values", "By replication; null where it has none."}, r.values);
}

namespace {

void describe_numbers(Describer& d, SweepRowRecord::Numbers& r, bool has_metrics) {
  field(d, {"overloaded", "Its queue grows until it ends."}, r.overloaded);
  field(d, {"requests", "By replication."}, r.requests);
  std::optional<Named<SweepRowRecord::Metric>> metrics;
  if (has_metrics) metrics = std::move(r.metrics);
  field(d, {"metrics", "By name."}, metrics);
  r.metrics = std::move(metrics).value_or(Named<SweepRowRecord::Metric>());
}

}  // namespace

void describe(Describer& d, SweepRowRecord::Numbers& r) { describe_numbers(d, r, true); }

void describe(Describer& d, SweepRowRecord::Stage& r) {
  field(d, {"name", "Of the stage."}, r.name);
  field(d,
        {"requested_rate",
         "Requests/s; 0 where replications differ, and where loads run side by side."},
        r.requested_rate);
  field(d, {"reported", "It counts in the summary."}, r.reported);
  describe_numbers(d, r, r.reported);
}

namespace {

void describe_head(Describer& d, SweepRowRecord& r) {
  field(d, {"key", "What decides its numbers, hashed."}, r.key);
  field(d, {"index", "Its place in the grid, from 0."}, r.index);
  field(d, {"of", "Rows of the grid."}, r.of);
  field(d, {"sweep", "Name of the sweep."}, r.sweep);
  field(d, {"experiment", "The grid, hashed."}, r.experiment);
  std::optional<std::vector<std::string>> goals;
  if (!r.goals.empty()) goals = r.goals;
  field(d, {"goals", "Of the sweep file."}, goals);
  r.goals = std::move(goals).value_or(std::vector<std::string>());
  field(d, {"cell", "Value by axis."}, r.cell);
}

void describe_tail(Describer& d, SweepRowRecord& r) {
  field(d, {"variant", "Of the scenario."}, r.variant);
  field(d, {"seed", "Of the first replication."}, r.seed);
  field(d, {"replications", "Runs with consecutive seeds."}, r.replications);
  field(d, {"version", "The version that made it."}, r.version);
  text_unless_empty(d, {"commit", "Of that version."}, r.commit);
  text_unless_empty(d, {"step_times", "The weakest basis among its runs."}, r.step_times);
  field(d, {"summary", "Over the reported stages."}, r.summary);
  field(d, {"stages", "In their order."}, r.stages);
}

StageNumbers stage_numbers(const sim::StageResult& stage, const std::vector<MetricName>& metrics) {
  StageNumbers numbers{.name = stage.info.name,
                       .requested_rate = stage.info.part < 0 ? stage.info.requested_rate : 0,
                       .reported = stage.info.reported,
                       .requests = stage.requests,
                       .unanswered = stage.unanswered()};
  for (const MetricName& metric : metrics) numbers.values.push_back(metric_value(stage, metric));
  return numbers;
}

/// The numbers of one stage over all replications; `stage` finds it in each. It is overloaded when
/// it was asked for more than it answered, in the mean.
template <class Stage>
SweepRowRecord::Numbers numbers_over(const std::vector<MetricName>& metrics,
                                     const std::vector<RunNumbers>& runs, const Stage& stage) {
  SweepRowRecord::Numbers out;
  double unanswered = 0;
  for (const RunNumbers& run : runs) {
    unanswered += stage(run).unanswered;
    out.requests.push_back(stage(run).requests);
  }
  out.overloaded = unanswered / static_cast<double>(runs.size()) > sim::kMostQueueGrowth;
  for (std::size_t m = 0; m < metrics.size(); ++m) {
    SweepRowRecord::Metric metric;
    std::vector<double> known;
    for (const RunNumbers& run : runs) {
      metric.values.push_back(stage(run).values[m]);
      if (metric.values.back()) known.push_back(*metric.values.back());
    }
    const sim::Estimate estimate = sim::estimate(known);
    metric.mean = known.empty() ? std::numeric_limits<double>::quiet_NaN() : estimate.mean;
    metric.half_width = estimate.half_width;
    out.metrics.items.emplace_back(metrics[m].text, std::move(metric));
  }
  return out;
}

SweepRowRecord::Stage stage_over(const std::vector<MetricName>& metrics,
                                 const std::vector<RunNumbers>& runs, std::size_t s) {
  const auto stage = [s](const RunNumbers& run) -> const StageNumbers& { return run.stages[s]; };
  const StageNumbers& first = stage(runs.front());
  const bool one_rate = std::ranges::all_of(runs, [&](const RunNumbers& run) {
    return stage(run).requested_rate == first.requested_rate;
  });
  return {numbers_over(metrics, runs, stage), first.name, one_rate ? first.requested_rate : 0,
          first.reported};
}

/// The place of a row in its grid.
SweepRowRecord placed(const SweepPlan& plan, std::size_t row) {
  SweepRowRecord out;
  out.key = plan.rows[row].key;
  out.index = static_cast<std::int64_t>(row);
  out.of = static_cast<std::int64_t>(plan.rows.size());
  out.sweep = plan.config.name;
  out.experiment = plan.experiment;
  out.goals = plan.config.goals;
  for (auto& [name, json] : plan.grid.coordinates(plan.grid.cells[plan.rows[row].cell]))
    out.cell.items.emplace_back(name, Document{.path = json, .root = {}});
  return out;
}

}  // namespace

void describe(Describer& d, SweepRowRecord& r) {
  describe_head(d, r);
  describe_tail(d, r);
  text_unless_empty(d, {"shard", "That wrote it, I/N."}, r.shard);
  text_unless_empty(d, {"checksum", "Of every byte before it."}, r.checksum);
}

void describe(Describer& d, SweepRecord& r) {
  field(d, {"sweep_rows", "Lines of `routesim sweep`."}, r.sweep_rows);
  field(d, {"goals", "In place of those of the rows."}, r.goals);
}

RunNumbers numbers_of(const sim::RunResult& result, const std::vector<MetricName>& metrics) {
  RunNumbers numbers{.summary = stage_numbers(result.summary, metrics), .trust = result.trust()};
  for (const sim::StageResult& stage : result.stages)
    numbers.stages.push_back(stage_numbers(stage, metrics));
  return numbers;
}

std::string row_head(const SweepPlan& plan, std::size_t row) {
  SweepRowRecord record = placed(plan, row);
  JsonWriter json(0);
  json.begin_object();
  write_members(json, [&record](Describer& d) { describe_head(d, record); });
  return json.str();
}

std::string row_tail(SweepRowRecord& record) {
  JsonWriter json(0);
  json.begin_object();
  write_members(json, [&record](Describer& d) { describe_tail(d, record); });
  // The head has opened the object already, and the seal closes it.
  std::string tail = json.str();
  tail.front() = ',';
  return tail;
}

SweepRowRecord row_record(const SweepPlan& plan, std::size_t row,
                          const std::vector<RunNumbers>& runs) {
  SweepRowRecord out = placed(plan, row);
  out.variant = plan.rows[row].variant;
  out.seed = plan.rows[row].seed;
  out.replications = static_cast<std::int64_t>(runs.size());
  out.version = version();
  out.commit = commit();
  models::Trust trust = models::Trust::kFitted;
  for (const RunNumbers& run : runs) trust = std::max(trust, run.trust);
  out.step_times = enum_name(trust);
  const auto summary = [](const RunNumbers& run) -> const StageNumbers& { return run.summary; };
  out.summary = numbers_over(plan.metrics, runs, summary);
  out.summary.overloaded = false;
  for (std::size_t s = 0; s < runs.front().stages.size(); ++s) {
    out.stages.push_back(stage_over(plan.metrics, runs, s));
    out.summary.overloaded |= out.stages[s].reported && out.stages[s].overloaded;
  }
  return out;
}

SweepRowRecord stored_record(const SweepPlan& plan, std::size_t row, const std::string& tail) {
  Diagnostics faults;
  const ConfigNode::Ptr tree = json_tree(row_head(plan, row) + tail + "}", {});
  ROUTESIM_CHECK(tree != nullptr, "a row of this version does not read back");
  SweepRowRecord out = read_record<SweepRowRecord>(*tree, faults);
  ROUTESIM_CHECK(!faults.has_errors(), "a row of this version does not read back");
  return out;
}

}  // namespace routesim::tools
