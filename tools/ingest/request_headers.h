// The HTTP headers that the load tool adds to every request (inference-perf's `api.headers`).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/ingest/scenario_yaml.h"

namespace routesim::tools {

/// Names and values, in the order of the file; entries that are no text are left out.
std::vector<std::pair<std::string, std::string>> request_headers(const LoadedVariant& variant);

/// Warns of headers that nothing before the servers reads. Servers do not look at them.
void warn_unread_headers(const LoadedVariant& variant, Diagnostics& diagnostics);

}  // namespace routesim::tools
