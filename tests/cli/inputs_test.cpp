// Where the command takes its inputs from: standard input, installed files, and the files of other
// products.
#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tests/cli/cli_fixture.h"

namespace routesim::tools {
namespace {

using testing::Result;
namespace fs = std::filesystem;
using Json = nlohmann::json;

class Inputs : public testing::Cli {
 protected:
  /// Runs a line of the shell in the test's folder; `routesim` is the command.
  Result shell(const std::string& line, const std::string& binary = ROUTESIM_BINARY) const {
    const std::string out = (folder_ / "stdout").string();
    const std::string err = (folder_ / "stderr").string();
    const std::string whole = "cd '" + folder_.string() + "' && routesim() { '" + binary +
                              "' \"$@\"; }; { " + line + "; } > '" + out + "' 2> '" + err + "'";
    Result result;
    const int status = std::system(("sh -c " + quoted(whole)).c_str());
    result.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    result.out = slurp(out);
    result.err = slurp(err);
    return result;
  }

 private:
  static std::string quoted(const std::string& text) {
    std::string out = "'";
    for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
  }
};

TEST_F(Inputs, AScenarioFromStandardInput) {
  write("router.yaml",
        "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\n"
        "plugins: [{type: queue-scorer}, {type: max-score-picker}]\n"
        "schedulingProfiles:\n"
        "- {name: p, plugins: [{pluginRef: queue-scorer}, {pluginRef: max-score-picker}]}\n");
  // The document's path starts in the working directory.
  const std::string scenario =
      "name: piped\n" + two_servers(
                            "requests: 30, rate: 20, groups: 4, prefix_len: 64, "
                            "suffix_len: 64, output_len: 8",
                            "{name: scored, routing: {endpoint_picker: router.yaml}}");
  write("piped.yaml", scenario);
  const Result piped = shell("cat piped.yaml | routesim run - -q -o csv");
  EXPECT_EQ(piped.code, 0) << piped.err;
  EXPECT_EQ(piped.out, shell("routesim run piped.yaml -q -o csv").out);
  const Json result = Json::parse(shell("routesim run - -q -o json --seed 3 < piped.yaml").out);
  EXPECT_EQ(result["command"]["input"], "-");
  EXPECT_EQ(result["seed"], 3);
  EXPECT_EQ(shell("routesim explain - --yaml < piped.yaml").out,
            shell("routesim explain piped.yaml --yaml").out);
  const Result checked = shell("routesim check - < piped.yaml");
  EXPECT_EQ(checked.code, 0) << checked.err;
  EXPECT_EQ(checked.out.find("<stdin>: ok (rotation, scored)"), 0U) << checked.out;
}

TEST_F(Inputs, ErrorsOfStandardInputHavePlaces) {
  write("bad.yaml", "name: bad\nquestoin: x\n" +
                        two_servers("requests: 0, rate: 20, groups: 4, prefix_len: 64, "
                                    "suffix_len: 64, output_len: 8"));
  for (const char* command : {"run", "check", "explain"}) {
    const Result r = shell(std::string("routesim ") + command + " - < bad.yaml");
    EXPECT_EQ(r.code, 2) << command;
    EXPECT_NE(r.err.find("<stdin>:2:1: error: questoin: unknown key"), std::string::npos) << r.err;
    EXPECT_NE(r.err.find("<stdin>:4:"), std::string::npos) << r.err;
  }
  EXPECT_EQ(shell("routesim run - < /dev/null").code, 2);
  write("plan.yaml", "scenario: s.yaml\ndemand: {rate: 1}\ngoals: [ttft_ms.p90 < 1]\n");
  EXPECT_NE(shell("routesim check - < plan.yaml")
                .err.find("a file of kind plan is not read from standard input"),
            std::string::npos);
}

TEST_F(Inputs, ListsAreDataToo) {
  for (const char* what : {"models", "accelerators", "plugins", "balancers", "scenarios"}) {
    tiny();
    const std::string line = std::string("routesim list ") + what +
                             (what == std::string("scenarios") ? " --folder ." : "");
    const Result text = shell(line);
    const Json data = Json::parse(shell(line + " -o json").out);
    ASSERT_TRUE(data.is_array()) << what;
    ASSERT_FALSE(data.empty()) << what;
    EXPECT_EQ(std::count(text.out.begin(), text.out.end(), '\n'),
              static_cast<std::ptrdiff_t>(data.size()) + 1)
        << what << ": a line each, and the heading";
    const char* key = what == std::string("scenarios") ? "file" : "name";
    for (const Json& item : data)
      EXPECT_NE(text.out.find(item[key].get<std::string>()), std::string::npos) << item;
  }
  const Json accelerators = Json::parse(shell("routesim list accelerators -o json").out);
  for (const Json& a : accelerators)
    if (a["name"] == "H100-SXM") {
      EXPECT_NEAR(a["memory_tb_per_s"].get<double>(), 3.35, 1e-12);
    }
  EXPECT_TRUE(std::any_of(accelerators.begin(), accelerators.end(), [](const Json& a) {
    return a["fp8_tflops"].is_null();
  })) << "a GPU without FP8 has none";
  EXPECT_EQ(shell("routesim list -o json").code, 2) << "what to list is missing";
}

TEST_F(Inputs, FilesOfOtherProductsAreCheckedAsSuch) {
  write("deployment.yaml", slurp(ROUTESIM_SOURCE_DIR "/docs/examples/deployment.yaml"));
  write("router.sh",
        "python3 -m sglang_router.launch_router --worker-urls http://a --policy cache_aware\n");
  write("guidellm.json",
        R"({"profile": "concurrent", "rate": [2, 6], "max_seconds": 30,
            "data": {"prompt_tokens": 512, "output_tokens": 64}})");
  const Result servers = shell("routesim check deployment.yaml --keys");
  EXPECT_EQ(servers.code, 0) << servers.err;
  EXPECT_EQ(servers.out.find("deployment.yaml: ok (servers "), 0U) << servers.out;
  EXPECT_NE(servers.out.find("for a pool's vllm_serve"), std::string::npos) << servers.out;
  EXPECT_NE(servers.out.find("deployment.yaml:"), std::string::npos);
  EXPECT_EQ(servers.out.find("routesim-check.yaml"), std::string::npos)
      << "the scenario is made up: " << servers.out;
  const Result router = shell("routesim check router.sh");
  EXPECT_EQ(router.code, 0) << router.err;
  EXPECT_EQ(router.out.find("router.sh: ok (the router smg-cache-aware for routing.config)"), 0U)
      << router.out;
  const Result load = shell("routesim check guidellm.json");
  EXPECT_EQ(load.code, 0) << load.err;
  EXPECT_EQ(load.out.find("guidellm.json: ok (a load of GuideLLM for workload.guidellm)"), 0U)
      << load.out;
  const Json data = Json::parse(shell("routesim check deployment.yaml -o json --keys").out);
  EXPECT_EQ(data[0]["kind"], "deployment");
  EXPECT_GT(data[0]["keys"].size(), 3U);
  for (const Json& key : data[0]["keys"]) EXPECT_EQ(key["file"], "deployment.yaml");
  EXPECT_EQ(shell("routesim check deployment.yaml --set a=1").code, 2) << "it takes no --set";
  // A file that is nothing of all this stays what it was.
  write("nothing.yaml", "a: 1\n");
  EXPECT_EQ(shell("routesim check nothing.yaml").code, 2);
}

TEST_F(Inputs, InstalledFilesAreShownByName) {
  const fs::path binary = folder_ / "prefix" / "bin" / "routesim";
  const fs::path scenarios = folder_ / "prefix" / "share" / "routesim" / "scenarios";
  fs::create_directories(binary.parent_path());
  fs::create_directories(scenarios);
  std::error_code other_disk;
  fs::create_hard_link(ROUTESIM_BINARY, binary, other_disk);
  if (other_disk) fs::copy_file(ROUTESIM_BINARY, binary);
  fs::copy_file(tiny(), scenarios / "shipped.yaml");
  fs::remove(folder_ / "tiny.yaml");
  std::ofstream(scenarios / "broken.yaml") << "name: broken\nworkload: 3\n";
  const std::string prefix = (folder_ / "prefix").string();
  for (const char* line :
       {"routesim list scenarios", "routesim list scenarios -o json", "routesim check shipped",
        "routesim check broken", "routesim run broken", "routesim run shipped -q -o json"}) {
    const Result r = shell(line, binary.string());
    EXPECT_EQ((r.out + r.err).find(prefix), std::string::npos) << line << "\n" << r.out << r.err;
    EXPECT_NE((r.out + r.err).find("scenarios/"), std::string::npos) << line << r.out << r.err;
  }
  EXPECT_NE(shell("routesim check broken", binary.string()).err.find("scenarios/broken.yaml:2:"),
            std::string::npos);
  // The name that is shown names the file.
  EXPECT_EQ(shell("routesim run scenarios/shipped.yaml -q", binary.string()).code, 0);
}

TEST_F(Inputs, ComparisonsHaveSeveralOutputs) {
  tiny();
  ASSERT_EQ(shell("routesim run tiny.yaml -q -o json=a.json").code, 0);
  const Result r =
      shell("routesim compare a.json a.json -o json=c.json -o html=c.html -o junit=c.xml -o table");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.out.find("What changed"), std::string::npos);
  EXPECT_EQ(Json::parse(slurp((folder_ / "c.json").string()))["changes"].size(), 0U);
  EXPECT_NE(slurp((folder_ / "c.html").string()).find("<!DOCTYPE html>"), std::string::npos);
  EXPECT_NE(slurp((folder_ / "c.xml").string()).find("what changed: nothing"), std::string::npos);
  EXPECT_EQ(shell("routesim compare a.json a.json -o json -o table").code, 2)
      << "two on standard output";
}

TEST_F(Inputs, PlansTakeOverrides) {
  const std::string plan = ROUTESIM_SOURCE_DIR "/docs/examples/plan.yaml";
  const Json before = Json::parse(shell("routesim plan '" + plan + "' -q -o json").out);
  const Json after =
      Json::parse(shell("routesim plan '" + plan +
                        "' -q -o json --set 'cluster.pools[vllm].engine.max_num_seqs=24'")
                      .out);
  ASSERT_FALSE(after["plans"].empty());
  EXPECT_GT(after["plans"][0]["price_per_hour"], before["plans"][0]["price_per_hour"])
      << "small batches need more servers";
  const Result wrong = shell("routesim plan '" + plan + "' -q --set 'cluster.pols=1'");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("--set"), std::string::npos) << wrong.err;
}

}  // namespace
}  // namespace routesim::tools
