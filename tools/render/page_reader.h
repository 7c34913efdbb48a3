// One result's JSON as a page sees it. A missing or mistyped member is a missing number, not an
// error: results of other versions are shown as far as they go.
#pragma once

#include <string>

#include "tools/render/page_data.h"

namespace routesim::tools {

/// The JSON of `routesim run`, which stands at `path` in the data block.
PageRun read_run(const std::string& json_text, const std::string& path);

/// The JSON of `routesim plan`.
PagePlan read_plan(const std::string& json_text, const std::string& path);

/// `{"sweep_rows": [...]}`: the lines of `routesim sweep`.
PageSweep read_sweep(const std::string& json_text, const std::string& path);

}  // namespace routesim::tools
