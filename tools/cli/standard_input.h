// Scenarios from standard input: `routesim run -`.
#pragma once

#include <string>

#include "tools/cli/options.h"
#include "tools/ingest/scenario/scenario_yaml.h"

namespace routesim::tools {

/// The argument that stands for standard input.
inline constexpr std::string_view kStandardInput = "-";

/// The scenario that the argument `file` names, with the command's `--set` and `--variant`. Reads
/// standard input for `-`, whose places are `<stdin>` and whose paths are relative to the working
/// directory. What cannot be read is a usage error.
ScenarioRequest scenario_request(Options& options, const std::string& file);

}  // namespace routesim::tools
