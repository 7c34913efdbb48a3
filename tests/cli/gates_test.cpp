// Every metric that docs/metrics.md names can be gated, expected and waited for.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/cli/cli_fixture.h"
#include "tools/results/metrics.h"

namespace routesim::tools {
namespace {

using testing::Result;
using Json = nlohmann::json;

class Gates : public testing::Cli {
 protected:
  /// One variant with goals and tiers, or a crash: it has every metric of its kind.
  std::string scenario(const std::string& more = "", bool of_tiers = true) const {
    const std::string tiers = of_tiers
                                  ? ", kv_tiers: {cpu_chunks: 400}}}\n"
                                  : "}, gpu_price_per_hour: 2}\nevents: [{kind: crash, at: 1s}]\n";
    return write(of_tiers ? "one.yaml" : "crash.yaml", R"(name: one
workload:
  inference_perf:
    api: {type: completion, streaming: true}
    data:
      type: shared_prefix
      shared_prefix: {num_groups: 4, num_prompts_per_group: 5, system_prompt_len: 512,
                      question_len: 64, output_len: 16}
    load: {type: constant, stages: [{rate: 10, duration: 2}, {rate: 20, duration: 1}]}
cluster:
  pools:
  - {name: a, replicas: 2, accelerator: H100-SXM, model: Qwen3-32B, tensor_parallel: 2,
     engine: {preset: 2026-H2, num_gpu_blocks: 300)" + tiers +
                                                           "goodput: [ttft:10s]\n" + more);
  }
};

/// The names in the first column of the table of metrics.
std::vector<std::string> promised_names() {
  const std::string page = slurp(ROUTESIM_SOURCE_DIR "/docs/metrics.md");
  std::vector<std::string> names;
  std::size_t at = page.find("| CSV name |");
  at = page.find("\n|", page.find("\n|", at) + 1);
  while (at != std::string::npos && page.compare(at, 2, "\n|") == 0) {
    const std::size_t end = page.find('|', at + 2);
    for (std::size_t from = page.find('`', at); from < end;) {
      const std::size_t to = page.find('`', from + 1);
      names.push_back(page.substr(from + 1, to - from - 1));
      from = page.find('`', to + 1);
    }
    at = page.find('\n', at + 1);
  }
  return names;
}

bool needs_a_fleet(const std::string& name) {
  return name.starts_with("fleet_") || name == "minutes_missed";
}

/// A name with the statistic that it needs.
std::string complete(const std::string& name) {
  const MetricRow* const row = find_metric(name);
  EXPECT_NE(row, nullptr) << name;
  if (row == nullptr) return name;
  return row->has_many_values() || row->quantity == MetricKind::kUsage ? name + ".mean" : name;
}

TEST_F(Gates, TakeEveryPromisedNameOfOneVariant) {
  const std::vector<std::string> names = promised_names();
  ASSERT_GE(names.size(), 27U);
  for (const MetricRow& row : metric_table())
    if (!row.name.empty() && row.key != "benchmark_duration") {
      EXPECT_NE(std::ranges::find(names, row.key), names.end())
          << row.key << " is a metric that docs/metrics.md does not name";
    }
  for (const bool of_tiers : {true, false}) {
    const std::string one = (folder_ / "one.json").string();
    const std::string three = (folder_ / "three.json").string();
    const std::string asked = scenario("", of_tiers);
    ASSERT_EQ(run({"run", asked, "-q", "-o", "json=" + one}).code, 0);
    ASSERT_EQ(run({"run", asked, "-q", "--replications", "3", "-o", "json=" + three}).code, 0);
    for (const std::string& file : {one, three}) {
      for (const std::string& name : names) {
        // Without tiers all but these were asked before.
        if (needs_a_fleet(name) == of_tiers) continue;
        // Every value is above -1, for certain or as far as three seeds can tell.
        const Result above = run({"compare", file, file, "--fail-if", complete(name) + ">-1"});
        EXPECT_TRUE(above.code == 1 || (file == three && above.code == 4))
            << file << " " << name << " " << above.code << "\n"
            << above.err << above.out;
        const Result same = run({"compare", file, file, "--fail-if", complete(name) + ">+0%"});
        EXPECT_EQ(same.code, 0) << file << " " << name << "\n" << same.err << same.out;
        EXPECT_EQ(same.out.find("no such number"), std::string::npos) << name << same.out;
      }
    }
  }
}

TEST_F(Gates, ValuesAreThoseOfTheRun) {
  // An expectation is judged by the run itself, a gate by its file: both must find one number.
  for (const bool of_tiers : {true, false}) {
    std::string expect = "expect:\n";
    std::vector<std::string> names = promised_names();
    std::erase_if(names, [&](const std::string& name) { return needs_a_fleet(name) == of_tiers; });
    for (const std::string& name : names) expect += "- " + complete(name) + " > -1\n";
    const std::string file = (folder_ / "one.json").string();
    const Result made = run({"run", scenario(expect, of_tiers), "-q", "-o", "json=" + file});
    ASSERT_EQ(made.code, 0) << made.err;
    const Json expectations = Json::parse(slurp(file))["expectations"];
    ASSERT_EQ(expectations.size(), names.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
      EXPECT_EQ(expectations[i]["decision"], "holds") << names[i];
      const std::string found = expectations[i]["found"];
      const Result gate =
          run({"compare", file, file, "-o", "json", "--fail-if", complete(names[i]) + ">1e12"});
      ASSERT_EQ(gate.code, 0) << gate.err;
      EXPECT_EQ(std::string(Json::parse(gate.out)["gates"][0]["found"]).substr(0, found.size()),
                found)
          << names[i];
    }
  }
}

TEST_F(Gates, UntilTakesEveryPromisedName) {
  for (const std::string& name : promised_names()) {
    const std::string asked = scenario("", !needs_a_fleet(name));
    const Result made =
        run({"run", asked, "-q", "--until", complete(name) + "+-99%", "--replications", "2"});
    EXPECT_TRUE(made.code == 0 || made.code == 4) << name << made.code << made.err;
  }
}

TEST_F(Gates, OfANumberThatTheFileHasNotAreErrors) {
  const std::string file = (folder_ / "tiny.json").string();
  ASSERT_EQ(run({"run", tiny(), "-q", "-o", "json=" + file, "--variant", "chance"}).code, 0);
  const auto errors = [&](const std::string& gate) {
    const Result r = run({"compare", file, file, "--fail-if", gate});
    EXPECT_EQ(r.code, 2) << gate << r.out;
    return r.err;
  };
  EXPECT_NE(errors("ttft.std>+5%").find("with an expect about ttft_s.std"), std::string::npos);
  EXPECT_NE(errors("goodput<-5%").find("set goodput: [ttft:500ms]"), std::string::npos);
  EXPECT_NE(errors("tier_hit_rate<-5%").find("only pools with engine.kv_tiers"), std::string::npos);
  EXPECT_EQ(run({"compare", file, file, "--fail-if", "ttft.p99.9>+5%"}).code, 0)
      << "a percentile of the file's own figures";
}

}  // namespace
}  // namespace routesim::tools
