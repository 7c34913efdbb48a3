// Which plugins ask for what no simulation has, and what they do without it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "policies/config/document.h"

namespace routesim::sim {

/// "LoRA adapters are not simulated, so every endpoint scores 0", or "" for a type that gets all
/// its inputs.
std::string unsupplied_input(std::string_view plugin_type);

/// The facts known about the run that a document is for.
struct SuppliedInputs {
  std::span<const std::string> headers;  ///< Names of those that the load adds to its requests.
  bool predictions = false;              ///< A latency predictor stands beside the router.
  bool tiers = false;                    ///< Some server keeps KV outside GPU memory.
  bool streams = true;                   ///< Clients get each token when it comes.
};

/// A warning for every plugin of the document that runs without an input. `path` is that of the
/// document.
void warn_unsupplied_inputs(const policies::EndpointPickerConfig& config, const std::string& path,
                            Diagnostics& diagnostics, const SuppliedInputs& supplied = {});

/// Names of the request headers that the document's router reads, sessions' and flows' included.
std::vector<std::string> headers_read(const policies::EndpointPickerConfig& config);

}  // namespace routesim::sim
