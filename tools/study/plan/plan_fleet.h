// The fleet that a plan chose, as files to run and to deploy.
#pragma once

#include <string>
#include <vector>

#include "tools/results/output_file.h"
#include "tools/study/plan/plan_search.h"

namespace routesim::tools {

/// The files that fleet_files() may write.
inline constexpr std::array<std::string_view, 3> kFleetFiles = {"scenario.yaml", "servers.yaml",
                                                                "router.yaml"};

/// `scenario.yaml`, which `run` takes: the fleet under the load that judged it. It reads
/// `servers.yaml`, a Deployment of each pool, and `router.yaml` where the router has a document.
/// Paths of other files are written as `folder` sees them. What a manifest cannot say of a pool
/// stands in the scenario, and in a comment of the manifest.
std::vector<FolderFile> fleet_files(const PlanSpace& space, const FoundPlan& plan,
                                    const std::string& folder, Diagnostics& diagnostics);

}  // namespace routesim::tools
