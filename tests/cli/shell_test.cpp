// Completion scripts and the manual page: accepted by the programs they are for, and complete.
#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>
#include <sstream>

#include "tests/cli/cli_fixture.h"
#include "tools/cli/cli.h"

namespace routesim::tools::testing {
namespace {

/// A shell command's exit code; its standard output goes to `out`.
class Shell : public Cli {
 protected:
  bool has(const std::string& program) const {
    return sh("command -v " + program + " >/dev/null").code == 0;
  }
  Result sh(const std::string& command) const {
    const std::string script = write("command.sh", command);
    const std::string out = (folder_ / "sh.out").string();
    const std::string err = (folder_ / "sh.err").string();
    const std::string line = "sh '" + script + "' >'" + out + "' 2>'" + err + "' </dev/null";
    Result result;
    result.code = WEXITSTATUS(std::system(line.c_str()));
    result.out = slurp(out);
    result.err = slurp(err);
    return result;
  }
  /// What bash offers for `words`, of which the last is being typed.
  std::string bash_offers(const std::vector<std::string>& words) const {
    std::string line;
    for (const std::string& word : words) line += " '" + word + "'";
    write("routesim.bash", run({"completion", "bash"}).out);
    write("offer.bash", "set -u\nsource '" + (folder_ / "routesim.bash").string() +
                            "'\nCOMP_WORDS=(" + line +
                            ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n"
                            "_routesim\necho \"${COMPREPLY[*]}\"\n");
    const Result result = sh("cd '" + folder_.string() + "' && bash offer.bash");
    EXPECT_EQ(result.err, "");
    return result.out;
  }
};

TEST_F(Shell, BashOffersCommandsOptionsValuesAndFiles) {
  if (!has("bash")) GTEST_SKIP() << "bash is not installed";
  if (!fs::exists("/dev/fd")) GTEST_SKIP() << "bash's <(...) needs /dev/fd, and that /proc";
  write("my scenario.yaml", "");
  EXPECT_EQ(bash_offers({"routesim", "val"}), "validate\n");
  EXPECT_EQ(bash_offers({"routesim", "--v"}), "--version\n");
  EXPECT_EQ(bash_offers({"routesim", "run", "--se"}), "--set --seed --series\n");
  EXPECT_EQ(bash_offers({"routesim", "run", "--output", "j"}), "json junit\n");
  EXPECT_EQ(bash_offers({"routesim", "run", "-o", "c"}), "csv\n");
  EXPECT_EQ(bash_offers({"routesim", "run", "--progress", "=", "ne"}), "never\n");
  EXPECT_EQ(bash_offers({"routesim", "run", "--progress", "="}), "auto always never\n");
  EXPECT_EQ(bash_offers({"routesim", "run", "my"}), "my scenario.yaml\n");
  EXPECT_EQ(bash_offers({"routesim", "run", "--check", "my"}), "my scenario.yaml\n");
  EXPECT_EQ(bash_offers({"routesim", "run", "--seed", "my"}), "\n") << "a seed is no file";
  EXPECT_EQ(bash_offers({"routesim", "score", "--config", "my"}), "my scenario.yaml\n");
  EXPECT_EQ(bash_offers({"routesim", "list", "mo"}), "models\n");
  EXPECT_EQ(bash_offers({"routesim", "nonsense", ""}), "\n");
}

TEST_F(Shell, ZshAndFishParseTheirScripts) {
  bool any = false;
  for (const std::string& shell : std::vector<std::string>{"zsh", "fish"}) {
    const Result script = run({"completion", shell});
    ASSERT_EQ(script.code, 0);
    if (!has(shell)) continue;
    any = true;
    write("script", script.out);
    const Result parsed = sh(shell + " -n '" + (folder_ / "script").string() + "'");
    EXPECT_EQ(parsed.code, 0) << parsed.err;
  }
  if (!any) GTEST_SKIP() << "neither zsh nor fish is installed";
}

TEST_F(Shell, FishOffersTheSame) {
  if (!has("fish")) GTEST_SKIP() << "fish is not installed";
  write("routesim.fish", run({"completion", "fish"}).out);
  const Result offers = sh("cd '" + folder_.string() + "' && HOME='" + folder_.string() +
                           "' fish --no-config -c "
                           "'source routesim.fish; complete -C \"routesim run --output j\"; "
                           "complete -C \"routesim val\"; complete -C \"routesim list mo\"'");
  EXPECT_NE(offers.out.find("json\t"), std::string::npos) << offers.out << offers.err;
  EXPECT_NE(offers.out.find("validate\t"), std::string::npos) << offers.out;
  EXPECT_NE(offers.out.find("models"), std::string::npos) << offers.out;
}

TEST_F(Shell, EveryCommandAndOptionIsInEveryScriptAndInTheManual) {
  for (const std::string_view shell : kShells) {
    const std::string script = completion_script(shell, commands()).value();
    const std::string dashes = shell == "fish" ? " -l " : "--";
    for (const Command& command : commands()) {
      EXPECT_NE(script.find(command.name), std::string::npos) << shell << " " << command.name;
      for (const OptionSpec& option : command.options)
        EXPECT_NE(script.find(dashes + option.name.substr(0, option.name.find(','))),
                  std::string::npos)
            << shell << " " << command.name << " " << option.name;
    }
  }
  const std::string manual = manual_page(commands());
  for (const Command& command : commands()) {
    std::string name = command.name;
    if (const std::size_t hyphen = name.find('-'); hyphen != std::string::npos)
      name.insert(hyphen, 1, '\\');
    EXPECT_NE(manual.find(".SS " + name + "\n"), std::string::npos) << name;
  }
  EXPECT_FALSE(completion_script("tcsh", commands()).has_value());
  EXPECT_EQ(run({"completion", "tcsh"}).code, 2);
}

TEST_F(Shell, TheManualPageIsCleanRoff) {
  if (!has("groff")) GTEST_SKIP() << "groff is not installed";
  write("routesim.1", run({"manual"}).out);
  const Result page = sh("groff -man -Tascii -ww -rHY=0 '" + (folder_ / "routesim.1").string() +
                         "' | sed 's/.\\x08//g; s/\\x1b\\[[0-9;]*m//g'");
  EXPECT_EQ(page.err, "");
  EXPECT_NE(page.out.find("--output FORMAT[=PATH]"), std::string::npos) << page.out;
  EXPECT_NE(page.out.find("EXIT STATUS"), std::string::npos);
}

/// The words of a command line in which quotes are plain.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words = {""};
  bool quoted = false;
  for (const char c : line) {
    if (c == '\'')
      quoted = !quoted;
    else if (c == ' ' && !quoted)
      words.emplace_back();
    else
      words.back() += c;
  }
  return words;
}

/// Files that examples take from the repository, or that other examples write.
bool is_known_file(const std::string& word) {
  for (const char* written : {"result.json", "before.json", "after.json"})
    if (word == written) return true;
  for (const char* folder : {"/docs/examples/", "/tests/tools/score/"})
    if (fs::exists(ROUTESIM_SOURCE_DIR + std::string(folder) + word)) return true;
  return false;
}

TEST_F(Shell, EveryCommandHasExamplesThatItAccepts) {
  const std::regex file("[a-z-]+\\.(yaml|json|csv|jsonl)");
  for (const Command& command : commands()) {
    EXPECT_FALSE(command.examples.empty()) << command.name;
    const std::string help = run({command.name, "--help"}).out;
    std::istringstream lines(help);
    for (std::string line; std::getline(lines, line);)
      if (!line.starts_with("  routesim ") && !line.starts_with("Usage: ")) {
        EXPECT_LE(line.size(), 80U) << line;
      }
    for (const Example& example : command.examples) {
      EXPECT_NE(help.find("\n  " + example.line + "\n"), std::string::npos) << example.line;
      std::vector<std::string> words = words_of(example.line);
      ASSERT_GE(words.size(), 2U);
      EXPECT_EQ(words[0], "routesim");
      EXPECT_EQ(words[1], command.name);
      words.erase(words.begin(), words.begin() + 2);
      const Options options(command.name, command.all_options(), command.positional, words);
      EXPECT_TRUE(options.ok()) << example.line;
      for (std::size_t i = 0; i < words.size(); ++i) {
        const bool is_output = i > 0 && (words[i - 1] == "-o" || words[i - 1] == "--out");
        if (is_output || !std::regex_match(words[i], file)) continue;
        EXPECT_TRUE(is_known_file(words[i])) << example.line << ": " << words[i];
      }
    }
  }
}

/// What `run` reads is right: the variants and keys that its examples name exist.
TEST_F(Shell, ExamplesOfScenariosPassTheCheck) {
  for (const Command& command : commands())
    for (const Example& example : command.examples) {
      std::vector<std::string> words = words_of(example.line);
      const bool reads = command.name == "run" || command.name == "explain" ||
                         command.name == "plan" || command.name == "sweep";
      if (!reads) continue;
      std::vector<std::string> check = {
          "check", ROUTESIM_SOURCE_DIR + std::string("/docs/examples/") + words[2]};
      for (std::size_t i = 3; i + 1 < words.size(); ++i)
        if (words[i] == "--variant" || words[i] == "--set")
          check.insert(check.end(), {words[i], words[i + 1]});
      const Result result = run(check);
      EXPECT_EQ(result.code, 0) << example.line << "\n" << result.err;
    }
}

}  // namespace
}  // namespace routesim::tools::testing
