// The findings of `routesim check` in one file of any kind.
#pragma once

#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "tools/ingest/scenario/file_kind.h"
#include "tools/ingest/scenario/scenario_yaml.h"

namespace routesim::tools {

struct CheckedFile {
  std::string path;
  FileKind kind = FileKind::kScenario;
  bool is_deployment = false;              ///< Of another product: servers, routers, commands.
  std::string contents = {};               ///< In words: the variants, the cells, the fleets.
  std::vector<std::string> variants = {};  ///< Names of a scenario's variants.
  std::vector<std::string> notes = {};     ///< Assumptions made where the file says nothing.
  Diagnostics diagnostics = {};            ///< Tidied; with the fate of every key.
};

/// Reads and resolves everything and runs nothing. `request.sets` apply to scenarios, sweeps and
/// plans, `request.variants` to scenarios.
CheckedFile check_file(const ScenarioRequest& request);

/// Which router release was taken for each document that does not tell, and why; one sentence per
/// variant that routes by such a document.
std::vector<std::string> assumed_releases(const LoadedScenario& scenario);

}  // namespace routesim::tools
