// Scenario files: one base, and variants that override parts of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/config_node.h"
#include "base/tree_reader.h"
#include "policies/config/document.h"
#include "sim/plan/scenario.h"
#include "tools/ingest/tree/config_merge.h"

namespace routesim::tools {

/// A scenario file and the changes that the command line makes to it.
struct ScenarioRequest {
  std::string path;
  std::vector<std::string> sets = {};  ///< `--set` arguments, applied in order after the overrides.
  std::vector<std::string> variants = {};  ///< `--variant` arguments; empty = all.
  std::optional<std::uint64_t> seed = {};  ///< `--seed`.
  /// Made after `sets`: what another file (a sweep, a plan) asks of this one.
  std::vector<Assignment> assignments = {};
  /// The contents of a file that is not written yet.
  std::optional<std::string> text = {};
};

/// One variant with everything decided, and the documents it refers to already read
/// (`scenario.workload.load` holds it).
struct LoadedVariant {
  sim::Scenario scenario;
  ConfigNode::Ptr node;       ///< The merged tree it was read from.
  Provenance provenance;      ///< The place of each of its values.
  std::string scan_of = {};   ///< The variant that this one runs at another rate; else empty.
  std::string fleet_of = {};  ///< The same with another number of servers.
  std::optional<policies::EndpointPickerConfig> endpoint_picker;
};

struct LoadedScenario {
  std::string path;
  std::vector<LoadedVariant> variants;  ///< In the order of the file; at least one.
};

/// Reads, merges, assigns and validates. Returns whatever could be read; it may be run only when
/// `diagnostics` has no errors. All errors of all variants are reported, each once.
LoadedScenario load_scenario(const ScenarioRequest& request, Diagnostics& diagnostics);

/// The same diagnostics without repetitions, those of one file in the order of its lines.
Diagnostics tidy(const Diagnostics& diagnostics);

}  // namespace routesim::tools
