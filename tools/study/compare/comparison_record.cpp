#include "tools/study/compare/comparison_record.h"

#include <algorithm>

#include "base/tree_reader.h"
#include "tools/results/described_fields.h"
#include "tools/results/described_json.h"

namespace routesim::tools {

namespace {

ComparisonRecord::File file_record(const ResultFile& file) {
  ComparisonRecord::File out{.path = file.path,
                             .scenario = file.set.scenario,
                             .interrupted = {},
                             .version = file.set.version,
                             .seeds = file.set.seeds};
  if (file.interrupted) out.interrupted = true;
  return out;
}

ComparisonRecord::Estimate estimate_record(const sim::Estimate& e) {
  return {e.mean, e.low(), e.high()};
}

/// The verdict on a difference, unless one of the runs pools overloaded and healthy stages.
std::string verdict_of(const VariantPair& pair, const std::string& stage, const Difference& d,
                       const MetricName& metric) {
  if (!pooled_overload(*pair.base, stage).empty() || !pooled_overload(*pair.changed, stage).empty())
    return std::string(kNotJudged);
  return verdict_text(d, metric);
}

/// The metrics that both stages have, in the order of the base.
Named<ComparisonRecord::Metric> metrics_of(const Comparison& c, const VariantPair& pair,
                                           const std::string& stage) {
  Named<ComparisonRecord::Metric> out;
  const StageValues* const a = find_stage(*pair.base, stage);
  const StageValues* const b = find_stage(*pair.changed, stage);
  if (a == nullptr || b == nullptr) return out;
  for (const MetricName& m : c.base->set.metrics) {
    const auto x = c.base->set.values(*a, m);
    const auto y = c.changed->set.values(*b, m);
    if (!x || !y) continue;
    const Difference d = difference_of(*x, *y, m, pair.paired);
    ComparisonRecord::Metric metric{.base = estimate_record(d.base),
                                    .changed = estimate_record(d.changed),
                                    .difference = estimate_record(d.difference),
                                    .percent = {},
                                    .verdict = verdict_of(pair, stage, d, m)};
    if (d.percent) metric.percent = {.mean = *d.percent, .low = {}, .high = {}};
    if (d.percent && d.percent_interval) {
      metric.percent->low = d.percent_interval->low;
      metric.percent->high = d.percent_interval->high;
    }
    out.items.emplace_back(m.text, metric);
  }
  return out;
}

ComparisonRecord::Pair pair_record(const Comparison& c, const VariantPair& pair) {
  ComparisonRecord::Pair out{.base = pair.base->name,
                             .changed = pair.changed->name,
                             .paired = pair.paired,
                             .note = pair.note,
                             .stage = {},
                             .base_trust = pair.base->trust,
                             .new_trust = pair.changed->trust,
                             .stages = {},
                             .summary = {metrics_of(c, pair, "")}};
  if (!c.stage.empty()) out.stage = c.stage;
  for (const StageValues& stage : pair.base->stages) {
    if (stage.stage.empty() || (!c.stage.empty() && stage.stage != c.stage)) continue;
    const StageValues* const other = find_stage(*pair.changed, stage.stage);
    ComparisonRecord::Stage s{.name = stage.stage,
                              .reported = stage.reported,
                              .requested_rate = {},
                              .concurrency = {},
                              .base_overloaded = stage.overloaded,
                              .new_overloaded = other != nullptr && other->overloaded,
                              .metrics = metrics_of(c, pair, stage.stage)};
    if (stage.rate > 0) s.requested_rate = stage.rate;
    if (stage.concurrency > 0) s.concurrency = stage.concurrency;
    out.stages.push_back(std::move(s));
  }
  return out;
}

}  // namespace

void describe(Describer& d, ComparisonRecord::File& r) {
  field(d, {"file", "Path of the result."}, r.path);
  field(d, {"scenario", "Its name."}, r.scenario);
  field(d, {"interrupted", "True when its numbers are partial. Else absent."}, r.interrupted);
  field(d, {"version", "The version that made it."}, r.version);
  field(d, {"seeds", "One per run."}, r.seeds);
}

void describe(Describer& d, ComparisonRecord::Estimate& r) {
  field(d, {"mean", "Mean over the runs, in the metric's unit."}, r.mean);
  field(d, nullable("low", "Lower end of the 95 % interval; null with one run."), r.low);
  field(d, nullable("high", "Upper end."), r.high);
}

void describe(Describer& d, ComparisonRecord::Metric& r) {
  field(d, {"base", "The base."}, r.base);
  field(d, {"new", "The new result."}, r.changed);
  field(d, {"difference", "new - base, seed by seed where the runs are pairs."}, r.difference);
  field(d, nullable("percent", "The same in percent of the base; null where the base is 0."),
        r.percent);
  field(d, {"verdict", "better, worse, equal, not distinguishable and so on."}, r.verdict);
}

void describe(Describer& d, ComparisonRecord::Stage& r) {
  field(d, {"name", "Number or name of the stage."}, r.name);
  field(d, {"reported", "Part of the summary; warm-up stages are not."}, r.reported);
  field(d, {"requested_rate", "Requests/s asked for."}, r.requested_rate);
  field(d, {"concurrency", "Requests in flight asked for."}, r.concurrency);
  field(d, {"base_overloaded", "The queue of the base grows until the stage ends."},
        r.base_overloaded);
  field(d, {"new_overloaded", "That of the new result does."}, r.new_overloaded);
  field(d, {"metrics", "By name with unit and statistic."}, r.metrics);
}

void describe(Describer& d, ComparisonRecord::Pair::Summary& r) {
  field(d, {"metrics", "By name with unit and statistic."}, r.metrics);
}

void describe(Describer& d, ComparisonRecord::Pair& r) {
  field(d, {"base", "Variant of the base."}, r.base);
  field(d, {"new", "Variant of the new result."}, r.changed);
  field(d, {"paired", "Both sides face the same requests."}, r.paired);
  field(d, {"note", "Why not; empty when they do."}, r.note);
  field(d, {"stage", "The only stage compared. Absent without --stage."}, r.stage);
  field(d, {"base_trust", "The basis of the base's step times."}, r.base_trust);
  field(d, {"new_trust", "That of the new result."}, r.new_trust);
  field(d, {"stages", "By stage."}, r.stages);
  field(d, {"summary", "The whole run."}, r.summary);
}

void describe(Describer& d, Change& r) {
  field(d, {"path", "The key, as --set takes it; or version or commit of routesim."}, r.path);
  field(d, nullable("base", "Its value in the base; null where it is not there."), r.base);
  field(d, nullable("new", "Its value in the new result."), r.changed);
  field(d, {"variants", "Of the base: those that differ so; none where it is the whole result."},
        r.variants);
}

void describe(Describer& d, ComparisonRecord& r) {
  field(d, {"base", "The result to start from."}, r.base);
  field(d, {"new", "The result beside it."}, r.changed);
  field(d, {"confidence", "Of all intervals."}, r.confidence);
  field(d, {"result", "The worst decision on a gate."}, r.result);
  field(d, {"gates", "Limits on changes (--fail-if)."}, r.gates);
  field(d, {"missing", "Variants of the base that the new result does not have."}, r.missing);
  field(d, {"remarks", "Sentences to know before the numbers."}, r.remarks);
  field(d,
        {"changes", "Versions, and keys of the resolved scenarios and their files, that differ."},
        r.changes);
  field(d, {"untold", "Sentences on what cannot be told to have changed."}, r.untold);
  field(d, {"pairs", "One variant of the base beside one of the new result."}, r.pairs);
}

const Named<ComparisonRecord::Metric>& ComparisonRecord::Pair::metrics() const {
  if (stage)
    for (const Stage& s : stages)
      if (s.name == *stage) return s.metrics;
  return summary.metrics;
}

ComparisonRecord comparison_record(const Comparison& c) {
  ComparisonRecord out{.base = file_record(*c.base),
                       .changed = file_record(*c.changed),
                       .confidence = sim::kConfidence,
                       .result = overall(c.gates),
                       .gates = c.gates,
                       .missing = c.missing,
                       .remarks = remarks_of(c),
                       .changes = changes_of(c),
                       .untold = untold_of(c),
                       .pairs = {}};
  for (const VariantPair& pair : c.pairs) out.pairs.push_back(pair_record(c, pair));
  return out;
}

ComparisonRecord read_comparison_record(const ConfigNode& root, Diagnostics& diagnostics) {
  ComparisonRecord record;
  read_struct(root, record, diagnostics, {.format = "", .null_numbers = true});
  return record;
}

std::string comparison_json(ComparisonRecord& record, int indent) {
  JsonWriter json(indent);
  write_value(json, record);
  return json.str() + "\n";
}

}  // namespace routesim::tools
