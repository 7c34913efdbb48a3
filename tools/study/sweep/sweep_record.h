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

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/observe/run_result.h"
#include "tools/render/document.h"
#include "tools/results/result_record.h"
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

/// Reads the rows of `routesim sweep`, strictly.
SweepRecord read_sweep_record(const ConfigNode& root, Diagnostics& diagnostics);

/// The answer of the sweep. `path` is where the record stands in the data block of a page.
StudyDocument sweep_document(const SweepRecord& record, const std::string& question,
                             const std::string& path = {});

}  // namespace routesim::tools
