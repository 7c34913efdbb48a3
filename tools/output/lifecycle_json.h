// A stage in the words of inference-perf's lifecycle reports, as its own files and ours have them.
#pragma once

#include "sim/run_result.h"
#include "tools/output/json_writer.h"

namespace routesim::tools {

/// Writes the members `benchmark_time_seconds`, `load_summary`, `successes` and `failures` into the
/// open object. A summary's load has only its count and schedule delay, as the tool's has.
void write_lifecycle(JsonWriter& json, const sim::StageResult& stage, bool is_summary);

}  // namespace routesim::tools
