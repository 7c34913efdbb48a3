// The flags of `vllm bench serve` as people keep them in files: its own `--config` YAML and the
// profiles of llm-d-benchmark, or a command line.
#pragma once

#include <string>
#include <string_view>

#include "base/config_node.h"

namespace routesim::tools {

/// Name of the format in the ledger of keys.
inline constexpr std::string_view kBenchFormat = "vllm bench serve";

/// A map of flags in the form `describe` knows: dashes as underscores, the flags of one data set
/// (`random-input-len`) below its name, and flags about the client's own business (addresses,
/// result files, which percentiles it prints) left out. Anything but a map is returned as it is. A
/// flag in both spellings is an error, unless the later one is from the command line: it wins.
ConfigNode::Ptr vllm_bench_flags(const ConfigNode::Ptr& flags, Diagnostics& diagnostics);

/// The `goodput` of the flags as the scenario's list: `ttft:500` is 500 ms there. Null without one.
ConfigNode::Ptr vllm_bench_goodput(const ConfigNode& flags);

/// Whether a flag, in either spelling, has no part in what is sent, or when.
bool is_own_business_of_vllm_bench(std::string_view flag);

/// Whether the text is a command line, not a path.
bool is_vllm_bench_command(const ConfigNode& scalar);

/// The map of flags, as written, of the one `vllm bench serve` in a text (flags alone will do), or
/// in the shell script whose path it is; null when it is the path of another file.
ConfigNode::Ptr vllm_bench_command(const ConfigNode& scalar, const std::string& key_path,
                                   Diagnostics& diagnostics);

}  // namespace routesim::tools
