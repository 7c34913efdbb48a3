// Decisions of other products' balancers, computed by hand or taken from upstream tests: the files
// of tests/policies/data/balancers, in the format of `routesim score --steps`.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "policies/balancers/balancers.h"
#include "tests/base/messages.h"
#include "tools/study/score/balancer_script.h"

namespace routesim::tools {
namespace {

constexpr const char* kFolder = ROUTESIM_SOURCE_DIR "/tests/policies/data/balancers";

std::vector<std::string> vector_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder))
    files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

bool is_judged(const ScriptStep& s) {
  return s.expect || s.expect_prefill || s.expect_status || s.expect_held;
}

TEST(BalancerVectors, EveryDecisionIsAsExpected) {
  for (const std::string& file : vector_files()) {
    Diagnostics diagnostics;
    const auto script = read_balancer_script(file, diagnostics);
    ASSERT_TRUE(script) << messages_of(diagnostics);
    for (const ScriptDecision& d : run_balancer_script(*script, diagnostics))
      EXPECT_EQ(d.unexpected, "") << file << ", " << d.case_name << ", step " << d.step;
    EXPECT_FALSE(diagnostics.has_errors()) << messages_of(diagnostics);
  }
}

// Each policy of another product has at least 20 judged decisions.
TEST(BalancerVectors, EveryPolicyIsCovered) {
  std::map<policies::BalancerKind, int> judged;
  for (const std::string& file : vector_files()) {
    Diagnostics diagnostics;
    const auto script = read_balancer_script(file, diagnostics);
    ASSERT_TRUE(script) << messages_of(diagnostics);
    EXPECT_FALSE(script->source.empty()) << file;
    for (const ScriptCase& c : script->cases)
      judged[c.routing.balancer] +=
          static_cast<int>(std::count_if(c.steps.begin(), c.steps.end(), is_judged));
  }
  for (std::size_t i = 0; i < policies::kBalancers.size(); ++i) {
    const auto& row = policies::kBalancers[i];
    // Formulas and plug-ins have tests of their own.
    if (row.section.empty() || row.make == nullptr) continue;
    EXPECT_GE(judged[static_cast<policies::BalancerKind>(i)], 20) << row.name;
  }
}

}  // namespace
}  // namespace routesim::tools
