// Loads that find their rates while they run: what every command says about them.
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/cli/cli_fixture.h"

namespace routesim::tools::testing {
namespace {

using Json = nlohmann::json;

class LoadSweep : public Cli {
 protected:
  /// One server, and the same beside three others: four times the rate.
  std::string scenario() const {
    return write("rates.yaml",
                 "name: rates\n"
                 "workload:\n"
                 "  inference_perf:\n"
                 "    load: {type: constant, interval: 1, sweep: {type: linear, num_requests: 400, "
                 "num_stages: 3, stage_duration: 20}}\n"
                 "    data:\n"
                 "      type: random\n"
                 "      input_distribution: {type: fixed, mean: 1000}\n"
                 "      output_distribution: {type: fixed, mean: 50}\n"
                 "cluster:\n"
                 "  pools:\n"
                 "  - {name: a, replicas: 1, accelerator: H100-SXM, model: Qwen3-32B, "
                 "tensor_parallel: 2}\n"
                 "routing: {balancer: round-robin}\n"
                 "variants:\n"
                 "- name: one\n"
                 "- name: four\n"
                 "  cluster: {pools: [{name: a, replicas: 4, accelerator: H100-SXM, model: "
                 "Qwen3-32B, tensor_parallel: 2}]}\n");
  }

  Json result(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"run", scenario(), "--quiet", "--check", "-o", "json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Result run = this->run(arguments);
    EXPECT_EQ(run.code, 0) << run.err;
    return Json::parse(run.out);
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  static double rate(const Json& stage) {
    return stage["load_summary"]["requested_rate"].get<double>();
  }
};

TEST_F(LoadSweep, ReportsTheRatesThatWereFound) {
  const Json variants = result()["variants"];
  ASSERT_EQ(variants.size(), 2U);
  std::vector<double> top;
  for (const Json& v : variants) {
    ASSERT_EQ(v["stages"].size(), 3U);
    EXPECT_EQ(v["preparation"].size(), 1U);
    EXPECT_EQ(rate(v["stages"][0]), 1);
    top.push_back(rate(v["stages"][2]));
    EXPECT_NEAR(rate(v["stages"][1]), (1 + top.back()) / 2, 0.0051);
    for (const Json& stage : v["stages"]) {
      const auto sent = stage["load_summary"]["count"].get<double>();
      EXPECT_EQ(sent, std::floor(rate(stage) * 20));
    }
    EXPECT_NE(v["notes"].dump().find("load.sweep: its probe drained at up to"), std::string::npos);
  }
  EXPECT_GT(top[0], 2);
  EXPECT_GT(top[1], 2 * top[0]);
}

TEST_F(LoadSweep, ShowsTheRatesOfEveryVariant) {
  const Json variants = result()["variants"];
  const Result run = this->run({"run", scenario(), "--quiet", "--tables"});
  std::ostringstream pair;
  pair << rate(variants[0]["stages"][2]) << " / " << rate(variants[1]["stages"][2]);
  EXPECT_NE(run.out.find("\n2  "), std::string::npos) << run.out;
  EXPECT_NE(run.out.find(pair.str()), std::string::npos) << pair.str() << "\n" << run.out;
}

TEST_F(LoadSweep, IsTheSameAgain) { EXPECT_EQ(result(), result()); }

TEST_F(LoadSweep, HasNoRateWhereRunsDiffer) {
  const Result run = this->run({"run", scenario(), "--quiet", "--tables", "--replications", "2"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.out.find("\n2         -  "), std::string::npos) << run.out;
  write("grid.yaml",
        "name: grid\nscenario: rates.yaml\nreplications: 2\naxes: [{path: "
        "'cluster.pools[a].replicas', values: [1]}]\nmetrics: [ttft_ms.p90]\n");
  const Result sweep = this->run({"sweep", path("grid.yaml"), "--quiet", "--output", "jsonl"});
  EXPECT_EQ(sweep.code, 0) << sweep.err;
  // The first stage is at one request/s for all seeds; later ones have no rate in common.
  const Json stages = Json::parse(sweep.out.substr(0, sweep.out.find('\n')))["stages"];
  EXPECT_EQ(stages[1]["requested_rate"], 1);
  EXPECT_EQ(stages[3]["requested_rate"], 0);
}

TEST_F(LoadSweep, IsDrawnByTheNumberOfItsStages) {
  const std::string stored = path("r.json");
  ASSERT_EQ(run({"run", scenario(), "--quiet", "--output", "json=" + stored}).code, 0);
  const Result page = this->run({"report", stored, "--output", path("r.html")});
  EXPECT_EQ(page.code, 0) << page.err;
  const std::string text = slurp(path("r.html"));
  EXPECT_EQ(text.find("requests/s asked for"), std::string::npos);
  EXPECT_NE(text.find("<th>stage</th>"), std::string::npos);
}

TEST_F(LoadSweep, ThatFindsNothingSaysSo) {
  const Result run = this->run(
      {"run", scenario(), "--quiet", "--set", "workload.inference_perf.load.sweep.num_requests=1"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.out.find("no stage was run"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("No stage had a request, so there is nothing to compare."),
            std::string::npos)
      << run.out;
}

}  // namespace
}  // namespace routesim::tools::testing
