// The answers that a build server gets: replications, expectations, comparisons, and every metric
// that gates.
#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/cli/cli_fixture.h"
#include "tests/cli/xml_check.h"
#include "tools/results/metrics.h"

namespace routesim::tools::testing {
namespace {

// Replications, expectations and comparisons as a user runs them, and what a build server is told.

using Json = nlohmann::json;

class Decisions : public Cli {
 protected:
  std::string expecting(const std::string& expect) const {
    return write("tiny-expect.yaml", slurp(tiny()) + "expect:\n" + expect);
  }
};

TEST_F(Decisions, ReplicationsAreTheSameForAnyNumberOfJobs) {
  const std::string s = tiny();
  const Result one = run({"run", s, "--replications", "4", "-o", "json", "-j", "1", "-q"});
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(run({"run", s, "--replications", "4", "-o", "json", "-j", "3", "-q"}).out, one.out);
  const Json all = Json::parse(one.out);
  EXPECT_EQ(all["replications"]["seeds"], Json({1, 2, 3, 4}));

  // The stages stay those of the first seed; the object is the one of a single run, and more.
  Json single = Json::parse(run({"run", s, "-o", "json", "-q"}).out);
  EXPECT_FALSE(single.contains("replications"));
  EXPECT_EQ(all["variants"], single["variants"]);

  // Every seed's value is what a run with that seed gives.
  const Json third = Json::parse(run({"run", s, "--seed", "3", "-o", "json", "-q"}).out);
  for (std::size_t v = 0; v < 2; ++v) {
    const double truth =
        third["variants"][v]["summary"]["successes"]["latency"]["time_to_first_token"]["p99"];
    EXPECT_NEAR(
        all["replications"]["variants"][v]["summary"]["metrics"]["ttft_ms.p99"]["values"][2],
        1000 * truth, 1e-6);
  }
}

TEST_F(Decisions, TheTableHasIntervalsAndVerdicts) {
  const Result table = run({"run", tiny(), "--replications", "5", "-q"});
  ASSERT_EQ(table.code, 0) << table.err;
  for (const char* part : {"seeds 1 to 5", " ± ", "chance - rotation", "not distinguishable"})
    EXPECT_NE(table.out.find(part), std::string::npos) << part << "\n" << table.out;
  const Result csv = run({"run", tiny(), "--replications", "2", "-q", "-o", "csv"});
  EXPECT_EQ(csv.out.rfind("scenario,variant,stage,rate,metric,n,mean", 0), 0U);
}

TEST_F(Decisions, UntilStopsWhenPreciseAndSaysWhenItCannot) {
  const std::string s = tiny();
  const Result precise =
      run({"run", s, "--until", "ttft_ms.mean±40%", "-o", "json", "-q", "-j", "2"});
  ASSERT_EQ(precise.code, 0) << precise.err;
  const Json found = Json::parse(precise.out)["replications"];
  EXPECT_EQ(found["until"]["reached"], true);
  EXPECT_EQ(found["count"], 10);
  EXPECT_EQ(run({"run", s, "--until", "ttft_ms.mean+-40%", "-o", "json", "-q", "-j", "1"}).out,
            precise.out);
  const Result capped = run({"run", s, "--until", "ttft_ms.mean±0.0001%", "--replications", "3"});
  EXPECT_EQ(capped.code, 4);
  EXPECT_NE(capped.err.find("3 replications were not enough"), std::string::npos) << capped.err;
  EXPECT_NE(capped.out.find("not reached"), std::string::npos);
}

TEST_F(Decisions, GoodputGatesRunsAndComparisons) {
  const auto path = [this](const std::string& name) { return (folder_ / name).string(); };
  const std::string strict =
      write("strict.yaml", slurp(tiny()) + "goodput: [ttft:1ns]\nexpect: [goodput > 0.5]\n");
  const std::string lax =
      write("lax.yaml", slurp(tiny()) + "goodput: [ttft:1000s]\nexpect: [goodput > 0.5]\n");
  EXPECT_EQ(run({"run", strict, "-q", "-o", "json=" + path("strict.json")}).code, 1);
  const Result table = run({"run", lax, "-q"});
  EXPECT_EQ(table.code, 0) << table.out << table.err;
  EXPECT_NE(table.out.find("requests within goals, %"), std::string::npos) << table.out;
  // The other seeds count, too.
  EXPECT_EQ(run({"run", strict, "-q", "--replications", "3"}).code, 1);
  const Result many = run({"run", lax, "-q", "--replications", "3", "-o", "json"});
  EXPECT_EQ(many.code, 0) << many.err;
  const Json metrics = Json::parse(many.out)["replications"]["variants"][0]["summary"]["metrics"];
  EXPECT_EQ(metrics["goodput"]["values"], Json({1, 1, 1}));

  EXPECT_EQ(run({"run", lax, "-q", "-o", "json=" + path("lax.json")}).code, 0);
  const auto compare = [&](const char* base, const char* now) {
    return run({"compare", path(base), path(now), "--fail-if", "goodput<-5%"}).code;
  };
  EXPECT_EQ(compare("lax.json", "strict.json"), 1);
  EXPECT_EQ(compare("strict.json", "lax.json"), 0);
  EXPECT_EQ(compare("lax.json", "lax.json"), 0);
}

TEST_F(Decisions, GoodputNeedsGoals) {
  const std::string s = expecting("- goodput > 0.5\n");
  const Result none = run({"run", s, "-q"});
  EXPECT_EQ(none.code, 2);
  EXPECT_EQ(none.out, "");
  EXPECT_NE(none.err.find("there are no goals to count good requests by"), std::string::npos)
      << none.err;
  EXPECT_EQ(run({"run", s, "-q", "--goodput", "ttft:1000s"}).code, 0);
  EXPECT_EQ(run({"run", s, "-q", "--goodput", "ttft:1ns"}).code, 1);
}

TEST_F(Decisions, UsageErrors) {
  const std::string s = tiny();
  const std::vector<std::vector<std::string>> wrong = {
      {"run", s, "--replications", "0"},
      {"run", s, "--jobs", "0"},
      {"run", s, "--until", "ttft_ms.mean"},
      {"run", s, "--until", "ttft.mean±2"},
      {"run", s, "--until", "ttft_ms.mean±2%", "--replications", "1"},
      {"compare"},
      {"compare", s},
      {"compare", s, s},
      {"compare", s, s, "--fail-if", "ttft_ms.p99"},
      {"compare", s, s, "-o", "xml"},
      {"compare", s, s, s}};
  for (const auto& arguments : wrong) {
    const Result result = run(arguments);
    EXPECT_EQ(result.code, 2) << arguments.back() << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_NE(result.err, "");
  }
}

TEST_F(Decisions, ExpectationsDecideTheExitCode) {
  const std::string holds = expecting("- ttft_ms.p99 < 60000\n- failed_requests <= 0\n");
  const Result good = run({"run", holds, "-q"});
  EXPECT_EQ(good.code, 0) << good.out << good.err;
  EXPECT_NE(good.out.find("holds"), std::string::npos);

  const std::string fails = expecting("- {that: ttft_ms.p99 < 1, variant: chance, stage: '0'}\n");
  const Result bad = run({"run", fails, "-q", "-o", "github"});
  EXPECT_EQ(bad.code, 1);
  EXPECT_NE(bad.out.find("tiny-expect.yaml,line=13,col=10"), std::string::npos) << bad.out;
  EXPECT_EQ(bad.out.rfind("::error file=", 0), 0U) << bad.out;
  EXPECT_EQ(Json::parse(run({"run", fails, "-q", "-o", "json"}).out)["expectations"][0]["decision"],
            "fails");
  EXPECT_EQ(run({"run", fails, "-q", "--variant", "rotation"}).code, 0) << "not about it";

  // A bound in the middle of the seeds: no interval of a few runs can decide.
  const Json found =
      Json::parse(run({"run", tiny(), "-q", "-o", "json", "--replications", "3"}).out);
  const double middle =
      found["replications"]["variants"][0]["summary"]["metrics"]["ttft_ms.mean"]["mean"];
  const std::string unclear =
      expecting("- {that: ttft_ms.mean < " + std::to_string(middle) + ", variant: rotation}\n");
  const Result undecided = run({"run", unclear, "-q", "--replications", "3"});
  EXPECT_EQ(undecided.code, 4) << undecided.out;
  EXPECT_NE(undecided.out.find("undecided"), std::string::npos);
}

TEST_F(Decisions, ExpectationsAreCheckedBeforeTheRun) {
  const std::string s = expecting(
      "- tttf_ms.p99 < 5\n"
      "- {that: ttft_ms.p99 < 5, variant: chanse}\n"
      "- {that: ttft_ms.p99 < 5, stage: nine}\n"
      "- ttft_ms.p99 < 5% of nobody\n"
      "- {thta: 5}\n");
  for (const std::string& command : std::vector<std::string>{"run", "check"}) {
    const Result result = run({command, s});
    EXPECT_EQ(result.code, 2);
    EXPECT_NE(result.err.find("unknown key"), std::string::npos) << result.err;
  }
  const std::string t = expecting(
      "- tttf_ms.p99 < 5\n"
      "- {that: ttft_ms.p99 < 5, variant: chanse}\n"
      "- {that: ttft_ms.p99 < 5, stage: nine}\n"
      "- ttft_ms.p99 < 5% of nobody\n");
  for (const std::string& command : std::vector<std::string>{"run", "check"}) {
    const Result result = run({command, t});
    EXPECT_EQ(result.code, 2);
    for (const char* part :
         {"expect.yaml:13:3: error: expect[0]: is not a metric (got tttf_ms.p99)",
          "did you mean ttft_ms.p99?", "expect.yaml:14:36: error: expect[1].variant: there is no",
          "did you mean chance?", "expect.yaml:15:34: error: expect[2].stage: there is no stage",
          "expect.yaml:16:3: error: expect[3]: there is no variant 'nobody'"})
      EXPECT_NE(result.err.find(part), std::string::npos) << part << "\n" << result.err;
  }
  EXPECT_EQ(run({"run", tiny(), "-q", "--set", "expect=[ttft_ms.p99 < 1]"}).code, 1)
      << "--set goes through the same reader";
}

TEST_F(Decisions, JunitIsXml) {
  const std::string s =
      expecting("- ttft_ms.p99 < 1\n- failed_requests <= 0\n- ttft_ms.mean < 1% of rotation\n");
  const Result result = run({"run", s, "-q", "-o", "junit"});
  EXPECT_EQ(result.code, 1);
  const XmlCheck xml(result.out);
  EXPECT_EQ(xml.count("testsuite"), 1);
  EXPECT_EQ(xml.count("testcase"), 5) << "two of two variants, and one of the second";
  EXPECT_EQ(xml.count("failure"), 3) << result.out;
  EXPECT_EQ(XmlCheck(run({"run", tiny(), "-q", "-o", "junit"}).out).count("testcase"), 1);
  EXPECT_THROW(XmlCheck("<?xml version=\"1.0\" encoding=\"UTF-8\"?><a><b></a></b>"),
               std::runtime_error);
}

TEST_F(Decisions, CompareTwoResults) {
  const std::string base = (folder_ / "base.json").string();
  const std::string slow = (folder_ / "slow.json").string();
  ASSERT_EQ(run({"run", tiny(), "-q", "--replications", "8", "-o", "json=" + base}).code, 0);
  ASSERT_EQ(run({"run", tiny(), "-q", "--replications", "8", "-o", "json=" + slow, "--set",
                 "cluster.pools[a].replicas=1"})
                .code,
            0);
  const Result same = run({"compare", base, base, "--fail-if", "ttft_ms.p99>+0%"});
  EXPECT_EQ(same.code, 0) << same.out << same.err;
  EXPECT_NE(same.out.find("not distinguishable"), std::string::npos);
  const Result worse = run({"compare", base, slow, "--fail-if", "ttft_ms.mean>+5%"});
  EXPECT_EQ(worse.code, 1) << worse.out;
  EXPECT_NE(worse.out.find("8 pairs of runs"), std::string::npos) << worse.out;
  EXPECT_EQ(run({"compare", base, slow}).code, 0) << "without gates it only shows";
  EXPECT_EQ(run({"compare", slow, base, "--fail-if", "ttft_ms.mean>+5%"}).code, 0);
  const Result data = run({"compare", base, slow, "-o", "json"});
  EXPECT_EQ(Json::parse(data.out)["pairs"].size(), 2U);
  const XmlCheck xml(
      run({"compare", base, slow, "-o", "junit", "--fail-if", "ttft_ms.mean>+5%"}).out);
  EXPECT_EQ(xml.count("testcase"), 2);
  EXPECT_GE(xml.count("failure"), 1);
  const Result two = run({"compare", base, "--variant", "rotation", "--variant", "chance"});
  EXPECT_EQ(two.code, 0) << two.err;
  EXPECT_NE(two.out.find("rotation → chance, whole run"), std::string::npos) << two.out;
  const Result broken = run({"compare", base, write("broken.json", "{\"scenario\": 5}")});
  EXPECT_EQ(broken.code, 2);
  EXPECT_NE(broken.err.find("broken.json:1:14: error: scenario: must be text (got 5)"),
            std::string::npos)
      << broken.err;
}

TEST_F(Decisions, InterruptedReplicationsSaySo) {
  const std::string out = (folder_ / "stdout").string();
  const std::string err = (folder_ / "stderr").string();
  const pid_t child =
      start({"run", tiny(), "--replications", "100000", "--progress", "never", "-o", "json", "-q"},
            out, err);
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  ::kill(child, SIGINT);
  EXPECT_EQ(wait_for(child), 130);
  const Json found = Json::parse(slurp(out));
  EXPECT_EQ(found["interrupted"], true);
  EXPECT_LT(found["replications"]["count"], 100'000);
  EXPECT_EQ(found["replications"]["seeds"].size(), found["replications"]["count"]);
}

// The experiments that nothing was fitted to run as they are shipped, and come out as they were
// measured where their `expect:` says so.
TEST_F(Cli, HeldOutExperimentsComeOutAsMeasured) {
  std::size_t files = 0;
  for (const auto& entry :
       fs::directory_iterator(fs::path(ROUTESIM_SOURCE_DIR) / "scenarios/holdout")) {
    if (entry.path().extension() != ".yaml") continue;
    const Result result = run({"run", entry.path().string(), "-q", "-o", "csv"});
    EXPECT_EQ(result.code, 0) << entry.path() << result.err;
    ++files;
  }
  EXPECT_EQ(files, 3U);
}

}  // namespace
}  // namespace routesim::tools::testing

namespace routesim::tools {
namespace {

// Every metric that docs/metrics.md names can be gated, expected and waited for.

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
