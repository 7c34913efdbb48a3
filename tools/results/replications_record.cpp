#include <algorithm>
#include <cmath>

#include "tools/results/difference.h"
#include "tools/results/result_record.h"
#include "tools/results/statistics.h"

namespace routesim::tools {

namespace {

/// Adds the median over the runs with its rank interval: no assumption on how runs are distributed.
void take_median(std::vector<double> values, ReplicationsRecord::Metric& out) {
  std::ranges::sort(values);
  const std::optional<sim::RankInterval> ranks = sim::quantile_ranks(values.size(), 0.5);
  if (!ranks) return;
  const std::size_t n = values.size();
  out.median = (values[(n - 1) / 2] + values[n / 2]) / 2;
  out.median_low = values[ranks->low];
  out.median_high = values[ranks->high];
}

ReplicationsRecord::Metric metric_numbers(const std::vector<double>& values) {
  const sim::Estimate e = sim::estimate(values);
  ReplicationsRecord::Metric out{.mean = e.mean,
                                 .sd = e.sd,
                                 .half_width = e.half_width,
                                 .low = e.low(),
                                 .high = e.high(),
                                 .median = {},
                                 .median_low = {},
                                 .median_high = {},
                                 .values = values};
  take_median(values, out);
  return out;
}

ReplicationsRecord::Stage stage_numbers(const ResultSet& set, const StageValues& stage) {
  ReplicationsRecord::Stage out;
  if (stage.stage.empty()) {
    out.name.reset();
    out.reported.reset();
  } else {
    out.name = stage.stage;
    out.reported = stage.reported;
  }
  out.overloaded = stage.overloaded;
  for (const MetricName& m : set.metrics) {
    const std::optional<std::vector<double>> values = set.values(stage, m);
    out.metrics.items.emplace_back(m.text,
                                   values ? std::optional(metric_numbers(*values)) : std::nullopt);
  }
  return out;
}

ReplicationsRecord::Change change_of(const Difference& d, std::string verdict) {
  const sim::Estimate& e = d.difference;
  ReplicationsRecord::Change out{.mean = e.mean,
                                 .sd = e.sd,
                                 .half_width = e.half_width,
                                 .low = e.low(),
                                 .high = e.high(),
                                 .percent = {},
                                 .verdict = std::move(verdict)};
  if (!d.percent) return out;
  out.percent = {.mean = *d.percent, .low = {}, .high = {}};
  if (d.percent_interval) {
    out.percent->low = d.percent_interval->low;
    out.percent->high = d.percent_interval->high;
  }
  return out;
}

/// Every metric that both have.
Named<ReplicationsRecord::Change> changes_between(const ResultSet& set, std::size_t variant,
                                                  const StageValues& a, const StageValues& b) {
  Named<ReplicationsRecord::Change> out;
  const bool paired = set.variants[variant].unpaired.empty();
  for (const MetricName& m : set.metrics) {
    const auto x = set.values(a, m);
    const auto y = set.values(b, m);
    if (!x || !y) continue;
    const Difference d = difference_of(*x, *y, m, paired);
    out.items.emplace_back(m.text, change_of(d, replication_verdict(set, variant, a.stage, d, m)));
  }
  return out;
}

ReplicationsRecord::Pair pair_of(const ResultSet& set, std::size_t variant) {
  const VariantValues& base = set.variants.front();
  const VariantValues& changed = set.variants[variant];
  ReplicationsRecord::Pair out;
  out.base = base.name;
  out.variant = changed.name;
  out.paired = changed.unpaired.empty();
  out.note = changed.unpaired;
  for (const StageValues& stage : base.stages) {
    const StageValues* const other = find_stage(changed, stage.stage);
    if (!stage.stage.empty() && other != nullptr)
      out.stages.push_back(
          {.name = stage.stage, .metrics = changes_between(set, variant, stage, *other)});
  }
  out.summary.metrics = changes_between(set, variant, base.stages.back(), changed.stages.back());
  return out;
}

}  // namespace

std::string replication_verdict(const ResultSet& set, std::size_t variant, std::string_view stage,
                                const Difference& d, const MetricName& metric) {
  for (const VariantValues* const v : {&set.variants.front(), &set.variants[variant]})
    if (!pooled_overload(*v, stage).empty()) return std::string(kNotJudged);
  return verdict_text(d, metric);
}

ReplicationsRecord replications_record(const ResultSet& set) {
  ReplicationsRecord out;
  out.count = static_cast<std::int64_t>(set.seeds.size());
  out.seeds = set.seeds;
  out.confidence = sim::kConfidence;
  out.until = set.until;
  for (const VariantValues& variant : set.variants) {
    ReplicationsRecord::Variant& v = out.variants.emplace_back();
    v.name = variant.name;
    v.seeds = variant.seeds;
    for (const StageValues& stage : variant.stages)
      if (!stage.stage.empty()) v.stages.push_back(stage_numbers(set, stage));
    v.summary = stage_numbers(set, variant.stages.back());
  }
  for (std::size_t v = 1; v < set.variants.size(); ++v) out.differences.push_back(pair_of(set, v));
  return out;
}

}  // namespace routesim::tools
