// The experiments that nothing was fitted to run as they are shipped, and come out as they were
// measured where their `expect:` says so.
#include "tests/cli/cli_fixture.h"

namespace routesim::tools::testing {
namespace {

TEST_F(Cli, HeldOutExperimentsComeOutAsMeasured) {
  std::size_t files = 0;
  for (const auto& entry :
       fs::directory_iterator(fs::path(ROUTESIM_SOURCE_DIR) / "scenarios/holdout")) {
    if (entry.path().extension() != ".yaml") continue;
    const Result result = run({"run", entry.path().string(), "-q", "-o", "csv"});
    EXPECT_EQ(result.code, 0) << entry.path() << result.err;
    ++files;
  }
  EXPECT_EQ(files, 3U);
}

}  // namespace
}  // namespace routesim::tools::testing
