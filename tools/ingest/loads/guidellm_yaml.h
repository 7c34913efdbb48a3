// GuideLLM's scenario files and the profiles of llm-d-benchmark that are such files.
#pragma once

#include <string_view>

#include "base/config_node.h"

namespace routesim::tools {

/// Name of the format in the ledger of keys.
inline constexpr std::string_view kGuidellmFormat = "guidellm";

/// A scenario file, with `spec` and `benchmarks` (0.7) or flat (earlier), in the form `describe`
/// knows. What is in that form already, or no map, is returned as it is.
ConfigNode::Ptr guidellm_settings(const ConfigNode::Ptr& scenario, Diagnostics& diagnostics);

}  // namespace routesim::tools
