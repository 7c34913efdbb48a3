// In what the resolved scenarios of two results differ.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/study/compare/comparison.h"

namespace routesim::tools {

/// One key with its values on both sides; nothing where a side does not have it.
struct Change {
  std::string path;  ///< As `--set` takes it: `cluster.pools[0].replicas`.
  std::optional<std::string> base = {}, changed = {};
  std::vector<std::string> variants = {};  ///< Names in the base of the pairs that differ in it so.
};

/// By pair in the order of the base's keys, then those that only the new result has; equal changes
/// of several pairs are one. Files that do not say what they resolved differ in nothing.
std::vector<Change> changes_of(const Comparison& c);

}  // namespace routesim::tools
