// What the flags of `vllm serve` say, as the keys of a pool.
#pragma once

#include <string>

#include "base/config_node.h"
#include "tools/ingest/vllm_serve_files.h"
#include "tools/ingest/vllm_serve_flags.h"

namespace routesim::tools {

/// The pool with the keys that `start` decides and the pool does not. `written_at` is where the
/// scenario names the start, `key_path` goes before every message about it.
ConfigNode::Ptr fill_pool(const ConfigNode::Ptr& pool, const ServerStart& start,
                          const SourceLocation& written_at, const std::string& key_path,
                          Diagnostics& diagnostics);

}  // namespace routesim::tools
