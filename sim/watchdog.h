// The report of a run that can go no further.
#pragma once

#include <string>

#include "sim/live_requests.h"
#include "sim/router/router.h"
#include "sim/servers.h"

namespace routesim::sim {

/// Says which requests wait for what, the oldest first, and how long each queue is.
std::string describe_stuck(SimTime now, const LiveRequests& live, const Servers& servers,
                           const Router& router, bool load_finished);

}  // namespace routesim::sim
