// For tests that read scenario files: one with a load and a pool, to which they add.
#pragma once

#include <string>

#include "tests/tools/command_fixture.h"
#include "tools/ingest/scenario/scenario_yaml.h"

namespace routesim::tools::testing {

class ScenarioTest : public FolderTest {
 protected:
  static std::string base() {
    return "name: s\n"
           "workload: {groups: {requests: 10, rate: 5, prefix_len: 100}}\n"
           "cluster:\n"
           "  pools:\n"
           "  - {name: a, accelerator: H100-SXM, model: Qwen3-32B, tensor_parallel: 2}\n";
  }

  /// base() and what follows it as a scenario.
  LoadedScenario load(const std::string& more, Diagnostics& diagnostics) const {
    return load_scenario(
        {.path = write("s.yaml", base() + more), .sets = {}, .variants = {}, .seed = {}},
        diagnostics);
  }
};

}  // namespace routesim::tools::testing
