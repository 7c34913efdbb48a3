// The whole tree against every rule.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/architecture/rules.h"

namespace routesim::architecture {
namespace {

const std::vector<SourceFile>& repository() {
  static const std::vector<SourceFile> files = read_repository(ROUTESIM_SOURCE_DIR);
  return files;
}

void expect_clean(Violations (*rule)(const SourceFile&)) {
  Violations violations;
  for (const SourceFile& file : repository())
    for (std::string& violation : rule(file)) violations.push_back(std::move(violation));
  EXPECT_TRUE(violations.empty()) << violations.size() << " violations:" << join(violations);
}

TEST(Repository, IsReadAtAll) {
  std::set<std::string> paths;
  for (const SourceFile& file : repository()) paths.insert(file.path);
  EXPECT_TRUE(paths.contains("CMakeLists.txt"));
  EXPECT_TRUE(paths.contains("base/units.h"));
  EXPECT_TRUE(paths.contains("tools/run"));
  EXPECT_TRUE(paths.contains("tests/architecture/repository_test.cpp"));
  EXPECT_FALSE(paths.contains("build/release/CMakeCache.txt"));
}

TEST(Repository, IncludesFollowTheDesign) { expect_clean(check_includes); }
TEST(Repository, HeadersAreWellFormed) { expect_clean(check_header_form); }
TEST(Repository, LibrariesArePure) { expect_clean(check_library_purity); }
TEST(Repository, BuildFlagsKeepResults) { expect_clean(check_build_flags); }
TEST(Repository, NotesNameAnIssue) { expect_clean(check_notes); }
TEST(Repository, HoldsNoMachinePaths) { expect_clean(check_machine_paths); }
TEST(Repository, WhitespaceIsClean) { expect_clean(check_whitespace); }
TEST(Repository, FunctionsFitAScreen) { expect_clean(check_function_length); }

/// The offenders that a law found must be those that its list still allows.
void expect_only(const std::set<std::string>& found, const std::set<std::string>& allowed) {
  for (const std::string& name : found)
    EXPECT_TRUE(allowed.contains(name)) << name << " breaks this law";
  for (const std::string& name : allowed)
    EXPECT_TRUE(found.contains(name)) << name << " obeys this law now: remove it from the list";
}

TEST(Repository, FoldersHaveADirection) {
  EXPECT_EQ(folders_in_circles(repository()), std::set<std::string>{});
}

TEST(Repository, ClassesHaveFewMembers) {
  std::set<std::string> found;
  for (const SourceFile& file : repository())
    for (const auto& [name, members] : members_of_classes(file))
      if (members > kMaxMembers) found.insert(name);
  expect_only(found, {});
}

TEST(Repository, ClassesLiveInFewFiles) {
  std::set<std::string> found;
  for (const auto& [name, files] : files_of_classes(repository()))
    if (files.size() > kMaxFilesPerClass) found.insert(name);
  expect_only(found, {});
}

}  // namespace
}  // namespace routesim::architecture
