// Running the rows of a sweep on all cores.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "tools/study/experiment/experiment.h"
#include "tools/study/sweep/sweep_record.h"

namespace routesim::tools {

// Which part of a sweep this process computes.

/// Shard `index` of `count`: the rows whose number modulo `count` is `index`, so that neighbours,
/// which take similar time, fall to different shards.
struct SweepShard {
  std::size_t index = 0;
  std::size_t count = 1;
  std::string origin;  ///< `--shard` or the variable that chose it; empty = none.
  bool holds(std::size_t row) const { return row % count == index; }
  /// `I/N` as the option is written; empty for the whole sweep.
  std::string text() const {
    return count > 1 ? std::to_string(index + 1) + "/" + std::to_string(count) : std::string();
  }
};

/// The value of an environment variable; nothing when it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

/// `I/N` with I from 1 to N, or `none`. Without an option, the array variables of Slurm
/// (SLURM_ARRAY_TASK_ID, _MIN, _MAX, _COUNT, which describe the array that was submitted: a lost
/// task that is submitted alone is an array of one, so only 0-(N-1) and 1-N with N > 1 say the
/// share) or of a Kubernetes Indexed Job (JOB_COMPLETION_INDEX, which counts from 0, and
/// JOB_COMPLETIONS, which the manifest must set to the same number as `completions`, since
/// Kubernetes does not tell). On error sets `error` and returns nothing.
std::optional<SweepShard> choose_shard(const std::optional<std::string>& option,
                                       const Environment& environment, std::string& error);

// Rows of a sweep that stand in files: joined from shards, or checked before they are shown.

/// Refuses damaged rows of a sweep, and warns when some of its rows are not in the file. A text
/// that holds no rows passes.
void check_rows(const std::string& file, std::string_view text, Diagnostics& diagnostics);

/// A file of rows as it was read.
struct RowFile {
  std::string path;
  std::string text;
};

/// All rows in grid order: the bytes that one unsharded sweep would have written. Errors: a line
/// that is no row, files of grids of different sizes or of different
/// experiments (other overrides, seeds, replications or builds), rows that are missing, and a
/// clash, which is a place in the grid or a key with two different rows. A row given twice with the
/// same bytes is a warning.
std::string merge_rows(const std::vector<RowFile>& files, Diagnostics& diagnostics);

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
