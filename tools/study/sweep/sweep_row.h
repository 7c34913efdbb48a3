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

/// Name, question and a table with one line per row (and per reported stage, where a row has
/// several): the axes, the variant, and the mean of each of the first metrics with the half width
/// of its 95 % interval. `rows` are lines as they are stored.
std::string sweep_text(const SweepPlan& plan, const std::vector<std::string>& rows);

}  // namespace routesim::tools
