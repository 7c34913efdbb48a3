// A candidate is one thing that a study may run: a scenario, one of its variants, what is changed
// in it, and a seed. A ScenarioRequest says all four; this makes its plan and its key.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "policies/index/sha256.h"
#include "sim/plan/resolve.h"
#include "tools/ingest/scenario/scenario_yaml.h"

namespace routesim::tools {

/// The first variant of the candidate, ready to run. Nothing with errors.
std::optional<sim::RunPlan> prepare_candidate(const ScenarioRequest& candidate,
                                              Diagnostics& diagnostics);

/// load_scenario(); after an error also everything else that is wrong with its variants.
LoadedScenario load_checked(const ScenarioRequest& request, Diagnostics& diagnostics);

/// Hashes parts so that no two lists of parts look alike.
class KeyHash {
 public:
  void add(std::string_view part);
  /// 128 bits of SHA-256, in hex.
  std::string finish();

 private:
  policies::Sha256 hash_;
};

/// A hash of what decides the numbers of the variant's runs: the resolved scenario, the contents of
/// the files it names, release and commit, and `parts`, which the study adds. Where the files stand
/// on the disk has no part in it.
std::string candidate_key(const LoadedVariant& variant, std::span<const std::string> parts,
                          Diagnostics& diagnostics);

}  // namespace routesim::tools
