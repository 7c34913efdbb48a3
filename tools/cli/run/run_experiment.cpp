#include "tools/cli/run/run_experiment.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <chrono>
#include <mutex>

#include "base/text.h"
#include "sim/observe/time_series.h"
#include "sim/plan/fleet_plan.h"
#include "tools/ingest/tree/description.h"
#include "tools/results/output_file.h"
#include "tools/study/capacity/capacity.h"
#include "tools/study/experiment/experiment.h"
#include "tools/study/what_if.h"

namespace routesim::tools {

namespace {

/// The outcome of a variant's first run.
struct FirstRun {
  std::optional<sim::RunResult> result;  ///< Empty when the run did not begin.
  std::optional<sim::TimeSeries> series;
  std::optional<GoodputResult> goodput;
  double elapsed_s = 0;
  bool complete = false;
  std::array<std::vector<StageSide>, 2> other_kv;  ///< With fewer and more KV blocks.
  std::optional<Capacity> capacity;
};

UntilOutcome until_outcome(const UntilRule& rule, const StoppedAt& end) {
  UntilOutcome outcome{.rule = rule.text, .reached = false, .reason = {}};
  switch (end.reason) {
    case StopReason::kPrecise:
      outcome.reached = true;
      break;
    case StopReason::kLimit:
      outcome.reason = fmt::format(
          "{} replications were not enough (--replications raises the limit)", end.replications);
      break;
    case StopReason::kNoData:
      outcome.reason = "some run has no " + rule.metric.text;
      break;
  }
  return outcome;
}

/// The resolved workload as text: equal texts and equal seeds mean equal requests.
std::string resolved_workload(const sim::RunPlan& plan) {
  sim::WorkloadConfig workload = plan.scenario.workload;
  return to_json(*to_node(describe_values([&workload](Describer& d) { describe(d, workload); })));
}

std::vector<std::string> variant_names(std::span<const PlannedVariant> planned) {
  std::vector<std::string> names;
  for (const PlannedVariant& v : planned) names.push_back(v.plan.scenario.variant);
  return names;
}

/// The numbers that the outputs need besides the standard ones.
std::vector<MetricName> needed_metrics(std::span<const PlannedVariant> planned,
                                       const std::optional<UntilRule>& until) {
  std::vector<MetricName> more;
  const auto add = [&more](std::initializer_list<const char*> names) {
    for (const char* name : names) more.push_back(*parse_metric_name(name).value);
  };
  // What docs/metrics.md says that a gate can be about.
  add({"successful_requests", "kv_cache_usage.mean", "kv_cache_usage.max", "input_length.mean",
       "output_length.mean", "schedule_delay_ms.mean", "schedule_delay_ms.p99"});
  for (const PlannedVariant& v : planned) {
    if (std::ranges::any_of(v.plan.scenario.cluster.pools,
                            [](const sim::PoolConfig& p) { return p.engine.kv_tiers.has_value(); }))
      add({"tier_hit_rate", "tier_loaded_gigabytes", "tier_pulled_gigabytes", "tier_load_wait_s",
           "tier_pull_wait_s"});
    if (!v.goals.empty()) add({"goodput", "good_requests_per_s"});
    if (sim::tells_fleet(v.plan.scenario)) {
      add({"fleet_mean_servers", "fleet_lost"});
      if (sim::has_price(v.plan.scenario)) add({"fleet_cost"});
    }
    if (GoodputObserver::keeps_time(v.plan.scenario) && !v.goals.empty()) add({"minutes_missed"});
    for (const Expectation& e : v.expectations) more.push_back(e.condition.metric);
  }
  if (until) more.push_back(until->metric);
  return metrics_with(more);
}

/// Runs the variants and keeps what they leave, by variant and replication.
class VariantRuns {
 public:
  VariantRuns(std::span<const PlannedVariant> planned, const ExperimentOptions& options,
              Experiment& experiment, Console& console, TraceRecorder& trace)
      : planned_(planned),
        options_(options),
        experiment_(experiment),
        console_(console),
        trace_(trace),
        builder_(variant_names(planned), needed_metrics(planned, options.until)),
        first_(planned.size()) {}

  /// Throws Stopped.
  void run() {
    ProgressDisplay display([this](double elapsed_s) { return progress_line(elapsed_s); },
                            options_.progress, console_);
    const Replicated what{.plans = planned_.size(),
                          .first_in_order = options_.trace || options_.records != nullptr};
    const auto work = [&](const Replication& r, Diagnostics& found) {
      return r.number == 0 ? run_first(r.plan, display, found) : run_again(r, found);
    };
    if (options_.until) {
      const UntilRule& until = *options_.until;
      until_ = {.rule = until.text, .reached = false, .reason = "interrupted"};
      until_ = until_outcome(until, replicate_until(what, until.rule, work, experiment_));
    } else {
      replicate(what, {.first = 0, .count = options_.replications}, work, experiment_);
    }
    if (options_.kv_band) find_bands();
    if (options_.capacity) find_capacities();
  }

  void write_report(Outcome& outcome) {
    outcome.interrupted = experiment_.stopped();
    bool complete = true;
    for (std::size_t v = 0; v < planned_.size() && complete; ++v) {
      if (!first_[v].result) return;
      complete = first_[v].complete;
      outcome.report.variants.push_back(variant_report(v));
    }
    if (!complete) return;
    ResultSet set = result_set();
    std::vector<Expectation> expectations;
    for (const PlannedVariant& v : planned_)
      expectations.insert(expectations.end(), v.expectations.begin(), v.expectations.end());
    outcome.report.expectations = judge(expectations, set);
    if (options_.replicates()) outcome.report.replications = std::move(set);
  }

 private:
  /// A run after the first. Returns the number that --until watches, if any.
  std::optional<double> run_again(const Replication& r, Diagnostics& found) {
    const PlannedVariant& variant = planned_[r.plan];
    const auto result = experiment_.run({.plan = variant.plan,
                                         .seed = variant.plan.scenario.seed + r.number,
                                         .goals = variant.goals,
                                         .check = options_.check},
                                        found);
    return result ? keep(r, *result) : std::nullopt;
  }

  std::optional<double> keep(const Replication& r, const sim::RunResult& result) {
    builder_.add(r.plan, r.number, result);
    ++done_;
    return options_.until ? metric_value(result.summary, options_.until->metric) : std::nullopt;
  }

  /// Observes the first run of a variant for every output that was asked for.
  std::optional<double> run_first(std::size_t v, ProgressDisplay& display, Diagnostics& found) {
    const PlannedVariant& variant = planned_[v];
    const std::string& name = variant.plan.scenario.variant;
    const auto start = std::chrono::steady_clock::now();
    std::optional<sim::TimeSeriesRecorder> series;
    RunRequest request{.plan = variant.plan,
                       .seed = variant.plan.scenario.seed,
                       .goals = variant.goals,
                       .check = options_.check,
                       .partial = true};
    if (options_.series) request.observers.push_back(&series.emplace(*options_.series));
    if (options_.trace) {
      trace_.begin_variant(name);
      request.observers.push_back(&trace_);
    }
    if (options_.records != nullptr) {
      options_.records->begin_variant(name);
      request.observers.push_back(options_.records);
    }
    GoodputResult good;
    request.good = &good;
    auto result = experiment_.run(request, found);
    if (!result) return std::nullopt;
    const bool complete = !experiment_.stopped();
    std::optional<double> watched;
    if (complete) watched = keep({.plan = v, .number = 0}, *result);
    const std::lock_guard lock(mutex_);
    FirstRun& first = first_[v];
    if (!variant.goals.empty()) first.goodput = std::move(good);
    if (series) first.series = series->take();
    first.elapsed_s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    first.complete = complete;
    first.result = std::move(result);
    tell_times(display);
    return watched;
  }

  /// Runs every variant near its knee with fewer and with more KV blocks.
  void find_bands() {
    std::vector<std::size_t> near;
    for (std::size_t v = 0; v < first_.size(); ++v)
      if (is_near_knee(*first_[v].result)) near.push_back(v);
    experiment_.each(2 * near.size(), [&](std::size_t i, Diagnostics& found) {
      FirstRun& first = first_[near[i / 2]];
      const sim::RunPlan other = sim::with_kv_blocks(
          planned_[near[i / 2]].plan, i % 2 == 0 ? 1 - kCapacityBand : 1 + kCapacityBand);
      if (const auto result = experiment_.run({.plan = other, .seed = first.result->seed}, found))
        first.other_kv[i % 2] = sides_of(*result);
    });
  }

  /// Finds the rate that each fleet sustains. Variants of a scan of rates share theirs, and those
  /// that only events tell apart.
  void find_capacities() {
    std::vector<std::size_t> fleets;
    for (std::size_t v = 0; v < planned_.size(); ++v)
      if (first_of_scan(v) == v) fleets.push_back(v);
    experiment_.each(fleets.size(), [&](std::size_t i, Diagnostics& found) {
      FirstRun& first = first_[fleets[i]];
      const CapacityRules rules = capacity_rules(*first.result);
      first.capacity = rules.guess > 0
                           ? find_capacity(planned_[fleets[i]].plan, rules, experiment_, found)
                           : Capacity{.why_not = "no request of the run succeeded"};
    });
    for (std::size_t v = 0; v < planned_.size(); ++v)
      first_[v].capacity = first_[first_of_scan(v)].capacity;
  }

  /// The first variant with the same servers.
  std::size_t first_of_scan(std::size_t v) const {
    const PlannedVariant& one = planned_[v];
    const auto first = std::ranges::find_if(planned_, [&](const PlannedVariant& other) {
      return other.steady_key == one.steady_key ||
             (!one.scan_of.empty() && other.scan_of == one.scan_of &&
              other.fleet_of == one.fleet_of);
    });
    return static_cast<std::size_t>(first - planned_.begin());
  }

  /// A line for each variant, in their order, as soon as it and those before it have ended.
  void tell_times(ProgressDisplay& display) {
    for (; told_ < first_.size() && first_[told_].result && !options_.quiet; ++told_)
      display.say(fmt::format("{}: {} requests in {:.2f} s\n",
                              printable(planned_[told_].plan.scenario.variant),
                              first_[told_].result->summary.requests, first_[told_].elapsed_s));
  }

  std::string progress_line(double elapsed_s) const {
    const std::size_t done = done_;
    if (planned_.size() == 1 && !options_.replicates()) {
      const std::string name = printable(planned_.front().plan.scenario.variant);
      if (done == 0) return run_line(experiment_.progress().run, name, elapsed_s);
      return fmt::format("{}: fewer and more KV blocks, {:.1f} s", name, elapsed_s);
    }
    const std::string all =
        options_.until ? "" : fmt::format(" of {}", options_.replications * planned_.size());
    return fmt::format(
        "{}: {}{} runs, {} requests, {:.1f} s", options_.replicates() ? "replications" : "variants",
        done, all, experiment_.progress().run.completed.load(std::memory_order_relaxed), elapsed_s);
  }

  VariantReport variant_report(std::size_t v) {
    const PlannedVariant& variant = planned_[v];
    FirstRun& first = first_[v];
    std::vector<StageBand> band;
    if (!experiment_.stopped())
      band = capacity_band(*first.result, first.other_kv[0], first.other_kv[1]);
    return {.name = variant.plan.scenario.variant,
            .scan_of = variant.scan_of,
            .fleet_of = variant.fleet_of,
            .result = std::move(*first.result),
            .measured = variant.measured,
            .scenario = variant.plan.scenario,
            .series = std::move(first.series),
            .resolved = variant.resolved,
            .goodput = std::move(first.goodput),
            .capacity_band = std::move(band),
            .capacity = std::move(first.capacity)};
  }

  ResultSet result_set() {
    ResultSet set = builder_.take(builder_.complete());
    const auto workload = [this](std::size_t v) { return resolved_workload(planned_[v].plan); };
    for (std::size_t v = 0; v < planned_.size(); ++v)
      if (set.variants[v].unpaired.empty() && workload(v) != workload(0))
        set.variants[v].unpaired = "the workloads differ";
    set.scenario = planned_.front().plan.scenario.name;
    set.until = until_;
    return set;
  }

  std::span<const PlannedVariant> planned_;
  const ExperimentOptions& options_;
  Experiment& experiment_;
  Console& console_;
  TraceRecorder& trace_;
  ResultSetBuilder builder_;
  std::optional<UntilOutcome> until_;
  std::vector<FirstRun> first_;  ///< By variant; a job writes only its own.
  std::atomic<std::size_t> done_{0};
  std::mutex mutex_;      ///< Guards the results in first_ and told_ while runs end.
  std::size_t told_ = 0;  ///< Variants with a line on standard error.
};

}  // namespace

void run_variants(std::span<const PlannedVariant> planned, const ExperimentOptions& options,
                  Console& console, Diagnostics& diagnostics, Outcome& outcome) {
  ExperimentProgress progress;
  const InterruptGuard guard(progress.run.stop);
  Experiment experiment(options.jobs, progress, diagnostics);
  VariantRuns runs(planned, options, experiment, console, outcome.trace);
  try {
    runs.run();
  } catch (const Stopped&) {
    if (diagnostics.has_errors()) return;
  }
  runs.write_report(outcome);
}

}  // namespace routesim::tools
