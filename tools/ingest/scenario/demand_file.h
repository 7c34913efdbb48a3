// Reads rates over a day or a week from a CSV file, as spreadsheets and monitoring export them.
#pragma once

#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "workloads/demand/demand.h"

namespace routesim::tools {

/// The rows of a CSV file with the columns `time` and `rate`; `where` and `key` name the file.
/// A time is a number of seconds, hh:mm (or hh:mm:ss), or a date with a time, which counts from
/// midnight (UTC) of the first row's day. All rows write it in one way. Nothing after an error.
std::vector<workloads::DemandPoint> read_demand_csv(const std::string& path,
                                                    const SourceLocation& where,
                                                    const std::string& key,
                                                    Diagnostics& diagnostics);

}  // namespace routesim::tools
