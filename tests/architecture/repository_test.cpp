// The whole tree against every rule.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
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
TEST(Repository, PipesAreReadToTheirEnd) { expect_clean(check_early_readers); }
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

/// A room of the product: its lines today, which only shrink, and the lines it is meant to have.
struct Room {
  std::string folder;
  std::size_t most, goal;
};
const std::vector<Room> kRooms = {{"base", 2'500, 2'600},
                                  {"policies", 24'700, 22'500},
                                  {"models", 6'740, 7'000},
                                  {"workloads", 12'710, 12'500},
                                  {"sim", 31'256, 19'000},
                                  {"tools", 62'030, 37'500},
                                  {"tools/ingest/tree", 2'582, 1'900},
                                  {"tools/ingest/servers", 4'660, 2'800},
                                  {"tools/ingest/routers", 1'690, 1'200},
                                  {"tools/ingest/loads", 1'080, 800},
                                  {"tools/ingest/traces", 2'920, 1'900},
                                  {"tools/ingest/scenario", 2'520, 1'400}};

bool is_code(const SourceFile& file) {
  return file.path.ends_with(".h") || file.path.ends_with(".cpp") || file.path.ends_with(".cc");
}

TEST(Repository, RoomsKeepTheirBudgets) {
  for (const Room& room : kRooms) {
    std::size_t lines = 0;
    for (const SourceFile& file : repository())
      if (is_code(file) && file.path.starts_with(room.folder + "/"))
        lines += static_cast<std::size_t>(std::ranges::count(file.text, '\n'));
    std::printf("%-21s %6zu lines, at most %6zu, goal %6zu\n", room.folder.c_str(), lines,
                room.most, room.goal);
    EXPECT_LE(lines, room.most) << room.folder << " has outgrown its room";
    EXPECT_GT(lines + 250, room.most) << room.folder << " has shrunk: lower its budget";
  }
}

TEST(Repository, FoldersHoldFewFiles) {
  constexpr std::size_t kMostFiles = 40;  // A header and its source are two.
  std::map<std::string, std::size_t> files;
  for (const SourceFile& file : repository())
    if (is_code(file) && std::ranges::any_of(kRooms, [&](const Room& room) {
          return file.path.starts_with(room.folder + "/");
        }))
      ++files[file.path.substr(0, file.path.rfind('/'))];
  std::set<std::string> crowded;
  for (const auto& [folder, count] : files)
    if (count > kMostFiles) crowded.insert(folder);
  expect_only(crowded, {});
}

/// Adds the words of `text` to `words`.
void add_words(std::string_view text, std::set<std::string, std::less<>>& words) {
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    while (end < text.size() && is_word(text[end])) ++end;
    if (end > i) words.emplace(text.substr(i, end - i));
    i = std::max(end, i + 1);
  }
}

/// The words of names in backticks of a README, outside blocks of code: `sim/engine`, `Replica`,
/// `prefix_index.h`, `a::b()`. Other texts in backticks are commands, values and keys.
std::set<std::string, std::less<>> named_words(const SourceFile& readme) {
  std::set<std::string, std::less<>> words;
  bool block = false;
  for (const std::string& line : lines_of(readme.text)) {
    if (line.starts_with("```")) block = !block;
    for (std::size_t open = block ? line.npos : line.find('`'); open != line.npos;
         open = line.find('`', open + 1)) {
      const std::size_t close = line.find('`', open + 1);
      if (close == line.npos) break;
      const std::string name = line.substr(open + 1, close - open - 1);
      open = close;
      const bool plain = std::ranges::all_of(
          name, [](char c) { return is_word(c) || c == '/' || c == ':' || c == '.' || c == '('; });
      const bool placeholder = name.find("NAME") != name.npos;
      if (plain && !placeholder && name.find(": ") == name.npos) add_words(name, words);
    }
  }
  return words;
}

// A name that is gone must not live on in a README.
TEST(Repository, NamesInReadmesExist) {
  std::set<std::string, std::less<>> words;
  for (const SourceFile& file : repository()) {
    add_words(file.path, words);
    if (!file.path.ends_with(".md") && !file.path.starts_with("tests/architecture"))
      add_words(file.text, words);
  }
  std::set<std::string> unknown;
  for (const SourceFile& file : repository())
    if (file.path.ends_with("README.md"))
      for (const std::string& word : named_words(file))
        if (!words.contains(word)) unknown.insert(file.path + ": " + word);
  // Names of other projects, which these pages cite.
  expect_only(unknown,
              {"models/README.md: block_m", "models/README.md: oracle",
               "scenarios/README.md: _maximum_throughput", "scenarios/README.md: deepseek_r1_671b_",
               "scenarios/README.md: default_args", "scenarios/README.md: inferencex_absolutes",
               "sim/prediction/README.md: requestcontrol_hooks",
               "sim/prediction/README.md: _create_default_model",
               "tests/workloads/data/replay/README.md: _reconstruct_raw_calls",
               "tests/workloads/data/replay/README.md: build_graph",
               "tests/workloads/data/replay/README.md: build_raw_calls"});
}

TEST(Repository, ClassesLiveInFewFiles) {
  std::set<std::string> found;
  for (const auto& [name, files] : files_of_classes(repository()))
    if (files.size() > kMaxFilesPerClass) found.insert(name);
  expect_only(found, {});
}

}  // namespace
}  // namespace routesim::architecture
