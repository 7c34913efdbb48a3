// A pool's `vllm_serve`: how its servers are started, turned into the pool's own keys.
#pragma once

#include <string_view>

#include "base/config_node.h"

namespace routesim::tools {

/// The scenario with each pool's `vllm_serve` replaced by the keys it stands for, unless the pool
/// has them itself; each keeps the place of its flag. `vllm_serve` is a command line, a list of
/// words, a map of flags, or the path of a script, of vLLM's `--config` file, of a kustomize folder
/// or of a file with the containers of one server or several, of which the pool's name or role
/// chooses. Keys in vLLM's spelling (`tensor_parallel_size`) get their name here. Flags that are
/// unknown, that lack a value, or without which the answer would be another one are errors. Where
/// the file puts a router of its own before the servers (KubeAI, the vLLM production stack) and
/// `routing` names none, that one is used; a policy that is not simulated is an error.
ConfigNode::Ptr without_vllm_serve(const ConfigNode::Ptr& scenario, Diagnostics& diagnostics);

/// vLLM's spelling of a pool's key; empty where it is the same, or vLLM has none.
std::string_view vllm_spelling(std::string_view key);

}  // namespace routesim::tools
