// In what the resolved scenarios of two results differ, and the versions that made them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/study/compare/comparison.h"

namespace routesim::tools {

/// One key with its values on both sides; nothing where a side does not have it.
struct Change {
  /// As `--set` takes it, `cluster.pools[0].replicas`, inside documents too; or `version` or
  /// `commit` of the routesim that made the result.
  std::string path;
  std::optional<std::string> base = {}, changed = {};
  /// Names in the base of the pairs that differ in it so; none where it is about the whole result.
  std::vector<std::string> variants = {};
};

/// Versions, then keys by pair in the order of the base, then those that only the new result has;
/// equal changes of several pairs are one. What a file does not say differs in nothing: see
/// untold_of(). A document is compared inside, whether it stands in the scenario or in a file.
std::vector<Change> changes_of(const Comparison& c);

/// What cannot be told to have changed, a sentence each: a result that does not hold its resolved
/// scenario, or not the contents of a file that it names.
std::vector<std::string> untold_of(const Comparison& c);

/// `3 became 0.1`.
std::string change_text(const Change& change);

}  // namespace routesim::tools
