// The values that decide in an EndpointPickerConfig, defaults included, as text.
#pragma once

#include <string>

#include "policies/config/document.h"

namespace routesim::tools {

/// Era, profiles, profile handler, flow control and every plugin with its parameters, each value
/// with the place it came from or "default".
std::string router_text(const policies::EndpointPickerConfig& config);

}  // namespace routesim::tools
