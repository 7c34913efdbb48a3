// routesim new-scorer: what it writes, and when it writes nothing. tests/new_scorer compiles the
// result.
#include <map>

#include "tests/cli/cli_fixture.h"

namespace routesim::tools::testing {
namespace {

constexpr const char* kRegistry = "policies/config/scorers.cpp";

class NewScorer : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    for (const char* folder : {"policies/config", "policies/plugins", "tests/policies"})
      fs::create_directories(root() / folder);
    for (const char* file : {kRegistry, "policies/plugins/queue.h", "policies/plugins/pickers.h"})
      fs::copy_file(fs::path(ROUTESIM_SOURCE_DIR) / file, root() / file);
  }
  fs::path root() const { return folder_ / "checkout"; }
  Result make(const std::string& name, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"new-scorer", name, "--root", root().string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(root()))
      if (entry.is_regular_file()) all[entry.path().lexically_relative(root())] = slurp(entry);
    return all;
  }
};

TEST_F(NewScorer, WritesAHeaderATestAndARow) {
  const auto before = files();
  const Result result = make("made-up-scorer");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(
      result.out.starts_with("new      policies/plugins/made_up.h\n"
                             "new      tests/policies/made_up_scorer_test.cpp\n"
                             "changed  policies/config/scorers.cpp\n"))
      << result.out;
  const auto after = files();
  EXPECT_EQ(after.size(), before.size() + 2);
  std::string registry = before.at(kRegistry);
  const std::string include = "#include \"policies/plugins/mm_embeddings_cache.h\"\n";
  registry.insert(registry.find(include), "#include \"policies/plugins/made_up.h\"\n");
  registry.insert(registry.find("};\n\n}  // namespace"),
                  "    implemented<MadeUpScorer, MadeUpParameters>(\"made-up-scorer\",\n"
                  "                                                "
                  "\"half / (half + waiting requests).\"),\n");
  EXPECT_EQ(after.at(kRegistry), registry);
  for (const auto& [path, text] : after) EXPECT_EQ(text.find('@'), std::string::npos) << path;
}

TEST_F(NewScorer, TheDiffMakesTheSameFiles) {
  const auto before = files();
  const Result diff = make("a", {"--dry-run"});
  EXPECT_EQ(diff.code, 0) << diff.err;
  EXPECT_EQ(files(), before);
  write("edits.diff", diff.out);
  ASSERT_EQ(make("a").code, 0);
  const auto written = files();
  for (const auto& [path, text] : written) fs::remove(root() / path);
  for (const auto& [path, text] : before) write("checkout/" + path, text);
  const std::string apply =
      "cd " + root().string() + " && git apply --whitespace=error-all ../edits.diff";
  ASSERT_EQ(std::system(apply.c_str()), 0) << diff.out;
  EXPECT_EQ(files(), written);
}

// Formatting depends on the length of the name: no line is too long with the longest one.
TEST_F(NewScorer, LongNamesFit) {
  ASSERT_EQ(make("a-name-of-thirty-characters-x").code, 0);
  ASSERT_EQ(make("b23456789012345").code, 0);
  for (const auto& [path, text] : files()) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
  }
}

TEST_F(NewScorer, RefusesWithoutWriting) {
  struct Case {
    std::string name, message;
  };
  const auto before = files();
  for (const Case& c : {Case{"Fresh", "NAME must be"}, Case{"fresh_kv", "NAME must be"},
                        Case{"a--b", "NAME must be"}, Case{"2kv", "NAME must be"},
                        Case{"kv-", "NAME must be"}, Case{std::string(31, 'k'), "NAME must be"},
                        Case{"lmetric", "scorers.cpp: error: has '\"lmetric-scorer\"' already"},
                        Case{"running-requests", "has 'class RunningRequestsScorer' already"},
                        Case{"queue", "queue.h: error: has 'class QueueScorer' already"},
                        Case{"pickers", "pickers.h: error: exists already"}}) {
    const Result result = make(c.name);
    EXPECT_EQ(result.code, 2) << c.name;
    EXPECT_NE(result.err.find(c.message), std::string::npos) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(files(), before);
  }
}

TEST_F(NewScorer, RefusesACheckoutThatIsNotAsExpected) {
  write(std::string("checkout/") + kRegistry, "#include \"policies/plugins/queue.h\"\n");
  const auto before = files();
  Result result = make("fresh-kv");
  EXPECT_EQ(result.code, 2);
  EXPECT_NE(result.err.find("scorers.cpp: error: has no includes of plugins, or no rows"),
            std::string::npos)
      << result.err;
  EXPECT_EQ(files(), before);
  fs::copy_file(fs::path(ROUTESIM_SOURCE_DIR) / kRegistry, root() / kRegistry,
                fs::copy_options::overwrite_existing);
  fs::remove(root() / "tests/policies");
  result = make("fresh-kv");
  EXPECT_EQ(result.code, 2);
  EXPECT_NE(result.err.find("fresh_kv_scorer_test.cpp: error: "), std::string::npos) << result.err;
  fs::remove(root() / kRegistry);
  EXPECT_EQ(make("fresh-kv").code, 2);
  EXPECT_EQ(files().size(), 2U) << "the headers that were there";
}

}  // namespace
}  // namespace routesim::tools::testing
