// vLLM's --speculative-config and the flags that say parts of it.
#pragma once

#include <string>

#include "base/config_node.h"
#include "base/diagnostic.h"
#include "tools/ingest/servers/vllm_serve_flags.h"

namespace routesim::tools {

/// The flags of a command that tell how tokens are guessed; null where they are not given.
struct SpeculationSources {
  const ServeFlag* config = nullptr;  ///< --speculative-config, dotted flags included.
  const ServeFlag* method = nullptr;  ///< --spec-method and so on: each beats its key there.
  const ServeFlag* model = nullptr;
  const ServeFlag* tokens = nullptr;
};

/// The map of `engine.speculative` that the flags describe; null where nothing is guessed. How many
/// guesses are accepted no flag says. Methods that are not simulated are errors.
ConfigNode::Ptr speculation_of(const SpeculationSources& sources, const std::string& key_path,
                               Diagnostics& diagnostics);

}  // namespace routesim::tools
