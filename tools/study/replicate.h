// The same plans with several seeds. Replication r of every plan has the same seed (where plans
// have), so all plans face the same requests and their results can be subtracted pair by pair.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "sim/observe/observer.h"
#include "sim/simulation.h"

namespace routesim::sim {

/// A block of replications: `count` of them from number `first` on.
struct ReplicationRange {
  std::size_t first = 0;
  std::size_t count = 1;
};

/// One run of a plan.
struct Replication {
  std::size_t plan = 0;    ///< Index into the plans.
  std::size_t number = 0;  ///< The r of seed + r.
};

/// Watches one run. Made, used and destroyed on the thread of that run.
class RunWatcher {
 public:
  virtual ~RunWatcher() = default;
  /// The observers of the run. They live as long as the watcher.
  virtual std::vector<Observer*> observers() = 0;
  /// Called after the run. May add to the result what only the caller knows how to count.
  virtual void complete(RunResult& result) = 0;
};

struct ReplicationOptions {
  std::uint64_t seed = 1;  ///< Seed of replication 0; replication r has seed + r.
  /// Replication r of a plan has the seed of its scenario + r instead.
  bool own_seeds = false;
  std::size_t jobs = 1;          ///< Threads. No effect on results.
  bool check = false;            ///< Verify the numbered invariants during the runs.
  Progress* progress = nullptr;  ///< Shared by all runs; `total` means nothing.
  /// Makes the watcher of one run, or null. May be empty. Called from any thread.
  std::function<std::unique_ptr<RunWatcher>(const Replication&)> watch{};
  /// Replication 0 of a plan begins after that of the plan before it: their watchers write to one
  /// place.
  bool first_in_order = false;
  /// Replication 0 is handed over even when it was cut short.
  bool partial_first = false;
  /// Jobs that begin after replication 0 of each plan: `follow(plan, i)`, i < follow_ups.
  std::size_t follow_ups = 0;
  std::function<void(std::size_t plan, std::size_t i, Diagnostics&)> follow{};
};

/// Receives each run that has ended, from any thread, several at a time, in no fixed order. What it
/// writes must belong to that plan and replication alone. Runs cut short by `progress->stop` are
/// not handed over, except as `partial_first` says.
using ReplicationSink = std::function<void(const Replication&, RunResult&&)>;

/// Runs every plan with every replication of the range, all as one pool of jobs: a free thread
/// takes the next run of any plan. The errors of the first job that has any go to `diagnostics`;
/// the order is replication 0 of every plan, its follow-ups, then replication by replication. Jobs
/// behind one with errors do not begin.
void replicate(std::span<const RunPlan* const> plans, const ReplicationRange& range,
               const ReplicationOptions& options, const ReplicationSink& sink,
               Diagnostics& diagnostics);

/// How long to go on: until the 95 % interval of one number of every plan is narrow enough. The
/// interval is looked at after fixed numbers of replications, so that the answer cannot depend on
/// `jobs`. Looking often and stopping at the first narrow interval makes it a little too
/// optimistic; the first look is late enough to keep its coverage (measured by
/// tests/statistics/coverage_test.cpp).
struct StoppingRule {
  double relative_half_width = 0.02;  ///< As a share of the mean: 0.02 is +-2 %.
  std::size_t first_look = 10;
  std::size_t batch = 5;    ///< Replications between looks.
  std::size_t limit = 200;  ///< Most replications; a last look is taken there.
};

/// Why it ended.
enum class StopReason {
  kPrecise,      ///< Every interval is narrow enough.
  kLimit,        ///< The limit was reached first.
  kNoData,       ///< Some run had no value to look at.
  kInterrupted,  ///< `progress->stop` was set, or a run had errors.
};

struct StoppedAt {
  StopReason reason = StopReason::kLimit;
  std::size_t replications = 0;  ///< Complete ones, from replication 0 on.
};

/// The number of replications at which the rule looks next, after `done` of them.
std::size_t next_look(const StoppingRule& rule, std::size_t done);

/// Whether the interval of these values is as narrow as the rule wants.
bool is_precise(const StoppingRule& rule, std::span<const double> values);

/// The number a rule is about.
using WatchedValue = std::function<std::optional<double>(const RunResult&)>;

/// replicate() in batches, from replication 0 on, until the rule is met.
StoppedAt replicate_until(std::span<const RunPlan* const> plans, const StoppingRule& rule,
                          const WatchedValue& value, const ReplicationOptions& options,
                          const ReplicationSink& sink, Diagnostics& diagnostics);

}  // namespace routesim::sim
