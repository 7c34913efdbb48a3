// What the documentation says is what the command does: every `console` block is run, generated
// pages are current, links lead somewhere. ROUTESIM_UPDATE_EXPECTED=1 writes what is new instead.
#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <map>
#include <sstream>

#include "tests/docs/console_blocks.h"

namespace routesim::docs {
namespace {

bool updating() { return std::getenv("ROUTESIM_UPDATE_EXPECTED") != nullptr; }

/// Pages whose commands are run, and the folder each starts in: a copy of the examples, or the
/// repository itself.
struct Page {
  const char* path;
  bool in_repository;
};
constexpr Page kPages[] = {{"README.md", true},
                           {"docs/tutorial.md", false},
                           {"docs/model.md", true},
                           {"docs/metrics.md", true},
                           {"docs/extending.md", true}};

class Documentation : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() /
              ("routesim-docs-" + std::string(info->name()) + "-" + std::to_string(::getpid()));
    fs::create_directories(folder_ / "bin");
    fs::create_symlink(ROUTESIM_BINARY, folder_ / "bin" / "routesim");
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// Runs one command as a reader would, in `where`.
  CommandResult run(const std::string& command, const fs::path& where) const {
    return run_command(command, where, folder_ / "bin", folder_);
  }

  fs::path folder_;
};

TEST_F(Documentation, EveryCommandPrintsWhatThePageSays) {
  int commands = 0;
  for (const Page& page : kPages) {
    SCOPED_TRACE(page.path);
    const fs::path where = page.in_repository ? kRoot : folder_ / "examples";
    if (!page.in_repository)
      fs::copy(kRoot / "docs" / "examples", where, fs::copy_options::recursive);
    std::string text = read(kRoot / page.path);
    const std::string before = text;
    for (const ConsoleCommand& command : console_commands(before)) {
      SCOPED_TRACE("line " + std::to_string(command.line) + ": " + command.text);
      const CommandResult result = run(command.text, where);
      ++commands;
      EXPECT_EQ(result.code, command.expected_code) << result.err;
      if (updating())
        text = with_output(text, command, result.out);
      else
        EXPECT_TRUE(same_lines(command.output, result.out))
            << "the page says:\n"
            << command.output << "\nthe command prints:\n"
            << result.out;
    }
    if (text != before) write(kRoot / page.path, text);
  }
  EXPECT_GT(commands, 10);
}

TEST_F(Documentation, GeneratedPagesAreCurrent) {
  const std::map<std::string, std::string> pages = {
      {"docs/reference/scenario.md", "routesim schema scenario -o markdown"},
      {"docs/reference/inference-perf.md", "routesim schema inference-perf -o markdown"},
      {"docs/reference/keys.md", "routesim schema keys -o markdown"},
      {"docs/reference/sweep.md", "routesim schema sweep -o markdown"},
      {"docs/reference/sweep.schema.json", "routesim schema sweep"},
      {"docs/reference/plan.md", "routesim schema plan -o markdown"},
      {"docs/reference/plan.schema.json", "routesim schema plan"},
      {"docs/reference/tune.md", "routesim schema tune -o markdown"},
      {"docs/reference/tune.schema.json", "routesim schema tune"},
      {"docs/reference/catalogue.md", "routesim schema catalogue -o markdown"},
      {"docs/reference/catalogue.schema.json", "routesim schema catalogue"},
      {"docs/reference/result.schema.json", "routesim schema result"},
      {"docs/reference/scenario.schema.json", "routesim schema scenario"}};
  for (const auto& [path, command] : pages) {
    const CommandResult result = run(command, kRoot);
    ASSERT_EQ(result.code, 0) << result.err;
    if (updating()) write(kRoot / path, result.out);
    EXPECT_EQ(read(kRoot / path), result.out)
        << path << " is not what `" << command
        << "` prints; ROUTESIM_UPDATE_EXPECTED=1 docs_tests writes it";
  }
}

TEST_F(Documentation, PicturesAreWhatTheReportDraws) {
  const std::string result = (folder_ / "result.json").string();
  const std::string charts = (folder_ / "charts").string();
  for (const std::string& command :
       {"routesim run scenarios/llm-d-qwen3-32b-16xh100.yaml -q -o json=" + result,
        "routesim report " + result + " --export " + charts}) {
    const CommandResult done = run(command, kRoot);
    ASSERT_EQ(done.code, 0) << done.err;
  }
  int pictures = 0;
  for (const auto& picture : fs::directory_iterator(kRoot / "docs" / "images" / "h100-ladder")) {
    const std::string drawn = read(fs::path(charts) / picture.path().filename());
    if (updating()) write(picture.path(), drawn);
    EXPECT_EQ(read(picture.path()), drawn)
        << picture.path() << ": ROUTESIM_UPDATE_EXPECTED=1 docs_tests draws it";
    ++pictures;
  }
  EXPECT_EQ(pictures, 2);
}

TEST_F(Documentation, TheValidationTablesAreCurrentAndWithinTheirLimits) {
  std::string page =
      "<!-- Generated by `routesim validate --summary -o markdown` and\n"
      "`routesim validate --folder scenarios/holdout --summary -o markdown`. Do not edit. -->\n"
      "# Simulated against measured, all tables\n\n"
      "The experiments that cost curves were fitted to; those that nothing was fitted to stand "
      "below\n"
      "(\"Held out\").\n";
  for (const std::string folder : {"scenarios", "scenarios/holdout"}) {
    // The limits hold every row of both pages: each row has a limit, each limit has a row.
    const CommandResult result = run("routesim validate --summary --quiet -o markdown --folder " +
                                         folder + " --limits " + folder + "/limits.csv",
                                     kRoot);
    ASSERT_TRUE(updating() || result.code == 0) << result.err;
    page += (folder == "scenarios" ? "\n" : "\n# Held out\n\n") + result.out;
  }
  const std::string path = "docs/reference/validation.md";
  if (updating()) write(kRoot / path, page);
  EXPECT_EQ(read(kRoot / path), page)
      << path << ": ROUTESIM_UPDATE_EXPECTED=1 docs_tests writes it";
}

// Every result carries this table, so it must be what the program finds. The vLLM router's
// comparison is left out: it names no GPU, so its levels tell nothing of the roofline.
TEST_F(Documentation, TheTableOfErrorsByClassIsCurrent) {
  const std::string command =
      "routesim validate --trust -q scenarios/*.yaml scenarios/holdout/[gl]*.yaml -o ";
  const CommandResult csv = run(command + "csv", kRoot);
  ASSERT_EQ(csv.code, 0) << csv.err;
  const std::string data = "tools/results/trust_errors.csv";
  const std::string page = "docs/reference/trust.md";
  if (updating()) {
    write(kRoot / data, csv.out);
    write(kRoot / page, run(command + "markdown", kRoot).out);
  }
  EXPECT_EQ(read(kRoot / data), csv.out)
      << "ROUTESIM_UPDATE_EXPECTED=1 docs_tests writes it; then build again";
  std::istringstream rows(csv.out);
  std::string row;
  std::getline(rows, row);
  const std::string text = read(kRoot / page);
  int found = 0;
  for (; std::getline(rows, row); ++found) {
    std::string cells = "| " + row.substr(0, row.rfind(','));
    for (std::size_t at = 0; (at = cells.find(',', at)) != std::string::npos; at += 3)
      cells.replace(at, 1, " | ");
    EXPECT_NE(text.find(cells + " | "), std::string::npos) << page << " lacks " << cells;
  }
  EXPECT_GE(found, 12);
}

TEST_F(Documentation, EveryLinkLeadsToAFile) {
  int links = 0;
  for (const fs::path& page : markdown_pages(kRoot)) {
    for (const std::string& target : links_of(read(page))) {
      if (target.find("://") != std::string::npos || target.starts_with('#')) continue;
      ++links;
      const std::string path = target.substr(0, target.find('#'));
      EXPECT_TRUE(fs::exists(page.parent_path() / path)) << page << " links to " << target;
    }
  }
  EXPECT_GT(links, 20);
}

TEST_F(Documentation, EveryMetricOfTheResultsIsDefined) {
  const std::string page = read(kRoot / "docs/metrics.md");
  const CommandResult result = run("routesim run docs/examples/question.yaml -q -o csv", kRoot);
  ASSERT_EQ(result.code, 0) << result.err;
  const std::vector<std::string> metrics = csv_column(result.out, "metric");
  EXPECT_GT(metrics.size(), 5U);
  for (const std::string& metric : metrics)
    EXPECT_NE(page.find("`" + metric + "`"), std::string::npos) << metric << " is not defined";
}

TEST(SameLines, TellsDigitsButNotBlanks) {
  EXPECT_TRUE(same_lines("a  1.5\nb\n", "a 1.5\nb \n"));
  EXPECT_TRUE(same_lines("a\n…\nz\n", "a\nb\nc\nz\n"));
  EXPECT_TRUE(same_lines("…\n9 x\nend\n…\n", "1 x\n9 x\n9 x\nend\nmore\n"));
  EXPECT_FALSE(same_lines("a 1.5\n", "a 1.6\n"));
  EXPECT_FALSE(same_lines("a\nz\n", "a\nb\nz\n"));
  EXPECT_FALSE(same_lines("a\n…\nz\n", "a\nb\n"));
}

TEST(Aligned, PicksTheRowThatALineNames) {
  const std::string table = "head\n1 20 5.0\n4 20 6.1\nmean 7\n9 40 6.0\nmean 8\nend 3\n";
  EXPECT_EQ(aligned("head\n…\n4 20 6.0\n…\nmean 8.2\n…\n", table),
            "head\n…\n4 20 6.1\n…\nmean 8\n…\n");
  EXPECT_EQ(aligned("head\n…\nend 4\n", table), "head\n…\nend 3\n");
  EXPECT_EQ(aligned("a 1\n", "a 2\nb 3\n"), "a 2\nb 3\n") << "nothing is left out";
}

TEST(ConsoleBlocks, AreFoundWithTheirOutputAndExitCode) {
  const auto commands = console_commands(
      "text\n```console\n$ one \\\n  two\nout\n$ three; # exit 2\n```\n```sh\n$ not this\n```\n");
  ASSERT_EQ(commands.size(), 2U);
  EXPECT_EQ(commands[0].text, "one \\\n  two");
  EXPECT_EQ(commands[0].output, "out\n");
  EXPECT_EQ(commands[0].expected_code, 0);
  EXPECT_EQ(commands[1].expected_code, 2);
  EXPECT_EQ(commands[1].output, "");
}

}  // namespace
}  // namespace routesim::docs
