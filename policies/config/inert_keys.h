// The parameters of plugins without a part in decisions: checked and listed, not used.
#pragma once

#include "base/key_fate.h"
#include "policies/config/document.h"

namespace routesim::policies {

/// Patterns are `TYPE.parameter`, for every inert plugin type.
const KeyTable& inert_keys();

/// Notes the parameters of an inert plugin, and reports those that its type does not have.
void check_inert_parameters(const PluginSpec& spec, Severity unknown_key, Diagnostics& diagnostics);

}  // namespace routesim::policies
