// Rows of a sweep as values that are described once: the lines of its output are written and read
// by that description, and its document is built from them.
//
//   {"key":"…","index":3,"of":32,"sweep":"…","experiment":"…","cell":{"rate":10},
//    "variant":"…","seed":1,"replications":5,"version":"0.2.0",
//    "step_times":"fitted","summary":{"requests":…,
//    "metrics":{"ttft_ms.mean":{"mean":…,"half_width":…,"values":[…]},…}},
//    "stages":[{"name":"1","requested_rate":10,…}],"shard":"2/8","checksum":"…"}
//
// The head, up to the cell, depends on where the row stands in its grid; the tail, from the
// variant to the stages, only on the experiment that the key names. So a row computed for one grid
// can be given the head of a larger one. The seal ends the row: the shard that wrote it (absent in
// rows of a whole sweep) and a checksum of every byte before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/observe/run_result.h"
#include "sim/plan/resolve.h"
#include "tools/ingest/scenario/scenario_yaml.h"
#include "tools/render/document.h"
#include "tools/results/metric_name.h"
#include "tools/results/result_record.h"
#include "tools/study/sweep/sweep_grid.h"

namespace routesim::tools {

// A sweep file made ready to run: every row with its key, everything that is wrong found.

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

/// The numbers of one stage in one replication, one per metric of the sweep.
struct StageNumbers {
  std::string name;
  double requested_rate = 0;
  bool reported = true;
  std::int64_t requests = 0;
  double unanswered = 0;  ///< StageResult::unanswered().
  std::vector<std::optional<double>> values = {};
};

/// The numbers of one replication.
struct RunNumbers {
  StageNumbers summary;  ///< Over the reported stages.
  std::vector<StageNumbers> stages = {};
  models::Trust trust = models::Trust::kFitted;  ///< RunResult::trust().
};

RunNumbers numbers_of(const sim::RunResult& result, const std::vector<MetricName>& metrics);

struct SweepRowRecord {
  struct Metric {
    double mean = 0, half_width = 0;            ///< NaN where no run has a value, or only one.
    std::vector<std::optional<double>> values;  ///< By replication.
  };
  struct Numbers {
    bool overloaded = false;
    std::vector<std::int64_t> requests;  ///< By replication.
    Named<Metric> metrics;
  };
  struct Stage : Numbers {
    std::string name;
    double requested_rate = 0;  ///< 0 where it is not the same in all replications.
    bool reported = true;
  };

  std::string key;
  std::int64_t index = 0, of = 0;
  std::string sweep, experiment;
  std::vector<std::string> goals;
  Named<Document> cell;  ///< By axis; JSON of any kind.
  std::string variant;
  std::uint64_t seed = 0;
  std::int64_t replications = 1;
  std::string version, commit;
  std::string step_times;  ///< Empty in rows of early builds.
  Numbers summary;
  std::vector<Stage> stages;
  std::string shard, checksum;
};

/// Some rows of a sweep as one value: the data of a page.
struct SweepRecord {
  std::vector<SweepRowRecord> sweep_rows;
  std::vector<std::string> goals;  ///< In place of those of the rows; may be empty.
};

void describe(Describer& d, SweepRowRecord& r);
void describe(Describer& d, SweepRecord& r);

/// The row without its seal. `runs` are its replications in the order of their seeds, at least one.
SweepRowRecord row_record(const SweepPlan& plan, std::size_t row,
                          const std::vector<RunNumbers>& runs);

/// A row of the plan whose tail was stored.
SweepRowRecord stored_record(const SweepPlan& plan, std::size_t row, const std::string& tail);

/// The row's head, without its place in any file.
std::string row_head(const SweepPlan& plan, std::size_t row);
std::string row_tail(SweepRowRecord& record);

/// The answer of the sweep. `path` is where the record stands in the data block of a page.
StudyDocument sweep_document(const SweepRecord& record, const std::string& question,
                             const std::string& path = {});

}  // namespace routesim::tools
