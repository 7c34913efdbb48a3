// A sweep file made ready to run: every row with its key, everything that is wrong found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/plan/resolve.h"
#include "tools/ingest/scenario/scenario_yaml.h"
#include "tools/results/metric_name.h"
#include "tools/study/sweep/sweep_grid.h"

namespace routesim::tools {

/// A sweep file and the options of the command line.
struct SweepRequest {
  std::string path;
  std::vector<std::string> sets = {};             ///< `--set`, after the file's own `set`.
  std::optional<std::int64_t> seed = {};          ///< `--seed`.
  std::optional<std::int64_t> replications = {};  ///< `--replications`.
  std::size_t jobs = 1;      ///< Threads that check cells; no effect on results.
  bool with_ledger = false;  ///< Whether the diagnostics tell of the scenario's keys, too.
};

/// One row: a cell behind one variant, all its replications.
struct SweepRow {
  std::size_t cell = 0;  ///< Index into the grid's cells.
  std::string variant;
  std::uint64_t seed = 0;  ///< Seed of the first replication.
  /// 128 bits of SHA-256, in hex, over what decides the row's numbers: the resolved scenario, the
  /// contents of the files it names, seed, replications, metrics and the release. Where the files
  /// stand on the disk has no part in it.
  std::string key;
  double cost = 0;  ///< Requests per replication: what the longest-first order goes by.
};

struct SweepPlan {
  SweepConfig config;
  std::string path;                     ///< Path of the sweep file.
  std::string scenario_path;            ///< Path of the base scenario.
  SourceLocation axes_where;            ///< Place of the key `axes`, for errors of the grid.
  SourceLocation metrics_where;         ///< Place of the key `metrics`, or of the file.
  std::vector<Assignment> assignments;  ///< Made in every cell: `set` and `--set`.
  SweepGrid grid;
  std::vector<MetricName> metrics;  ///< The numbers of a row.
  std::vector<SweepRow> rows;       ///< In grid order; the variants of a cell stand together.
  std::string experiment;           ///< A hash of the name and of all rows' keys.
};

/// Reads the file, expands the grid and checks every cell. Errors of cells carry their coordinates,
/// an error that several cells share is given once. Two rows with the same key are an error too.
/// The plan may be used only when `diagnostics` has no errors.
SweepPlan load_sweep(const SweepRequest& request, Diagnostics& diagnostics);

/// The row's scenario, read and resolved again. Nothing, with errors, when a file has changed in
/// the meantime so that it cannot be read or that the key is another.
std::optional<sim::RunPlan> prepare_row(const SweepPlan& plan, const SweepRow& row,
                                        Diagnostics& diagnostics);

}  // namespace routesim::tools
