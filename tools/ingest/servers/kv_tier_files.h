// Reads KV tiers from the files that start servers: `--kv-transfer-config` and its relatives,
// LMCache's settings and Mooncake's file become the keys of `engine.kv_tiers`.
#pragma once

#include <map>
#include <string>

#include "base/config_node.h"
#include "base/key_fate.h"
#include "base/tree_reader.h"
#include "sim/plan/scenario.h"
#include "tools/ingest/servers/vllm_serve_flags.h"
#include "tools/ingest/tree/shell_words.h"

namespace routesim::tools {

/// Files that a server sees, by name: the entries of the ConfigMaps beside it.
using MountedFiles = std::map<std::string, ConfigNode::Ptr>;

/// The places in a server's start that tell of KV outside GPU memory.
struct TierSources {
  const ServeFlag* transfer = nullptr;  ///< --kv-transfer-config
  const ServeFlag* size = nullptr;      ///< --kv-offloading-size
  const ServeFlag* backend = nullptr;   ///< --kv-offloading-backend
  const ShellVariables& environment;
  const MountedFiles& files;
  /// `--kv-offloading-backend lmcache` starts LMCache's server (vLLM from v0.23 on), else LMCache
  /// in the worker of each GPU.
  bool lmcache_is_server = false;
};

/// The map of `engine.kv_tiers` that the sources describe; null when they have no tiers. Connectors
/// and values that are unknown are errors; settings that no key stands for are warnings.
ConfigNode::Ptr tiers_of(const TierSources& sources, const std::string& key_path,
                         Diagnostics& diagnostics);

/// The pool with `engine.kv_tiers.lmcache_config` replaced by the keys it stands for, unless the
/// pool has them itself.
ConfigNode::Ptr without_lmcache_config(const ConfigNode::Ptr& pool, const std::string& path,
                                       Diagnostics& diagnostics);

/// Warns of every key of a pool's tiers that the engine does not follow.
void warn_of_left_out_tiers(sim::Scenario& scenario, const Provenance& provenance,
                            Diagnostics& diagnostics);

}  // namespace routesim::tools
