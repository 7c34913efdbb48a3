// What teams copy for their build servers, by its own commands: the GitHub workflow and the action
// it uses, the GitLab job and the Kubernetes Job, each on the binary of this build.
#include <yaml-cpp/yaml.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/cli/cli_fixture.h"
#include "tests/cli/xml_check.h"
#include "tools/cli/run/run_outputs.h"

namespace routesim::tools::testing {
namespace {

const fs::path kRepository = ROUTESIM_SOURCE_DIR;

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

/// A checkout of a team's repository, and the shell of a build server.
class BuildServer : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    fs::copy(kRepository / "docs" / "ci" / "router", folder_ / "router",
             fs::copy_options::recursive);
  }

  /// The exit code of a script in the checkout; its output goes to `step.out` and `step.err`.
  int bash(const std::string& script) const {
    write("step.sh", script);
    const std::string command = "cd '" + folder_.string() +
                                "' && bash --noprofile --norc -eo pipefail step.sh >step.out "
                                "2>step.err </dev/null";
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string output() const { return slurp(folder_ / "step.out") + slurp(folder_ / "step.err"); }

  void edit(const std::string& file, const std::string& from, const std::string& to) const {
    const std::string text = slurp(folder_ / file);
    ASSERT_NE(text.find(from), std::string::npos) << from;
    write(file, replaced(text, from, to));
  }
  void spoil_the_cache() const {
    edit("router/epp.yaml", "  - {pluginRef: precise-prefix-cache-scorer, weight: 3}\n", "");
  }
};

class Workflow : public BuildServer {
 protected:
  void SetUp() override {
    BuildServer::SetUp();
    fs::create_directories(folder_ / "base");
    fs::copy(folder_ / "router", folder_ / "base" / "router", fs::copy_options::recursive);
    const fs::path action = kRepository / ".github" / "actions" / "routesim";
    steps_ = YAML::LoadFile((action / "action.yml").string());
    for (const auto& input : steps_["inputs"])
      values_["inputs." + input.first.as<std::string>()] =
          input.second["default"].as<std::string>();
    const YAML::Node workflow =
        YAML::LoadFile((kRepository / "docs" / "ci" / "router-config.yml").string());
    for (const YAML::Node& step : workflow["jobs"]["simulate"]["steps"])
      if (step["uses"].as<std::string>() == "./routesim/.github/actions/routesim")
        for (const auto& given : step["with"])
          values_["inputs." + given.first.as<std::string>()] = given.second.as<std::string>();
    values_["github.action_path"] = action.string();
    use_cached_binary();
  }

  /// The steps around the cache, as on a hit: the folder holds the binary already.
  void use_cached_binary() {
    ASSERT_EQ(step("sources"), 0) << output();
    const std::string outputs = slurp(folder_ / "sources.output");
    const std::size_t at = outputs.find("folder=");
    ASSERT_NE(at, std::string::npos) << outputs;
    const std::string cached = outputs.substr(at + 7, outputs.find('\n', at) - at - 7);
    values_["steps.sources.outputs.folder"] = cached;
    fs::create_directories(fs::path(cached) / "bin");
    fs::create_symlink(ROUTESIM_BINARY, fs::path(cached) / "bin" / "routesim");
    ASSERT_EQ(step("install"), 0) << output();
    path_ = slurp(folder_ / "install.path");
    path_.resize(path_.find('\n'));
  }

  /// The exit code of a step, run as GitHub does.
  int step(const std::string& id) {
    for (const YAML::Node& s : steps_["runs"]["steps"]) {
      if (!s["id"] || s["id"].as<std::string>() != id) continue;
      std::string script = "export HOME='" + folder_.string() + "' PATH='" + path_ +
                           "':\"$PATH\" GITHUB_STEP_SUMMARY=" + id + ".md GITHUB_OUTPUT=$PWD/" +
                           id + ".output GITHUB_PATH=$PWD/" + id + ".path\n";
      for (const auto& variable : s["env"]) {
        std::string value = variable.second.as<std::string>();
        for (const auto& [name, text] : values_)
          value = replaced(value, "${{ " + name + " }}", text);
        script += "export " + variable.first.as<std::string>() + "='" + value + "'\n";
      }
      return bash(script + s["run"].as<std::string>());
    }
    ADD_FAILURE() << "the action has no step " << id;
    return -1;
  }

  YAML::Node steps_;
  std::map<std::string, std::string> values_;  ///< Of GitHub's expressions, by name.
  std::string path_ = "/nowhere";              ///< What GITHUB_PATH adds to PATH.
};

TEST_F(Workflow, AChangeOfACommentPasses) {
  edit("router/epp.yaml", "# The configuration", "# A configuration");
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(step("check"), 0) << output();
  EXPECT_EQ(step("base"), 0) << output();
  EXPECT_EQ(step("change"), 0) << output();
  EXPECT_EQ(step("compare"), 0) << output();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
  EXPECT_EQ(output().rfind("::notice ", 0), 0U) << output();
  EXPECT_NE(slurp(folder_ / "compare.md").find("not distinguishable"), std::string::npos);
  EXPECT_EQ(XmlCheck(slurp(folder_ / "expectations.xml")).count("testcase"), 3);
  EXPECT_EQ(XmlCheck(slurp(folder_ / "comparison.xml")).count("failure"), 0);
}

TEST_F(Workflow, TheCacheIsNamedByTheSources) {
  const std::string key = slurp(folder_ / "sources.output");
  ASSERT_EQ(step("sources"), 0);
  EXPECT_EQ(slurp(folder_ / "sources.output"), key + key) << "the same sources, the same key";
  // A copy with one changed file.
  const fs::path other = folder_ / "other";
  for (const char* folder :
       {"base", "policies", "models", "workloads", "sim", "tools", "cmake", "scenarios", "docs"})
    fs::create_directories(other / folder);
  for (const char* file : {"CMakeLists.txt", "CMakePresets.json"})
    fs::copy(kRepository / file, other / file);
  values_["github.action_path"] = (other / ".github" / "actions" / "routesim").string();
  fs::create_directories(values_["github.action_path"]);
  ASSERT_EQ(step("sources"), 0) << output();
  const std::string keys = slurp(folder_ / "sources.output");
  EXPECT_NE(keys.substr(2 * key.size()), key);
}

TEST_F(Workflow, AChangeThatSpoilsTheCacheFails) {
  spoil_the_cache();
  EXPECT_EQ(step("check"), 0) << output();
  EXPECT_EQ(step("base"), 0) << output();
  EXPECT_EQ(step("change"), 1) << output();
  EXPECT_NE(output().find("::error file=router/scenario.yaml,line="), std::string::npos)
      << output();
  EXPECT_EQ(step("compare"), 1) << output();
  EXPECT_NE(output().find("::error "), std::string::npos) << output();
  EXPECT_NE(slurp(folder_ / "compare.md").find("worse"), std::string::npos);
  EXPECT_GT(XmlCheck(slurp(folder_ / "comparison.xml")).count("failure"), 0);
}

TEST_F(Workflow, AFileThatIsWrongFailsAtItsLine) {
  edit("router/epp.yaml", "queue-scorer", "queue-scorre");
  EXPECT_EQ(step("check"), 2) << output();
  EXPECT_NE(output().find("router/epp.yaml:"), std::string::npos) << output();
}

class GitLab : public BuildServer {
 protected:
  /// The exit code of the job on a change to the router that `edit_router` makes.
  template <class Edit>
  int job(const Edit& edit_router) {
    const std::string git =
        "export HOME=$PWD GIT_CONFIG_NOSYSTEM=1; git() { command git -c user.name=t -c "
        "user.email=t@t -c init.defaultBranch=main \"$@\"; }\n";
    EXPECT_EQ(bash(git + "git init -q . && git add router && git commit -q -m base"), 0)
        << output();
    edit_router();
    fs::create_directories(folder_ / ".routesim" / "bin");
    fs::create_symlink(ROUTESIM_BINARY, folder_ / ".routesim" / "bin" / "routesim");
    const YAML::Node job = YAML::LoadFile(
        (kRepository / "docs" / "ci" / "gitlab-ci.yml").string())["router-configuration"];
    std::string script = git + "export CI_MERGE_REQUEST_DIFF_BASE_SHA=$(git rev-parse HEAD)\n";
    for (const char* part : {"before_script", "script"})
      for (const YAML::Node& line : job[part]) script += line.as<std::string>() + "\n";
    return bash(script);
  }
};

TEST_F(GitLab, TheJobTellsAGoodChangeFromABadOne) {
  if (std::system("command -v git >/dev/null") != 0) GTEST_SKIP() << "git is not installed";
  EXPECT_EQ(job([&] { edit("router/epp.yaml", "# The configuration", "# A configuration"); }), 0)
      << output();
  EXPECT_EQ(XmlCheck(slurp(folder_ / "comparison.xml")).count("failure"), 0);
  fs::remove_all(folder_);
  fs::create_directories(folder_);
  BuildServer::SetUp();
  EXPECT_EQ(job([&] { spoil_the_cache(); }), 1) << output();
  EXPECT_GT(XmlCheck(slurp(folder_ / "comparison.xml")).count("failure"), 0);
}

// The pods in any order: the one that ends last finds all shards and joins them.
TEST_F(BuildServer, TheKubernetesJobMergesItsShards) {
  const YAML::Node job =
      YAML::LoadFile((kRepository / "docs" / "ci" / "kubernetes-indexed-job.yaml").string());
  const YAML::Node container = job["spec"]["template"]["spec"]["containers"][0];
  const int completions = job["spec"]["completions"].as<int>();
  EXPECT_EQ(container["env"][0]["value"].as<int>(), completions);
  ASSERT_EQ(container["command"].as<std::vector<std::string>>(),
            (std::vector<std::string>{"/bin/sh", "-c"}));
  tiny(100);
  write("sweep.yaml",
        "name: pods\nscenario: tiny.yaml\naxes:\n- {name: rate, path: workload.groups.rate, "
        "range: {from: 1, to: 20, step: 1}}\n");
  fs::create_directories(folder_ / "rows");
  fs::create_directories(folder_ / "bin");
  fs::create_symlink(ROUTESIM_BINARY, folder_ / "bin" / "routesim");
  std::string command = container["args"][0].as<std::string>();
  ASSERT_NE(command.find("h100-rate-map"), std::string::npos);
  command = replaced(replaced(command, "h100-rate-map", "sweep.yaml"), "/rows/", "rows/");
  write("pod.sh", command);
  for (int pod = 0; pod < completions; ++pod) {
    EXPECT_FALSE(fs::exists(folder_ / "rows" / "rows.jsonl"));
    const int index = (pod * 3 + 5) % completions;
    ASSERT_EQ(bash("PATH=$PWD/bin:$PATH JOB_COMPLETIONS=" + std::to_string(completions) +
                   " JOB_COMPLETION_INDEX=" + std::to_string(index) + " sh pod.sh"),
              0)
        << output();
  }
  const Result whole = run({"sweep", (folder_ / "sweep.yaml").string(), "-q", "-o", "jsonl"});
  EXPECT_EQ(slurp(folder_ / "rows" / "rows.jsonl"), whole.out);
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
  EXPECT_NE(band["text"].get<std::string>().find("3 % of the KV blocks, fewer or more, move"),
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
  // Formats that do not show the band do not pay for it.
  for (const std::string& format : run_formats())
    EXPECT_EQ(shows_kv_band(format),
              format == "table" || format == "json" || format == "markdown" || format == "html")
        << format;
}

}  // namespace
}  // namespace routesim::tools::testing
