#include "tools/cli/run_experiment.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <chrono>

#include "base/text.h"
#include "sim/observe/metrics_collector.h"
#include "sim/observe/time_series.h"
#include "tools/ingest/description.h"
#include "tools/study/replicate.h"
#include "tools/study/what_if.h"

namespace routesim::tools {

namespace {

GoodputObserver goodput_observer(const PlannedVariant& variant) {
  const sim::WorkloadConfig& workload = variant.plan.scenario.workload;
  return {variant.goals, workload.output_token_scale, sim::client_sees_tokens(workload)};
}

/// Counts the good requests of a run after the first.
class GoodputWatcher final : public sim::RunWatcher {
 public:
  explicit GoodputWatcher(const PlannedVariant& variant) : goodput_(goodput_observer(variant)) {}
  std::vector<sim::Observer*> observers() override { return {&goodput_}; }
  void complete(sim::RunResult& result) override { goodput_.complete(result); }

 private:
  GoodputObserver goodput_;
};

/// The outcome of a variant's first run.
struct FirstRun {
  std::optional<sim::RunResult> result;  ///< Empty when the run did not begin.
  std::optional<sim::TimeSeries> series;
  std::optional<GoodputResult> goodput;
  double elapsed_s = 0;
  bool complete = false;
  std::array<std::vector<StageSide>, 2> other_kv;  ///< With fewer and more KV blocks.
};

/// Observes the first run of a variant for every output that was asked for.
class FirstRunWatcher final : public sim::RunWatcher {
 public:
  FirstRunWatcher(const PlannedVariant& variant, const ExperimentOptions& options,
                  TraceRecorder& trace, FirstRun& out)
      : variant_(variant),
        options_(options),
        trace_(trace),
        out_(out),
        goodput_(goodput_observer(variant)) {
    if (options.series) recorder_.emplace(*options.series);
  }

  std::vector<sim::Observer*> observers() override {
    std::vector<sim::Observer*> all;
    if (recorder_) all.push_back(&*recorder_);
    if (!variant_.goals.empty()) all.push_back(&goodput_);
    if (options_.trace) all.push_back(&trace_);
    if (options_.records != nullptr) all.push_back(options_.records);
    const std::string& name = variant_.plan.scenario.variant;
    if (options_.trace) trace_.begin_variant(name);
    if (options_.records != nullptr) options_.records->begin_variant(name);
    return all;
  }

  void complete(sim::RunResult& result) override {
    if (!variant_.goals.empty()) {
      goodput_.complete(result);
      out_.goodput = goodput_.result(result);
    }
    if (recorder_) out_.series = recorder_->take();
    out_.elapsed_s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  const PlannedVariant& variant_;
  const ExperimentOptions& options_;
  TraceRecorder& trace_;
  FirstRun& out_;
  std::optional<sim::TimeSeriesRecorder> recorder_;
  GoodputObserver goodput_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

UntilOutcome outcome_of(const UntilRule& rule, const sim::StoppedAt& end) {
  UntilOutcome outcome{.rule = rule.text, .reached = false, .reason = {}};
  switch (end.reason) {
    case sim::StopReason::kPrecise:
      outcome.reached = true;
      break;
    case sim::StopReason::kLimit:
      outcome.reason = fmt::format(
          "{} replications were not enough (--replications raises the limit)", end.replications);
      break;
    case sim::StopReason::kNoData:
      outcome.reason = "some run has no " + rule.metric.text;
      break;
    case sim::StopReason::kInterrupted:
      outcome.reason = "interrupted";
      break;
  }
  return outcome;
}

/// The resolved workload as text: equal texts and equal seeds mean equal requests.
std::string workload_of(const sim::RunPlan& plan) {
  sim::WorkloadConfig workload = plan.scenario.workload;
  return to_json(*to_node(describe_values([&workload](Describer& d) { describe(d, workload); })));
}

std::vector<std::string> names_of(std::span<const PlannedVariant> planned) {
  std::vector<std::string> names;
  for (const PlannedVariant& v : planned) names.push_back(v.plan.scenario.variant);
  return names;
}

/// The numbers that the outputs need besides the standard ones.
std::vector<MetricName> metrics_of(std::span<const PlannedVariant> planned,
                                   const std::optional<UntilRule>& until) {
  std::vector<MetricName> more;
  for (const PlannedVariant& v : planned) {
    if (!v.goals.empty())
      more.insert(more.end(), {goodput_metric(), *parse_metric_name("good_requests_per_s").value});
    for (const Expectation& e : v.expectations) more.push_back(e.condition.metric);
  }
  if (until) more.push_back(until->metric);
  return metrics_with(more);
}

/// Runs the jobs and keeps what they leave, by variant and replication.
class Experiment {
 public:
  Experiment(std::span<const PlannedVariant> planned, const ExperimentOptions& options,
             sim::Progress& progress, Console& console, TraceRecorder& trace)
      : planned_(planned),
        options_(options),
        progress_(progress),
        console_(console),
        trace_(trace),
        builder_(names_of(planned), metrics_of(planned, options.until)),
        first_(planned.size()) {
    for (const PlannedVariant& v : planned) plans_.push_back(&v.plan);
  }

  void run(Diagnostics& diagnostics) {
    ProgressDisplay display([this](double elapsed_s) { return progress_line(elapsed_s); },
                            options_.progress, console_);
    const sim::ReplicationOptions how = replication_options();
    const sim::ReplicationSink sink = [&](const sim::Replication& r, sim::RunResult&& result) {
      take(r, std::move(result), display);
    };
    if (!options_.until) {
      sim::replicate(plans_, {.first = 0, .count = options_.replications}, how, sink, diagnostics);
      return;
    }
    const UntilRule& until = *options_.until;
    const sim::WatchedValue value = [&](const sim::RunResult& result) {
      return metric_value(result.summary, until.metric);
    };
    until_ =
        outcome_of(until, sim::replicate_until(plans_, until.rule, value, how, sink, diagnostics));
  }

  void write_report(Outcome& outcome) {
    outcome.interrupted = progress_.stop;
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
  sim::ReplicationOptions replication_options() {
    return {.seed = 0,
            .own_seeds = true,
            .jobs = options_.jobs,
            .check = options_.check,
            .progress = &progress_,
            .watch = [this](const sim::Replication& r) { return make_watcher(r); },
            .first_in_order = options_.trace || options_.records != nullptr,
            .partial_first = true,
            .follow_ups = options_.kv_band ? std::size_t{2} : 0,
            .follow = [this](std::size_t v, std::size_t i,
                             Diagnostics& found) { run_with_other_kv(v, i, found); }};
  }

  std::unique_ptr<sim::RunWatcher> make_watcher(const sim::Replication& r) {
    const PlannedVariant& variant = planned_[r.plan];
    if (r.number == 0)
      return std::make_unique<FirstRunWatcher>(variant, options_, trace_, first_[r.plan]);
    return variant.goals.empty() ? nullptr : std::make_unique<GoodputWatcher>(variant);
  }

  void run_with_other_kv(std::size_t v, std::size_t i, Diagnostics& found) {
    FirstRun& first = first_[v];
    if (!first.result || !is_near_knee(*first.result)) return;
    first.other_kv[i] =
        stages_with_kv_blocks(planned_[v].plan, first.result->seed,
                              i == 0 ? 1 - kCapacityBand : 1 + kCapacityBand, progress_, found);
  }

  void take(const sim::Replication& r, sim::RunResult&& result, ProgressDisplay& display) {
    const bool complete = !progress_.stop;
    if (complete) builder_.add(r.plan, r.number, result);
    if (r.number == 0) {
      const std::lock_guard lock(mutex_);
      first_[r.plan].complete = complete;
      first_[r.plan].result = std::move(result);
      tell_times(display);
    }
    ++done_;
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
      if (done == 0) return run_line(progress_, name, elapsed_s);
      return fmt::format("{}: fewer and more KV blocks, {:.1f} s", name, elapsed_s);
    }
    const std::string all =
        options_.until ? "" : fmt::format(" of {}", options_.replications * planned_.size());
    return fmt::format("{}: {}{} runs, {} requests, {:.1f} s",
                       options_.replicates() ? "replications" : "variants", done, all,
                       progress_.completed.load(std::memory_order_relaxed), elapsed_s);
  }

  VariantReport variant_report(std::size_t v) {
    const PlannedVariant& variant = planned_[v];
    FirstRun& first = first_[v];
    std::vector<StageBand> band;
    if (!progress_.stop) band = capacity_band(*first.result, first.other_kv[0], first.other_kv[1]);
    return {.name = variant.plan.scenario.variant,
            .scan_of = variant.scan_of,
            .fleet_of = variant.fleet_of,
            .result = std::move(*first.result),
            .measured = variant.measured,
            .scenario = variant.plan.scenario,
            .series = std::move(first.series),
            .resolved = variant.resolved,
            .goodput = std::move(first.goodput),
            .capacity_band = std::move(band)};
  }

  ResultSet result_set() {
    ResultSet set = builder_.take(builder_.complete());
    for (std::size_t v = 0; v < plans_.size(); ++v)
      if (set.variants[v].unpaired.empty() && workload_of(*plans_[v]) != workload_of(*plans_[0]))
        set.variants[v].unpaired = "the workloads differ";
    set.scenario = plans_.front()->scenario.name;
    set.until = until_;
    return set;
  }

  std::span<const PlannedVariant> planned_;
  const ExperimentOptions& options_;
  sim::Progress& progress_;
  Console& console_;
  TraceRecorder& trace_;
  ResultSetBuilder builder_;
  std::vector<const sim::RunPlan*> plans_;
  std::optional<UntilOutcome> until_;
  std::vector<FirstRun> first_;  ///< By variant; a job writes only its own.
  std::atomic<std::size_t> done_{0};
  std::mutex mutex_;      ///< Guards the results in first_ and told_ while runs end.
  std::size_t told_ = 0;  ///< Variants with a line on standard error.
};

}  // namespace

void run_experiment(std::span<const PlannedVariant> planned, const ExperimentOptions& options,
                    sim::Progress& progress, Diagnostics& diagnostics, Console& console,
                    Outcome& outcome) {
  Experiment experiment(planned, options, progress, console, outcome.trace);
  experiment.run(diagnostics);
  if (!diagnostics.has_errors()) experiment.write_report(outcome);
}

}  // namespace routesim::tools
