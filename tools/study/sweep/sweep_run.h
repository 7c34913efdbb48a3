// Running the rows of a sweep on all cores.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "sim/simulation.h"
#include "tools/study/sweep/sweep_plan.h"

namespace routesim::tools {

/// How far a sweep has come, for a display in another thread.
struct SweepProgress {
  sim::Progress run;  ///< Counts all runs together; its `stop` ends the sweep.
  std::atomic<std::size_t> rows_done{0};
  std::atomic<double> cost_done{0};  ///< Cost of finished replications, as SweepRow::cost.
  std::size_t rows = 0;
  double cost = 0;
};

/// Receives a finished row: its index in the plan and its tail. Calls come from one thread at a
/// time, in the order the rows finish. A text that it returns ends the sweep as an error.
using RowSink = std::function<std::string(std::size_t row, std::string tail)>;

/// Computes the rows with these indices. Replications are the unit of work; the longest go first,
/// so that no thread is left with a long one at the end. No row is handed over after
/// `progress.run.stop` was set. Errors of a run, which prepare_row() or the sink found, go to
/// `diagnostics` and end the sweep; an internal error is thrown.
void run_rows(const SweepPlan& plan, const std::vector<std::size_t>& rows, std::size_t jobs,
              const RowSink& sink, SweepProgress& progress, Diagnostics& diagnostics);

}  // namespace routesim::tools
