// A stage in the words of inference-perf's lifecycle reports, as its own files and ours have them.
#pragma once

#include <vector>

#include "sim/observe/run_result.h"
#include "sim/plan/scenario.h"
#include "tools/results/goodput.h"
#include "tools/results/json_writer.h"

namespace routesim::tools {

/// What the tool's settings decide about a report.
struct LifecycleForm {
  bool is_summary = false;  ///< Its load has only its count and schedule delay, as the tool's has.
  std::vector<double> percentiles{};
  bool rate_is_count = false;  ///< Stages of `concurrent` load: the tool sets rate = num_requests.
  const GoodputGoals* goals = nullptr;  ///< And the stage's count, when there are any.
  const ToolGoodput* goodput = nullptr;
};

/// The percentiles that `report.request_lifecycle` of the load lists, each once; of other loads,
/// the tool's default.
std::vector<double> lifecycle_percentiles(const sim::Scenario& scenario);

/// Whether the load is inference-perf's `concurrent`.
bool rate_is_count(const sim::Scenario& scenario);

/// Writes the members `benchmark_time_seconds`, `load_summary`, `successes` and `failures` into the
/// open object.
void write_lifecycle(JsonWriter& json, const sim::StageResult& stage, const LifecycleForm& form);

}  // namespace routesim::tools
