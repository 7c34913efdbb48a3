// Running the rows of a sweep on all cores.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "tools/study/experiment/experiment.h"
#include "tools/study/sweep/sweep_record.h"

namespace routesim::tools {

/// Receives a finished row: its index in the plan and its record. Calls come from one thread at a
/// time, in the order the rows finish. A text that it returns ends the sweep as an error.
using RowSink = std::function<std::string(std::size_t row, SweepRowRecord record)>;

/// Computes the rows with these indices; they are the questions of the experiment's progress.
/// Replications are the unit of work; the longest go first, so that no thread is left with a long
/// one at the end. No row is handed over after a stop. Throws Stopped, also after errors of a run,
/// of prepare_row() and of the sink.
void run_rows(const SweepPlan& plan, const std::vector<std::size_t>& rows, const RowSink& sink,
              Experiment& experiment);

}  // namespace routesim::tools
