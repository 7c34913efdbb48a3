#include "tools/study/replicate.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>

#include "base/check.h"
#include "base/text.h"
#include "tools/results/statistics.h"
#include "tools/study/parallel.h"

namespace routesim::sim {

namespace {

bool stopped(const ReplicationOptions& options) {
  return options.progress != nullptr && options.progress->stop;
}

/// Runs the simulation; an internal error tells which variant and seed to repeat.
RunResult run_named(Simulation& simulation, const RunPlan& plan, std::uint64_t seed) {
  try {
    return simulation.run();
  } catch (const InternalError& e) {
    throw InternalError(std::string(e.what()) + "\n  in variant " +
                        printable(plan.scenario.variant) + " with seed " + std::to_string(seed));
  }
}

/// The watched values, by plan and replication.
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

/// The jobs of one call of replicate(), numbered in the order that decides which errors are told.
class ReplicationJobs {
 public:
  ReplicationJobs(std::span<const RunPlan* const> plans, const ReplicationRange& range,
                  const ReplicationOptions& options, const ReplicationSink& sink)
      : plans_(plans),
        range_(range),
        options_(options),
        sink_(sink),
        follow_ups_(range.first == 0 && range.count > 0 ? options.follow_ups * plans.size() : 0),
        found_(plans.size() * range.count + follow_ups_),
        first_bad_(found_.size()) {}

  void run(Diagnostics& diagnostics) {
    for_each_index(
        found_.size(), options_.jobs, [this](std::size_t i) { run_job(i); }, needs());
    if (first_bad_ == found_.size()) return;
    for (const Diagnostic& d : found_[first_bad_].items()) diagnostics.add(d);
  }

 private:
  std::vector<std::size_t> needs() const {
    std::vector<std::size_t> after(found_.size(), kNoJob);
    if (range_.first != 0) return after;
    for (std::size_t i = 1; options_.first_in_order && i < plans_.size(); ++i) after[i] = i - 1;
    for (std::size_t i = 0; i < follow_ups_; ++i)
      after[plans_.size() + i] = i / options_.follow_ups;
    return after;
  }

  void run_job(std::size_t i) {
    if (stopped(options_) || i > first_bad_) return;
    const std::size_t p = plans_.size();
    if (i >= p && i < p + follow_ups_) {
      options_.follow((i - p) / options_.follow_ups, (i - p) % options_.follow_ups, found_[i]);
    } else {
      const std::size_t run = i < p ? i : i - follow_ups_;
      const std::size_t round = run / p;
      // Every other round goes backwards, so that a core which got a long variant gets a short one
      // next and all cores end together.
      const std::size_t plan = round % 2 == 0 ? run % p : p - 1 - run % p;
      run_one({.plan = plan, .number = range_.first + round}, found_[i]);
    }
    if (!found_[i].has_errors()) return;
    std::size_t bad = first_bad_;
    while (i < bad && !first_bad_.compare_exchange_weak(bad, i)) {
    }
  }

  void run_one(const Replication& r, Diagnostics& found) {
    const RunPlan& plan = *plans_[r.plan];
    const std::unique_ptr<RunWatcher> watcher = options_.watch ? options_.watch(r) : nullptr;
    const std::uint64_t seed = (options_.own_seeds ? plan.scenario.seed : options_.seed) + r.number;
    Simulation simulation(
        plan,
        {.seed = seed,
         .check = options_.check,
         .progress = options_.progress,
         .observers = watcher != nullptr ? watcher->observers() : std::vector<Observer*>{}},
        found);
    if (found.has_errors()) return;
    RunResult result = run_named(simulation, plan, seed);
    if (watcher != nullptr) watcher->complete(result);
    if (!stopped(options_) || (options_.partial_first && r.number == 0))
      sink_(r, std::move(result));
  }

  std::span<const RunPlan* const> plans_;
  const ReplicationRange& range_;
  const ReplicationOptions& options_;
  const ReplicationSink& sink_;
  std::size_t follow_ups_;
  std::vector<Diagnostics> found_;
  std::atomic<std::size_t> first_bad_;  ///< The lowest job with errors.
};

}  // namespace

void replicate(std::span<const RunPlan* const> plans, const ReplicationRange& range,
               const ReplicationOptions& options, const ReplicationSink& sink,
               Diagnostics& diagnostics) {
  ReplicationJobs(plans, range, options, sink).run(diagnostics);
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
                          const WatchedValue& value, const ReplicationOptions& options,
                          const ReplicationSink& sink, Diagnostics& diagnostics) {
  ROUTESIM_CHECK(rule.batch > 0 && rule.limit > 0, "a stopping rule must make headway");
  Watched watched(plans.size(), rule.limit);
  const ReplicationSink watching = [&](const Replication& r, RunResult&& result) {
    watched.set(r, value(result));
    sink(r, std::move(result));
  };
  for (std::size_t done = 0;;) {
    const std::size_t next = next_look(rule, done);
    replicate(plans, {.first = done, .count = next - done}, options, watching, diagnostics);
    if (stopped(options) || diagnostics.has_errors()) return {StopReason::kInterrupted, done};
    done = next;
    if (const std::optional<StopReason> reason = look(rule, watched, next)) return {*reason, next};
  }
}

}  // namespace routesim::sim
