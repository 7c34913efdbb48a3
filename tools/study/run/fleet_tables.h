// What happened to the servers of a run, in numbers and in time order.
#pragma once

#include "tools/render/document.h"
#include "tools/study/verdict/run_view.h"

namespace routesim::tools {

/// By pool and variant: servers over time, starts, ends, and requests that lost their server. No
/// rows where the fleet did not change.
Table fleet_table(const PageRun& run, bool on_page);

/// The events of every variant, in time order. Plain outputs get the first of each kind and subject
/// up to `most` rows; `most` 0 = all.
Table event_table(const PageRun& run, std::size_t most);

/// Servers that serve over time, a line per variant. No series where the fleet did not change.
LineChart fleet_chart(const PageRun& run);

}  // namespace routesim::tools
