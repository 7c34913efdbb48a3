// The workflow that teams copy: its own commands, on a change that does nothing and on one that
// spoils the router.
#include <yaml-cpp/yaml.h>

#include <cstdlib>

#include "tests/cli/cli_fixture.h"
#include "tests/cli/xml_check.h"

namespace routesim::tools::testing {
namespace {

class Workflow : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    const fs::path home = fs::path(ROUTESIM_SOURCE_DIR) / "docs" / "ci";
    workflow_ = YAML::LoadFile((home / "router-config.yml").string());
    fs::create_directories(folder_ / "base");
    for (const fs::path& side : {folder_ / "base", folder_})
      fs::copy(home / "router", side / "router", fs::copy_options::recursive);
    fs::create_directories(folder_ / "bin");
    fs::create_symlink(ROUTESIM_BINARY, folder_ / "bin" / "routesim");
  }

  /// The exit code of a step, run as GitHub does; its output goes to `step.out`.
  int step(const std::string& id) {
    for (const YAML::Node& s : workflow_["jobs"]["simulate"]["steps"]) {
      if (!s["id"] || s["id"].as<std::string>() != id) continue;
      write("step.sh", s["run"].as<std::string>());
      const std::string command =
          "cd '" + folder_.string() +
          "' && PATH=\"$PWD/bin:$PATH\" GITHUB_STEP_SUMMARY=summary.md "
          "bash --noprofile --norc -eo pipefail step.sh >step.out 2>step.err";
      const int status = std::system(command.c_str());
      return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    ADD_FAILURE() << "the workflow has no step " << id;
    return -1;
  }
  std::string output() const { return slurp(folder_ / "step.out") + slurp(folder_ / "step.err"); }

  void edit(const std::string& file, const std::string& from, const std::string& to) const {
    std::string text = slurp(folder_ / file);
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    write(file, text);
  }

  YAML::Node workflow_;
};

TEST_F(Workflow, AChangeOfACommentPasses) {
  edit("router/epp.yaml", "# The configuration", "# A configuration");
  EXPECT_EQ(step("check"), 0) << output();
  EXPECT_EQ(step("base"), 0) << output();
  EXPECT_EQ(step("change"), 0) << output();
  EXPECT_EQ(step("compare"), 0) << output();
  EXPECT_EQ(output().rfind("::notice ", 0), 0U) << output();
  EXPECT_NE(slurp(folder_ / "summary.md").find("not distinguishable"), std::string::npos);
  EXPECT_EQ(XmlCheck(slurp(folder_ / "expectations.xml")).count("testcase"), 3);
  EXPECT_EQ(XmlCheck(slurp(folder_ / "comparison.xml")).count("failure"), 0);
}

TEST_F(Workflow, AChangeThatSpoilsTheCacheFails) {
  edit("router/epp.yaml", "  - {pluginRef: precise-prefix-cache-scorer, weight: 3}\n", "");
  EXPECT_EQ(step("check"), 0) << output();
  EXPECT_EQ(step("base"), 0) << output();
  EXPECT_EQ(step("change"), 1) << output();
  EXPECT_NE(output().find("::error file=router/scenario.yaml,line="), std::string::npos)
      << output();
  EXPECT_EQ(step("compare"), 1) << output();
  EXPECT_NE(output().find("::error "), std::string::npos) << output();
  EXPECT_NE(slurp(folder_ / "summary.md").find("worse"), std::string::npos);
  EXPECT_GT(XmlCheck(slurp(folder_ / "comparison.xml")).count("failure"), 0);
}

TEST_F(Workflow, AFileThatIsWrongFailsAtItsLine) {
  edit("router/epp.yaml", "queue-scorer", "queue-scorre");
  EXPECT_EQ(step("check"), 2) << output();
  EXPECT_NE(output().find("router/epp.yaml:"), std::string::npos) << output();
}

}  // namespace
}  // namespace routesim::tools::testing
