#include "tools/results/result_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/scalar_parse.h"
#include "base/tree_reader.h"
#include "tools/results/metrics.h"
#include "tools/results/statistics.h"
#include "tools/results/trust_errors.h"

namespace routesim::tools {

namespace {

using sim::Samples;
using sim::StageResult;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// inference-perf's name of a percentile: `p99.9`, and 50 is `median`.
std::string percentile_key(double q) { return q == 50 ? "median" : fmt::format("p{:g}", q); }

Named<double> percentiles_of(const Samples& values, const std::vector<double>& levels) {
  Named<double> out;
  for (const double q : levels) out.items.emplace_back(percentile_key(q), values.percentile(q));
  return out;
}

std::optional<SamplesRecord> distribution(const Samples& values, const LifecycleForm& form) {
  if (values.count() == 0) return std::nullopt;
  return SamplesRecord{.mean = values.mean(),
                       .min = values.min(),
                       .max = values.max(),
                       .percentiles = percentiles_of(values, form.percentiles)};
}

TokensRecord tokens(const Samples& values, std::int64_t total, const LifecycleForm& form) {
  TokensRecord out;
  if (values.count() > 0) {
    out.mean = values.mean();
    out.min = values.min();
    out.max = values.max();
    out.percentiles = percentiles_of(values, form.percentiles);
  }
  out.total = total;
  return out;
}

LoadRecord load_record(const StageResult& stage, const LifecycleForm& form, bool is_summary) {
  LoadRecord out{.count = stage.requests,
                 .schedule_delay = distribution(stage.schedule_delay, form),
                 .stage = {}};
  if (is_summary) return out;
  const double duration = stage.send_duration_s();
  out.stage = LoadRecord::Stage{
      .send_duration = duration,
      .requested_rate =
          form.rate_is_count ? static_cast<double>(stage.info.requests) : stage.info.requested_rate,
      .achieved_rate = duration > 0 ? static_cast<double>(stage.requests) / duration : kNone};
  if (stage.info.concurrency > 0) out.stage->concurrency = stage.info.concurrency;
  return out;
}

ToolGoodputRecord tool_goodput(const StageResult& stage, const LifecycleForm& form) {
  const ToolGoodput& count = *form.goodput;
  const auto share = [&stage](std::int64_t n) {
    return 100 * static_cast<double>(n) / static_cast<double>(stage.successes);
  };
  const double span = (count.last_end - count.first_send).to_seconds();
  const auto per_second = [span](std::int64_t n) {
    return span > 0 ? static_cast<double>(n) / span : 0;
  };
  ToolGoodputRecord out{.percentage = share(count.good),
                        .requests_per_s = per_second(count.good),
                        .tokens_per_s = per_second(count.good_tokens),
                        .good = count.good,
                        .total = stage.successes};
  for (const auto& [name, bound] : goal_list(*form.goals))
    out.attained.items.emplace_back(std::string(name) + "_attainment_percentage",
                                    share(count.attained[goal_index(name)]));
  return out;
}

SuccessesRecord successes_record(const StageResult& stage, const LifecycleForm& form) {
  const auto input = static_cast<double>(stage.prompt_tokens_total);
  const auto output = static_cast<double>(stage.output_tokens_total);
  SuccessesRecord out;
  out.count = stage.successes;
  out.latency = {.request_latency = distribution(stage.request_latency, form),
                 .normalized_time_per_output_token =
                     distribution(stage.normalized_time_per_output_token, form),
                 .time_per_output_token = distribution(stage.time_per_output_token, form),
                 .time_to_first_token = distribution(stage.time_to_first_token, form),
                 .inter_token_latency = distribution(stage.inter_token_latency, form)};
  out.throughput = {.input_tokens = stage.per_second(input),
                    .output_tokens = stage.per_second(output),
                    .total_tokens = stage.per_second(input + output),
                    .requests = stage.per_second(static_cast<double>(stage.successes))};
  // Releases up to v0.3 call it prompt_len; consumers of both generations find their key.
  out.prompt_len = distribution(stage.prompt_tokens, form);
  out.prompt_tokens = tokens(stage.prompt_tokens, stage.prompt_tokens_total, form);
  out.prompt_tokens.cache = {.cached = stage.cached_tokens_total,
                             .uncached = stage.prompt_tokens_total - stage.cached_tokens_total};
  out.output_tokens = tokens(stage.output_tokens, stage.output_tokens_total, form);
  out.output_len = distribution(stage.output_tokens, form);
  if (form.goodput != nullptr && stage.successes > 0) out.goodput = tool_goodput(stage, form);
  return out;
}

FailuresRecord failures_record(const StageResult& stage) {
  FailuresRecord out;
  out.count = stage.failures;
  for (const auto& [label, count] : stage.failures_by_label)
    out.by_label.items.emplace_back(label, FailuresRecord::Label{.count = count});
  return out;
}

std::optional<std::vector<double>> quantiles(const Samples& samples) {
  if (samples.count() == 0) return std::nullopt;
  std::vector<double> out;
  for (const double level : quantile_levels()) out.push_back(samples.percentile(level));
  return out;
}

/// Goodput of all that was sent, as docs/metrics.md has it; the tool's own is of successes.
GoodputRecord goodput_record(const StageResult& stage, const GoodputCount& count) {
  const auto total = static_cast<double>(stage.requests);
  return {.good = count.good,
          .sent = stage.requests,
          .percentage = total > 0 ? 100 * static_cast<double>(count.good) / total : kNone,
          .requests_per_s = stage.per_second(static_cast<double>(count.good)),
          .output_tokens_per_s = stage.per_second(static_cast<double>(count.good_tokens))};
}

/// Published numbers that belong to this stage, in base units.
std::vector<MeasuredRecord> measured_records(const VariantReport& variant,
                                             const StageResult& stage) {
  std::vector<MeasuredRecord> out;
  for (const MeasuredRow& row : variant.measured.rows)
    if (const std::optional<double> value = measured_row_value(variant, row, stage))
      out.push_back({.metric = canonical_metric(row.metric),
                     .statistic = row.statistic,
                     .value = *value,
                     .source = row.source});
  return out;
}

/// Fills in the fields that stages, whole runs and classes share.
void fill(StageRecord& out, const StageResult& stage, const LifecycleForm& form, bool is_summary) {
  out.lifecycle = lifecycle_record(stage, form, is_summary);
  out.prefix_hit_ratio = stage.prefix_hit_ratio();
  out.preemptions = stage.preemptions;
  for (const MetricRow& row : metric_table())
    if (row.quantiles != nullptr) out.quantiles.*row.quantiles = quantiles(stage.*row.samples);
}

StageRecord stage_record(const VariantReport& variant, const StageResult& stage,
                         const GoodputCount* goodput) {
  const bool is_summary = &stage == &variant.result.summary;
  LifecycleForm form = lifecycle_form(variant.scenario);
  form.goals = variant.goodput ? &variant.goodput->goals.of(stage.info.part) : nullptr;
  form.goodput = goodput != nullptr ? &goodput->tool : nullptr;
  StageRecord out = is_summary ? StageRecord::whole_run() : StageRecord();
  if (!is_summary) {
    out.name = stage.info.name;
    out.reported = stage.info.reported;
    if (stage.info.part >= 0)
      out.part = variant.scenario.workload.mix[static_cast<std::size_t>(stage.info.part)].name;
  }
  fill(out, stage, form, is_summary);
  out.kv_cache_usage = {.mean = stage.kv_cache_usage_mean, .max = stage.kv_cache_usage_max};
  out.overloaded = stage.overloaded();
  if (const std::optional<sim::StageState> state = stage.state(); state && !is_summary) {
    out.steady = {.state = *state};
    if (*state == sim::StageState::kTooShort) out.steady->telling_s = stage.telling_s();
  }
  if (is_summary && stage.send_duration_s() > 0)
    out.requests_sent_per_s = static_cast<double>(stage.requests) / stage.send_duration_s();
  if (goodput != nullptr) out.goodput = goodput_record(stage, *goodput);
  if (!is_summary && !variant.measured.rows.empty())
    out.measured = measured_records(variant, stage);
  return out;
}

Named<double> goals_record(const GoodputGoals& goals) {
  Named<double> out;
  for (const auto& [name, bound] : goal_list(goals)) out.items.emplace_back(name, bound);
  return out;
}

ClassRecord class_record(const VariantReport& variant, std::size_t which) {
  const StageResult& requests = variant.result.classes[which];
  ClassRecord out;
  out.name = requests.info.name;
  LifecycleForm form = lifecycle_form(variant.scenario);
  form.rate_is_count = false;
  if (variant.goodput && which < variant.goodput->parts.size()) {
    const GoodputCount& count = variant.goodput->parts[which];
    form.goals = &variant.goodput->goals.of(static_cast<std::int64_t>(which));
    form.goodput = &count.tool;
    out.goodput_goals = goals_record(*form.goals);
    out.goodput = goodput_record(requests, count);
  }
  fill(out, requests, form, true);
  return out;
}

/// The stages of the load, or what the tool sent before its run.
std::vector<StageRecord> stage_records(const VariantReport& variant, bool preparation) {
  std::vector<StageRecord> out;
  for (std::size_t i = 0; i < variant.result.stages.size(); ++i) {
    const StageResult& stage = variant.result.stages[i];
    if (stage.info.is_preparation == preparation)
      out.push_back(
          stage_record(variant, stage, variant.goodput ? &variant.goodput->stages[i] : nullptr));
  }
  return out;
}

SeriesRecord series_record(const sim::TimeSeries& series) {
  const auto rate = [](double value) { return value >= 0 ? value : kNone; };
  SeriesRecord out;
  out.interval_s = series.interval.to_seconds();
  for (std::size_t i = 0; i < series.size(); ++i) {
    out.time_s.push_back(series.time_s(i));
    const sim::ClusterPoint& p = series.cluster[i];
    out.cluster.sent.push_back(p.sent);
    out.cluster.done.push_back(p.done);
    out.cluster.failed.push_back(p.failed);
    out.cluster.outstanding.push_back(p.outstanding);
    out.cluster.unrouted.push_back(p.unrouted);
  }
  for (const sim::EndpointSeries& e : series.endpoints) {
    SeriesRecord::Endpoint& to = out.endpoints.emplace_back();
    to.name = e.name;
    to.pool = e.pool;
    for (std::size_t i = 0; i < e.points.size(); ++i) {
      to.waiting.push_back(e.points[i].waiting);
      to.running.push_back(e.points[i].running);
      to.in_flight.push_back(e.points[i].in_flight);
      to.kv_cache_usage.push_back(e.kv_cache_usage(i));
      to.prefix_hit_rate.push_back(rate(e.prefix_hit_rate(i)));
      to.step_time_s.push_back(rate(e.step_time_s(i)));
    }
  }
  return out;
}

/// The rows in which the publication sums up its ladder, beside what the simulation gives.
std::vector<PublishedRecord> published_records(const VariantReport& variant) {
  const auto stages = reported_stages(variant.result);
  std::vector<PublishedRecord> out;
  for (const MeasuredRow& row : variant.measured.rows) {
    if (row.stage != "all") continue;
    if (const auto simulated = ladder_value(stages, row.metric, row.statistic, row.unit))
      out.push_back({.metric = row.metric,
                     .statistic = row.statistic,
                     .unit = row.unit,
                     .simulated = *simulated,
                     .measured = row.value,
                     .source = row.source});
  }
  return out;
}

TrustRecord trust_record(const sim::RunResult& result) {
  TrustRecord out{.step_times = std::string(enum_name(result.trust())),
                  .text = trust_text(result),
                  .validation = validation_of(result.trust())};
  for (const sim::StepTimes& pool : result.step_times)
    out.pools.push_back(
        {.name = pool.pool,
         .step_times = std::string(enum_name(pool.trust)),
         .outside_fitted_range = pool.busy_s > 0 ? pool.extrapolated_s / pool.busy_s : 0.0});
  return out;
}

VariantRecord variant_record(const VariantReport& variant) {
  const sim::RunResult& result = variant.result;
  const GoodputResult* const goodput = variant.goodput ? &*variant.goodput : nullptr;
  VariantRecord out;
  out.name = variant.name;
  if (!variant.scan_of.empty()) out.scan_of = variant.scan_of;
  if (!variant.fleet_of.empty()) out.fleet_of = variant.fleet_of;
  if (goodput != nullptr) out.goodput_goals = goals_record(goodput->goals);
  out.stages = stage_records(variant, false);
  out.summary =
      stage_record(variant, result.summary, goodput != nullptr ? &goodput->summary : nullptr);
  if (!result.classes.empty()) {
    out.classes.emplace();
    for (std::size_t i = 0; i < result.classes.size(); ++i)
      out.classes->push_back(class_record(variant, i));
  }
  out.routing = result.routing;
  out.kv_tiers = result.summary.tiers;
  out.fleet = result.fleet;
  out.timeline = result.timeline;
  out.replicas = result.replicas;
  out.trust = trust_record(result);
  if (!variant.capacity_band.empty())
    out.capacity_band = {
        .band = kCapacityBand, .text = capacity_text(variant), .stages = variant.capacity_band};
  out.capacity = variant.capacity;
  if (std::ranges::any_of(result.stages,
                          [](const StageResult& s) { return s.info.is_preparation; }))
    out.preparation = stage_records(variant, true);
  if (variant.series) out.series = series_record(*variant.series);
  if (!variant.measured.rows.empty()) out.published = published_records(variant);
  out.simulated_s = result.end.to_seconds();
  // The fingerprint is text: 64 bits do not survive a reader that keeps every number as a double.
  out.fingerprint = fmt::format("{:016x}", result.fingerprint);
  out.notes = result.notes;
  out.resolved = variant.resolved;
  return out;
}

}  // namespace

StageRecord StageRecord::whole_run() {
  StageRecord out;
  out.name.reset();
  out.reported.reset();
  out.lifecycle.load.stage.reset();
  return out;
}

StageRecord StageRecord::traffic_class() {
  StageRecord out = whole_run();
  out.name = "";
  out.kv_cache_usage.reset();
  out.overloaded.reset();
  return out;
}

LifecycleForm lifecycle_form(const sim::Scenario& scenario) {
  const auto& traits = traits_of(scenario.workload);
  LifecycleForm form{.rate_is_count = traits.rate_is_count};
  for (const double q : traits.percentiles)
    if (std::ranges::find(form.percentiles, q) == form.percentiles.end())
      form.percentiles.push_back(q);
  return form;
}

LifecycleRecord lifecycle_record(const StageResult& stage, const LifecycleForm& form,
                                 bool is_summary) {
  return {.benchmark_time_s = stage.total_time_s(),
          .load = load_record(stage, form, is_summary),
          .successes = successes_record(stage, form),
          .failures = failures_record(stage)};
}

std::vector<TrustRecord::Validation> validation_of(models::Trust trust) {
  std::vector<TrustRecord::Validation> out;
  for (const TrustError& e : trust_errors())
    if (e.trust == trust)
      out.push_back({.quantity = e.quantity,
                     .published_numbers = static_cast<std::int64_t>(e.cells),
                     .mean_absolute_error_percent = e.mean,
                     .worst_error_percent = e.worst});
  return out;
}

RunRecord run_record(const Report& report) {
  RunRecord out;
  out.scenario = report.scenario;
  out.question = report.question;
  out.seed = report.seed;
  out.version = report.version;
  if (!report.commit.empty()) out.commit = report.commit;
  if (!report.scenario_hash.empty()) out.scenario_hash = report.scenario_hash;
  if (report.interrupted) out.interrupted = true;
  if (!report.command.input.empty()) out.command = report.command;
  out.quantile_levels.assign(quantile_levels().begin(), quantile_levels().end());
  for (const VariantReport& variant : report.variants)
    out.variants.push_back(variant_record(variant));
  if (report.replications) out.replications = replications_record(*report.replications);
  if (!report.expectations.empty()) out.expectations = report.expectations;
  return out;
}

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

ReplicationsRecord::Spread spread_of(const sim::Estimate& e) {
  return {e.mean, e.sd, e.half_width, e.low(), e.high()};
}

ReplicationsRecord::Metric metric_numbers(const std::vector<double>& values) {
  ReplicationsRecord::Metric out{spread_of(sim::estimate(values)), {}, {}, {}, values};
  take_median(values, out);
  return out;
}

ReplicationsRecord::Stage replicated_stage(const ResultSet& set, const StageValues& stage) {
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
  return {spread_of(d.difference), percent_record(d), std::move(verdict)};
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

std::optional<ReplicationsRecord::Percent> percent_record(const Difference& d) {
  if (!d.percent) return std::nullopt;
  ReplicationsRecord::Percent out{.mean = *d.percent};
  if (d.percent_interval) {
    out.low = d.percent_interval->low;
    out.high = d.percent_interval->high;
  }
  return out;
}

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
      if (!stage.stage.empty()) v.stages.push_back(replicated_stage(set, stage));
    v.summary = replicated_stage(set, variant.stages.back());
  }
  for (std::size_t v = 1; v < set.variants.size(); ++v) out.differences.push_back(pair_of(set, v));
  return out;
}

}  // namespace routesim::tools
