// The flags of `vllm bench serve` as people keep them in files: its own `--config` YAML and the
// profiles of llm-d-benchmark.
#pragma once

#include "tools/input/config_node.h"

namespace routesim::tools {

/// A map of flags in the form `describe` knows: dashes as underscores, the flags of one data set
/// (`random-input-len`) below its name, and flags about the client's own business (addresses,
/// result files, which percentiles it prints) left out. Anything but a map is returned as it is. A
/// flag in both spellings is an error, unless the later one is from the command line: it wins.
ConfigNode::Ptr vllm_bench_flags(const ConfigNode::Ptr& flags, Diagnostics& diagnostics);

}  // namespace routesim::tools
