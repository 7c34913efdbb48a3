// Envoy's own files: clusters and routes of a bootstrap or of an xDS dump, and Envoy Gateway's
// BackendTrafficPolicy.
#pragma once

#include "base/config_node.h"
#include "base/diagnostic.h"

namespace routesim::tools {

/// Keys of `routing` for the first cluster that chooses a load balancer, with the first hash_policy
/// of the routes and the weights of the cluster's endpoints. Null where the tree is none of
/// Envoy's, or after an error.
ConfigNode::Ptr envoy_routing(const ConfigNode& root, Diagnostics& diagnostics);

}  // namespace routesim::tools
