// The files of a user, told apart by their contents.
#pragma once

#include <string>
#include <vector>

#include "base/config_node.h"
#include "tools/ingest/servers/vllm_serve_files.h"

namespace routesim::tools {

/// The key of `workload` that reads a load, or a result to rebuild it from.
enum class LoadKind { kNone, kInferencePerf, kVllmBench, kGuidellm, kTrace, kBenchResult };

/// One file or kustomize folder, and each part that it can play in a scenario.
struct UserFile {
  std::string path;
  ConfigNode::Ptr root = {};              ///< Null for other than YAML and JSON.
  std::vector<ServerStart> servers = {};  ///< `vllm_serve` reads them.
  bool has_picker = false;                ///< `routing.endpoint_picker` reads it.
  bool is_chart_default = false;          ///< It leaves the EndpointPickerConfig to its chart.
  std::string balancer = {};              ///< `routing.config` makes it of the file; may be empty.
  LoadKind load = LoadKind::kNone;
  bool has_life = false;  ///< Autoscalers or budgets, which `vllm_serve` does not read from here.
  std::vector<std::string> parts = {};  ///< Files that a kustomize folder is built from.
  std::string why_unused = "neither servers, a router nor a load";

  bool is_used() const {
    return !servers.empty() || has_picker || !balancer.empty() || load != LoadKind::kNone ||
           has_life;
  }
};

/// Reads `paths`: files, kustomize folders, and other folders, whose files are taken one by one. A
/// path that cannot be read, and a file that was named and is nothing of the above, are errors.
/// All else in a folder, folders included, comes back without a part.
std::vector<UserFile> read_user_files(const std::vector<std::string>& paths,
                                      Diagnostics& diagnostics);

}  // namespace routesim::tools
