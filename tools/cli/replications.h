// `--replications`, `--until` and `--jobs`: the seeds after the first.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/plan/resolve.h"
#include "tools/cli/options.h"
#include "tools/cli/progress.h"
#include "tools/render/goodput.h"
#include "tools/study/compare/result_set.h"
#include "tools/study/compare/until.h"

namespace routesim::tools {

/// What the command line asks for.
struct ReplicationRequest {
  std::size_t replications = 1;    ///< With a rule: the most it may use.
  std::size_t jobs = 1;            ///< Threads; no effect on results.
  std::optional<UntilRule> until;  ///< `--until`.
  bool wanted() const { return replications > 1 || until.has_value(); }
};

/// On error sets `error` and returns false.
bool parse_replications(const OptionValues& options, ReplicationRequest& request,
                        std::string& error);

/// What runs, and how it is watched.
struct ReplicationJob {
  std::vector<const sim::RunPlan*> plans;
  std::vector<const sim::RunResult*> first;  ///< Of replication 0, one per plan.
  std::vector<MetricName> metrics;           ///< Besides the standard ones.
  std::vector<GoodputGoals> goals;           ///< One per plan.
  bool check = false;
  ProgressMode progress = ProgressMode::kAuto;
};

/// Runs the other replications and returns the numbers of all. An interrupted experiment has the
/// replications that every variant finished.
ResultSet run_replications(const ReplicationJob& job, const ReplicationRequest& request,
                           sim::Progress& progress, Console& console, Diagnostics& diagnostics);

}  // namespace routesim::tools
