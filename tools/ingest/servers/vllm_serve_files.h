// Finds server starts in command lines, scripts, and the containers of Kubernetes objects, Helm
// values and compose files, and turns them into the keys of a pool.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/config_node.h"
#include "sim/plan/scenario.h"
#include "tools/ingest/scalers/server_life.h"
#include "tools/ingest/servers/kv_tier_files.h"
#include "tools/ingest/tree/shell_words.h"

namespace routesim::tools {

/// The router that a file of servers puts before them.
struct RouterChoice {
  std::string product = {};                      ///< E.g. `KubeAI`; empty without a router.
  SourceLocation where = {};                     ///< The place that chooses its policy.
  std::vector<ConfigNode::Member> routing = {};  ///< Keys of the scenario's `routing`.
  std::string refused = {};                      ///< The policy, where it is not simulated.
};

/// How one model server is started.
struct ServerStart {
  SourceLocation where = {};
  std::string name = {};                 ///< The name of the object or list element.
  std::vector<std::string> others = {};  ///< More names of it: the container's, the role.
  std::string role = {};                 ///< `prefill` or `decode`; empty when nothing says so.
  /// Flags that what surrounds the command gives (a chart's `parallelism`, its model): weaker.
  std::vector<ConfigNode::Member> flags = {};
  std::vector<ShellWord> words = {};  ///< The words after `vllm serve`.
  ShellVariables environment = {};
  MountedFiles files = {};                   ///< ConfigMaps of its file.
  std::vector<ConfigNode::Ptr> labels = {};  ///< Labels of its pod, as `key=value`.
  ConfigNode::Ptr replicas = {};             ///< How many there are; null when nothing says so.
  ServerLife life = {};                      ///< Autoscalers, budgets, hooks and probes.
  /// Accelerators, by their names in the catalogue, of the nodes that its pods may run on: from
  /// node selectors and affinities, labels and resource profiles.
  std::vector<ConfigNode::Ptr> accelerators = {};
  ConfigNode::Ptr device = {};  ///< The resource its container asks for: `nvidia.com/gpu`.
  ShellWord image = {};         ///< The container's, with its tag; empty when nothing says so.
  RouterChoice router = {};
  sim::EngineKind engine = sim::EngineKind::kVllm;
  /// Why it is not read: `starts Triton, which is not simulated`; else empty. `flags` has its
  /// `model` and its `tp` then, and `words` are empty.
  std::string unread = {};
};

/// An engine that is simulated.
inline constexpr std::string_view kVllmEngine = "vLLM";

/// The engine whose program a text names, else the one that an image starts, if it is another than
/// vLLM: `vLLM`, another one, or none (empty).
std::string_view engine_in(const std::string& text, const std::string& image = {});

/// The engine of this name that is simulated; nothing for the others.
std::optional<sim::EngineKind> simulated_engine(std::string_view name);

/// vLLM's own image of a release that the preset stands for, for GPUs of NVIDIA or of AMD.
std::string image_of(sim::EnginePreset preset, bool is_amd);

/// `starts ENGINE, which is not simulated`.
std::string not_simulated(std::string_view engine);

/// A start that is not read, with the model and the tensor parallelism that the flags in `text`
/// say.
ServerStart unread_start(const std::string& unread, std::string text, const SourceLocation& where);

/// A hint for such a start: the keys of a pool that are known.
std::string pool_by_hand(const ServerStart& start);

/// The start in a command line or a script, where `known` variables have values. Nothing, with an
/// error, when there is none, or more than one. A text of flags alone, one per line or with
/// backslashes, is one too.
std::optional<ServerStart> start_in_text(const std::string& text, const ShellPlaces& places,
                                         const SourceLocation& where, const ShellVariables& known,
                                         const std::string& key_path, Diagnostics& diagnostics);

/// The same for the text of a scalar (see shell_text).
std::optional<ServerStart> start_in_scalar(const ConfigNode& scalar, const ShellVariables& known,
                                           const std::string& key_path, Diagnostics& diagnostics);

/// The same for a list of words, such as a container's `args`.
std::optional<ServerStart> start_in_list(const ConfigNode& list, const ShellVariables& known,
                                         const std::string& key_path, Diagnostics& diagnostics);

/// Every start in a file of Kubernetes objects, Helm values (llm-d modelservice, vLLM production
/// stack), KServe's and Dynamo's services, scenarios of llm-d-benchmark, KubeAI models or compose
/// services, in the order of the file. Sidecars and init containers are skipped. Starts that are
/// not read come back where there are no others; else each is a warning. Autoscalers and disruption
/// budgets of the file go to the servers that they are about; the others are warnings.
std::vector<ServerStart> starts_in_tree(const ConfigNode::Ptr& root, const std::string& key_path,
                                        Diagnostics& diagnostics);

/// The pool with the keys that `start` decides and the pool does not. `written_at` is where the
/// scenario names the start, `key_path` goes before every message about it.
ConfigNode::Ptr fill_pool(const ConfigNode::Ptr& pool, const ServerStart& start,
                          const SourceLocation& written_at, const std::string& key_path,
                          Diagnostics& diagnostics);

}  // namespace routesim::tools
