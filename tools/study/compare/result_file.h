// A result file of `run --output json`, read back.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/config_node.h"
#include "tools/results/result_set.h"

namespace routesim::tools {

struct ResultFile {
  std::string path;
  ResultSet set = {};
  std::string commit = {};   ///< Of the routesim that made it; empty = unknown.
  bool interrupted = false;  ///< The run was stopped: its numbers are partial.
  std::vector<ConfigNode::Ptr> resolved =
      {};  ///< Per variant: its scenario, where the file has it.

  /// The resolved scenario of one of the set's variants, or null.
  const ConfigNode* resolved_of(const VariantValues& variant) const;
};

/// Reads the file: the numbers of every seed when it has `replications`, else those of its one run.
/// Single runs know the standard metrics and `more`; a replicated file knows what it lists. See
/// read_record<RunRecord>() for its errors.
std::optional<ResultFile> read_result_file(const std::string& path,
                                           std::span<const MetricName> more,
                                           Diagnostics& diagnostics);

/// Whether two trees say the same, wherever they were read.
bool same_content(const ConfigNode& a, const ConfigNode& b);

}  // namespace routesim::tools
