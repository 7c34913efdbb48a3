// The configuration of another product's router, as it is published: a start command, or an Envoy
// or Kubernetes file. It becomes keys of a scenario's `routing`.
#pragma once

#include "base/config_node.h"
#include "base/diagnostic.h"

namespace routesim::tools {

/// The scenario with `routing.config` replaced by what it says; a file with nothing but an
/// EndpointPickerConfig is `routing.endpoint_picker`. Keys that stand beside it win. A
/// product or policy that is not simulated is an error; flags and keys without effect on results
/// are named in one warning.
ConfigNode::Ptr with_router_config(const ConfigNode::Ptr& root, Diagnostics& diagnostics);

}  // namespace routesim::tools
