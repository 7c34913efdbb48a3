// Published measurements as tidy CSV: one number per row, with its experiment, policy, stage and
// source.
#pragma once

#include <optional>
#include <string>

#include "base/diagnostic.h"
#include "tools/results/measured.h"

namespace routesim::tools {

/// Parses CSV (RFC 4180) with exactly the header
/// `experiment,policy,stage,rate,metric,statistic,unit,value,source`. Every malformed row, repeated
/// row and value that is not a finite number is an error at its line; null after any error.
std::optional<MeasuredTable> parse_measured_csv(const std::string& text, const std::string& file,
                                                Diagnostics& diagnostics);

/// The rows of one policy, and of one experiment unless `experiment` is empty.
MeasuredTable select_rows(const MeasuredTable& table, const std::string& experiment,
                          const std::string& policy);

}  // namespace routesim::tools
