#include "tools/study/sweep/sweep_plan.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "base/text.h"
#include "tools/ingest/scenario/file_kind.h"
#include "tools/ingest/scenario/prepare.h"
#include "tools/ingest/tree/parse_config.h"
#include "tools/results/goodput.h"
#include "tools/results/metric_goal.h"
#include "tools/study/experiment/candidate.h"
#include "tools/study/experiment/experiment.h"
#include "tools/study/experiment/threads.h"

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
    if (std::find(plan.metrics.begin(), plan.metrics.end(), metric) == plan.metrics.end())
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
    if (parsed.value && std::find(metrics.begin(), metrics.end(), *parsed.value) != metrics.end())
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

}  // namespace routesim::tools
