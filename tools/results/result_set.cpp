#include "tools/results/result_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "tools/results/metrics.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

bool ResultSet::all_paired() const {
  return std::ranges::all_of(variants, [](const VariantValues& v) { return v.unpaired.empty(); });
}

const VariantValues* ResultSet::find_variant(std::string_view name) const {
  for (const VariantValues& variant : variants)
    if (variant.name == name) return &variant;
  return nullptr;
}

namespace {

/// The listed metric that is this one, perhaps in another unit.
std::optional<std::size_t> place_among(const std::vector<MetricName>& metrics,
                                       const MetricName& m) {
  auto found = std::ranges::find(metrics, m);
  if (found == metrics.end())
    found = std::ranges::find_if(
        metrics, [&m](const MetricName& other) { return in_unit_of(m, other, 1).has_value(); });
  if (found == metrics.end()) return std::nullopt;
  return static_cast<std::size_t>(found - metrics.begin());
}

}  // namespace

bool ResultSet::can_tell(const MetricName& m) const {
  return m.metric == "overloaded" || place_among(metrics, m).has_value();
}

std::optional<std::vector<double>> ResultSet::values(const StageValues& stage,
                                                     const MetricName& m) const {
  const std::optional<std::size_t> at = place_among(metrics, m);
  if (!at && m.metric == "overloaded")
    return std::vector<double>(seeds.size(), stage.overloaded ? 1 : 0);
  if (!at) return std::nullopt;
  std::vector<double> series = stage.values[*at];
  for (double& v : series) {
    if (std::isnan(v)) return std::nullopt;
    if (metrics[*at] != m) v = in_unit_of(m, metrics[*at], v).value_or(v);
  }
  return series;
}

std::string ResultSet::no_values(const StageValues& stage, const MetricName& m) const {
  const std::optional<std::size_t> at = place_among(metrics, m);
  if (!at) return "no such number in the results";
  const auto& series = stage.values[*at];
  const auto without = std::ranges::count_if(series, [](double v) { return std::isnan(v); });
  const std::string owners = is_of_run(m) && !stage.stage.empty()
                                 ? "it is of the whole run, so leave out the stage"
                                 : owners_of(m);
  const std::string why = owners.empty() ? "no request counts towards it" : owners;
  if (without == std::ssize(series)) return "no value: " + why;
  return "no value in " + std::to_string(without) + " of " + std::to_string(series.size()) +
         " runs: " + why;
}

std::string pooled_overload(const VariantValues& variant, std::string_view stage) {
  if (!stage.empty()) return {};
  std::size_t healthy = 0;
  std::size_t overloaded = 0;
  for (const StageValues& s : variant.stages) {
    if (s.stage.empty() || !s.reported) continue;
    ++(s.overloaded ? overloaded : healthy);
  }
  if (healthy == 0 || overloaded == 0) return {};
  return "the whole run of " + variant.name + " pools " + std::to_string(overloaded) +
         " overloaded and " + std::to_string(healthy) + " healthy stages";
}

const StageValues* find_stage(const VariantValues& variant, std::string_view stage) {
  for (const StageValues& s : variant.stages)
    if (s.stage == stage) return &s;
  return nullptr;
}

std::vector<MetricName> metrics_with(std::span<const MetricName> more) {
  std::vector<MetricName> all = standard_metrics();
  for (const MetricName& m : more)
    if (std::ranges::find(all, m) == all.end()) all.push_back(m);
  return all;
}

StageValues ResultSetBuilder::read(const sim::StageResult& stage,
                                   std::span<const MetricName> metrics) {
  StageValues out{.stage = stage.info.name,
                  .rate = std::isfinite(stage.info.requested_rate) ? stage.info.requested_rate : 0,
                  .concurrency = stage.info.concurrency,
                  .reported = stage.info.reported};
  for (const MetricName& m : metrics)
    out.values.push_back(
        {metric_value(stage, m).value_or(std::numeric_limits<double>::quiet_NaN())});
  return out;
}

void ResultSetBuilder::add(std::size_t variant, std::size_t replication,
                           const sim::RunResult& result) {
  OneRun run{.seed = result.seed};
  for (const sim::StageResult& stage : result.stages) {
    run.stages.push_back(read(stage, metrics_));
    run.unanswered.push_back(stage.unanswered());
  }
  run.stages.push_back(read(result.summary, metrics_));
  StageValues& whole = run.stages.back();
  whole.stage.clear();
  whole.rate = 0;
  whole.concurrency = 0;
  whole.reported = true;
  const std::lock_guard lock(mutex_);
  runs_[{replication, variant}] = std::move(run);
}

std::size_t ResultSetBuilder::complete() const {
  const std::lock_guard lock(mutex_);
  std::size_t n = 0;
  const auto is_complete = [&] {
    for (std::size_t v = 0; v < variants_.size(); ++v)
      if (!runs_.contains({n, v})) return false;
    return !variants_.empty();
  };
  while (is_complete()) ++n;
  return n;
}

ResultSet ResultSetBuilder::take(std::size_t replications) const {
  ROUTESIM_CHECK(replications <= complete(), "only whole replications are compared");
  const std::lock_guard lock(mutex_);
  ResultSet set{.metrics = metrics_};
  for (const std::string& name : variants_) set.variants.push_back({.name = name});
  for (std::size_t r = 0; r < replications; ++r) {
    set.seeds.push_back(runs_.at({r, 0}).seed);
    for (std::size_t v = 0; v < variants_.size(); ++v) {
      const std::vector<StageValues>& stages = runs_.at({r, v}).stages;
      set.variants[v].seeds.push_back(runs_.at({r, v}).seed);
      if (r == 0) {
        set.variants[v].stages = stages;
        continue;
      }
      ROUTESIM_CHECK(stages.size() == set.variants[v].stages.size(), "stages depend on the seed");
      for (std::size_t s = 0; s < stages.size(); ++s) {
        StageValues& all = set.variants[v].stages[s];
        if (stages[s].rate != all.rate) all.rate = 0;
        for (std::size_t m = 0; m < metrics_.size(); ++m)
          all.values[m].push_back(stages[s].values[m].front());
      }
    }
  }
  for (std::size_t v = 0; v < set.variants.size() && replications > 0; ++v) {
    std::vector<StageValues>& stages = set.variants[v].stages;
    bool any = false;
    for (std::size_t s = 0; s + 1 < stages.size(); ++s) {
      double unanswered = 0;
      for (std::size_t r = 0; r < replications; ++r) unanswered += runs_.at({r, v}).unanswered[s];
      stages[s].overloaded = unanswered / static_cast<double>(replications) > sim::kMostQueueGrowth;
      any = any || (stages[s].reported && stages[s].overloaded);
    }
    stages.back().overloaded = any;
  }
  for (VariantValues& variant : set.variants)
    if (variant.seeds != set.seeds) variant.unpaired = "the seeds differ";
  return set;
}

Difference difference_of(std::span<const double> base, std::span<const double> changed,
                         const MetricName& metric, bool paired) {
  Difference d{.base = sim::estimate(base),
               .changed = sim::estimate(changed),
               .difference = paired ? sim::paired_difference(base, changed)
                                    : sim::independent_difference(base, changed),
               .paired = paired};
  d.verdict = sim::verdict(d.difference, metric.direction);
  if (d.base.mean == 0) return d;
  d.percent = 100 * (d.changed.mean / d.base.mean - 1);
  if (!paired) return d;
  if (const std::optional<sim::Interval> ratio = sim::paired_ratio(base, changed))
    d.percent_interval = {.low = 100 * (ratio->low - 1), .high = 100 * (ratio->high - 1)};
  return d;
}

std::string verdict_text(const Difference& d, const MetricName& metric) {
  if (d.difference.n < 2) return d.difference.mean == 0 ? "equal" : "no interval";
  if (d.verdict == sim::Verdict::kNotDistinguishable || metric.has_direction)
    return std::string(sim::verdict_text(d.verdict));
  return d.difference.mean > 0 ? "larger" : "smaller";
}

namespace {

/// Decimals that leave `digits` digits that count.
int decimals_for(double v, int digits) {
  if (v == 0 || !std::isfinite(v)) return 0;
  return std::clamp(digits - 1 - static_cast<int>(std::floor(std::log10(std::abs(v)))), 0, 9);
}

std::string signed_number(double v) {
  return fmt::format("{}{}", v < 0 ? "" : "+", fixed_text(v, 1));
}

}  // namespace

std::string short_number(double v) { return fixed_text(v, decimals_for(v, 4)); }

std::string estimate_text(const sim::Estimate& e) {
  if (!std::isfinite(e.half_width)) return short_number(e.mean);
  constexpr double kRounding = 1e-9;  // Of sums: far below any difference between runs.
  if (e.half_width <= kRounding * std::abs(e.mean)) return short_number(e.mean) + " ± 0";
  const int decimals = decimals_for(e.half_width, 2);
  return fmt::format("{} ± {}", fixed_text(e.mean, decimals), fixed_text(e.half_width, decimals));
}

std::string percent_text(const Difference& d) {
  if (!d.percent) return "-";
  const std::string change = signed_number(*d.percent);
  if (!d.percent_interval) return change;
  return fmt::format("{} [{}, {}]", change, signed_number(d.percent_interval->low),
                     signed_number(d.percent_interval->high));
}

Decision decide_below_zero(const sim::Estimate& excess, bool or_equal) {
  const bool has_interval = std::isfinite(excess.half_width);
  const double low = has_interval ? excess.low() : excess.mean;
  const double high = has_interval ? excess.high() : excess.mean;
  if (or_equal ? high <= 0 : high < 0) return Decision::kHolds;
  if (or_equal ? low > 0 : low >= 0) return Decision::kFails;
  return Decision::kUndecided;
}

std::string decision_text(Decision d) { return std::string(enum_name(d)); }

Decision overall(const std::vector<Judgement>& judgements) {
  Decision worst = Decision::kHolds;
  for (const Judgement& j : judgements) {
    if (j.decision == Decision::kFails) return j.decision;
    if (j.decision == Decision::kUndecided) worst = j.decision;
  }
  return worst;
}

}  // namespace routesim::tools
