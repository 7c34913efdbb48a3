// Measured numbers in whatever file they come in: a tidy CSV, or what a load tool wrote.
#pragma once

#include <string>

#include "base/diagnostic.h"
#include "tools/ingest/measured_csv.h"

namespace routesim::tools {

/// The keys of inference-perf's report of a stage, and of a result file of `vllm bench serve`.
const KeyTable& lifecycle_result_keys();
const KeyTable& bench_result_keys();

/// Reads `path` by what it is:
/// - a folder: its `stage_<i>_lifecycle_metrics.json` files, inference-perf's, as stages `<i>`;
/// - `.json`: such a file, or the result file of `vllm bench serve` as stage `main`;
/// - anything else: a tidy CSV.
/// Rows of load tools get no experiment, and `policy` as theirs; an empty one is an error then. Of
/// their statistics the mean, p50, p90 and p99 are kept. A missing or malformed file is an error,
/// at `where` and `key` or in the file; the table is empty then.
MeasuredTable read_measured(const std::string& path, const std::string& policy,
                            const SourceLocation& where, const std::string& key,
                            Diagnostics& diagnostics);

}  // namespace routesim::tools
