// Autoscalers of Kubernetes files: HorizontalPodAutoscaler (autoscaling/v2 and v1), KEDA's
// ScaledObject, and what their metrics are: PrometheusRules, and the rules of prometheus-adapter.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_node.h"
#include "base/diagnostic.h"
#include "sim/scaling/autoscaler_config.h"

namespace routesim::tools {

/// Name of the format in the ledger of keys.
inline constexpr std::string_view kAutoscalerFormat = "autoscaler manifest";

/// Whether Go's ParseBool takes an annotation for false; KEDA takes all else for true.
bool is_false_in_go(std::string_view text);

/// One object that scales a workload.
struct ScalerObject {
  SourceLocation where = {};
  std::string kind = {};            ///< `HorizontalPodAutoscaler` or `ScaledObject`.
  std::string name = {};            ///< Its own.
  std::string target = {};          ///< The name of the Deployment or other object it scales.
  ConfigNode::Ptr autoscaler = {};  ///< The value of a pool's key `autoscaler`.
};

/// All of them in a file, which may be a list of objects, in its order. Recording rules of the file
/// belong to each of them. What cannot be read is an error at its place, and keys that count for
/// nothing here are named. `adapter` are the values of prometheus-adapter's chart, whose rules are
/// also found in a ConfigMap of the file; null where there are none.
std::vector<ScalerObject> scalers_in_tree(const ConfigNode::Ptr& root, const std::string& key_path,
                                          Diagnostics& diagnostics,
                                          const ConfigNode::Ptr& adapter = nullptr);

/// Reads the value of a pool's key `autoscaler`. Nothing after an error.
std::optional<sim::AutoscalerConfig> read_autoscaler(const ConfigNode& node,
                                                     const std::string& key_path,
                                                     Diagnostics& diagnostics);

}  // namespace routesim::tools
