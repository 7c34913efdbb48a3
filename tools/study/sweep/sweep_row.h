// A row of a sweep's output: one line of JSON.
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
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/observe/run_result.h"
#include "tools/study/sweep/sweep_plan.h"

namespace routesim::tools {

/// The numbers of one stage in one replication, one per metric of the sweep.
struct StageNumbers {
  std::string name;
  double requested_rate = 0;
  bool reported = true;
  std::int64_t requests = 0;
  double unanswered = 0;  ///< StageResult::unanswered().
  std::vector<std::optional<double>> values;
};

/// The numbers of one replication.
struct RunNumbers {
  StageNumbers summary;  ///< Over the reported stages.
  std::vector<StageNumbers> stages;
  models::Trust trust = models::Trust::kFitted;  ///< RunResult::trust().
};

RunNumbers numbers_of(const sim::RunResult& result, const std::vector<MetricName>& metrics);

/// The row's head, without its place in any file.
std::string row_head(const SweepPlan& plan, std::size_t row);

/// The row's tail. `runs` are its replications in the order of their seeds, at least one.
std::string row_tail(const SweepPlan& plan, const SweepRow& row,
                     const std::vector<RunNumbers>& runs);

/// The line of a row: head, tail and seal, with a line break. `shard` is `I/N`, or empty.
std::string sealed_row(std::string_view head, std::string_view tail, std::string_view shard);

/// A stored row, taken apart without being interpreted. The views point into the line.
struct StoredRow {
  std::string key;
  std::string_view head;
  std::string_view tail;
  std::string_view shard;  ///< Empty in rows of a whole sweep.
  bool is_intact = false;  ///< Whether the checksum fits the line.
};

/// Nothing when `line` (without its line break) is not a row of a sweep. A line with a checksum
/// that does not fit is a row that is not intact, whatever else it holds.
std::optional<StoredRow> parse_row(std::string_view line);

/// The error about a row that is not intact.
inline constexpr char kDamagedRow[] = "this row is damaged: its checksum does not fit";

/// The column of a member's value in its line, in bytes from 1: the end of the object when it has
/// none, or the place where the line stops being JSON when that comes first.
int column_of(std::string_view line, std::string_view member);
/// The column where a line that is not a row stops being one.
int damage_column(std::string_view line);

/// A row's place in its grid.
struct RowPlace {
  std::size_t index = 0;
  std::size_t of = 0;
  std::string experiment;  ///< Which sweep of which grid; empty in rows of early builds.
};

/// Nothing when the head does not say it.
std::optional<RowPlace> place_of(std::string_view head);

/// Refuses damaged rows of a sweep, and warns when some of its rows are not in the file. A text
/// that holds no rows passes.
void check_rows(const std::string& file, std::string_view text, Diagnostics& diagnostics);

/// Name, question and a table with one line per row (and per reported stage, where a row has
/// several): the axes, the variant, and the mean of each of the first metrics with the half width
/// of its 95 % interval. `rows` are lines as they are stored.
std::string sweep_text(const SweepPlan& plan, const std::vector<std::string>& rows);

}  // namespace routesim::tools
