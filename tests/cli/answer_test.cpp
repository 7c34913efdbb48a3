// The answer in the terminal: the verdict, ad-hoc scans, colours, and files given to the wrong
// command.
#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/cli/cli_fixture.h"

namespace routesim::tools::testing {
namespace {

using Json = nlohmann::json;

class Answer : public Cli {
 protected:
  static std::vector<std::string> names(const Json& result) {
    std::vector<std::string> all;
    for (const Json& variant : result["variants"]) all.push_back(variant["name"]);
    return all;
  }
  static double rate(const Json& variant) {
    return variant["stages"][0]["load_summary"]["requested_rate"];
  }
  Json result(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"-o", "json", "-q"});
    const Result r = run(arguments);
    EXPECT_EQ(r.code, 0) << r.err;
    return Json::parse(r.out, nullptr, false);
  }
};

TEST_F(Answer, TheVerdictOfTheJsonStandsAboveTheTables) {
  const std::string s = tiny();
  const Json verdict = result({"run", s})["verdict"];
  const Result table = run({"run", s, "-q"});
  const std::size_t at = table.out.find("\nVerdict\n");
  ASSERT_NE(at, std::string::npos) << table.out;
  EXPECT_LT(at, table.out.find("router decisions"));
  const std::string text = one_line(table.out.substr(at));
  EXPECT_NE(text.find(verdict["headline"].get<std::string>()), std::string::npos) << text;
  EXPECT_EQ(verdict["base"], "rotation");
  EXPECT_EQ(verdict["knees"].size(), 2U);
  for (const Json& step : verdict["next"])
    EXPECT_NE(step.get<std::string>().find(": routesim "), std::string::npos) << step;
}

TEST_F(Answer, ItsLinesFitIntoATerminal) {
  const Result table = run({"run", tiny(), "-q", "--rate", "1x,100x"});
  ASSERT_EQ(table.code, 0) << table.err;
  // The tables below are as wide as they are where no terminal says its width.
  std::istringstream lines(table.out.substr(0, table.out.find("\nstage ")));
  for (std::string line; std::getline(lines, line);)
    if (line.find("routesim run") == std::string::npos) {
      EXPECT_LE(line.size(), 104U) << line;
    }
}

/// The mean over all requests hides it: flow control serves the chats at the cost of the batch job.
TEST_F(Answer, TrafficClassesArePartOfTheVerdict) {
  const std::string tenants = std::string(ROUTESIM_SOURCE_DIR) + "/docs/examples/tenants.yaml";
  const std::string headline = result({"run", tenants})["verdict"]["headline"];
  EXPECT_NE(headline.find("Traffic classes differ: chat gets its first token sooner with "
                          "flow-control and batch gets its first token sooner with the base"),
            std::string::npos)
      << headline;
}

TEST_F(Answer, ARateScanRunsEveryVariantAtEveryRate) {
  const Json all = result({"run", tiny(), "--rate", "0.5x,2x"});
  EXPECT_EQ(names(all), (std::vector<std::string>{"rotation @ 0.5x", "chance @ 0.5x",
                                                  "rotation @ 2x", "chance @ 2x"}));
  EXPECT_EQ(all["variants"][3]["scan_of"], "chance");
  EXPECT_EQ(rate(all["variants"][0]), 10);
  EXPECT_EQ(rate(all["variants"][3]), 40);
  EXPECT_EQ(all["verdict"]["knees"].size(), 2U) << "of each variant over the rates";
  EXPECT_EQ(all["command"]["scan"], " --rate 0.5x,2x");
}

/// A scan is nothing but the runs it stands for: the same draws, the same bytes.
TEST_F(Answer, AScanGivesTheNumbersOfItsRuns) {
  const std::string s = tiny();
  const Json scan = result({"run", s, "--rate", "1x,2x", "--replicas", "2,3"});
  ASSERT_EQ(scan["variants"].size(), 8U);
  EXPECT_EQ(scan["variants"][7]["name"], "chance, 3 replicas @ 2x");
  const Json alone = result({"run", s, "--variant", "chance", "--set", "workload.rate_scale=2",
                             "--set", "cluster.pools[0].replicas=3"});
  EXPECT_EQ(scan["variants"][7]["fingerprint"], alone["variants"][0]["fingerprint"]);
  EXPECT_EQ(scan["variants"][0]["fingerprint"], result({"run", s})["variants"][0]["fingerprint"])
      << "1x and the replicas of the file change nothing";
}

TEST_F(Answer, AbsoluteRatesNeedOneRate) {
  const Json all = result({"run", tiny(), "--rate", "5,40"});
  EXPECT_EQ(all["variants"][0]["name"], "rotation @ 5 req/s");
  EXPECT_EQ(rate(all["variants"][0]), 5);
  EXPECT_EQ(rate(all["variants"][2]), 40);
  const std::string ladder = std::string(ROUTESIM_SOURCE_DIR) + "/docs/examples/question.yaml";
  const Result several = run({"run", ladder, "--rate", "5", "-q"});
  EXPECT_EQ(several.code, 2);
  EXPECT_NE(several.err.find("question.yaml:"), std::string::npos) << several.err;
  EXPECT_NE(several.err.find("has no single rate"), std::string::npos) << several.err;
  EXPECT_NE(several.err.find("--rate 2x"), std::string::npos) << several.err;
}

TEST_F(Answer, FactorsAndRatesDoNotMix) {
  for (const char* rates : {"1x,10", "1,5x", "10,2x"}) {
    const Result mixed = run({"run", tiny(), "--rate", rates, "-q"});
    EXPECT_EQ(mixed.code, 2) << rates;
    EXPECT_NE(mixed.err.find("--rate mixes a factor and requests/s"), std::string::npos)
        << mixed.err;
  }
  const Result nameless = run({"run", tiny(), "--replicas", "=4", "-q"});
  EXPECT_EQ(nameless.code, 2);
  EXPECT_NE(nameless.err.find("--replicas has no name of a pool before its ="), std::string::npos)
      << nameless.err;
}

TEST_F(Answer, ALoadWithoutARateSaysSoAtItsPlace) {
  const std::string closed = std::string(ROUTESIM_SOURCE_DIR) + "/docs/examples/agents.yaml";
  const Result refused = run({"run", closed, "--rate", "2x", "-q"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("agents.yaml:"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("has no rate to multiply"), std::string::npos) << refused.err;
  // The user typed an option, not a key.
  for (const char* rate : {"2x", "20"}) {
    const Result again = run({"run", closed, "--rate", rate, "-q"});
    EXPECT_NE(again.err.find("leave --rate out"), std::string::npos) << again.err;
    EXPECT_EQ(again.err.find("rate_scale"), std::string::npos) << again.err;
  }
}

TEST_F(Answer, ReplicasNameThePoolWhereThereAreSeveral) {
  std::string text = slurp(tiny());
  text.insert(text.find("variants:"), "  - {name: b, accelerator: H100-SXM, model: Qwen3-32B}\n");
  const std::string two = write("two.yaml", text);
  const Result which = run({"run", two, "--replicas", "3", "-q"});
  EXPECT_EQ(which.code, 2);
  EXPECT_NE(which.err.find("write --replicas POOL=4,6 with one of a, b"), std::string::npos)
      << which.err;
  const Json all = result({"run", two, "--replicas", "b=2", "--variant", "chance"});
  EXPECT_EQ(names(all), std::vector<std::string>{"chance, 2 b replicas"});
  EXPECT_EQ(all["variants"][0]["replicas"].size(), 4U);
  const Result unknown = run({"run", two, "--replicas", "c=2", "-q"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("has no pool "), std::string::npos) << unknown.err;
}

TEST_F(Answer, WrongScansAreUsageErrors) {
  const std::string s = tiny();
  for (const char* rates : {"", "x", "0x", "-1", "2y", "1x,", "1x,1x", "1e9x"})
    EXPECT_EQ(run({"run", s, "--rate", rates, "-q"}).code, 2) << rates;
  for (const char* replicas : {"", "0", "2.5", "a=", "2,2", "a=2,b=3"})
    EXPECT_EQ(run({"run", s, "--replicas", replicas, "-q"}).code, 2) << replicas;
}

TEST_F(Answer, ExpectationsOfTheFileDoNotJudgeAScan) {
  const std::string s = write("expect.yaml", slurp(tiny()) + "expect:\n- ttft_ms.p99 < 0.001\n");
  EXPECT_EQ(run({"run", s, "-q"}).code, 1);
  const Result scan = run({"run", s, "--rate", "2x"});
  EXPECT_EQ(scan.code, 0);
  EXPECT_NE(scan.err.find("has no effect on a scan"), std::string::npos) << scan.err;
  EXPECT_NE(one_line(scan.out).find("A scan judges no expectation"), std::string::npos) << scan.out;
  // To a build server, silence is a test that passed.
  for (const std::string judge : {"junit", "github"}) {
    const Result refused = run({"run", s, "--rate", "2x", "-q", "-o", judge});
    EXPECT_EQ(refused.code, 2);
    EXPECT_EQ(refused.out, "");
    EXPECT_NE(refused.err.find("a scan judges none, so --output " + judge), std::string::npos)
        << refused.err;
  }
  EXPECT_EQ(run({"run", tiny(), "--rate", "2x", "-q", "-o", "junit"}).code, 0);
}

/// All expectations are about the variant that --variant leaves out.
TEST_F(Answer, ABuildServerIsNotToldOfARunThatNothingJudges) {
  const std::string s = write(
      "expect.yaml", slurp(tiny()) + "expect:\n- {variant: rotation, that: ttft_ms.p99 < 9000}\n");
  for (const std::string judge : {"junit", "github"}) {
    const Result refused = run({"run", s, "--variant", "chance", "-q", "-o", judge});
    EXPECT_EQ(refused.code, 2);
    EXPECT_EQ(refused.out, "");
    EXPECT_NE(refused.err.find("error: expect: none is about the variants that are run, so "
                               "--output " +
                               judge),
              std::string::npos)
        << refused.err;
    EXPECT_EQ(run({"run", s, "--variant", "rotation", "-q", "-o", judge}).code, 0);
  }
  EXPECT_EQ(run({"run", s, "--variant", "chance", "-q"}).code, 0);
}

TEST_F(Answer, AFailedExpectationStandsAboveTheHeadline) {
  const std::string s = write("expect.yaml", slurp(tiny()) + "expect:\n- ttft_ms.p99 < 0.001\n");
  const std::string out = run({"run", s, "-q"}).out;
  const std::size_t verdict = out.find("\nVerdict\n");
  const std::size_t failed = out.find("! expectation fails: ttft_ms.p99 < 0.001", verdict);
  EXPECT_NE(failed, std::string::npos) << out;
  EXPECT_LT(failed, out.find("rotation", out.find("(chance)", failed))) << out;
}

TEST_F(Answer, ColoursAreForTerminalsAndThoseWhoAsk) {
  const std::string s = tiny();
  const std::string plain = run({"run", s, "-q"}).out;
  EXPECT_EQ(plain.find('\x1b'), std::string::npos) << "a file is no terminal";
  const std::string coloured = run({"run", s, "-q", "--color", "always"}).out;
  EXPECT_NE(coloured.find("\x1b[1m"), std::string::npos);
  EXPECT_EQ(std::regex_replace(coloured, std::regex("\x1b\\[[0-9]+m"), ""), plain)
      << "colours move nothing";
  EXPECT_EQ(run({"run", s, "-q", "--color", "never"}).out, plain);
  EXPECT_EQ(run({"run", s, "-q", "--color", "some"}).code, 2);
}

TEST_F(Answer, AFileOfAnotherKindNamesItsCommand) {
  const std::string root = std::string(ROUTESIM_SOURCE_DIR) + "/docs/examples/";
  const auto says = [&](const char* command, const char* file, const std::string& what,
                        const std::string& hint) {
    const Result r = run({command, root + file, "-q"});
    EXPECT_EQ(r.code, 2);
    EXPECT_NE(r.err.find(what), std::string::npos) << r.err;
    EXPECT_NE(r.err.find("hint: routesim " + hint + " " + root + file), std::string::npos) << r.err;
  };
  says("run", "plan.yaml", "is a plan, not a scenario", "plan");
  says("run", "sweep.yaml", "is a sweep, not a scenario", "sweep");
  says("plan", "question.yaml", "is a scenario, not a plan", "run");
  says("plan", "sweep.yaml", "is a sweep, not a plan", "sweep");
  says("sweep", "question.yaml", "is a scenario, not a sweep", "run");
  says("sweep", "plan.yaml", "is a plan, not a sweep", "plan");
  says("run", "tune.yaml", "is a tuning, not a scenario", "tune");
  says("plan", "tune.yaml", "is a tuning, not a plan", "tune");
  says("tune", "plan.yaml", "is a plan, not a tuning", "plan");
  says("tune", "sweep.yaml", "is a sweep, not a tuning", "sweep");
  says("run", "epp.yaml", "is a configuration of a router, not a scenario", "init");
  says("tune", "epp.yaml", "is a configuration of a router, not a tuning", "init");
  says("run", "inference-perf.yaml", "is a configuration of inference-perf, not", "init");
  says("run", "deployment.yaml", "is a Kubernetes manifest, not a scenario", "init");
  says("run", "vllm-bench.json", "is a result of a load tool, not a scenario", "init");
  says("plan", "vllm-bench.json", "is a result of a load tool, not a plan", "init");
  says("sweep", "vllm-bench.json", "is a result of a load tool, not a sweep", "init");
  says("tune", "vllm-bench.json", "is a result of a load tool, not a tuning", "init");
}

/// One error, not one per unknown key.
TEST_F(Answer, AForeignFileIsOneErrorThatNamesIt) {
  const auto errors = [](const Result& r) {
    const std::regex error(": error: ");
    return std::distance(std::sregex_iterator(r.err.begin(), r.err.end(), error), {});
  };
  const std::string object = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n";
  const Result several = run({"run", write("two.yaml", object + "---\n" + object), "-q"});
  EXPECT_NE(several.err.find("is a Kubernetes manifest, not a scenario"), std::string::npos)
      << several.err;
  EXPECT_EQ(errors(several), 1) << several.err;
  for (const std::string kind : {"",
                                 "apiVersion: kustomize.config.k8s.io/v1beta1\n"
                                 "kind: Kustomization\n"}) {
    const std::string file =
        write("kustomization.yaml", kind + "resources: [deployment.yaml]\nnamePrefix: x-\n");
    for (const char* command : {"run", "plan", "sweep", "tune"}) {
      const Result r = run({command, file});
      EXPECT_EQ(r.code, 2);
      EXPECT_EQ(errors(r), 1) << r.err;
      EXPECT_NE(r.err.find("is a kustomization, not a"), std::string::npos) << r.err;
      EXPECT_NE(r.err.find("kubectl kustomize"), std::string::npos) << r.err;
    }
  }
  const std::string measured = std::string(ROUTESIM_SOURCE_DIR) + "/docs/examples/vllm-bench.json";
  for (const Result& r : {run({"explain", measured}), run({"compare", measured, measured})})
    EXPECT_NE(r.err.find("is a result of a load tool, not a "), std::string::npos) << r.err;
  const std::string lines = write("lines.jsonl", "{\"id\": 1}\n{\"id\": 2}\n");
  for (const Result& r : {run({"run", lines}), run({"compare", tiny(), lines})}) {
    EXPECT_NE(r.err.find("lines.jsonl:2:1: error: is JSON lines, and one document is read here"),
              std::string::npos)
        << r.err;
    EXPECT_NE(r.err.find("routesim report"), std::string::npos) << r.err;
  }
  const Result table = run({"run", write("t.csv", "timestamp,input_length\n1,2\n")});
  EXPECT_EQ(errors(table), 1) << table.err;
  EXPECT_NE(table.err.find("workload.trace.file"), std::string::npos) << table.err;
  const Result reported = run({"report", lines, "-o", (folder_ / "x.html").string()});
  EXPECT_EQ(reported.code, 2);
  EXPECT_NE(reported.err.find("is JSON, but not a result of routesim"), std::string::npos)
      << reported.err;
  const std::string json = (folder_ / "a.json").string();
  ASSERT_EQ(run({"run", tiny(), "-o", "json=" + json, "-q"}).code, 0);
  for (const char* command : {"run", "plan", "check"}) {
    const Result r = run({command, json});
    EXPECT_EQ(r.code, 2);
    EXPECT_EQ(errors(r), 1) << r.err << r.out;
    EXPECT_NE((r.err + r.out).find("is a result, not a "), std::string::npos) << r.err << r.out;
    EXPECT_NE((r.err + r.out).find("routesim report " + json + " --output PAGE.html"),
              std::string::npos)
        << r.err << r.out;
  }
  const std::string root = std::string(ROUTESIM_SOURCE_DIR) + "/docs/examples/";
  const Result compared = run({"compare", root + "question.yaml", root + "plan.yaml"});
  EXPECT_EQ(compared.code, 2);
  EXPECT_EQ(errors(compared), 2) << compared.err;
  EXPECT_NE(compared.err.find("is a scenario, not a result"), std::string::npos) << compared.err;
  EXPECT_NE(compared.err.find("is a plan, not a result"), std::string::npos) << compared.err;
}

TEST_F(Answer, MeasuredNumbersAreOfOneLoadAndFleet) {
  write("m.csv",
        "experiment,policy,stage,rate,metric,statistic,unit,value,source\n"
        "e,p,0,4,output_throughput,mean,tok/s,580,invented\n");
  const std::string file =
      write("s.yaml",
            "name: s\nworkload: {groups: {requests: 8, rate: 4, groups: 2, prefix_len: 64, "
            "suffix_len: 64, output_len: 4}}\ncluster:\n  pools: [{name: vllm, replicas: 2, "
            "accelerator: H100-SXM, model: Qwen3-8B}]\nrouting: {balancer: round-robin}\n"
            "measured: {csv: m.csv, experiment: e, policy: p}\n");
  const Result as_is = run({"run", file, "--tables", "--set", "routing.balancer=random"});
  EXPECT_NE(as_is.out.find("err %"), std::string::npos) << as_is.out;
  for (const char* set : {"workload.groups.rate=2", "cluster.pools[vllm].replicas=1",
                          "cluster.pools[0].accelerator=H200-SXM"}) {
    const Result other = run({"run", file, "--tables", "--set", set});
    EXPECT_EQ(other.code, 0) << other.err;
    EXPECT_EQ(other.out.find("err %"), std::string::npos) << other.out;
    EXPECT_NE(other.err.find("makes another load or fleet"), std::string::npos) << other.err;
  }
}

TEST_F(Answer, GatesSuggestNames) {
  const std::string before = (folder_ / "a.json").string();
  ASSERT_EQ(run({"run", tiny(), "-o", "json=" + before, "-q"}).code, 0);
  const Result gate = run({"compare", before, before, "--fail-if", "ttft_p99>5%"});
  EXPECT_EQ(gate.code, 2);
  EXPECT_NE(gate.err.find("did you mean ttft_ms.p99?"), std::string::npos) << gate.err;
}

}  // namespace
}  // namespace routesim::tools::testing
