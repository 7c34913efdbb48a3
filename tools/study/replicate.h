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

/// Sees one run and may add to its result what only the caller knows how to count.
class RunWatcher : public Observer {
 public:
  /// After the run, on the thread that ran it.
  virtual void complete(RunResult& result) const = 0;
};

struct ReplicationOptions {
  std::uint64_t seed = 1;  ///< Of replication 0; replication r has seed + r.
  /// Replication r of a plan has the seed of its scenario + r instead.
  bool own_seeds = false;
  std::size_t jobs = 1;          ///< Threads. No effect on results.
  bool check = false;            ///< Verify the numbered invariants during the runs.
  Progress* progress = nullptr;  ///< Shared by all runs; `total` means nothing.
  /// Makes the watcher of one run of a plan, or null. May be empty. Called from any thread.
  std::function<std::unique_ptr<RunWatcher>(std::size_t plan)> watch{};
};

/// Receives each run that has ended, from any thread, several at a time, in no fixed order. What it
/// writes must belong to that plan and replication alone. Runs cut short by `progress->stop` are
/// not handed over.
using ReplicationSink = std::function<void(const Replication&, RunResult&&)>;

/// Runs every plan with every replication of the range. The errors of the first run that has any,
/// in the order of replications and then of plans, go to `diagnostics`.
void replicate(std::span<const RunPlan* const> plans, const ReplicationRange& range,
               const ReplicationOptions& options, const ReplicationSink& sink,
               Diagnostics& diagnostics);

/// How long to go on: until the 95 % interval of one number of every plan is narrow enough. The
/// interval is looked at after fixed numbers of replications, so that the answer cannot depend on
/// `jobs`. Looking often and stopping at the first narrow interval makes it a little too
/// optimistic; the first look is late enough to keep its coverage (measured by
/// tests/statistics/coverage_test.cpp).
struct StoppingRule {
  double relative_half_width = 0.02;  ///< Of the mean: 0.02 is +-2 %.
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

/// replicate() in batches until the rule is met. `known` holds each plan's result of replication 0
/// where the caller has them already, or is empty; those are not run again nor handed to the sink.
StoppedAt replicate_until(std::span<const RunPlan* const> plans, const StoppingRule& rule,
                          const WatchedValue& value, std::span<const RunResult* const> known,
                          const ReplicationOptions& options, const ReplicationSink& sink,
                          Diagnostics& diagnostics);

}  // namespace routesim::sim
