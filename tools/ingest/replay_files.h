// The files of recorded sessions that a load replays.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "tools/ingest/scenario_yaml.h"
#include "workloads/sessions/replay_corpus.h"

namespace routesim::tools {

/// A file, and the key that asks for it.
struct ReplayFile {
  std::string path;
  std::string key;
};

/// Whether a path as written asks for several files: it holds `*` or `?`.
bool is_pattern(const std::string& path);

/// The regular files a path names: itself, or those that a pattern matches in the order of their
/// names. Empty when there are none.
std::vector<std::string> matching_files(const std::string& path);

/// The files the variant's load replays, in the order they are read; none when it replays none. A
/// folder without *.json, and a path without a file, are errors at their keys.
std::vector<ReplayFile> replay_files(const LoadedVariant& variant, Diagnostics& diagnostics);

/// Reads them all. Null when the load replays no files, or after an error.
std::shared_ptr<const workloads::ReplayCorpus> read_replay_sessions(const LoadedVariant& variant,
                                                                    Diagnostics& diagnostics);

}  // namespace routesim::tools
