// Plugins of a document need each other without a reference that says so. This file tells which
// need is not met, and how they do without. The router starts all the same, so it only warns.
#pragma once

#include "base/diagnostic.h"
#include "policies/endpoint_picker_config.h"

namespace routesim::policies {

/// Warns of a precise index that nothing feeds, of a prefill endpoint that is picked and never
/// named to the side-car, and of prompts that nothing reads. The document must be complete.
void check_wiring(const EndpointPickerConfig& config, Diagnostics& diagnostics);

}  // namespace routesim::policies
