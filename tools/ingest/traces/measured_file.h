// Measured numbers in whatever file they come in: a tidy CSV, or what a load tool wrote.
#pragma once

#include <optional>
#include <string>

#include "base/diagnostic.h"
#include "tools/results/metrics.h"

namespace routesim::tools {

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

/// Parses CSV (RFC 4180) with exactly the header
/// `experiment,policy,stage,rate,metric,statistic,unit,value,source`. Every malformed row, repeated
/// row and value that is not a finite number is an error at its line; null after any error.
std::optional<MeasuredTable> parse_measured_csv(const std::string& text, const std::string& file,
                                                Diagnostics& diagnostics);

/// The rows of one policy, and of one experiment unless `experiment` is empty.
MeasuredTable select_rows(const MeasuredTable& table, const std::string& experiment,
                          const std::string& policy);

}  // namespace routesim::tools
