// The values that decide in an EndpointPickerConfig, defaults included, as text.
#pragma once

#include "policies/config/document.h"
#include "sim/plan/resolve.h"
#include <string>

namespace routesim::tools {

// What a step of a pool's servers takes, and where the time goes, as text.

/// The basis of the step times, and three steps: 1 and 64 sequences that decode, and a prompt. For
/// sums of measured kernels each operation with its share, its kernel and how well it is known.
std::string step_text(const sim::ResolvedPool& pool);

/// Era, profiles, profile handler, flow control and every plugin with its parameters, each value
/// with the place it came from or "default".
std::string router_text(const policies::EndpointPickerConfig& config);

}  // namespace routesim::tools
