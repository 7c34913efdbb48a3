// Replications, expectations and comparisons as a user runs them, and what a build server is told.
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/cli/cli_fixture.h"
#include "tests/cli/xml_check.h"

namespace routesim::tools::testing {
namespace {

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

}  // namespace
}  // namespace routesim::tools::testing
