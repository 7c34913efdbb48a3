// The ledger of the files around a router's document and a server's command: Helm values,
// Kubernetes objects and the like. Most of what they say is about running pods.
#pragma once

#include "base/key_fate.h"

namespace routesim::tools {

/// Keys of Helm values and Kubernetes objects around an EndpointPickerConfig.
const KeyTable& router_values_keys();

/// Keys around the containers that start vLLM. The flags inside are another format.
const KeyTable& server_file_keys();

}  // namespace routesim::tools
