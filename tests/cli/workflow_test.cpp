// The workflow that teams copy: its own commands, on a change that does nothing and on one that
// spoils the router.
#include <yaml-cpp/yaml.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

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

// A queue that grows: what 3 % of the KV blocks change is what runs with so many blocks print.
TEST_F(Workflow, NearAKneeTheKvCapacityHasABand) {
  const std::string file =
      write("knee.yaml", "name: knee\n" + two_servers("requests: 400, rate: 40, groups: 40, "
                                                      "prefix_len: 6000, suffix_len: 500, "
                                                      "output_len: 300",
                                                      "{name: hashing, routing: {balancer: "
                                                      "prefix-hash}}"));
  const auto variant = [&](const std::string& blocks) {
    const Result result = run({"run", file, "-q", "-o", "json", "--variant", "rotation", "--set",
                               "cluster.pools[a].engine.num_gpu_blocks=" + blocks});
    EXPECT_EQ(result.code, 0) << result.err;
    return nlohmann::json::parse(result.out)["variants"][0];
  };
  const auto ttft = [](const nlohmann::json& made) {
    return made["stages"][0]["successes"]["latency"]["time_to_first_token"]["mean"].get<double>();
  };
  const nlohmann::json made = variant("4000");
  const nlohmann::json& band = made["kv_capacity_band"];
  ASSERT_EQ(band["band"], 0.03);
  const nlohmann::json& stage = band["stages"][0];
  EXPECT_EQ(stage["as_is"]["ttft_mean_s"].get<double>(), ttft(made));
  EXPECT_EQ(stage["fewer"]["ttft_mean_s"].get<double>(), ttft(variant("3880")));
  EXPECT_EQ(stage["more"]["ttft_mean_s"].get<double>(), ttft(variant("4120")));
  EXPECT_GT(stage["fewer"]["ttft_mean_s"].get<double>(), stage["more"]["ttft_mean_s"]);
  EXPECT_NE(band["text"].get<std::string>().find("near its knee, where 3 % of the KV blocks move"),
            std::string::npos);
  const Result calm = run({"run", file, "-q", "-o", "json", "--variant", "rotation", "--set",
                           "workload.groups.rate=1"});
  EXPECT_TRUE(nlohmann::json::parse(calm.out)["variants"][0]["kv_capacity_band"].is_null());
  const Result quick = run({"run", file, "-q", "-o", "json", "--variant", "rotation", "--set",
                            "cluster.pools[a].engine.num_gpu_blocks=4000", "--no-kv-band"});
  nlohmann::json without = nlohmann::json::parse(quick.out)["variants"][0];
  nlohmann::json rest = made;
  rest.erase("kv_capacity_band");
  EXPECT_EQ(rest, without);
}

}  // namespace
}  // namespace routesim::tools::testing
