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

/// The stretches in which goals are missed, in time order: of each variant the `most` with most
/// misses, 0 = all. No rows where nothing changes, or goals are met.
Table missed_table(const PageRun& run, std::size_t most);

/// Load, servers that serve and requests within the goals over one axis of time with the events, a
/// line per variant. Empty where neither the fleet nor the load changes.
Charts time_charts(const PageRun& run);

}  // namespace routesim::tools
