#include "tools/study/replicate.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/check.h"
#include "tools/study/parallel.h"
#include "tools/study/statistics.h"

namespace routesim::sim {

namespace {

bool stopped(const ReplicationOptions& options) {
  return options.progress != nullptr && options.progress->stop;
}

/// Runs; what goes wrong inside tells which variant and seed to repeat.
RunResult run_named(Simulation& simulation, const RunPlan& plan, std::uint64_t seed) {
  try {
    return simulation.run();
  } catch (const InternalError& e) {
    throw InternalError(std::string(e.what()) + "\n  in variant " + plan.scenario.variant +
                        " with seed " + std::to_string(seed));
  }
}

/// What the rule looks at, by plan and replication.
class Watched {
 public:
  Watched(std::size_t plans, std::size_t replications)
      : values_(plans, std::vector<std::optional<double>>(replications)) {}

  void set(const Replication& r, std::optional<double> value) { values_[r.plan][r.number] = value; }

  /// The first `n` values of a plan; nothing when one is missing.
  std::optional<std::vector<double>> first(std::size_t plan, std::size_t n) const {
    std::vector<double> out;
    for (std::size_t i = 0; i < n; ++i) {
      if (!values_[plan][i]) return std::nullopt;
      out.push_back(*values_[plan][i]);
    }
    return out;
  }

  std::size_t plans() const { return values_.size(); }

 private:
  std::vector<std::vector<std::optional<double>>> values_;
};

/// Whether to end after `n` replications, and why.
std::optional<StopReason> look(const StoppingRule& rule, const Watched& watched, std::size_t n) {
  bool precise = true;
  for (std::size_t plan = 0; plan < watched.plans(); ++plan) {
    const std::optional<std::vector<double>> values = watched.first(plan, n);
    if (!values) return StopReason::kNoData;
    precise = precise && is_precise(rule, *values);
  }
  if (precise) return StopReason::kPrecise;
  return n >= rule.limit ? std::optional(StopReason::kLimit) : std::nullopt;
}

}  // namespace

void replicate(std::span<const RunPlan* const> plans, const ReplicationRange& range,
               const ReplicationOptions& options, const ReplicationSink& sink,
               Diagnostics& diagnostics) {
  const std::size_t runs = plans.size() * range.count;
  std::vector<Diagnostics> found(runs);
  // Replication by replication, so that an interrupted experiment has whole pairs.
  for_each_index(runs, options.jobs, [&](std::size_t i) {
    if (stopped(options)) return;
    const Replication r{.plan = i % plans.size(), .number = range.first + i / plans.size()};
    const std::unique_ptr<RunWatcher> watcher = options.watch ? options.watch(r.plan) : nullptr;
    std::vector<Observer*> observers;
    if (watcher != nullptr) observers.push_back(watcher.get());
    const std::uint64_t seed =
        (options.own_seeds ? plans[r.plan]->scenario.seed : options.seed) + r.number;
    Simulation simulation(*plans[r.plan],
                          {.seed = seed,
                           .check = options.check,
                           .progress = options.progress,
                           .observers = observers},
                          found[i]);
    if (found[i].has_errors()) return;
    RunResult result = run_named(simulation, *plans[r.plan], seed);
    if (watcher != nullptr) watcher->complete(result);
    if (!stopped(options)) sink(r, std::move(result));
  });
  const auto bad =
      std::find_if(found.begin(), found.end(), [](const Diagnostics& d) { return d.has_errors(); });
  if (bad == found.end()) return;
  for (const Diagnostic& d : bad->items()) diagnostics.add(d);
}

std::size_t next_look(const StoppingRule& rule, std::size_t done) {
  const std::size_t next = done < rule.first_look ? rule.first_look : done + rule.batch;
  return std::min(next, rule.limit);
}

bool is_precise(const StoppingRule& rule, std::span<const double> values) {
  const Estimate e = estimate(values);
  return e.half_width <= rule.relative_half_width * std::abs(e.mean);
}

StoppedAt replicate_until(std::span<const RunPlan* const> plans, const StoppingRule& rule,
                          const WatchedValue& value, std::span<const RunResult* const> known,
                          const ReplicationOptions& options, const ReplicationSink& sink,
                          Diagnostics& diagnostics) {
  ROUTESIM_CHECK(rule.batch > 0 && rule.limit > 0, "a stopping rule must make headway");
  ROUTESIM_CHECK(known.empty() || known.size() == plans.size(), "one known result per plan");
  Watched watched(plans.size(), rule.limit);
  for (std::size_t plan = 0; plan < known.size(); ++plan)
    watched.set({.plan = plan, .number = 0}, value(*known[plan]));
  const ReplicationSink watching = [&](const Replication& r, RunResult&& result) {
    watched.set(r, value(result));
    sink(r, std::move(result));
  };
  std::size_t complete = known.empty() ? 0 : 1;
  for (std::size_t looked_at = 0;;) {
    const std::size_t next = next_look(rule, looked_at);
    replicate(plans, {.first = complete, .count = next - complete}, options, watching, diagnostics);
    if (stopped(options) || diagnostics.has_errors()) return {StopReason::kInterrupted, complete};
    complete = looked_at = next;
    if (const std::optional<StopReason> reason = look(rule, watched, next)) return {*reason, next};
  }
}

}  // namespace routesim::sim
