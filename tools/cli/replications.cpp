#include "tools/cli/replications.h"

#include "base/printable.h"
#include "base/scalar_parse.h"
#include "sim/observe/metrics_collector.h"
#include "tools/ingest/description.h"
#include "tools/render/text_table.h"
#include "tools/study/parallel.h"
#include "tools/study/replicate.h"

namespace routesim::tools {

namespace {

std::optional<std::size_t> whole_number(const OptionValues& options, const std::string& name,
                                        std::size_t fallback, std::int64_t most,
                                        std::string& error) {
  if (!options.has(name)) return fallback;
  const auto node = ConfigNode::make_scalar(options.get(name), ConfigNode::Style::kUntyped, {});
  const Parsed<std::int64_t> value = parse_integer(*node, IntRange{1, most});
  if (value.value) return static_cast<std::size_t>(*value.value);
  error = "--" + name + " " + value.message;
  return std::nullopt;
}

std::unique_ptr<sim::RunWatcher> make_watcher(const ReplicationJob& job, std::size_t plan) {
  if (job.goals[plan].empty()) return nullptr;
  const sim::WorkloadConfig& workload = job.plans[plan]->scenario.workload;
  return std::make_unique<GoodputObserver>(job.goals[plan], workload.output_token_scale,
                                           sim::client_sees_tokens(workload));
}

UntilOutcome outcome_of(const UntilRule& rule, const sim::StoppedAt& end) {
  UntilOutcome outcome{.rule = rule.text, .reached = false, .reason = {}};
  switch (end.reason) {
    case sim::StopReason::kPrecise:
      outcome.reached = true;
      break;
    case sim::StopReason::kLimit:
      outcome.reason = std::to_string(end.replications) +
                       " replications were not enough (--replications raises the limit)";
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

}  // namespace

bool parse_replications(const OptionValues& options, ReplicationRequest& request,
                        std::string& error) {
  const sim::StoppingRule rule;
  const std::size_t fallback = options.has("until") ? rule.limit : 1;
  const auto replications = whole_number(options, "replications", fallback, 100'000, error);
  const auto jobs = whole_number(options, "jobs", sim::default_jobs(), 1024, error);
  if (!replications || !jobs) return false;
  request.replications = *replications;
  request.jobs = *jobs;
  if (!options.has("until")) return true;
  Parsed<UntilRule> until = parse_until(options.get("until"));
  if (!until.value) {
    error = "--until " + until.message + "; " + until.hint;
    return false;
  }
  if (*replications < 2) {
    error = "--until needs --replications of at least 2, its limit";
    return false;
  }
  request.until = std::move(until.value);
  request.until->rule.limit = *replications;
  return true;
}

ResultSet run_replications(const ReplicationJob& job, const ReplicationRequest& request,
                           sim::Progress& progress, Console& console, Diagnostics& diagnostics) {
  std::vector<std::string> names;
  for (const sim::RunPlan* plan : job.plans) names.push_back(plan->scenario.variant);
  std::vector<MetricName> more = job.metrics;
  if (request.until) more.push_back(request.until->metric);
  ResultSetBuilder builder(names, metrics_with(more));
  for (std::size_t v = 0; v < job.first.size(); ++v) builder.add(v, 0, *job.first[v]);

  std::atomic<std::size_t> done{job.first.size()};
  const std::string all =
      request.until ? "" : " of " + std::to_string(request.replications * job.plans.size());
  const ProgressDisplay display(
      [&](double elapsed_s) {
        return "replications: " + std::to_string(done.load()) + all + " runs, " +
               fixed_text(elapsed_s, 1) + " s";
      },
      request.wanted() ? job.progress : ProgressMode::kNever, console);
  const sim::ReplicationOptions options{
      .seed = job.plans.front()->scenario.seed,
      .own_seeds = true,
      .jobs = request.jobs,
      .check = job.check,
      .progress = &progress,
      .watch = [&job](std::size_t plan) { return make_watcher(job, plan); }};
  const sim::ReplicationSink sink = [&](const sim::Replication& r, sim::RunResult&& result) {
    builder.add(r.plan, r.number, result);
    ++done;
  };
  std::optional<UntilOutcome> outcome;
  if (request.until) {
    const MetricName& metric = request.until->metric;
    const sim::WatchedValue value = [&](const sim::RunResult& result) {
      return metric_value(result.summary, metric);
    };
    outcome =
        outcome_of(*request.until, sim::replicate_until(job.plans, request.until->rule, value,
                                                        job.first, options, sink, diagnostics));
  } else if (request.replications > 1) {
    sim::replicate(job.plans, {.first = 1, .count = request.replications - 1}, options, sink,
                   diagnostics);
  }
  ResultSet set = builder.take(builder.complete());
  for (std::size_t v = 0; v < job.plans.size(); ++v)
    if (set.variants[v].unpaired.empty() &&
        workload_of(*job.plans[v]) != workload_of(*job.plans[0]))
      set.variants[v].unpaired = "the workloads differ";
  set.scenario = job.plans.front()->scenario.name;
  set.until = std::move(outcome);
  return set;
}

}  // namespace routesim::tools
