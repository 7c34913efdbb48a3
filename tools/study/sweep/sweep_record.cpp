#include "tools/study/sweep/sweep_record.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/describe.h"
#include "base/tree_reader.h"
#include "tools/results/described_fields.h"
#include "tools/results/described_json.h"
#include "tools/results/json_tree.h"
#include "tools/results/statistics.h"
#include "tools/results/version.h"

namespace routesim::tools {

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
                       .unanswered = stage.unanswered(),
                       .values = {}};
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
  RunNumbers numbers{
      .summary = stage_numbers(result.summary, metrics), .stages = {}, .trust = result.trust()};
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
  SweepRowRecord out;
  Diagnostics faults;
  const ConfigNode::Ptr tree = json_tree(row_head(plan, row) + tail + "}", {});
  if (tree != nullptr) read_struct(*tree, out, faults, {.format = "", .null_numbers = true});
  ROUTESIM_CHECK(tree != nullptr && !faults.has_errors(),
                 "a row of this version does not read back");
  return out;
}

SweepRecord read_sweep_record(const ConfigNode& root, Diagnostics& diagnostics) {
  SweepRecord record;
  read_struct(root, record, diagnostics, {.format = "", .null_numbers = true});
  return record;
}

}  // namespace routesim::tools
