// Runs of candidates, many at once.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "sim/simulation.h"
#include "tools/study/tune/tune_space.h"

namespace routesim::tools {

/// One run, and its numbers afterwards.
struct TuneRun {
  const sim::RunPlan* plan = nullptr;
  std::uint64_t seed = 0;
  std::vector<double> values = {};  ///< By TuneSpace::metrics; NaN where the run has none.
  /// How much was simulated, which most of the CPU time goes with: prompt tokens that engines
  /// looked up, and 1000 for each request that a router sent to one.
  double work = 0;
};

/// How far a tuning has come, for a display in another thread.
struct TuneProgress {
  sim::Progress run;  ///< Its `stop` ends the tuning.
  std::atomic<std::size_t> runs{0};
  std::atomic<std::size_t> planned{0};     ///< As far as known.
  std::atomic<std::size_t> candidates{0};  ///< Still in the race.
};

/// Thrown out of a tuning when it was stopped or when a run had errors.
struct TuneStopped {};

class TuneRunner {
 public:
  TuneRunner(const TuneSpace& space, std::size_t jobs, TuneProgress& progress,
             Diagnostics& diagnostics)
      : space_(space), jobs_(jobs), progress_(progress), diagnostics_(diagnostics) {}

  /// Does all runs and fills in their values, which do not depend on `jobs`. A run that gets stuck,
  /// which some configurations do, has no values.
  void run(std::span<TuneRun> runs);

  std::size_t jobs() const { return jobs_; }
  TuneProgress& progress() { return progress_; }
  Diagnostics& diagnostics() { return diagnostics_; }

 private:
  void run_one(TuneRun& run);

  const TuneSpace& space_;
  std::size_t jobs_;
  TuneProgress& progress_;
  Diagnostics& diagnostics_;
  std::mutex mutex_;
};

}  // namespace routesim::tools
