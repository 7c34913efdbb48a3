// Runs of plans, many at once: the one place in tools that makes simulations.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "policies/index/sha256.h"
#include "sim/observe/run_result.h"
#include "sim/observe/timeline.h"
#include "sim/plan/resolve.h"
#include "sim/plan/scenario.h"
#include "sim/simulation.h"
#include "tools/ingest/scenario/scenario_yaml.h"
#include "tools/results/goodput.h"

namespace routesim::tools {

// The one place where threads are made for experiments.

/// Calls `work(i)` once for every i in [0, count), in up to `jobs` threads (at least 1, which is
/// the caller's own). A thread that is free takes the lowest index that has not begun. Returns when
/// all calls have returned. After call i has thrown, no call above i begins, and every call below i
/// still runs. The exception of the lowest index is rethrown, so `jobs` does not change the error.
void for_each_index(std::size_t count, std::size_t jobs,
                    const std::function<void(std::size_t)>& work);

/// Threads this process may use: what its affinity mask allows; at least 1.
std::size_t default_jobs();

// A candidate is one thing that a study may run: a scenario, one of its variants, what is changed
// in it, and a seed. A ScenarioRequest says all four; this makes its plan and its key.

/// The first variant of the candidate, ready to run. Nothing with errors.
std::optional<sim::RunPlan> prepare_candidate(const ScenarioRequest& candidate,
                                              Diagnostics& diagnostics);

/// load_scenario(); after an error also everything else that is wrong with its variants.
LoadedScenario load_checked(const ScenarioRequest& request, Diagnostics& diagnostics);

/// Hashes parts so that no two lists of parts look alike.
class KeyHash {
 public:
  void add(std::string_view part);
  /// 128 bits of SHA-256, in hex.
  std::string finish();

 private:
  policies::Sha256 hash_;
};

/// A hash of what decides the numbers of the variant's runs: the resolved scenario, the contents of
/// the files it names, release and commit, and `parts`, which the study adds. Where the files stand
/// on the disk has no part in it.
std::string candidate_key(const LoadedVariant& variant, std::span<const std::string> parts,
                          Diagnostics& diagnostics);

// When a run missed its goals, and what its fleet did then.

/// Gives `run` its timeline; with `goals` also the stretches that miss them, each with the events
/// and the servers of that time. Only facts are named, and "no event" where there is none. Each
/// load of a mix that has goals must meet them, and what it misses has its name.
/// `loads`: by their numbers, empty without a mix.
void complete_timeline(const sim::TimelineCounter& whole,
                       const std::map<std::int64_t, sim::TimelineCounter>& loads,
                       const sim::Scenario& scenario, bool goals, sim::RunResult& run);

/// How far an experiment has come, for a display in another thread. A study counts what it has.
struct ExperimentProgress {
  sim::Progress run;                 ///< Counts all runs together; its `stop` ends the experiment.
  std::atomic<std::size_t> runs{0};  ///< Runs that have ended ...
  std::atomic<std::size_t> planned{0};     ///< ... of so many, as far as is known; 0 = unknown.
  std::atomic<std::size_t> step{0};        ///< Parts of the study that are done.
  std::atomic<std::size_t> answered{0};    ///< Questions of this part with an answer ...
  std::atomic<std::size_t> questions{0};   ///< ... and all of them; 0 = not counted.
  std::atomic<std::size_t> candidates{0};  ///< Candidates tried so far, or still in a race.
  std::atomic<double> cost_done{0};        ///< Requests of finished runs ...
  std::atomic<double> cost{0};             ///< ... and of all of them.
  std::atomic<bool> awaited{false};  ///< Somebody waits for what the study has found so far ...
  std::function<void()> look = {};   ///< ... and reads it in this call.
};

/// Thrown out of an experiment that was stopped, or where a run had errors.
struct Stopped {};

/// One run.
struct RunRequest {
  const sim::RunPlan& plan;
  std::uint64_t seed = 1;
  GoodputGoals goals = {};        ///< Good requests are counted by these; empty = they are not.
  GoodputResult* good = nullptr;  ///< Receives the counts behind them.
  bool check = false;             ///< Verify the numbered invariants during the run.
  bool partial = false;           ///< A run that was cut short is a result, too.
  std::vector<sim::Observer*> observers = {};
};

/// Runs the plan to its end on this thread; nothing, with errors, when the run cannot be set up. An
/// internal error names the variant and the seed to repeat.
std::optional<sim::RunResult> simulate(const sim::RunPlan& plan, const sim::RunOptions& options,
                                       Diagnostics& found);

/// Adds the errors that only setting up a run finds: those of its router and its engines.
void check_setup(const sim::RunPlan& plan, Diagnostics& found);

/// Does work in waves, on all threads. Used by one thread, whose work calls run() from any.
class Experiment {
 public:
  /// `jobs`: threads, at least 1. No effect on results. Errors go to `diagnostics`.
  Experiment(std::size_t jobs, ExperimentProgress& progress, Diagnostics& diagnostics)
      : jobs_(jobs), progress_(progress), diagnostics_(diagnostics) {}

  /// Calls `work(i, found)` for every i in [0, count), as for_each_index() does. No call begins
  /// after a stop, or behind one that found errors. Throws Stopped then; the errors that are told
  /// are those of the lowest index that found any.
  void each(std::size_t count, const std::function<void(std::size_t, Diagnostics& found)>& work);

  /// One run, with errors in `found`. Nothing when it had any, or was cut short by a stop.
  std::optional<sim::RunResult> run(const RunRequest& request, Diagnostics& found);

  /// A run that `observer` may end by the stop of `own`. A stop of the experiment ends it, too.
  void probe(const sim::RunPlan& plan, std::uint64_t seed, sim::Observer& observer,
             sim::Progress& own, Diagnostics& found);

  /// Lets a watcher read what the study has found so far, on this thread. For moments when that is
  /// whole; costs nothing while nobody waits. `collect` is called before, to make it whole.
  void tell(const std::function<void()>& collect = nullptr);

  bool stopped() const { return progress_.run.stop; }
  /// Throws Stopped after a stop or an error.
  void throw_if_stopped() const;

  std::size_t jobs() const { return jobs_; }
  ExperimentProgress& progress() { return progress_; }
  Diagnostics& diagnostics() { return diagnostics_; }

 private:
  std::size_t jobs_;
  ExperimentProgress& progress_;
  Diagnostics& diagnostics_;
};

// Plans with several seeds. Replication r of every plan has the same seed (where plans have), so
// all plans face the same requests and their results can be subtracted pair by pair.

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

/// The plans to replicate.
struct Replicated {
  std::size_t plans = 1;
  /// Replication 0 of a plan begins after that of the plan before it: they write to one place.
  bool first_in_order = false;
};

/// Makes one run. Called from any thread, several at a time, in no fixed order: what it writes must
/// belong to that plan and replication alone.
using ReplicationWork = std::function<void(const Replication&, Diagnostics& found)>;

/// Runs every plan with every replication of the range, all as one wave: a free thread takes the
/// next run of any plan, replication 0 of every plan first. Throws as Experiment::each().
void replicate(const Replicated& what, const ReplicationRange& range, const ReplicationWork& work,
               Experiment& experiment);

/// How long to go on: until the 95 % interval of one number of every plan is narrow enough. The
/// interval is looked at after fixed numbers of replications, so that the answer cannot depend on
/// the threads. Looking often and stopping at the first narrow interval makes it a little too
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
  kPrecise,  ///< Every interval is narrow enough.
  kLimit,    ///< The limit was reached first.
  kNoData    ///< Some run had no value to look at.
};

struct StoppedAt {
  StopReason reason = StopReason::kLimit;
  std::size_t replications = 0;  ///< Complete ones, from replication 0 on.
};

/// The number of replications at which the rule looks next, after `done` of them.
std::size_t next_look(const StoppingRule& rule, std::size_t done);

/// Whether the interval of these values is as narrow as the rule wants.
bool is_precise(const StoppingRule& rule, std::span<const double> values);

/// Makes one run and returns the number that the rule is about.
using WatchedWork = std::function<std::optional<double>(const Replication&, Diagnostics& found)>;

/// replicate() in batches, from replication 0 on, until the rule is met.
StoppedAt replicate_until(const Replicated& what, const StoppingRule& rule, const WatchedWork& work,
                          Experiment& experiment);

}  // namespace routesim::tools
