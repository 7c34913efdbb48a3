// Servers that stand in the file of a router.
#pragma once

#include "base/config_node.h"
#include "base/diagnostic.h"

namespace routesim::tools {

/// The scenario whose pools have the life that `routing.config` or `routing.endpoint_picker` says
/// of their servers: autoscaler, disruption budget, probes and ends. A pool stands for the servers
/// of its name; the only pool stands for the only servers. A pool's own keys win, and a pool with
/// `vllm_serve` has all from there. Servers that no pool stands for are a warning.
ConfigNode::Ptr with_router_file(const ConfigNode::Ptr& scenario, Diagnostics& diagnostics);

}  // namespace routesim::tools
