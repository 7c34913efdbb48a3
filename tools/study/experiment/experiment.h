// Runs of plans, many at once: the one place in tools that makes simulations.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/diagnostic.h"
#include "sim/observe/run_result.h"
#include "sim/plan/resolve.h"
#include "sim/simulation.h"
#include "tools/results/goodput.h"

namespace routesim::tools {

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

}  // namespace routesim::tools
