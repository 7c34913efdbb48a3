// Every vector file has a test that runs it.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>

#include "tests/policies/vector_file.h"

namespace routesim::test {
namespace {

TEST(VectorCoverage, EveryFileHasARunner) {
  std::set<std::string> tests;
  const auto& program = *testing::UnitTest::GetInstance();
  for (int s = 0; s < program.total_test_suite_count(); ++s) {
    const auto& suite = *program.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t)
      tests.insert(std::string(suite.name()) + "." + suite.GetTestInfo(t)->name());
  }
  std::set<std::string> run;
  for (const VectorRunner& r : kVectorRunners) {
    const std::string name = std::string(r.suite) + "." + std::string(r.test);
    EXPECT_EQ(tests.count(name), 1u) << name << " is to run " << r.file << " but is no test";
    run.insert(std::string(r.file));
  }
  std::set<std::string> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(ROUTESIM_SOURCE_DIR) + "/tests/vectors"))
    if (entry.path().extension() == ".json") files.insert(entry.path().stem().string());
  EXPECT_GE(files.size(), 34u);
  EXPECT_EQ(files, run) << "a file without a runner, or a runner without a file";
}

}  // namespace
}  // namespace routesim::test
